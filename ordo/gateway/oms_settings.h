// OmsSettings: what the mini-OMS decides by: routing rules, risk limits, how long it remembers.
//
//   OmsSettings settings;
//   settings.routes.push_back({.symbol = "AA*", .quantity_max = Quantity{1000}, .venue = "XNAS"});
//   settings.default_venue = "XNYS";
//   settings.risk.quantity_max = Quantity{1'000'000};
//   if (Status checked = check_settings(settings); !checked) return checked;
//
// Never changed once in use: a reload makes new ones (Gateway::apply).
//
// Threads: a plain value; shared between partitions as const.
// Bounds:  4,096 rules, 4,096 collars.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/core/result.h"
#include "ordo/gateway/decimal.h"

namespace ordo::gateway {

inline constexpr std::size_t kVenueBytesMax = 32;
inline constexpr std::size_t kRulesMax = 4'096;

// Sends what matches to a venue. All bounds are inclusive; one that is not set holds always.
struct RouteRule {
  std::string symbol = "*";  // A pattern: * is any run of characters, ? any one of them.
  std::optional<Quantity> quantity_min = {};
  std::optional<Quantity> quantity_max = {};
  std::optional<Price> price_min = {};
  std::optional<Price> price_max = {};
  std::string venue = {};  // 1 to 32 visible ASCII characters.

  bool is_unconditional() const {
    return !quantity_min && !quantity_max && !price_min && !price_max;
  }
};

// Keeps limit prices of what matches within bounds, inclusive. At least one is set.
struct PriceCollar {
  std::string symbol = "*";  // As in RouteRule.
  std::optional<Price> price_min = {};
  std::optional<Price> price_max = {};
};

// What is not set is not limited.
struct RiskLimits {
  std::optional<Quantity> quantity_max = {};        // Of an order.
  std::optional<Notional> notional_max = {};        // Of an order: quantity times limit price.
  std::optional<std::size_t> open_orders_max = {};  // Over all partitions, exactly.
  std::optional<std::size_t> symbol_open_orders_max = {};  // Of one symbol, over all partitions.
  std::vector<PriceCollar> collars = {};                   // The first whose pattern matches holds.
};

struct OmsSettings {
  std::vector<RouteRule> routes = {};  // In order: the first that matches wins.
  std::string default_venue = {};      // When none matches; empty: reject:no-route.
  RiskLimits risk = {};
  std::chrono::nanoseconds forget_after = std::chrono::seconds(60);  // Closed orders, at least.
  // Open orders of one partition; and as many closed ones are remembered at most.
  std::size_t orders_max = 1'000'000;
};

// Whether `settings` make sense; else which field does not, what it is and what is allowed.
Status check_settings(const OmsSettings& settings);

// Whether `symbol` matches `pattern`: * is any run of characters, ? any one of them.
bool matches(std::string_view pattern, std::string_view symbol);

}  // namespace ordo::gateway
