#include "ordo/gateway/decimal.h"

#include <cstddef>
#include <limits>

namespace ordo::gateway {
namespace {

constexpr std::size_t kDecimals = 9;
constexpr std::uint64_t kNanosPerUnit = 1'000'000'000;
constexpr std::uint64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr unsigned digit_of(char c) {
  return static_cast<unsigned>(c - '0');
}

// Reads the digits at the front of `text` and takes them off it.
template <class Number>
NumberFault take_digits(std::string_view& text, Number most, Number& value) {
  value = 0;
  if (text.empty() || !is_digit(text.front())) return NumberFault::not_a_number;
  bool fits = true;
  std::size_t length = 0;
  for (; length < text.size() && is_digit(text[length]); ++length) {
    const unsigned digit = digit_of(text[length]);
    fits = fits && value <= (most - digit) / 10;
    if (fits) value = value * 10 + digit;
  }
  text.remove_prefix(length);
  return fits ? NumberFault::none : NumberFault::too_large;
}

// A number with up to nine decimals, in billionths. Faults of form go before faults of size.
template <class Number>
NumberFault parse_fixed(std::string_view text, Number most, Number& nanos) {
  Number whole = 0;
  const NumberFault size = take_digits<Number>(text, most / kNanosPerUnit, whole);
  if (size == NumberFault::not_a_number) return size;
  Number fraction = 0;
  if (!text.empty()) {
    if (text.front() != '.') return NumberFault::not_a_number;
    text.remove_prefix(1);
    const std::string_view decimals = text;
    const NumberFault fault = take_digits<Number>(text, kNanosPerUnit - 1, fraction);
    if (fault == NumberFault::not_a_number || !text.empty()) return NumberFault::not_a_number;
    if (decimals.size() > kDecimals) return NumberFault::too_fine;
    for (std::size_t i = decimals.size(); i < kDecimals; ++i)
      fraction *= 10;
  }
  if (size != NumberFault::none) return size;
  if (fraction > most - whole * kNanosPerUnit) return NumberFault::too_large;
  nanos = whole * kNanosPerUnit + fraction;
  return nanos == 0 ? NumberFault::zero : NumberFault::none;
}

}  // namespace

ParsedNumber<Quantity> parse_quantity(std::string_view text) {
  std::uint64_t count = 0;
  const NumberFault fault = take_digits<std::uint64_t>(text, kInt64Max, count);
  if (fault == NumberFault::not_a_number || !text.empty()) return {{}, NumberFault::not_a_number};
  if (fault != NumberFault::none) return {{}, fault};
  if (count == 0) return {{}, NumberFault::zero};
  return {Quantity{static_cast<std::int64_t>(count)}};
}

ParsedNumber<Price> parse_price(std::string_view text) {
  std::uint64_t nanos = 0;
  const NumberFault fault = parse_fixed<std::uint64_t>(text, kInt64Max, nanos);
  if (fault != NumberFault::none) return {{}, fault};
  return {Price{static_cast<std::int64_t>(nanos)}};
}

ParsedNumber<Notional> parse_notional(std::string_view text) {
  constexpr Wide kMost = static_cast<Wide>(1'000'000'000'000'000'000) * 10 * kNanosPerUnit *
                         kNanosPerUnit;  // 10^28 in billionths.
  Wide nanos = 0;
  const NumberFault fault = parse_fixed<Wide>(text, kMost, nanos);
  if (fault != NumberFault::none) return {{}, fault};
  return {Notional{nanos}};
}

std::string to_text(Price price) {
  const std::uint64_t nanos = static_cast<std::uint64_t>(price.nanos);
  std::string text = std::to_string(nanos / kNanosPerUnit);
  std::uint64_t fraction = nanos % kNanosPerUnit;
  if (fraction == 0) return text;
  std::string decimals = std::to_string(kNanosPerUnit + fraction);  // A leading 1 keeps the zeros.
  decimals.front() = '.';
  decimals.erase(decimals.find_last_not_of('0') + 1);
  return text + decimals;
}

}  // namespace ordo::gateway
