// What a partition engine says about itself: EngineStats, BlockedId, EngineDrain.
//
//   for (const PartitionStats& partition : engine.stats().partitions) show(partition.depth);
//   for (const BlockedId& blocked : engine.longest_blocked(5)) show(blocked.id, blocked.behind);
//   for (auto& undone : engine.drain(5s).undone) save(undone.id, undone.task);
//
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ordo/core/clock.h"
#include "ordo/core/histogram.h"
#include "ordo/engine/options.h"

namespace ordo {

struct PartitionStats {
  std::size_t depth = 0;        // Admitted and not done with: in the ring, in lanes, in flight.
  std::size_t in_flight = 0;    // Of them, those whose handler has begun and not ended.
  std::size_t ready_lanes = 0;  // Ids, and uncorrelated tasks, that wait for their turn.
  std::size_t lanes = 0;        // Correlation ids that have tasks outside the ring.
  std::uint64_t admitted = 0;   // = processed + failed + undone + depth, when nothing moves.
  std::uint64_t processed = 0;
  std::uint64_t failed = 0;
  std::uint64_t undone = 0;  // Listed by drain().
  std::uint64_t rejected_busy = 0;
  std::uint64_t rejected_id_busy = 0;
  std::uint64_t rejected_closing = 0;
  std::uint64_t tokens_late = 0;   // Uses of tokens whose task was over.
  std::uint64_t timers_threw = 0;  // Times that the handler threw when asked for, or at, a timer.
  std::uint64_t turns_of_callers = 0;  // Loop turns run by callers of flush().
  Histogram wait_ns;                   // From submit() to the begin of the handler.
  Histogram handler_ns;                // From there to its end.
};

struct EngineStats {
  std::vector<PartitionStats> partitions;

  // The sums over all partitions.
  PartitionStats total() const;
};

// A correlation id whose head has been in the way of others for some time.
struct BlockedId {
  CorrelationId id = 0;
  std::uint32_t partition = 0;
  TimePoint since;         // The head of the id has been its head since then.
  std::size_t behind = 0;  // Tasks of the id that wait behind the head.
  bool in_flight = false;  // The head is in its handler, or waits for its token.
};

// A task that was admitted and not done when the deadline of drain() came.
template <class Task>
struct UndoneTask {
  CorrelationId id = 0;
  std::uint32_t partition = 0;
  TimePoint entered;
  bool in_flight = false;    // Its handler had begun; what it did may have had effects.
  std::optional<Task> task;  // Nothing only if a handler that may change it has it still.
};

template <class Task>
struct EngineDrain {
  std::vector<UndoneTask<Task>> undone;  // Within an id in order.

  bool complete() const { return undone.empty(); }
};

}  // namespace ordo
