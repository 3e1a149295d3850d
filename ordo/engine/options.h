// EngineOptions and the small values that cross the door of the partition engine.
//
//   EngineOptions options{.partitions = 8, .budget = 4096};
//   if (engine.submit(order_id, std::move(order)).entry != Entry::admitted) return refuse();
//
// Threads: plain values.
// Bounds:  the allowed values are in docs/limits.md; others make the constructor throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ordo/core/clock.h"

namespace ordo {

// Above zero: correlated, kept in order. Zero and below: uncorrelated, no order.
using CorrelationId = std::int64_t;

struct EngineOptions {
  std::size_t partitions = 4;      // Threads, rings and handlers; 1 to 256.
  std::size_t budget = 1024;       // Tasks of one partition: in its ring, its lanes and in flight.
  std::size_t per_id = 64;         // The same of one correlation id.
  std::size_t batch_max = 64;      // Tasks of one loop turn, of each kind.
  bool callers_run = false;        // A caller of flush() may run an idle partition itself. Only
                                   // for handlers that never block.
  std::string name = "ordo-part";  // Threads are called <name>-<partition>.
  Clock* clock = nullptr;          // system_clock() if null.
  std::uint64_t round_first = 0;   // Where the round robin of uncorrelated tasks begins.
};

// What became of a task that asked to come in.
enum class Entry : std::uint8_t {
  admitted,  // Taken in; it will be finished, failed, or listed by drain().
  busy,      // Refused: the partition has as many tasks as it may have.
  id_busy,   // Refused: its correlation id has as many tasks as one may have.
  closing,   // Refused: drain() was called.
};

struct Submitted {
  Entry entry = Entry::closing;
  std::uint32_t partition = 0;  // Where it went, or would have gone.
};

// What a handler is told about the task it has.
struct TaskTurn {
  CorrelationId id = 0;
  std::uint32_t partition = 0;
  TimePoint entered;  // When it was submitted; within one burst of submits, when the burst began.
  TimePoint began;    // When the partition turned to it.
  TimePoint ended;    // When its handler was done with it: in finished() and failed() only.
};

}  // namespace ordo
