// OmsHandler: what a partition of the gateway does with a task: the mini-OMS decides, the front is
// told.
//
//   PartitionEngine<Request, OmsHandler> engine(options, [&](std::size_t) {
//     return std::make_unique<OmsHandler>(OmsHandlerParts{symbols, latest, replies, counts, {}});
//   });
//
// It never blocks, unless the hook of a test does, so callers may run it.
//
// Threads: the partition's owner; counts may be read by any thread.
// Bounds:  those of Oms. The detail of an error has at most 200 characters.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "ordo/core/clock.h"
#include "ordo/core/counter.h"
#include "ordo/engine/options.h"
#include "ordo/gateway/decision.h"
#include "ordo/gateway/latest_settings.h"
#include "ordo/gateway/oms.h"
#include "ordo/gateway/ports.h"
#include "ordo/gateway/request.h"
#include "ordo/gateway/symbol_table.h"

namespace ordo::gateway {

// What one partition has decided. Written by its owner, read by anybody.
struct alignas(64) OmsCounts {
  std::array<Counter, kOutcomeCount> outcomes;
  std::array<Counter, kRejectCount> rejects;
  std::atomic<std::uint64_t> open_orders{0};
  std::atomic<std::uint64_t> remembered_orders{0};
  std::atomic<std::uint64_t> forgotten_early{0};
};

using TaskHook = std::function<void(const Request&)>;

// What a handler works with. REQUIRES: all of it outlives the handler.
struct OmsHandlerParts {
  SymbolTable& symbols;
  const LatestSettings& latest;
  ReplyPort& replies;
  OmsCounts& counts;
  const TaskHook& before_task;  // May be empty.
};

class OmsHandler {
 public:
  explicit OmsHandler(const OmsHandlerParts& parts);

  void handle(const Request& request, const TaskTurn& turn);
  void finished(Request& request, const TaskTurn& turn) noexcept;
  void failed(Request& request, const TaskTurn& turn, std::exception_ptr error) noexcept;
  void batch_end() noexcept;
  std::optional<TimePoint> next_due() const { return oms_.next_due(); }
  void run_due(TimePoint now);

 private:
  void answer(Request& request, const TaskTurn& turn, Refusal refusal, Words words) noexcept;
  void take_settings();
  void show_orders();

  OmsHandlerParts parts_;
  std::shared_ptr<const OmsSettings> settings_;
  std::uint64_t version_;  // Of settings_.
  Oms oms_;
  std::optional<Decision> decision_;  // On the task in hand, from handle() to finished().
};

}  // namespace ordo::gateway
