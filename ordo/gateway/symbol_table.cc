#include "ordo/gateway/symbol_table.h"

#include <optional>
#include <utility>

#include "ordo/core/check.h"

namespace ordo::gateway {
namespace {

constexpr std::size_t kBucketsKept = 4'096;

// Adds one unless the part of `counter` below `unit` has reached `most`.
bool add_below(std::atomic<std::uint64_t>& counter, const std::optional<std::size_t>& most,
               std::uint64_t unit) {
  if (!most) {
    counter.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  std::uint64_t value = counter.load(std::memory_order_relaxed);
  do {
    if (value % unit >= *most) return false;
  } while (!counter.compare_exchange_weak(value, value + 1, std::memory_order_relaxed));
  return true;
}

}  // namespace

SymbolTable::~SymbolTable() {
  ORDO_CHECK(symbols_.empty());
  ORDO_CHECK(open_.load() == 0);
}

Symbol* SymbolTable::find(std::string_view name) {
  const std::lock_guard guard(mutex_);
  auto found = symbols_.find(name);
  if (found == symbols_.end()) {
    auto symbol = std::make_unique<Symbol>(std::string(name));
    const std::string_view key = symbol->name();
    found = symbols_.emplace(key, std::move(symbol)).first;
  }
  found->second->uses_.fetch_add(Symbol::kFinder, std::memory_order_relaxed);
  return found->second.get();
}

void SymbolTable::leave(Symbol* symbol) {
  drop(symbol, Symbol::kFinder);
}

OpenRefusal SymbolTable::open(Symbol& symbol, const RiskLimits& risk) {
  if (!add_below(symbol.uses_, risk.symbol_open_orders_max, Symbol::kFinder)) {
    return OpenRefusal::symbol_full;
  }
  if (!add_below(open_, risk.open_orders_max, ~std::uint64_t{0})) {
    symbol.uses_.fetch_sub(1, std::memory_order_relaxed);  // Not the last use: the caller's is.
    return OpenRefusal::all_full;
  }
  return OpenRefusal::none;
}

void SymbolTable::close(Symbol* symbol) {
  open_.fetch_sub(1, std::memory_order_relaxed);
  drop(symbol, 1);
}

std::size_t SymbolTable::symbol_count() const {
  const std::lock_guard guard(mutex_);
  return symbols_.size();
}

void SymbolTable::drop(Symbol* symbol, std::uint64_t use) {
  std::uint64_t uses = symbol->uses_.load(std::memory_order_relaxed);
  while (uses != use) {
    // Release: what was done with the symbol comes before its end.
    if (symbol->uses_.compare_exchange_weak(uses, uses - use, std::memory_order_release,
                                            std::memory_order_relaxed)) {
      return;
    }
  }
  const std::lock_guard guard(mutex_);
  if (symbol->uses_.fetch_sub(use, std::memory_order_acq_rel) != use) return;
  symbols_.erase(symbols_.find(symbol->name()));
  const std::size_t buckets = symbols_.bucket_count();
  if (buckets > kBucketsKept && symbols_.size() < buckets / 8) symbols_.rehash(buckets / 4);
}

}  // namespace ordo::gateway
