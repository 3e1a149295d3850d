#include "ordo/gateway/oms.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ordo::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.

Price price(std::string_view text) {
  return parse_price(text).value;
}

class OmsTest : public testing::Test {
 protected:
  OmsTest() { settings_.default_venue = "XNYS"; }

  Oms& oms() {
    if (!oms_) oms_ = std::make_unique<Oms>(std::make_shared<OmsSettings>(settings_), symbols_);
    return *oms_;
  }
  void reload() { oms().use(std::make_shared<OmsSettings>(settings_)); }

  std::string ask(std::int64_t id, std::string_view payload) {
    return std::string(oms().decide(id, payload, now_).text());
  }

  OmsSettings settings_;
  SymbolTable symbols_;
  TimePoint now_{1h};
  std::unique_ptr<Oms> oms_;
};

// One row of the transition table of docs/oms.md.
struct Transition {
  std::string name;
  std::vector<std::string> before;  // Instructions that lead to the state.
  std::string instruction;
  std::string decision;
  std::string status;  // What STATUS says afterwards.
};

std::vector<Transition> transitions() {
  const std::string order = "NEW ACME BUY 10 99.5";
  const std::vector<std::string> none;
  const std::vector<std::string> open = {order};
  const std::vector<std::string> part = {order, "FILL 4"};
  const std::vector<std::string> filled = {order, "FILL 10"};
  const std::vector<std::string> cancelled = {order, "FILL 4", "CANCEL"};
  const std::string unknown = "reject:unknown-order";
  const std::string closed = "reject:closed";
  return {
      {"NewMakesAnOrder", none, order, "route:XNYS", "status:open:10"},
      {"NewWithABadFieldMakesNone", none, "NEW ACME BUY 0 1", "reject:bad-field:quantity-is-zero",
       unknown},
      {"ReplaceOfNone", none, "REPLACE 1 1", unknown, unknown},
      {"CancelOfNone", none, "CANCEL", unknown, unknown},
      {"FillOfNone", none, "FILL 1", unknown, unknown},
      {"StatusOfNone", none, "STATUS", unknown, unknown},

      {"NewOfAnOpenOne", open, order, "reject:duplicate", "status:open:10"},
      {"ReplaceOfAnOpenOne", open, "REPLACE 20 100", "replaced", "status:open:20"},
      {"CancelOfAnOpenOne", open, "CANCEL", "cancelled", "status:cancelled:0"},
      {"FillOfSome", open, "FILL 4", "filled:6", "status:partially-filled:6"},
      {"FillOfAll", open, "FILL 10", "filled:0", "status:filled:0"},
      {"FillAboveOpen", open, "FILL 11", "reject:bad-field:quantity-above-open", "status:open:10"},
      {"StatusOfAnOpenOne", open, "STATUS", "status:open:10", "status:open:10"},
      {"BadFieldForAnOpenOne", open, "FILL x", "reject:bad-field:quantity-not-a-number",
       "status:open:10"},

      {"NewOfAPartlyFilledOne", part, order, "reject:duplicate", "status:partially-filled:6"},
      {"ReplaceAboveFilled", part, "REPLACE 5 1", "replaced", "status:partially-filled:1"},
      {"ReplaceToWhatIsFilled", part, "REPLACE 4 1", "replaced", "status:filled:0"},
      {"ReplaceBelowFilled", part, "REPLACE 3 1", "reject:bad-field:quantity-below-filled",
       "status:partially-filled:6"},
      {"CancelOfAPartlyFilledOne", part, "CANCEL", "cancelled", "status:cancelled:0"},
      {"FillOfSomeMore", part, "FILL 5", "filled:1", "status:partially-filled:1"},
      {"FillOfTheRest", part, "FILL 6", "filled:0", "status:filled:0"},
      {"FillAboveTheRest", part, "FILL 7", "reject:bad-field:quantity-above-open",
       "status:partially-filled:6"},

      {"NewOfAFilledOne", filled, order, "reject:duplicate", "status:filled:0"},
      {"ReplaceOfAFilledOne", filled, "REPLACE 20 1", closed, "status:filled:0"},
      {"CancelOfAFilledOne", filled, "CANCEL", closed, "status:filled:0"},
      {"FillOfAFilledOne", filled, "FILL 1", closed, "status:filled:0"},

      {"NewOfACancelledOne", cancelled, order, "reject:duplicate", "status:cancelled:0"},
      {"ReplaceOfACancelledOne", cancelled, "REPLACE 20 1", closed, "status:cancelled:0"},
      {"CancelOfACancelledOne", cancelled, "CANCEL", closed, "status:cancelled:0"},
      {"FillOfACancelledOne", cancelled, "FILL 1", closed, "status:cancelled:0"},
  };
}

