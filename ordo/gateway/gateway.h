// Gateway: requests in, decisions out; per correlation id in order and one at a time, ids in
// parallel, a refusal at once when there is no room.
//
//   order_tcp::Server server(server_options);             // a ReplyPort, or a test's own
//   Gateway gateway({.engine = {.partitions = 4}, .oms = settings}, server);
//   Admitted admitted = gateway.submit(std::move(request));
//   if (admitted.refusal != Refusal::none) tell(admitted.refusal);
//   gateway.flush();
//   ...
//   gateway.apply(std::make_shared<const OmsSettings>(newer));
//   for (const UndoneRequest& undone : gateway.drain(10s)) list(undone);
//
// The partition engine (ordo/engine) with the mini-OMS (oms.h) as its handler.
//
// Threads: `engine.partitions` of its own. All calls: any thread; drain() and the destructor not
//          from a ReplyPort call.
// Bounds:  EngineOptions and OmsSettings; docs/limits.md.
// Errors:  the constructor throws std::invalid_argument, naming the bad option.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ordo/engine.h"
#include "ordo/gateway/decision.h"
#include "ordo/gateway/latest_settings.h"
#include "ordo/gateway/oms_handler.h"
#include "ordo/gateway/oms_settings.h"
#include "ordo/gateway/ports.h"
#include "ordo/gateway/request.h"
#include "ordo/gateway/symbol_table.h"

namespace ordo::gateway {

struct GatewayOptions {
  EngineOptions engine = {};
  OmsSettings oms = {};
  // For tests: called in the partition before each task is decided; may block (not with
  // engine.callers_run) and may throw, which is the task's error.
  TaskHook before_task = {};
};

struct GatewayStats {
  EngineStats engine;
  std::array<std::uint64_t, kOutcomeCount> outcomes{};  // By Outcome.
  std::array<std::uint64_t, kRejectCount> rejects{};    // By Reject.
  std::uint64_t open_orders = 0;
  std::uint64_t remembered_orders = 0;  // Closed, and not forgotten yet.
  std::uint64_t forgotten_early = 0;    // Closed, and forgotten because orders_max were remembered.
};

// A request that was admitted and not answered when drain() ended.
struct UndoneRequest {
  ReplyAddress from;
  RequestId id;
  std::int64_t correlation_id = 0;
  std::int32_t partition = kNoPartition;
  bool in_flight = false;  // It had begun: its order may have changed.
};

class Gateway final : public TaskPort {
 public:
  // REQUIRES: `replies` outlives the gateway.
  Gateway(GatewayOptions options, ReplyPort& replies);

  Admitted submit(Request&& request) override;
  void flush() override;
  std::string stats_line() const override;

  GatewayStats stats() const;
  EngineStats engine_stats() const { return engine_.stats(); }
  std::vector<BlockedId> longest_blocked(std::size_t count) const {
    return engine_.longest_blocked(count);
  }

  // Each partition takes `settings` before its next task. Orders keep what was decided for them.
  // REQUIRES: check_settings(*settings).
  void apply(std::shared_ptr<const OmsSettings> settings);

  // Refuses new requests, finishes what was admitted, and returns when all is answered, or after
  // `grace` with what is not and never will be.
  std::vector<UndoneRequest> drain(std::chrono::nanoseconds grace);

 private:
  SymbolTable symbols_;
  LatestSettings latest_;
  const TaskHook before_task_;
  std::vector<std::unique_ptr<OmsCounts>> counts_;  // By partition.
  PartitionEngine<Request, OmsHandler> engine_;     // Last: it ends before what it works with.
};

// One line of JSON: counters over all partitions.
std::string to_json(const GatewayStats& stats);

}  // namespace ordo::gateway
