#include "ordo/gateway/oms.h"

#include <algorithm>
#include <utility>

#include "ordo/core/check.h"

namespace ordo::gateway {
namespace {

constexpr std::size_t kForgetAtOnce = 1'024;
constexpr std::size_t kSmallQueue = 4'096;

}  // namespace

Oms::Oms(std::shared_ptr<const OmsSettings> settings, SymbolTable& symbols)
    : symbols_(symbols),
      cache_(symbols) {
  use(std::move(settings));
}

Oms::~Oms() {
  orders_.for_each([&](Order& order) {
    if (!order.is_closed()) symbols_.close(order.symbol);
  });
}

void Oms::use(std::shared_ptr<const OmsSettings> settings) {
  ORDO_CHECK(settings != nullptr && check_settings(*settings));
  cache_.use(*settings);
  settings_ = std::move(settings);
}

Decision Oms::decide(std::int64_t correlation_id, std::string_view payload, TimePoint now) {
  const ParsedInstruction parsed = parse_instruction(payload);
  if (parsed.fault != BadField::none) return Decision::reject(parsed.fault);
  const Instruction& instruction = parsed.instruction;
  if (instruction.verb == Verb::quote) {
    return correlation_id > 0 ? Decision::reject(BadField::quote_has_correlation_id)
                              : quote(instruction);
  }
  if (correlation_id <= 0) return Decision::reject(BadField::needs_a_correlation_id);

  Order* order = orders_.find(correlation_id);
  if (instruction.verb == Verb::place) {
    return order != nullptr ? Decision::reject(Reject::duplicate)
                            : place(correlation_id, instruction);
  }
  if (order == nullptr) return Decision::reject(Reject::unknown_order);
  if (instruction.verb == Verb::status) return Decision::status(order->state, order->open());
  if (order->is_closed()) return Decision::reject(Reject::closed);
  if (instruction.verb == Verb::fill) return fill(*order, instruction.quantity, now);
  if (instruction.verb == Verb::cancel) return cancel(*order, now);
  return replace(*order, instruction, now);
}

std::optional<TimePoint> Oms::next_due() const {
  if (closed_.empty()) return std::nullopt;
  if (closed_.size() > settings_->orders_max) return closed_.front().at;  // A reload lowered it.
  return closed_.front().at + settings_->forget_after;
}

void Oms::forget(TimePoint now) {
  for (std::size_t i = 0; i < kForgetAtOnce && !closed_.empty(); ++i) {
    if (oldest_is_early(now) && closed_.size() <= settings_->orders_max) return;
    forget_oldest(now);
  }
  if (closed_.empty() && std::exchange(closed_peak_, 0) > kSmallQueue)
    decltype(closed_)().swap(closed_);
}

Decision Oms::place(std::int64_t id, const Instruction& instruction) {
  if (open_count() >= settings_->orders_max) return Decision::reject(Reject::too_many_orders);
  SymbolCache::Entry& entry = cache_.find(instruction.symbol);
  if (auto limit = exceeded(entry.collar, instruction.quantity, instruction.price)) {
    return Decision::reject(*limit);
  }
  const RouteRule* rule = SymbolCache::route(entry, instruction.quantity, &instruction.price);
  const std::string& venue = rule != nullptr ? rule->venue : settings_->default_venue;
  if (venue.empty()) return Decision::reject(Reject::no_route);

  Symbol& symbol = cache_.shared(entry);
  switch (symbols_.open(symbol, settings_->risk)) {
    case OpenRefusal::none:
      break;
    case OpenRefusal::all_full:
      return Decision::reject(RiskLimit::open_orders);
    case OpenRefusal::symbol_full:
      return Decision::reject(RiskLimit::symbol_open_orders);
  }
  Order& order = orders_.insert(id);
  order.symbol = &symbol;
  order.quantity = instruction.quantity;
  order.limit = instruction.price;
  order.side = instruction.side;
  return Decision::route(venue);
}

Decision Oms::replace(Order& order, const Instruction& instruction, TimePoint now) {
  if (instruction.quantity < order.filled) {
    return Decision::reject(BadField::quantity_below_filled);
  }
  const PriceCollar* collar =
      settings_->risk.collars.empty() ? nullptr : cache_.find(order.symbol->name()).collar;
  if (auto limit = exceeded(collar, instruction.quantity, instruction.price)) {
    return Decision::reject(*limit);
  }
  order.quantity = instruction.quantity;
  order.limit = instruction.price;
  if (order.filled == order.quantity) close(order, OrderState::filled, now);
  return Decision::replaced();
}

Decision Oms::cancel(Order& order, TimePoint now) {
  close(order, OrderState::cancelled, now);
  return Decision::cancelled();
}

Decision Oms::fill(Order& order, Quantity quantity, TimePoint now) {
  if (quantity > order.open()) return Decision::reject(BadField::quantity_above_open);
  order.filled = order.filled + quantity;
  const Quantity open = order.quantity - order.filled;
  if (open == Quantity{}) {
    close(order, OrderState::filled, now);
  } else {
    order.state = OrderState::partially_filled;
  }
  return Decision::filled(open);
}

Decision Oms::quote(const Instruction& instruction) {
  const SymbolCache::Entry& entry = cache_.find(instruction.symbol);
  const RouteRule* rule = SymbolCache::route(entry, instruction.quantity, nullptr);
  const std::string& venue = rule != nullptr ? rule->venue : settings_->default_venue;
  return venue.empty() ? Decision::reject(Reject::no_route) : Decision::target(venue);
}

std::optional<RiskLimit> Oms::exceeded(const PriceCollar* collar, Quantity quantity,
                                       Price price) const {
  const RiskLimits& risk = settings_->risk;
  if (risk.quantity_max && quantity > *risk.quantity_max) return RiskLimit::quantity;
  if (risk.notional_max && notional_of(quantity, price) > *risk.notional_max) {
    return RiskLimit::notional;
  }
  if (collar == nullptr) return std::nullopt;
  const bool is_inside = (!collar->price_min || price >= *collar->price_min) &&
                         (!collar->price_max || price <= *collar->price_max);
  if (!is_inside) return RiskLimit::price_collar;
  return std::nullopt;
}

void Oms::close(Order& order, OrderState state, TimePoint now) {
  symbols_.close(std::exchange(order.symbol, nullptr));
  order.state = state;
  closed_.push_back({order.id, now});
  closed_peak_ = std::max(closed_peak_, closed_.size());
  if (closed_.size() <= settings_->orders_max) return;
  // Remembering is a courtesy: it gives way, and new orders are not refused for it.
  forget_oldest(now);
}

bool Oms::oldest_is_early(TimePoint now) const {
  return closed_.front().at + settings_->forget_after > now;
}

void Oms::forget_oldest(TimePoint now) {
  if (oldest_is_early(now)) ++forgotten_early_;
  orders_.erase(closed_.front().id);
  closed_.pop_front();
}

}  // namespace ordo::gateway