class OmsTransition : public OmsTest, public testing::WithParamInterface<Transition> {};

TEST_P(OmsTransition, IsAsTheTableSays) {
  const Transition& transition = GetParam();
  for (const std::string& instruction : transition.before) {
    ASSERT_FALSE(ask(1, instruction).starts_with("reject")) << instruction;
  }
  EXPECT_EQ(ask(1, transition.instruction), transition.decision);
  EXPECT_EQ(ask(1, "STATUS"), transition.status);
  EXPECT_EQ(ask(2, "STATUS"), "reject:unknown-order");  // Nobody else's order.
}
INSTANTIATE_TEST_SUITE_P(Table, OmsTransition, testing::ValuesIn(transitions()),
                         [](const auto& row) { return row.param.name; });

TEST_F(OmsTest, OrdersNeedAnIdAndQuotesMustNotHaveOne) {
  for (const std::int64_t id : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
    for (const char* payload : {"NEW ACME BUY 1 1", "REPLACE 1 1", "CANCEL", "FILL 1", "STATUS"}) {
      EXPECT_EQ(ask(id, payload), "reject:bad-field:needs-a-correlation-id") << payload;
    }
    EXPECT_EQ(ask(id, "QUOTE ACME 1"), "target:XNYS");
  }
  EXPECT_EQ(ask(1, "QUOTE ACME 1"), "reject:bad-field:quote-has-correlation-id");
  EXPECT_EQ(ask(INT64_MAX, "NEW ACME BUY 1 1"), "route:XNYS");
}

