#include "ordo/gateway/oms_settings.h"

#include <chrono>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace ordo::gateway {
namespace {

std::string message_of(const OmsSettings& settings) {
  const Status status = check_settings(settings);
  return status ? "" : status.error().message;
}

TEST(OmsSettingsTest, APatternMatchesAsShellsDo) {
  EXPECT_TRUE(matches("*", "ACME"));
  EXPECT_TRUE(matches("ACME", "ACME"));
  EXPECT_TRUE(matches("A*", "ACME"));
  EXPECT_TRUE(matches("*E", "ACME"));
  EXPECT_TRUE(matches("A*M*E", "ACME"));
  EXPECT_TRUE(matches("????", "ACME"));
  EXPECT_TRUE(matches("AC?E*", "ACME"));
  EXPECT_TRUE(matches("*ab*abc", "xababxabc"));
  EXPECT_TRUE(matches("**", "A"));
  EXPECT_FALSE(matches("???", "ACME"));
  EXPECT_FALSE(matches("?????", "ACME"));
  EXPECT_FALSE(matches("B*", "ACME"));
  EXPECT_FALSE(matches("ACME", "ACMEX"));
  EXPECT_FALSE(matches("ACMEX", "ACME"));
  EXPECT_FALSE(matches("acme", "ACME"));
}

// The rule as it is defined, in exponential time.
bool matches_by_definition(std::string_view pattern, std::string_view symbol) {
  if (pattern.empty()) return symbol.empty();
  if (pattern.front() == '*') {
    return matches_by_definition(pattern.substr(1), symbol) ||
           (!symbol.empty() && matches_by_definition(pattern, symbol.substr(1)));
  }
  return !symbol.empty() && (pattern.front() == '?' || pattern.front() == symbol.front()) &&
         matches_by_definition(pattern.substr(1), symbol.substr(1));
}

TEST(OmsSettingsTest, APatternMatchesAsItIsDefined) {
  std::mt19937 random(3);
  for (int i = 0; i < 50'000; ++i) {
    std::string pattern;
    std::string symbol;
    for (std::size_t n = random() % 7; n > 0; --n)
      pattern += "ab*?"[random() % 4];
    for (std::size_t n = random() % 8; n > 0; --n)
      symbol += "ab"[random() % 2];
    ASSERT_EQ(matches(pattern, symbol), matches_by_definition(pattern, symbol))
        << pattern << " " << symbol;
  }
}

TEST(OmsSettingsTest, DefaultsMakeSense) {
  EXPECT_TRUE(check_settings(OmsSettings{}));
}

TEST(OmsSettingsTest, TheMessageNamesTheFieldAndWhatIsAllowed) {
  EXPECT_EQ(message_of({.routes = {{.symbol = "", .venue = "X"}}}),
            "route[1].symbol is ''; a symbol pattern has 1 to 24 visible ASCII characters");
  EXPECT_EQ(message_of({.routes = {{.venue = "X"}, {.venue = "two words"}}}),
            "route[2].venue is 'two words'; a venue has 1 to 32 visible ASCII characters");
  EXPECT_EQ(
      message_of(
          {.routes = {{.quantity_min = Quantity{2}, .quantity_max = Quantity{1}, .venue = "X"}}}),
      "route[1].min_qty is above its maximum; nothing could match");
  EXPECT_EQ(message_of({.routes = {{.price_min = Price{2}, .price_max = Price{1}, .venue = "X"}}}),
            "route[1].min_price is above its maximum; nothing could match");
  EXPECT_EQ(message_of({.default_venue = std::string(33, 'V')}),
            "oms.default_venue is '" + std::string(33, 'V') +
                "'; a venue has 1 to 32 visible ASCII characters");
  EXPECT_EQ(message_of({.forget_after = std::chrono::nanoseconds(-1)}),
            "oms.forget_after is -1 ns; it must be between 0 and 365d");
  EXPECT_EQ(message_of({.orders_max = 0}),
            "oms.orders_max is 0; it must be between 1 and 2147483648");
  EXPECT_EQ(message_of({.risk = {.quantity_max = Quantity{0}}}), "risk.max_qty is not above zero");
  EXPECT_EQ(message_of({.risk = {.notional_max = Notional{}}}),
            "risk.max_notional is not above zero");
  EXPECT_EQ(message_of({.risk = {.collars = {{.symbol = "A*"}}}}),
            "risk.collar[1] has neither min_price nor max_price; it needs one of them");
  EXPECT_EQ(message_of({.routes = std::vector<RouteRule>(4'097, {.venue = "X"})}),
            "route has 4097 entries; there may be 4096");
}

}  // namespace
}  // namespace ordo::gateway
