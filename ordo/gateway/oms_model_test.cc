// Goal: whatever comes in, the Oms decides as the rules of docs/oms.md say. Method: random
// instructions, times and reloads, decided a second time by a model that is as plain as the rules;
// the seed names the failing run.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/gateway/oms.h"

namespace ordo::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.

// Prices of the model are whole cents, so that it can count in plain integers.
struct ModelOrder {
  std::string symbol;
  std::int64_t quantity = 0;
  std::int64_t filled = 0;
  bool cancelled = false;
  std::optional<TimePoint> closed = {};
};

class Model {
 public:
  explicit Model(const OmsSettings& settings) : settings_(settings) {}

  void use(const OmsSettings& settings) { settings_ = settings; }

  void forget(TimePoint now) {
    std::erase_if(orders_, [&](const auto& entry) {
      return entry.second.closed && *entry.second.closed + settings_.forget_after <= now;
    });
  }

  std::string place(std::int64_t id, const std::string& symbol, std::int64_t quantity,
                    std::int64_t cents) {
    if (orders_.contains(id)) return "reject:duplicate";
    if (open(nullptr) >= settings_.orders_max) return "reject:too-many-orders";
    if (const std::string risk = risk_of(symbol, quantity, cents); !risk.empty()) return risk;
    const std::string venue = venue_of(symbol, quantity, cents);
    if (venue.empty()) return "reject:no-route";
    const auto& limits = settings_.risk;
    if (limits.symbol_open_orders_max && open(&symbol) >= *limits.symbol_open_orders_max) {
      return "reject:risk-limit:max-open-orders-per-symbol";
    }
    if (limits.open_orders_max && open(nullptr) >= *limits.open_orders_max) {
      return "reject:risk-limit:max-open-orders";
    }
    orders_[id] = {.symbol = symbol, .quantity = quantity};
    return "route:" + venue;
  }

  std::string replace(std::int64_t id, std::int64_t quantity, std::int64_t cents, TimePoint now) {
    if (const std::string no = unusable(id); !no.empty()) return no;
    ModelOrder& order = orders_[id];
    if (quantity < order.filled) return "reject:bad-field:quantity-below-filled";
    const std::string risk = risk_of(order.symbol, quantity, cents);
    if (!risk.empty()) return risk;
    order.quantity = quantity;
    if (order.quantity == order.filled) order.closed = now;
    return "replaced";
  }

  std::string cancel(std::int64_t id, TimePoint now) {
    if (const std::string no = unusable(id); !no.empty()) return no;
    orders_[id].cancelled = true;
    orders_[id].closed = now;
    return "cancelled";
  }

  std::string fill(std::int64_t id, std::int64_t quantity, TimePoint now) {
    if (const std::string no = unusable(id); !no.empty()) return no;
    ModelOrder& order = orders_[id];
    const std::int64_t left = order.quantity - order.filled - quantity;
    if (left < 0) return "reject:bad-field:quantity-above-open";
    order.filled += quantity;
    if (left == 0) order.closed = now;
    return "filled:" + std::to_string(left);
  }

  std::string status(std::int64_t id) const {
    const auto found = orders_.find(id);
    if (found == orders_.end()) return "reject:unknown-order";
    const ModelOrder& order = found->second;
    if (order.cancelled) return "status:cancelled:0";
    if (order.closed) return "status:filled:0";
    const std::string left = std::to_string(order.quantity - order.filled);
    return (order.filled > 0 ? "status:partially-filled:" : "status:open:") + left;
  }

  std::string quote(const std::string& symbol, std::int64_t quantity) const {
    const std::string venue = venue_of(symbol, quantity, std::nullopt);
    return venue.empty() ? "reject:no-route" : "target:" + venue;
  }

 private:
  static std::int64_t cents_of(Price price) { return price.nanos / 10'000'000; }

  std::string unusable(std::int64_t id) const {
    const auto found = orders_.find(id);
    if (found == orders_.end()) return "reject:unknown-order";
    return found->second.closed ? "reject:closed" : "";
  }

  std::size_t open(const std::string* symbol) const {
    return static_cast<std::size_t>(
        std::count_if(orders_.begin(), orders_.end(), [&](const auto& entry) {
          return !entry.second.closed && (symbol == nullptr || entry.second.symbol == *symbol);
        }));
  }

  std::string risk_of(const std::string& symbol, std::int64_t quantity, std::int64_t cents) const {
    const RiskLimits& risk = settings_.risk;
    if (risk.quantity_max && quantity > risk.quantity_max->count) {
      return "reject:risk-limit:max-qty";
    }
    if (risk.notional_max &&
        quantity * cents > static_cast<std::int64_t>(risk.notional_max->nanos / 10'000'000)) {
      return "reject:risk-limit:max-notional";
    }
    for (const PriceCollar& collar : risk.collars) {
      if (!matches(collar.symbol, symbol)) continue;
      const bool inside = (!collar.price_min || cents >= cents_of(*collar.price_min)) &&
                          (!collar.price_max || cents <= cents_of(*collar.price_max));
      return inside ? "" : "reject:risk-limit:price-collar";
    }
    return "";
  }

