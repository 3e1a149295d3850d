// Decision: what the mini-OMS answers to an instruction.
//
//   Decision decision = Decision::route("XNAS");
//   decision.text();       // "route:XNAS"
//   decision.outcome();    // Outcome::routed
//
//   route:<venue>  replaced  cancelled  filled:<open-qty>  status:<state>:<open-qty>
//   target:<venue>  reject:<why>[:<detail>]
//
// One word without spaces; docs/oms.md lists them all.
//
// Threads: a plain value; one owner.
// Bounds:  44 characters, the longest detail and the largest number included.
// Cost:    no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ordo/gateway/decimal.h"
#include "ordo/gateway/instruction.h"
#include "ordo/gateway/order_table.h"

namespace ordo::gateway {

enum class Outcome : std::uint8_t {
  routed,
  replaced,
  cancelled,
  filled,
  status,
  target,
  rejected,
};
inline constexpr std::size_t kOutcomeCount = 7;

// Why an instruction was rejected.
enum class Reject : std::uint8_t {
  none,
  unknown_order,    // No order of this id is known.
  duplicate,        // NEW, and an order of this id is known.
  closed,           // The order is filled or cancelled.
  risk_limit,       // A limit of the settings.
  bad_field,        // See BadField.
  no_route,         // No rule matches and there is no default venue.
  too_many_orders,  // The partition has orders_max open orders.
};
inline constexpr std::size_t kRejectCount = 8;

enum class RiskLimit : std::uint8_t {
  quantity,
  notional,
  price_collar,
  open_orders,
  symbol_open_orders,
};

std::string_view name_of(Outcome outcome);  // "routed", ...
std::string_view name_of(Reject reject);    // "unknown-order", ..., "none"
std::string_view name_of(RiskLimit limit);  // "max-qty", "max-notional", "price-collar", ...

class Decision {
 public:
  static constexpr std::size_t kBytesMax = 44;

  static Decision route(std::string_view venue);   // REQUIRES: at most kVenueBytesMax bytes.
  static Decision target(std::string_view venue);  // Likewise.
  static Decision replaced();
  static Decision cancelled();
  static Decision filled(Quantity open);
  static Decision status(OrderState state, Quantity open);
  static Decision reject(Reject why);
  static Decision reject(RiskLimit limit);
  static Decision reject(BadField field);

  std::string_view text() const { return {text_.data(), size_}; }
  Outcome outcome() const { return outcome_; }
  Reject reject_reason() const { return reject_; }  // none unless rejected.

 private:
  explicit Decision(Outcome outcome, Reject reject = Reject::none)
      : outcome_(outcome),
        reject_(reject) {}
  Decision& add(std::string_view text);
  Decision& add(Quantity quantity);

  Outcome outcome_;
  Reject reject_;
  std::uint8_t size_ = 0;
  std::array<char, kBytesMax> text_;  // The first size_ of them.
};

}  // namespace ordo::gateway
