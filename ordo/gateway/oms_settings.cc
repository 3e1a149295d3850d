#include "ordo/gateway/oms_settings.h"

#include <algorithm>
#include <utility>

#include "ordo/core/units.h"
#include "ordo/gateway/instruction.h"

namespace ordo::gateway {
namespace {

constexpr std::size_t kOrdersMax = std::size_t{1} << 31;
constexpr std::chrono::hours kForgetAfterMax{24 * 365};

Error bad(std::string field, const std::string& what) {
  return Error{ErrorCode::invalid_argument, std::move(field) + " " + what};
}

Status check_pattern(const std::string& field, std::string_view pattern) {
  std::string plain(pattern);
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c == '*' || c == '?'; }, '-');
  if (is_symbol(plain)) return {};
  return bad(field, "is '" + std::string(pattern) + "'; a symbol pattern has 1 to " +
                        std::to_string(kSymbolBytesMax) + " visible ASCII characters");
}

Status check_venue(const std::string& field, std::string_view venue) {
  const auto is_visible = [](char c) { return c > ' ' && c <= '~'; };
  if (!venue.empty() && venue.size() <= kVenueBytesMax &&
      std::all_of(venue.begin(), venue.end(), is_visible)) {
    return {};
  }
  return bad(field, "is '" + std::string(venue) + "'; a venue has 1 to " +
                        std::to_string(kVenueBytesMax) + " visible ASCII characters");
}

template <class Bound>
Status check_bounds(const std::string& field, const std::optional<Bound>& least,
                    const std::optional<Bound>& most) {
  if (!least || !most || *least <= *most) return {};
  return bad(field, "is above its maximum; nothing could match");
}

Status check_rule(const RouteRule& rule, const std::string& name) {
  if (Status status = check_pattern(name + ".symbol", rule.symbol); !status) return status;
  if (Status status = check_venue(name + ".venue", rule.venue); !status) return status;
  if (Status status = check_bounds(name + ".min_qty", rule.quantity_min, rule.quantity_max);
      !status) {
    return status;
  }
  return check_bounds(name + ".min_price", rule.price_min, rule.price_max);
}

Status check_collar(const PriceCollar& collar, const std::string& name) {
  if (Status status = check_pattern(name + ".symbol", collar.symbol); !status) return status;
  if (!collar.price_min && !collar.price_max) {
    return bad(name, "has neither min_price nor max_price; it needs one of them");
  }
  return check_bounds(name + ".min_price", collar.price_min, collar.price_max);
}

// The name of the n-th entry of a list, as people count.
std::string nth(std::string_view list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index + 1) + "]";
}

Status check_count(const std::string& field, std::size_t count) {
  if (count <= kRulesMax) return {};
  return bad(field, "has " + std::to_string(count) + " entries; there may be " +
                        std::to_string(kRulesMax));
}

Status check_limits(const RiskLimits& risk) {
  if (risk.quantity_max && risk.quantity_max->count <= 0) {
    return bad("risk.max_qty", "is not above zero");
  }
  if (risk.notional_max && risk.notional_max->nanos == 0) {
    return bad("risk.max_notional", "is not above zero");
  }
  if (Status status = check_count("risk.collar", risk.collars.size()); !status) return status;
  for (std::size_t i = 0; i < risk.collars.size(); ++i) {
    Status status = check_collar(risk.collars[i], nth("risk.collar", i));
    if (!status) return status;
  }
  return {};
}

}  // namespace

Status check_settings(const OmsSettings& settings) {
  if (Status status = check_count("route", settings.routes.size()); !status) return status;
  for (std::size_t i = 0; i < settings.routes.size(); ++i) {
    Status status = check_rule(settings.routes[i], nth("route", i));
    if (!status) return status;
  }
  if (!settings.default_venue.empty()) {
    Status status = check_venue("oms.default_venue", settings.default_venue);
    if (!status) return status;
  }
  if (settings.forget_after.count() < 0 || settings.forget_after > kForgetAfterMax) {
    return bad("oms.forget_after", "is " + std::to_string(settings.forget_after.count()) +
                                       " ns; it must be between 0 and " +
                                       format_duration(kForgetAfterMax));
  }
  if (settings.orders_max < 1 || settings.orders_max > kOrdersMax) {
    return bad("oms.orders_max", "is " + std::to_string(settings.orders_max) +
                                     "; it must be between 1 and " + std::to_string(kOrdersMax));
  }
  return check_limits(settings.risk);
}

bool matches(std::string_view pattern, std::string_view symbol) {
  std::size_t p = 0;
  std::size_t s = 0;
  std::size_t star = std::string_view::npos;  // The last * met, and what it has swallowed up to.
  std::size_t swallowed = 0;
  while (s < symbol.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      swallowed = s;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == symbol[s])) {
      ++p;
      ++s;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      s = ++swallowed;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace ordo::gateway