  std::string venue_of(const std::string& symbol, std::int64_t quantity,
                       std::optional<std::int64_t> cents) const {
    for (const RouteRule& rule : settings_.routes) {
      if (!matches(rule.symbol, symbol)) continue;
      if (rule.quantity_min && quantity < rule.quantity_min->count) continue;
      if (rule.quantity_max && quantity > rule.quantity_max->count) continue;
      if (!cents && (rule.price_min || rule.price_max)) continue;
      if (rule.price_min && *cents < cents_of(*rule.price_min)) continue;
      if (rule.price_max && *cents > cents_of(*rule.price_max)) continue;
      return rule.venue;
    }
    return settings_.default_venue;
  }

  OmsSettings settings_;
  std::map<std::int64_t, ModelOrder> orders_;
};

class OmsSchedule : public testing::TestWithParam<unsigned> {
 protected:
  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool one_in(std::int64_t n) { return pick(1, n) == 1; }
  static Price cents(std::int64_t n) { return Price{n * 10'000'000}; }
  std::string pattern() {
    const std::vector<std::string> patterns = {"*", "A*", "?B", "AA", "*A", "B?", "C"};
    return patterns[static_cast<std::size_t>(pick(0, 6))];
  }
  std::string symbol() {
    const std::vector<std::string> symbols = {"AA", "AB", "BA", "BB", "C"};
    return symbols[static_cast<std::size_t>(pick(0, 4))];
  }

  OmsSettings random_settings() {
    OmsSettings settings;
    for (std::int64_t n = pick(0, 5); n > 0; --n) {
      RouteRule rule{.symbol = pattern(), .venue = "VENUE-" + std::to_string(n)};
      if (one_in(3)) rule.quantity_min = Quantity{pick(1, 5)};
      if (one_in(3)) rule.quantity_max = Quantity{pick(5, 10)};
      if (one_in(3)) rule.price_min = cents(pick(1, 50));
      if (one_in(3)) rule.price_max = cents(pick(50, 100));
      settings.routes.push_back(rule);
    }
    if (!one_in(4)) settings.default_venue = "D";
    if (one_in(3)) settings.risk.quantity_max = Quantity{pick(5, 10)};
    if (one_in(3)) settings.risk.notional_max = Notional{static_cast<Wide>(cents(500).nanos)};
    if (one_in(3)) settings.risk.open_orders_max = static_cast<std::size_t>(pick(0, 10));
    if (one_in(3)) settings.risk.symbol_open_orders_max = static_cast<std::size_t>(pick(0, 4));
    for (std::int64_t n = pick(0, 2); n > 0; --n) {
      settings.risk.collars.push_back({.symbol = pattern(), .price_max = cents(pick(30, 100))});
    }
    settings.forget_after = std::chrono::seconds(pick(0, 20));
    settings.orders_max = static_cast<std::size_t>(pick(20, 40));  // Of the 20 ids of the test.
    return settings;
  }

  std::mt19937_64 random_{GetParam()};
};

std::string cents_text(std::int64_t cents) {
  std::string text = std::to_string(cents / 100) + std::to_string(100 + cents % 100);
  text[text.size() - 3] = '.';  // In the place of the 1 that keeps the zeros.
  return text;
}

TEST_P(OmsSchedule, DecidesAsTheModelDoes) {
  OmsSettings settings = random_settings();
  SymbolTable symbols;
  Oms oms(std::make_shared<OmsSettings>(settings), symbols);
  Model model(settings);
  TimePoint now{1h};
  for (int step = 0; step < 3'000; ++step) {
    const std::int64_t id = pick(1, 20);
    const std::int64_t quantity = pick(1, 12);
    const std::int64_t price = pick(1, 110);
    const std::string name = symbol();
    std::string payload;
    std::string expected;
    const std::int64_t verb = pick(0, 9);
    if (verb <= 3) {
      payload = "NEW " + name + " BUY " + std::to_string(quantity) + " " + cents_text(price);
      expected = model.place(id, name, quantity, price);
    } else if (verb == 4) {
      payload = "REPLACE " + std::to_string(quantity) + " " + cents_text(price);
      expected = model.replace(id, quantity, price, now);
    } else if (verb == 5) {
      payload = "CANCEL";
      expected = model.cancel(id, now);
    } else if (verb <= 7) {
      payload = "FILL " + std::to_string(quantity);
      expected = model.fill(id, quantity, now);
    } else if (verb == 8) {
      payload = "STATUS";
      expected = model.status(id);
    } else {
      payload = "QUOTE " + name + " " + std::to_string(quantity);
      expected = model.quote(name, quantity);
    }
    const std::int64_t given = verb == 9 ? -id : id;
    ASSERT_EQ(oms.decide(given, payload, now).text(), expected) << step << ": " << payload;
    if (one_in(10)) {
      now += std::chrono::milliseconds(pick(0, 5'000));
      oms.forget(now);
      model.forget(now);
    }
    if (one_in(500)) {
      settings = random_settings();
      oms.use(std::make_shared<OmsSettings>(settings));
      model.use(settings);
      oms.forget(now);
      model.forget(now);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, OmsSchedule, testing::Range(0u, 200u));

}  // namespace
}  // namespace ordo::gateway
