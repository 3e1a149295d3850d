#include "ordo/gateway/symbol_cache.h"

#include <algorithm>

#include "ordo/core/check.h"
#include "ordo/core/hash.h"

namespace ordo::gateway {
namespace {

template <class Bound>
bool is_within(const Bound& value, const std::optional<Bound>& least,
               const std::optional<Bound>& most) {
  return (!least || value >= *least) && (!most || value <= *most);
}

}  // namespace

void SymbolCache::use(const OmsSettings& settings) {
  clear();
  settings_ = &settings;
}

SymbolCache::Entry& SymbolCache::find(std::string_view symbol) {
  ORDO_CHECK(settings_ != nullptr && symbol.size() <= kSymbolBytesMax);
  const auto hash = static_cast<std::uint32_t>(hash_bytes(symbol));
  const std::uint32_t found =
      index_.find(hash, [&](std::uint32_t i) { return entries_[i].view() == symbol; });
  if (found != kNoIndex) return entries_[found];

  auto place = static_cast<std::uint32_t>(entries_.size());
  if (entries_.size() < kSymbolsMax) {
    entries_.emplace_back();
  } else {
    place = static_cast<std::uint32_t>(oldest_);
    oldest_ = (oldest_ + 1) % kSymbolsMax;
    index_.erase(entries_[place].hash, place);
    if (entries_[place].symbol != nullptr) table_.leave(entries_[place].symbol);
    entries_[place].symbol = nullptr;
  }
  fill(entries_[place], symbol, hash);
  index_.insert(hash, place);
  return entries_[place];
}

const RouteRule* SymbolCache::route(const Entry& entry, Quantity quantity, const Price* price) {
  for (const RouteRule* rule : entry.rules) {
    if (!is_within(quantity, rule->quantity_min, rule->quantity_max)) continue;
    const bool fits = price != nullptr ? is_within(*price, rule->price_min, rule->price_max)
                                       : !rule->price_min && !rule->price_max;
    if (fits) return rule;
  }
  return nullptr;
}

void SymbolCache::clear() {
  for (const Entry& entry : entries_) {
    if (entry.symbol != nullptr) table_.leave(entry.symbol);
  }
  entries_.clear();
  index_.clear();
  oldest_ = 0;
}

void SymbolCache::fill(Entry& entry, std::string_view symbol, std::uint32_t hash) {
  std::copy(symbol.begin(), symbol.end(), entry.name.begin());
  entry.name_size = static_cast<std::uint8_t>(symbol.size());
  entry.hash = hash;
  entry.collar = nullptr;
  for (const PriceCollar& collar : settings_->risk.collars) {
    if (!matches(collar.symbol, symbol)) continue;
    entry.collar = &collar;
    break;
  }
  entry.rules.clear();
  for (const RouteRule& rule : settings_->routes) {
    if (!matches(rule.symbol, symbol)) continue;
    entry.rules.push_back(&rule);
    if (rule.is_unconditional()) break;
  }
}

}  // namespace ordo::gateway
