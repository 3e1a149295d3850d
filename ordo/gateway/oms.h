// Oms: the mini order-management system of one partition: instructions in, decisions out.
//
//   SymbolTable symbols;                                  // shared by all partitions
//   Oms oms(std::make_shared<const OmsSettings>(settings), symbols);
//   Decision decision = oms.decide(42, "NEW ACME BUY 10 99.5", now);   // route:XNAS
//   decision = oms.decide(42, "FILL 4", now);                          // filled:6
//   decision = oms.decide(0, "QUOTE ACME 10", now);                    // target:XNAS
//
// The correlation id is the order's identity. What it does in which state is the table in
// docs/oms.md. Closed orders are remembered for a while, so that what comes late is told `closed`
// and not `unknown-order`; then they are forgotten, and the id may be used again.
//
// Threads: one owner; no clock of its own: the time is an argument and does not go back.
// Bounds:  settings.orders_max open orders, then NEW is rejected; as many closed ones, then the
//          oldest is forgotten early. See OrderTable and SymbolCache.
// Cost:    decide() about 100 ns, O(1), and no allocation unless a table has to grow or a symbol is
//          new; forget() takes at most 1,024 orders at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>

#include "ordo/core/clock.h"
#include "ordo/gateway/decision.h"
#include "ordo/gateway/instruction.h"
#include "ordo/gateway/oms_settings.h"
#include "ordo/gateway/order_table.h"
#include "ordo/gateway/symbol_cache.h"
#include "ordo/gateway/symbol_table.h"

namespace ordo::gateway {

class Oms {
 public:
  // REQUIRES: check_settings(*settings); `symbols` outlive it.
  Oms(std::shared_ptr<const OmsSettings> settings, SymbolTable& symbols);
  Oms(const Oms&) = delete;
  Oms& operator=(const Oms&) = delete;
  ~Oms();

  // From the next instruction on `settings` hold. Orders keep what was decided for them.
  // REQUIRES: check_settings(*settings).
  void use(std::shared_ptr<const OmsSettings> settings);

  Decision decide(std::int64_t correlation_id, std::string_view payload, TimePoint now);

  // When the next closed order may be forgotten, or nothing when there is none.
  std::optional<TimePoint> next_due() const;
  // Forgets closed orders whose time has come, and those above an orders_max that was lowered; at
  // most 1,024 of them: next_due() tells of more.
  void forget(TimePoint now);

  std::size_t open_count() const { return orders_.count() - closed_.size(); }
  std::size_t remembered_count() const { return closed_.size(); }
  // Closed orders forgotten before their time, because orders_max newer ones are remembered.
  std::uint64_t forgotten_early_count() const { return forgotten_early_; }
  const OrderTable& orders() const { return orders_; }

 private:
  // An order that was closed, and when.
  struct Closed {
    std::int64_t id;
    TimePoint at;
  };

  Decision place(std::int64_t id, const Instruction& instruction);
  Decision replace(Order& order, const Instruction& instruction, TimePoint now);
  Decision cancel(Order& order, TimePoint now);
  Decision fill(Order& order, Quantity quantity, TimePoint now);
  Decision quote(const Instruction& instruction);
  // Why an order of this size may not be, by itself; nothing when it may.
  std::optional<RiskLimit> exceeded(const PriceCollar* collar, Quantity quantity,
                                    Price price) const;
  // The order is not to be used afterwards.
  void close(Order& order, OrderState state, TimePoint now);
  // Whether the time of the order that was closed first has not come yet. REQUIRES: there is one.
  bool oldest_is_early(TimePoint now) const;
  void forget_oldest(TimePoint now);

  std::shared_ptr<const OmsSettings> settings_;
  SymbolTable& symbols_;
  SymbolCache cache_;
  OrderTable orders_;
  std::deque<Closed> closed_;  // In the order of their time.
  std::size_t closed_peak_ = 0;
  std::uint64_t forgotten_early_ = 0;
};

}  // namespace ordo::gateway
