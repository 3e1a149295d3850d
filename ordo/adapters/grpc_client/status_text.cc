#include "ordo/adapters/grpc_client/status_text.h"

#include <charconv>
#include <cstdint>

namespace ordo::grpc_client {

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      decoded += static_cast<char>(value);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

Status status_of(std::string_view code, std::string_view message) {
  int number = -1;
  const auto [end, error] = std::from_chars(code.data(), code.data() + code.size(), number);
  if (error == std::errc() && end == code.data() + code.size() && number == 0) return {};
  const bool is_code = number >= 1 && number <= static_cast<int>(ErrorCode::unauthenticated);
  const auto known = is_code ? static_cast<ErrorCode>(number) : ErrorCode::unknown;
  std::string text = percent_decoded(message);
  if (text.empty()) text = std::string(error_code_name(known));
  return Error{known, std::move(text)};
}

std::string timeout_text(std::int64_t nanoseconds) {
  struct Unit {
    char letter;
    std::int64_t size;
  };
  constexpr Unit kUnits[] = {{'n', 1}, {'u', 1'000}, {'m', 1'000'000}, {'S', 1'000'000'000}};
  constexpr std::int64_t kMost = 99'999'999;
  for (const Unit& unit : kUnits) {
    const std::int64_t count = nanoseconds / unit.size + (nanoseconds % unit.size != 0 ? 1 : 0);
    if (count <= kMost) return std::to_string(count) + unit.letter;
  }
  return std::to_string(kMost) + "S";
}

std::string message_prefix(std::size_t size) {
  return {0, static_cast<char>(size >> 24), static_cast<char>(size >> 16),
          static_cast<char>(size >> 8), static_cast<char>(size)};
}

std::size_t prefixed_size(std::string_view prefix) {
  std::size_t size = 0;
  for (const char byte : prefix.substr(1, 4))
    size = size << 8 | static_cast<unsigned char>(byte);
  return size;
}

}  // namespace ordo::grpc_client
