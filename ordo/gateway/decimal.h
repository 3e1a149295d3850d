// Price, Quantity, Notional: the numbers of an order, exact. No floating point anywhere.
//
//   ParsedNumber<Price> price = parse_price("99.50");
//   if (price.fault != NumberFault::none) return name_of(price.fault);
//   Notional notional = notional_of(Quantity{10}, price.value);   // 995, exactly
//
// A price counts billionths: nine decimals, up to 9223372036.854775807. A number is digits, and for
// prices perhaps a point with digits on both sides: no sign, no exponent, no thousands separator.
// A price with more than nine decimals is refused, never rounded.
//
// Threads: plain values and pure functions.
// Cost:    about 1 ns per digit, no allocation.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace ordo::gateway {

__extension__ using Wide = unsigned __int128;

// How many pieces. Never negative.
struct Quantity {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.count + b.count}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.count - b.count}; }
};

// What one piece costs, in billionths of the currency. Never negative.
struct Price {
  std::int64_t nanos = 0;

  friend constexpr auto operator<=>(const Price&, const Price&) = default;
};

// Quantity times price, in billionths of the currency: the product of any two fits.
struct Notional {
  Wide nanos = 0;

  friend constexpr auto operator<=>(const Notional&, const Notional&) = default;
};

// REQUIRES: neither is negative.
constexpr Notional notional_of(Quantity quantity, Price price) {
  return {static_cast<Wide>(quantity.count) * static_cast<Wide>(price.nanos)};
}

// What is wrong with a number.
enum class NumberFault : std::uint8_t {
  none,
  not_a_number,  // Empty, or something else than digits and (for prices) one point between them.
  zero,
  too_large,
  too_fine,  // More than nine decimals.
};

template <class Number>
struct ParsedNumber {
  Number value;
  NumberFault fault = NumberFault::none;
};

// A whole number from 1 to 9223372036854775807.
ParsedNumber<Quantity> parse_quantity(std::string_view text);
// Above zero, up to 9223372036.854775807.
ParsedNumber<Price> parse_price(std::string_view text);
// Above zero, up to 10^28.
ParsedNumber<Notional> parse_notional(std::string_view text);

// As short as it can be: 99.5, 100, 0.000000001. Reading it back gives the same price.
std::string to_text(Price price);

}  // namespace ordo::gateway