TEST_F(OmsTest, TheFirstRuleThatMatchesWins) {
  settings_.routes = {
      {.symbol = "AA*", .quantity_max = Quantity{100}, .venue = "SMALL"},
      {.symbol = "AA*", .price_min = price("10"), .price_max = price("20"), .venue = "PRICED"},
      {.symbol = "A?", .quantity_min = Quantity{1'000}, .venue = "TWO"},
      {.symbol = "AA*", .quantity_min = Quantity{500}, .venue = "LARGE"}};
  EXPECT_EQ(ask(1, "NEW AAPL BUY 100 15"), "route:SMALL");
  EXPECT_EQ(ask(2, "NEW AAPL BUY 101 15"), "route:PRICED");
  EXPECT_EQ(ask(3, "NEW AAPL BUY 101 10"), "route:PRICED");
  EXPECT_EQ(ask(4, "NEW AAPL BUY 101 20"), "route:PRICED");
  EXPECT_EQ(ask(5, "NEW AAPL BUY 101 20.000000001"), "route:XNYS");
  EXPECT_EQ(ask(6, "NEW AAPL BUY 500 9.999999999"), "route:LARGE");
  EXPECT_EQ(ask(7, "NEW AA SELL 1000 1"), "route:TWO");
  EXPECT_EQ(ask(8, "NEW B BUY 1 1"), "route:XNYS");
}

TEST_F(OmsTest, AQuoteIgnoresRulesThatNeedAPrice) {
  settings_.routes = {{.symbol = "AA*", .price_max = price("1"), .venue = "PENNY"},
                      {.symbol = "AA*", .quantity_max = Quantity{10}, .venue = "SMALL"}};
  settings_.default_venue = "";
  EXPECT_EQ(ask(0, "QUOTE AAPL 10"), "target:SMALL");
  EXPECT_EQ(ask(0, "QUOTE AAPL 11"), "reject:no-route");
  EXPECT_EQ(ask(0, "QUOTE B 1"), "reject:no-route");
}

TEST_F(OmsTest, WithoutARouteThereIsNoOrder) {
  settings_.default_venue = "";
  EXPECT_EQ(ask(1, "NEW ACME BUY 1 1"), "reject:no-route");
  EXPECT_EQ(ask(1, "STATUS"), "reject:unknown-order");
  EXPECT_EQ(symbols_.open_orders(), 0U);
}

TEST_F(OmsTest, RiskLimitsHoldForNewAndReplace) {
  settings_.risk.quantity_max = Quantity{100};
  settings_.risk.notional_max = parse_notional("1000.5").value;
  EXPECT_EQ(ask(1, "NEW ACME BUY 101 1"), "reject:risk-limit:max-qty");
  EXPECT_EQ(ask(1, "NEW ACME BUY 100 10.005000001"), "reject:risk-limit:max-notional");
  EXPECT_EQ(ask(1, "STATUS"), "reject:unknown-order");
  EXPECT_EQ(ask(1, "NEW ACME BUY 100 10.005"), "route:XNYS");
  EXPECT_EQ(ask(1, "REPLACE 101 1"), "reject:risk-limit:max-qty");
  EXPECT_EQ(ask(1, "REPLACE 100 10.005000001"), "reject:risk-limit:max-notional");
  EXPECT_EQ(ask(1, "STATUS"), "status:open:100");
  EXPECT_EQ(ask(1, "REPLACE 99 1"), "replaced");
}

TEST_F(OmsTest, TheLargestOrderDoesNotOverflowTheNotional) {
  settings_.risk.notional_max = parse_notional("10000000000000000000000000000").value;
  EXPECT_EQ(ask(1, "NEW ACME BUY 9223372036854775807 9223372036.854775807"),
            "reject:risk-limit:max-notional");
  settings_.risk.notional_max.reset();
  reload();
  EXPECT_EQ(ask(1, "NEW ACME BUY 9223372036854775807 9223372036.854775807"), "route:XNYS");
  EXPECT_EQ(ask(1, "FILL 9223372036854775806"), "filled:1");
  EXPECT_EQ(ask(1, "STATUS"), "status:partially-filled:1");
  EXPECT_EQ(ask(1, "REPLACE 9223372036854775807 1"), "replaced");
}

TEST_F(OmsTest, TheFirstCollarThatMatchesHoldsTheLimitPrice) {
  settings_.risk.collars = {{.symbol = "AC*", .price_min = price("90"), .price_max = price("110")},
                            {.symbol = "A*", .price_max = price("1")}};
  EXPECT_EQ(ask(1, "NEW ACME BUY 1 89.99"), "reject:risk-limit:price-collar");
  EXPECT_EQ(ask(1, "NEW ACME BUY 1 110.01"), "reject:risk-limit:price-collar");
  EXPECT_EQ(ask(1, "NEW ACME BUY 1 110"), "route:XNYS");
  EXPECT_EQ(ask(1, "REPLACE 1 111"), "reject:risk-limit:price-collar");
  EXPECT_EQ(ask(1, "REPLACE 1 90"), "replaced");
  EXPECT_EQ(ask(2, "NEW ABC BUY 1 2"), "reject:risk-limit:price-collar");
  EXPECT_EQ(ask(2, "NEW XYZ BUY 1 200"), "route:XNYS");
}

TEST_F(OmsTest, OpenOrdersAreLimitedInAllAndPerSymbolUntilTheyAreClosed) {
  settings_.risk.open_orders_max = 3;
  settings_.risk.symbol_open_orders_max = 2;
  EXPECT_EQ(ask(1, "NEW A BUY 1 1"), "route:XNYS");
  EXPECT_EQ(ask(2, "NEW A BUY 1 1"), "route:XNYS");
  EXPECT_EQ(ask(3, "NEW A BUY 1 1"), "reject:risk-limit:max-open-orders-per-symbol");
  EXPECT_EQ(ask(3, "NEW B BUY 1 1"), "route:XNYS");
  EXPECT_EQ(ask(4, "NEW C BUY 1 1"), "reject:risk-limit:max-open-orders");
  EXPECT_EQ(ask(1, "FILL 1"), "filled:0");
  EXPECT_EQ(ask(4, "NEW A BUY 1 1"), "route:XNYS");
  EXPECT_EQ(symbols_.open_orders(), 3U);
}

TEST_F(OmsTest, LimitsOnOpenOrdersCountOtherPartitions) {
  settings_.risk.symbol_open_orders_max = 1;
  Oms other(std::make_shared<OmsSettings>(settings_), symbols_);
  EXPECT_EQ(other.decide(1, "NEW A BUY 1 1", now_).text(), "route:XNYS");
  EXPECT_EQ(ask(2, "NEW A BUY 1 1"), "reject:risk-limit:max-open-orders-per-symbol");
  EXPECT_EQ(other.decide(1, "CANCEL", now_).text(), "cancelled");
  EXPECT_EQ(ask(2, "NEW A BUY 1 1"), "route:XNYS");
}

TEST_F(OmsTest, AClosedOrderIsForgottenAfterItsTimeAndItsIdIsFree) {
  settings_.forget_after = 10s;
  ask(1, "NEW ACME BUY 1 1");
  EXPECT_FALSE(oms().next_due());
  ask(1, "CANCEL");
  ASSERT_TRUE(oms().next_due());
  EXPECT_EQ(*oms().next_due(), now_ + 10s);
  EXPECT_EQ(oms().remembered_count(), 1U);

  now_ += 10s - 1ns;
  oms().forget(now_);
  EXPECT_EQ(ask(1, "CANCEL"), "reject:closed");
  now_ += 1ns;
  oms().forget(now_);
  EXPECT_EQ(ask(1, "CANCEL"), "reject:unknown-order");
  EXPECT_EQ(oms().remembered_count(), 0U);
  EXPECT_FALSE(oms().next_due());
  EXPECT_EQ(ask(1, "NEW ACME BUY 1 1"), "route:XNYS");
}

TEST_F(OmsTest, OpenOrdersAreNeverForgotten) {
  settings_.forget_after = 0ns;
  ask(1, "NEW ACME BUY 1 1");
  now_ += 24h * 400;
  oms().forget(now_);
  EXPECT_EQ(ask(1, "STATUS"), "status:open:1");
}

TEST_F(OmsTest, ManyOrdersAreForgottenAThousandAtATime) {
  settings_.forget_after = 1s;
  for (std::int64_t id = 1; id <= 5'000; ++id) {
    ask(id, "NEW ACME BUY 1 1");
    ask(id, "CANCEL");
  }
  now_ += 1s;
  int rounds = 0;
  for (; oms().next_due() && *oms().next_due() <= now_; ++rounds)
    oms().forget(now_);
  EXPECT_EQ(rounds, 5);
  EXPECT_EQ(oms().orders().count(), 0U);
}

TEST_F(OmsTest, OrdersMaxRejectsNewOrdersAndShortensTheMemoryOfClosedOnes) {
  settings_.orders_max = 2;
  ask(1, "NEW ACME BUY 1 1");
  ask(2, "NEW ACME BUY 1 1");
  EXPECT_EQ(ask(3, "NEW ACME BUY 1 1"), "reject:too-many-orders");
  for (std::int64_t id = 1; id <= 4; ++id) {
    ask(id, "NEW ACME BUY 1 1");
    EXPECT_EQ(ask(id, "CANCEL"), "cancelled");
  }
  EXPECT_EQ(oms().remembered_count(), 2U);
  EXPECT_EQ(oms().forgotten_early_count(), 2U);
  EXPECT_EQ(ask(2, "STATUS"), "reject:unknown-order");
  EXPECT_EQ(ask(3, "STATUS"), "status:cancelled:0");
}

TEST_F(OmsTest, AnOrderWhoseTimeHasComeIsNotForgottenEarly) {
  settings_.orders_max = 1;
  settings_.forget_after = 1s;
  for (std::int64_t id = 1; id <= 3; ++id) {
    ask(id, "NEW ACME BUY 1 1");
    ask(id, "CANCEL");
    now_ += 1s;  // And nobody called forget() since.
  }
  EXPECT_EQ(oms().remembered_count(), 1U);
  EXPECT_EQ(oms().forgotten_early_count(), 0U);
}

TEST_F(OmsTest, ALowerOrdersMaxForgetsTheClosedOrdersAboveItAThousandAtATime) {
  for (std::int64_t id = 1; id <= 2'000; ++id) {
    ask(id, "NEW ACME BUY 1 1");
    ask(id, "CANCEL");
  }
  EXPECT_EQ(oms().remembered_count(), 2'000U);
  settings_.orders_max = 10;
  reload();
  int rounds = 0;
  for (; oms().next_due() && *oms().next_due() <= now_; ++rounds)
    oms().forget(now_);
  EXPECT_EQ(rounds, 2);
  EXPECT_EQ(oms().remembered_count(), 10U);
  EXPECT_EQ(oms().forgotten_early_count(), 1'990U);
  EXPECT_EQ(ask(1'990, "STATUS"), "reject:unknown-order");
  EXPECT_EQ(ask(1'991, "STATUS"), "status:cancelled:0");
}

TEST_F(OmsTest, NewSettingsHoldForTheNextInstructionAndOrdersKeepTheirs) {
  EXPECT_EQ(ask(1, "NEW ACME BUY 10 1"), "route:XNYS");
  settings_.default_venue = "";
  settings_.routes = {{.symbol = "ACME", .venue = "XNAS"}};
  settings_.risk.quantity_max = Quantity{5};
  reload();
  EXPECT_EQ(ask(1, "STATUS"), "status:open:10");
  EXPECT_EQ(ask(1, "FILL 7"), "filled:3");
  EXPECT_EQ(ask(2, "NEW ACME BUY 6 1"), "reject:risk-limit:max-qty");
  EXPECT_EQ(ask(2, "NEW ACME BUY 5 1"), "route:XNAS");
  EXPECT_EQ(ask(3, "NEW OTHER BUY 5 1"), "reject:no-route");
}

TEST_F(OmsTest, ManyOrdersLeaveNoMemoryBehind) {
  settings_.forget_after = 1s;
  for (std::int64_t id = 1; id <= 100'000; ++id) {
    ask(id, "NEW " + std::to_string(id % 10'000) + " BUY 1 1");
  }
  EXPECT_EQ(oms().open_count(), 100'000U);
  EXPECT_LT(oms().orders().slot_count(), 300'000U);
  for (std::int64_t id = 1; id <= 100'000; ++id)
    ask(id, "CANCEL");
  now_ += 1s;
  while (oms().next_due())
    oms().forget(now_);
  EXPECT_EQ(oms().orders().count(), 0U);
  EXPECT_LE(oms().orders().slot_count(), 64U * 8);
  EXPECT_LE(symbols_.symbol_count(), SymbolCache::kSymbolsMax);
}

}  // namespace
}  // namespace ordo::gateway
