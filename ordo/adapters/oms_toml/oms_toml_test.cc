#include "ordo/adapters/oms_toml/oms_toml.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "ordo/adapters/config_toml/config_table.h"

namespace ordo::oms_toml {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using gateway::OmsSettings;
using gateway::Price;
using gateway::Quantity;

const char* const kWhole = R"(
[gateway]
listen = "127.0.0.1:7070"
anything = 1.5

[[route]]
symbol = "AA*"
min_qty = 1
max_qty = 1000
min_price = "0.01"
max_price = 500
venue = "XNAS"

[[route]]
venue = "XNYS"

[risk]
max_qty = 100000
max_notional = "2500000.50"
max_open_orders = 5000
max_open_orders_per_symbol = 100

[[risk.collar]]
symbol = "AAPL"
min_price = "100"
max_price = "300.25"

[oms]
forget_after = "1m30s"
default_venue = "XLON"
orders_max = 5000
)";

std::string message_of(std::string_view text) {
  const Result<OmsSettings> settings = parse_oms_toml(text, "g.toml", {"gateway"});
  return settings ? "" : settings.error().message;
}

TEST(OmsTomlTest, EverySettingIsRead) {
  const Result<OmsSettings> settings = parse_oms_toml(kWhole, "g.toml", {"gateway"});
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->routes.size(), 2U);
  EXPECT_EQ(settings->routes[0].symbol, "AA*");
  EXPECT_EQ(settings->routes[0].quantity_min, Quantity{1});
  EXPECT_EQ(settings->routes[0].quantity_max, Quantity{1000});
  EXPECT_EQ(settings->routes[0].price_min, Price{10'000'000});
  EXPECT_EQ(settings->routes[0].price_max, Price{500'000'000'000});
  EXPECT_EQ(settings->routes[0].venue, "XNAS");
  EXPECT_EQ(settings->routes[1].symbol, "*");
  EXPECT_TRUE(settings->routes[1].is_unconditional());
  EXPECT_EQ(settings->risk.quantity_max, Quantity{100'000});
  EXPECT_TRUE(settings->risk.notional_max == gateway::parse_notional("2500000.5").value);
  EXPECT_EQ(settings->risk.open_orders_max, 5'000U);
  EXPECT_EQ(settings->risk.symbol_open_orders_max, 100U);
  ASSERT_EQ(settings->risk.collars.size(), 1U);
  EXPECT_EQ(settings->risk.collars[0].symbol, "AAPL");
  EXPECT_EQ(settings->risk.collars[0].price_max, Price{300'250'000'000});
  EXPECT_EQ(settings->forget_after, 90s);
  EXPECT_EQ(settings->default_venue, "XLON");
  EXPECT_EQ(settings->orders_max, 5'000U);
}

TEST(OmsTomlTest, AnEmptyFileGivesTheDefaults) {
  const Result<OmsSettings> settings = parse_oms_toml("", "g.toml");
  ASSERT_TRUE(settings);
  EXPECT_TRUE(settings->routes.empty());
  EXPECT_EQ(settings->forget_after, 60s);
  EXPECT_EQ(settings->orders_max, 1'000'000U);
  EXPECT_FALSE(settings->risk.quantity_max);
}

TEST(OmsTomlTest, TheExampleIsValid) {
  std::ifstream file(ORDO_EXAMPLE_TOML);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(message_of(text), "");
}

// In one program, as they are in `ordo`: each brings toml++ with it, and it has to be the same one.
TEST(OmsTomlTest, AFileIsReadByBothReadersOfOneProgram) {
  const auto entries = config_toml::read_table(kWhole, "g.toml", "oms");
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_FALSE(entries->empty());
  EXPECT_EQ(message_of(kWhole), "");
  EXPECT_FALSE(config_toml::read_table("[oms]\nx = = 1\n", "g.toml", "oms"));
  EXPECT_NE(message_of("[oms]\nx = = 1\n"), "");
}

TEST(OmsTomlTest, WhatIsUnknownIsRefusedWithASuggestion) {
  EXPECT_EQ(message_of("\n[rsik]\nmax_qty = 1\n"),
            "g.toml:2: table 'rsik' is unknown; did you mean 'risk'? "
            "allowed: gateway, oms, risk, route");
  EXPECT_EQ(message_of("[risk]\nmax_qyt = 1\n"),
            "g.toml:2: risk.max_qyt is unknown; did you mean 'max_qty'? allowed: max_qty, "
            "max_notional, max_open_orders, max_open_orders_per_symbol, collar");
  EXPECT_EQ(message_of("[[route]]\nvenue = \"X\"\n\n[[route]]\nvenu = \"X\"\n"),
            "g.toml:5: route.venu is unknown; did you mean 'venue'? allowed: symbol, min_qty, "
            "max_qty, min_price, max_price, venue");
  EXPECT_EQ(message_of("zzzzzz = 1\n"),
            "g.toml:1: 'zzzzzz' is unknown; allowed: gateway, oms, risk, route");
  EXPECT_NE(parse_oms_toml("[gateway]\n", "g.toml").has_value(), true);
}

TEST(OmsTomlTest, AFloatIsRefusedBecauseItIsNotExact) {
  EXPECT_EQ(message_of("[[route]]\nvenue = \"X\"\nmin_price = 0.1\n"),
            "g.toml:3: route.min_price is a TOML float, which is not exact; write it in quotes: "
            "min_price = \"99.5\"");
  EXPECT_EQ(message_of("[risk]\nmax_notional = 1e6\n"),
            "g.toml:2: risk.max_notional is a TOML float, which is not exact; write it in quotes: "
            "max_notional = \"99.5\"");
}

TEST(OmsTomlTest, TheMessageNamesFileLineFieldAndWhatIsAllowed) {
  EXPECT_EQ(message_of("[[route]]\nsymbol = \"A\"\n"),
            "g.toml:1: route.venue is missing; a rule says where to send what matches");
  EXPECT_EQ(message_of("[[route]]\nvenue = 5\n"),
            "g.toml:2: route.venue must be a text, in quotes");
  EXPECT_EQ(message_of("[[route]]\nvenue = \"X\"\nmax_qty = 0\n"),
            "g.toml:3: route.max_qty is 0; it must be a whole number from 1 on");
  EXPECT_EQ(message_of("[[route]]\nvenue = \"X\"\nmax_qty = \"7\"\n"),
            "g.toml:3: route.max_qty must be a whole number without quotes");
  EXPECT_EQ(message_of("[[route]]\nvenue = \"X\"\nmax_price = \"1.0123456789\"\n"),
            "g.toml:3: route.max_price is '1.0123456789'; it may have at most 9 decimals");
  EXPECT_EQ(message_of("[[route]]\nvenue = \"X\"\nmax_price = -1\n"),
            "g.toml:3: route.max_price is '-1'; it must be a number such as \"99.5\": digits, and "
            "perhaps a point between them");
  EXPECT_EQ(message_of("[[route]]\nvenue = \"X\"\nmax_price = 0\n"),
            "g.toml:3: route.max_price is '0'; it must be above zero");
  EXPECT_EQ(message_of("[risk]\nmax_open_orders = -1\n"),
            "g.toml:2: risk.max_open_orders is -1; it must be a whole number from 0 on");
  EXPECT_EQ(message_of("[oms]\nforget_after = 60\n"),
            "g.toml:2: oms.forget_after must be a text with a unit, such as \"60s\"");
  EXPECT_TRUE(
      message_of("[oms]\nforget_after = \"60\"\n").starts_with("g.toml:2: oms.forget_after: "))
      << message_of("[oms]\nforget_after = \"60\"\n");
  EXPECT_EQ(message_of("[route]\nvenue = \"X\"\n"), "g.toml:1: route must be written as [[route]]");
  EXPECT_EQ(message_of("route = [1]\n"), "g.toml:1: route must be written as [[route]]");
  EXPECT_EQ(message_of("[[risk]]\nmax_qty = 1\n"), "g.toml:1: risk must be a table: [risk]");
  EXPECT_EQ(message_of("[risk.collar]\nmin_price = 1\n"),
            "g.toml:1: collar must be written as [[risk.collar]]");
}

TEST(OmsTomlTest, WhatMakesNoSenseTogetherIsRefusedWithItsLine) {
  EXPECT_EQ(message_of("[[route]]\nvenue = \"X\"\n\n[[route]]\nvenue = \"Y\"\nmin_qty = 5\n"
                       "max_qty = 4\n"),
            "g.toml:4: route[2].min_qty is above its maximum; nothing could match");
  EXPECT_EQ(message_of("\n[[risk.collar]]\nsymbol = \"A\"\n"),
            "g.toml:2: risk.collar[1] has neither min_price nor max_price; it needs one of them");
  EXPECT_EQ(message_of("\n\n[oms]\ndefault_venue = \"two words\"\n"),
            "g.toml:3: oms.default_venue is 'two words'; a venue has 1 to 32 visible ASCII "
            "characters");
  EXPECT_EQ(message_of("[[route]]\nvenue = \"X\"\nsymbol = \"\"\n"),
            "g.toml:1: route[1].symbol is ''; a symbol pattern has 1 to 24 visible ASCII "
            "characters");
}

TEST(OmsTomlTest, WhatIsNoTomlIsRefusedWithItsLine) {
  EXPECT_TRUE(message_of("[oms]\nforget_after = \n").starts_with("g.toml:2: "));
  EXPECT_TRUE(message_of("[oms]\n[oms]\n").starts_with("g.toml:2: "));
  EXPECT_TRUE(message_of("[oms]\n[.]\n").starts_with("g.toml:2: a table is written as "));
  EXPECT_TRUE(message_of("[[route]]\nvenue = \"X\"\nvenue = \"Y\"\n").starts_with("g.toml:3: "));
}

// Goal: no file makes it crash, and every error has a line. Method: the whole file, cut off
// everywhere, and with random bytes changed.
TEST(OmsTomlTest, AnyFileIsReadOrRefused) {
  const std::string whole = kWhole;
  const auto expect_sound = [](const std::string& text) {
    const std::string message = message_of(text);
    EXPECT_TRUE(message.empty() || message.starts_with("g.toml:")) << message;
  };
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_sound(whole.substr(0, size));
  std::mt19937 random(5);
  for (int round = 0; round < 3'000; ++round) {
    std::string text = whole;
    for (std::size_t n = 1 + random() % 3; n > 0; --n)
      text[random() % text.size()] = static_cast<char>(random() % 128);
    expect_sound(text);
  }
}

}  // namespace
}  // namespace ordo::oms_toml
