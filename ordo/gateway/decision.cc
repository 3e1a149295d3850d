#include "ordo/gateway/decision.h"

#include <charconv>
#include <cstring>
#include <system_error>

#include "ordo/core/check.h"

namespace ordo::gateway {

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, kOutcomeCount> kNames = {
      "routed", "replaced", "cancelled", "filled", "status", "target", "rejected"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

std::string_view name_of(Reject reject) {
  constexpr std::array<std::string_view, kRejectCount> kNames = {
      "none",       "unknown-order", "duplicate", "closed",
      "risk-limit", "bad-field",     "no-route",  "too-many-orders"};
  return kNames.at(static_cast<std::size_t>(reject));
}

std::string_view name_of(RiskLimit limit) {
  constexpr std::array<std::string_view, 5> kNames = {
      "max-qty", "max-notional", "price-collar", "max-open-orders", "max-open-orders-per-symbol"};
  return kNames.at(static_cast<std::size_t>(limit));
}

Decision Decision::route(std::string_view venue) {
  return Decision(Outcome::routed).add("route:").add(venue);
}

Decision Decision::target(std::string_view venue) {
  return Decision(Outcome::target).add("target:").add(venue);
}

Decision Decision::replaced() {
  return Decision(Outcome::replaced).add("replaced");
}

Decision Decision::cancelled() {
  return Decision(Outcome::cancelled).add("cancelled");
}

Decision Decision::filled(Quantity open) {
  return Decision(Outcome::filled).add("filled:").add(open);
}

Decision Decision::status(OrderState state, Quantity open) {
  return Decision(Outcome::status).add("status:").add(name_of(state)).add(":").add(open);
}

Decision Decision::reject(Reject why) {
  return Decision(Outcome::rejected, why).add("reject:").add(name_of(why));
}

Decision Decision::reject(RiskLimit limit) {
  return reject(Reject::risk_limit).add(":").add(name_of(limit));
}

Decision Decision::reject(BadField field) {
  return reject(Reject::bad_field).add(":").add(name_of(field));
}

Decision& Decision::add(std::string_view text) {
  ORDO_CHECK(text.size() <= kBytesMax - size_);
  std::memcpy(text_.data() + size_, text.data(), text.size());
  size_ = static_cast<std::uint8_t>(size_ + text.size());
  return *this;
}

Decision& Decision::add(Quantity quantity) {
  const std::to_chars_result end =
      std::to_chars(text_.data() + size_, text_.data() + kBytesMax, quantity.count);
  ORDO_CHECK(end.ec == std::errc());
  size_ = static_cast<std::uint8_t>(end.ptr - text_.data());
  return *this;
}

}  // namespace ordo::gateway
