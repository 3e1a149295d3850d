#include "ordo/gateway/decimal.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace ordo::gateway {
namespace {

NumberFault quantity_fault(std::string_view text) {
  return parse_quantity(text).fault;
}
NumberFault price_fault(std::string_view text) {
  return parse_price(text).fault;
}

TEST(DecimalTest, AQuantityIsAWholeNumberAboveZero) {
  EXPECT_EQ(parse_quantity("1").value, Quantity{1});
  EXPECT_EQ(parse_quantity("007").value, Quantity{7});
  EXPECT_EQ(parse_quantity("9223372036854775807").value,
            Quantity{std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(quantity_fault("0"), NumberFault::zero);
  EXPECT_EQ(quantity_fault("000"), NumberFault::zero);
  for (const char* text : {"", "-1", "+1", "1.0", "1e3", "1,000", "0x10", "one", " 1", "1 "}) {
    EXPECT_EQ(quantity_fault(text), NumberFault::not_a_number) << text;
  }
}

TEST(DecimalTest, AQuantityBeyond63BitsIsTooLarge) {
  EXPECT_EQ(quantity_fault("9223372036854775808"), NumberFault::too_large);
  EXPECT_EQ(quantity_fault("18446744073709551616"), NumberFault::too_large);  // 2^64
  EXPECT_EQ(quantity_fault("18446744073709551617"), NumberFault::too_large);
  EXPECT_EQ(quantity_fault(std::string(1000, '9')), NumberFault::too_large);
  EXPECT_EQ(quantity_fault(std::string(1000, '9') + "x"), NumberFault::not_a_number);
  EXPECT_EQ(parse_quantity(std::string(1000, '0') + "5").value, Quantity{5});
}

TEST(DecimalTest, APriceHasUpToNineDecimalsAndIsExact) {
  EXPECT_EQ(parse_price("99.5").value, Price{99'500'000'000});
  EXPECT_EQ(parse_price("99.50").value, Price{99'500'000'000});
  EXPECT_EQ(parse_price("100").value, Price{100'000'000'000});
  EXPECT_EQ(parse_price("0.1").value, Price{100'000'000});
  EXPECT_EQ(parse_price("0.000000001").value, Price{1});
  EXPECT_EQ(parse_price("9223372036.854775807").value,
            Price{std::numeric_limits<std::int64_t>::max()});
}

TEST(DecimalTest, APriceThatCannotBeKeptExactlyIsRefusedAndNeverRounded) {
  EXPECT_EQ(price_fault("0.0000000001"), NumberFault::too_fine);
  EXPECT_EQ(price_fault("1.0000000000"), NumberFault::too_fine);
  EXPECT_EQ(price_fault("9223372036.854775808"), NumberFault::too_large);
  EXPECT_EQ(price_fault("9223372037"), NumberFault::too_large);
  EXPECT_EQ(price_fault("99999999999999999999999"), NumberFault::too_large);
  EXPECT_EQ(price_fault("0"), NumberFault::zero);
  EXPECT_EQ(price_fault("0.000"), NumberFault::zero);
}

TEST(DecimalTest, WhatIsNoNumberIsNoPrice) {
  for (const char* text : {"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "1.2.3", "nan", "inf",
                           "1.5x", "99999999999999999999999x", "1. 5", "0x1"}) {
    EXPECT_EQ(price_fault(text), NumberFault::not_a_number) << text;
  }
}

TEST(DecimalTest, ANotionalHoldsTheProductOfTheLargestQuantityAndPrice) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Notional notional = notional_of(Quantity{kMost}, Price{kMost});
  EXPECT_TRUE(notional.nanos / static_cast<Wide>(kMost) == static_cast<Wide>(kMost));
  EXPECT_TRUE(notional_of(Quantity{10}, parse_price("99.5").value) == parse_notional("995").value);
}

TEST(DecimalTest, ANotionalMayBeLargerThanAnyPrice) {
  EXPECT_EQ(parse_notional("10000000000000000000000000000").fault, NumberFault::none);
  EXPECT_EQ(parse_notional("10000000000000000000000000000.1").fault, NumberFault::too_large);
  EXPECT_EQ(parse_notional("10000000000000000000000000001").fault, NumberFault::too_large);
  EXPECT_EQ(parse_notional("0").fault, NumberFault::zero);
  EXPECT_EQ(parse_notional("1e6").fault, NumberFault::not_a_number);
}

TEST(DecimalTest, ReadingBackAWrittenPriceGivesTheSamePrice) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const Price price{static_cast<std::int64_t>(random() >> (1 + random() % 62)) + 1};
    const ParsedNumber<Price> back = parse_price(to_text(price));
    ASSERT_EQ(back.fault, NumberFault::none) << to_text(price);
    ASSERT_EQ(back.value, price) << to_text(price);
  }
  EXPECT_EQ(to_text(Price{99'500'000'000}), "99.5");
  EXPECT_EQ(to_text(Price{100'000'000'000}), "100");
  EXPECT_EQ(to_text(Price{1}), "0.000000001");
}

}  // namespace
}  // namespace ordo::gateway
