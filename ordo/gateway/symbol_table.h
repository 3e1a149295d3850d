// SymbolTable: how many orders are open, in all and of each symbol, over all partitions.
//
// Risk limits on open orders hold for the gateway, not for a partition of it, so these counts are
// what the partitions share. They are exact: a place is taken before an order is opened.
//
//   SymbolTable symbols;
//   Symbol* acme = symbols.find("ACME");              // once for a symbol in a while: takes a lock
//   OpenRefusal refusal = symbols.open(*acme, limits);  // for every order: two atomic additions
//   symbols.close(acme);
//   symbols.leave(acme);                              // the counterpart of find()
//
// Threads: any thread may call any function.
// Bounds:  symbols that are found and not left, or have open orders; the others are erased.
// Cost:    open() and close() one atomic operation on a counter of the symbol and one on a common
//          one; find(), leave() and the last close() of a symbol take a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ordo/gateway/oms_settings.h"

namespace ordo::gateway {

// A symbol somebody uses. Its address stays.
class Symbol {
 public:
  explicit Symbol(std::string name) : name_(std::move(name)) {}

  std::string_view name() const { return name_; }
  std::uint64_t open_orders() const { return uses_.load(std::memory_order_relaxed) % kFinder; }

 private:
  friend class SymbolTable;
  static constexpr std::uint64_t kFinder = std::uint64_t{1} << 40;

  const std::string name_;
  // Open orders below kFinder, above it those who found it and did not leave. It goes from or to
  // zero under the lock of the table only, so who holds that lock and reads zero may erase it.
  std::atomic<std::uint64_t> uses_{0};
};

enum class OpenRefusal : std::uint8_t { none, all_full, symbol_full };

class SymbolTable {
 public:
  SymbolTable() = default;
  SymbolTable(const SymbolTable&) = delete;
  SymbolTable& operator=(const SymbolTable&) = delete;
  // REQUIRES: every find() was left, every open() closed.
  ~SymbolTable();

  // The symbol of this name, which stays until leave().
  Symbol* find(std::string_view name);
  void leave(Symbol* symbol);

  // Counts one more open order of `symbol`, unless a limit of `risk` is met.
  // REQUIRES: the caller found `symbol` and did not leave it.
  OpenRefusal open(Symbol& symbol, const RiskLimits& risk);
  // Counts one less. `symbol` is gone with its last use.
  void close(Symbol* symbol);

  std::uint64_t open_orders() const { return open_.load(std::memory_order_relaxed); }
  std::size_t symbol_count() const;

 private:
  void drop(Symbol* symbol, std::uint64_t use);

  alignas(64) std::atomic<std::uint64_t> open_{0};
  alignas(64) mutable std::mutex mutex_;
  std::unordered_map<std::string_view, std::unique_ptr<Symbol>> symbols_;  // Keys: their names.
};

}  // namespace ordo::gateway
