#include "ordo/app/option_values.h"

#include <charconv>

#include "ordo/core/units.h"

namespace ordo::app {
namespace {

Error refuse(std::string_view option, std::string_view text, const std::string& allowed) {
  return {ErrorCode::invalid_argument,
          std::string(option) + ": '" + std::string(text) + "' is not " + allowed};
}

Error refuse(std::string_view option, const Error& reason) {
  return {reason.code, std::string(option) + ": " + reason.message};
}

bool parse_digits(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<std::uint64_t> parse_count(std::string_view option, std::string_view text,
                                  CountRange range) {
  std::uint64_t value = 0;
  if (parse_digits(text, value) && value >= range.min && value <= range.max) return value;
  return refuse(option, text,
                "a number from " + std::to_string(range.min) + " to " + std::to_string(range.max));
}

Result<CountRange> parse_range(std::string_view option, std::string_view text, std::uint64_t max) {
  const std::size_t dots = text.find("..");
  CountRange range;
  if (dots != std::string_view::npos && parse_digits(text.substr(0, dots), range.min) &&
      parse_digits(text.substr(dots + 2), range.max) && range.min >= 1 && range.min <= range.max &&
      range.max <= max) {
    return range;
  }
  return refuse(option, text,
                "MIN..MAX with 1 <= MIN <= MAX <= " + std::to_string(max) + ", for example 1..8");
}

Result<std::chrono::nanoseconds> parse_time(std::string_view option, std::string_view text,
                                            bool positive) {
  Result<std::chrono::nanoseconds> time = parse_duration(text);
  if (!time) return refuse(option, time.error());
  constexpr std::chrono::nanoseconds kMax = std::chrono::hours(24) * 36'500;
  if (*time > kMax)
    return refuse(option, text, "a time up to 36500d");  // So that now() + it is one.
  if (positive && time->count() == 0) return refuse(option, text, "longer than no time at all");
  return *time;
}

Result<std::uint64_t> parse_bytes(std::string_view option, std::string_view text) {
  Result<std::uint64_t> size = parse_size(text);
  if (!size) return refuse(option, size.error());
  constexpr std::uint64_t kMax = std::uint64_t{1} << 40;
  if (*size == 0 || *size > kMax) return refuse(option, text, "a size from 1 byte to 1TiB");
  return *size;
}

Result<char> parse_character(std::string_view option, std::string_view text) {
  if (text == "\\t") return '\t';
  if (text.size() == 1) return text[0];
  return refuse(option, text, "one character, or \\t for a tab");
}

}  // namespace ordo::app
