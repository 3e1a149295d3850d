#include "ordo/adapters/http2/grpc_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace ordo::http2 {
namespace {

constexpr std::string_view kGrpc = "application/grpc";
constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> kSixBits = [] {
  std::array<std::int8_t, 256> table{};
  table.fill(-1);
  for (std::size_t i = 0; i < kBase64.size(); ++i)
    table[static_cast<unsigned char>(kBase64[i])] = static_cast<std::int8_t>(i);
  return table;
}();

std::optional<std::chrono::nanoseconds> unit_of(char letter) {
  switch (letter) {
    case 'H':
      return std::chrono::hours(1);
    case 'M':
      return std::chrono::minutes(1);
    case 'S':
      return std::chrono::seconds(1);
    case 'm':
      return std::chrono::milliseconds(1);
    case 'u':
      return std::chrono::microseconds(1);
    case 'n':
      return std::chrono::nanoseconds(1);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_timeout(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  const auto unit = unit_of(text.back());
  if (!unit) return std::nullopt;
  std::int64_t number = 0;
  for (const char digit : text.substr(0, text.size() - 1)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + (digit - '0');
  }
  constexpr std::int64_t kYear = std::chrono::nanoseconds(std::chrono::hours(24 * 365)).count();
  if (number > kYear / unit->count()) return std::chrono::nanoseconds(kYear);  // As good as never.
  return *unit * number;
}

bool looks_like_grpc(std::string_view content_type) {
  return content_type.starts_with(kGrpc);
}

bool is_grpc_content_type(std::string_view text) {
  if (!looks_like_grpc(text)) return false;
  text.remove_prefix(kGrpc.size());
  return text.empty() || text.front() == '+' || text.front() == ';';
}

std::string percent_encoded(std::string_view text, std::size_t bytes_max) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kMore = "...";
  std::string encoded;
  encoded.reserve(std::min(text.size(), bytes_max));
  std::size_t whole = 0;  // Up to here all letters are whole, and kMore has room behind them.
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    const bool begins_letter = (byte & 0xC0) != 0x80;
    if (begins_letter && encoded.size() + kMore.size() <= bytes_max) whole = encoded.size();
    if (encoded.size() > bytes_max) break;
    if (byte >= 0x20 && byte <= 0x7E && byte != '%') {
      encoded.push_back(character);
    } else {
      encoded.push_back('%');
      encoded.push_back(kHex[byte >> 4]);
      encoded.push_back(kHex[byte & 15]);
    }
  }
  if (encoded.size() > bytes_max) encoded.replace(whole, std::string::npos, kMore);
  return encoded;
}

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char character : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(character);
    for (count += 8; count >= 6; count -= 6)
      text.push_back(kBase64[bits >> (count - 6) & 63]);
  }
  if (count > 0) text.push_back(kBase64[bits << (6 - count) & 63]);
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding)
    text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char character : text) {
    const std::int8_t six = kSixBits[static_cast<unsigned char>(character)];
    if (six < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(six);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xFF));
  }
  return bytes;
}

}  // namespace ordo::http2
