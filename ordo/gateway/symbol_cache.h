// SymbolCache: which rules may concern a symbol, worked out once for each symbol.
//
//   SymbolCache cache(symbol_table);
//   cache.use(settings);                                 // forgets what it knew
//   SymbolCache::Entry& entry = cache.find("ACME");
//   const RouteRule* rule = SymbolCache::route(entry, Quantity{10}, price);
//
// A table of rules is written for people: patterns, in order. Matching a symbol against all of them
// for every order would take longer than all the rest, so the rules whose pattern matches are kept
// for each symbol, up to the first that holds for every quantity and price.
//
// Threads: one owner.
// Bounds:  4,096 symbols; a further one takes the place of the one that came first.
// Cost:    one hash lookup; a symbol that is not there costs a match with every pattern.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ordo/gateway/decimal.h"
#include "ordo/gateway/instruction.h"
#include "ordo/gateway/oms_settings.h"
#include "ordo/gateway/symbol_table.h"
#include "ordo/lane/flat_index.h"

namespace ordo::gateway {

class SymbolCache {
 public:
  static constexpr std::size_t kSymbolsMax = 4'096;

  struct Entry {
    std::array<char, kSymbolBytesMax> name{};
    std::uint8_t name_size = 0;
    std::uint32_t hash = 0;
    Symbol* symbol = nullptr;             // Found when the first order needs it.
    const PriceCollar* collar = nullptr;  // The first that matches.
    std::vector<const RouteRule*> rules;  // Those whose pattern matches, in order.

    std::string_view view() const { return {name.data(), name_size}; }
  };

  explicit SymbolCache(SymbolTable& table) : table_(table) {}
  SymbolCache(const SymbolCache&) = delete;
  SymbolCache& operator=(const SymbolCache&) = delete;
  ~SymbolCache() { clear(); }

  // From here on the rules of `settings` hold.
  // REQUIRES: `settings` stay until the next call or the end.
  void use(const OmsSettings& settings);

  // What is known of `symbol`; valid until the next call.
  // REQUIRES: use() was called, is_symbol(symbol).
  Entry& find(std::string_view symbol);

  // The symbol's entry in the table that all partitions share.
  Symbol& shared(Entry& entry) {
    if (entry.symbol == nullptr) entry.symbol = table_.find(entry.view());
    return *entry.symbol;
  }

  // The first rule that an order, or a quote (price: nullptr), matches; nullptr when none does. A
  // rule with a bound on the price does not match a quote, which has none.
  static const RouteRule* route(const Entry& entry, Quantity quantity, const Price* price);

  std::size_t count() const { return entries_.size(); }

 private:
  void clear();
  void fill(Entry& entry, std::string_view symbol, std::uint32_t hash);

  SymbolTable& table_;
  const OmsSettings* settings_ = nullptr;
  std::vector<Entry> entries_;
  FlatIndex index_;         // From names to entries.
  std::size_t oldest_ = 0;  // The entry to give up next when all places are taken.
};

}  // namespace ordo::gateway
