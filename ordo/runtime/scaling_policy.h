// decide_scaling: how many workers a pool should have, as a pure function.
//
//   ScalingDecision decision = decide_scaling(settings, state, observation);
//   state = decision.next;
//   if (decision.target != observation.workers) resize(decision.target);
//
// Rules.
//   - Demand is work that could start now and a place to put its result. Only demand grows a pool;
//     while the line stands still on its head, more workers cannot help.
//   - A worker that runs something is not idle, however long it runs. Only a pool that had an idle
//     worker at every look for scale_down_after shrinks, and never below its busy workers.
//   - Never above workers_max, never below workers_min; at most `step` at once; at least a cooldown
//     between two changes in the same direction.
//
// Threads: none; a function of its arguments.
// Cost:    a few comparisons.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ordo/core/clock.h"

namespace ordo {

struct ScalingSettings {
  std::size_t workers_min = 1;
  std::size_t workers_max = 1;
  std::chrono::nanoseconds scale_up_cooldown{0};    // Between two growths.
  std::chrono::nanoseconds scale_down_cooldown{0};  // Between two shrinks.
  std::chrono::nanoseconds scale_down_after{0};     // Idle for this long first.
  std::size_t step = 1;
};

// What is remembered from one look to the next.
struct ScalingState {
  std::optional<TimePoint> last_growth;
  std::optional<TimePoint> last_shrink;
  std::optional<TimePoint> idle_since;  // The first look of a row of looks that saw idleness.
};

struct ScalingObservation {
  TimePoint now;
  std::size_t workers = 0;     // That exist.
  std::size_t busy = 0;        // Of these, those that run something.
  std::size_t runnable = 0;    // Items that could start if there were a worker.
  std::size_t free_slots = 0;  // Places for their results.
  bool stalled = false;        // Everything waits for an item that already runs.
};

enum class ScalingReason : std::uint8_t {
  steady,         // Nothing to change.
  below_minimum,  // Grown to workers_min.
  demand,         // Grown: work waits and every worker is busy.
  idle,           // Shrunk: there were idle workers all the time.
  cooling_down,   // A change is due, but the last one is too recent.
  at_limit,       // A growth is due, but workers_max is reached.
  stalled,        // Work waits, but for the head of the line.
};

struct ScalingDecision {
  std::size_t target = 0;  // How many workers there should be.
  ScalingReason reason = ScalingReason::steady;
  ScalingState next;
};

inline ScalingDecision decide_scaling(const ScalingSettings& settings, const ScalingState& state,
                                      const ScalingObservation& seen) {
  ScalingDecision decision{seen.workers, ScalingReason::steady, state};
  const auto cools_down = [&](const std::optional<TimePoint>& last,
                              std::chrono::nanoseconds cooldown) {
    return last && seen.now - *last < cooldown;
  };
  if (seen.workers < settings.workers_min) {
    decision.target = settings.workers_min;
    decision.reason = ScalingReason::below_minimum;
    return decision;
  }

  const bool has_idle = seen.busy < seen.workers;
  if (!has_idle) {
    decision.next.idle_since.reset();
  } else if (!decision.next.idle_since) {
    decision.next.idle_since = seen.now;
  }

  if (!has_idle && seen.runnable > 0) {
    if (seen.stalled || seen.free_slots == 0) {
      decision.reason = ScalingReason::stalled;
    } else if (seen.workers >= settings.workers_max) {
      decision.reason = ScalingReason::at_limit;
    } else if (cools_down(state.last_growth, settings.scale_up_cooldown)) {
      decision.reason = ScalingReason::cooling_down;
    } else {
      const std::size_t useful = std::min({settings.step, seen.runnable, seen.free_slots});
      decision.target = std::min(seen.workers + useful, settings.workers_max);
      decision.reason = ScalingReason::demand;
      decision.next.last_growth = seen.now;
    }
    return decision;
  }

  const bool shrinks = has_idle && seen.workers > settings.workers_min &&
                       seen.now - *decision.next.idle_since >= settings.scale_down_after;
  if (!shrinks) return decision;
  if (cools_down(state.last_shrink, settings.scale_down_cooldown)) {
    decision.reason = ScalingReason::cooling_down;
    return decision;
  }
  const std::size_t least = std::max(settings.workers_min, seen.busy);
  decision.target = std::max(least, seen.workers - std::min(settings.step, seen.workers));
  if (decision.target != seen.workers) {
    decision.reason = ScalingReason::idle;
    decision.next.last_shrink = seen.now;
  }
  return decision;
}

}  // namespace ordo
