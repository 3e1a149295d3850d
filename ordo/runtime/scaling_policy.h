// decide_scaling: how many workers a pool should have, as a pure function.
//
//   ScalingDecision decision = decide_scaling(settings, state, observation);
//   state = decision.next;
//   start(decision.grow);
//   dismiss(decision.shrink);
//
// Rules.
//   - Demand is input that could start now and free window slots for it. Only demand grows a pool;
//     while the line is stalled on its head, more workers cannot help.
//   - A busy worker is not idle, however long it runs. Only a pool that had an idle worker at every
//     look for down_after shrinks, and never below its busy workers.
//   - Never above max, never below min; at most `step` at once; a cooldown between two growths, and
//     between any change and a shrink.
//   - A worker that was dismissed and has not ended yet counts against max, and not as staying.
//
// Threads: none; a function of its arguments.
// Cost:    a few comparisons.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo {

struct ScalingSettings {
  std::size_t min = 1;
  std::size_t max = 1;
  std::chrono::nanoseconds up_cooldown = std::chrono::seconds(5);     // Between two growths.
  std::chrono::nanoseconds down_cooldown = std::chrono::seconds(10);  // Before a shrink.
  std::chrono::nanoseconds down_after = std::chrono::seconds(30);     // Idle for so long first.
  std::size_t step = 1;  // Workers added or removed at once.
};

// What is remembered from one look to the next.
struct ScalingState {
  std::optional<TimePoint> grown_at;
  std::optional<TimePoint> changed_at;
  std::optional<TimePoint> idle_since;  // The first look of a row of looks that saw idleness.
};

struct ScalingObservation {
  TimePoint now{};
  std::size_t workers = 0;            // That have not ended, those that are leaving included.
  std::size_t leaving = 0;            // Dismissed, and still there.
  std::size_t busy = 0;               // Of those that stay, how many run something.
  std::size_t runnable = 0;           // Items that could start if there were a worker.
  std::size_t window_slots_free = 0;  // Places for their results.
  bool stalled_on_head = false;       // Everything waits for an item that already runs.
};

enum class ScalingReason : std::uint8_t {
  below_min,
  above_max,
  demand,
  idle,
  steady,
  at_max,
  at_min,
  stalled,
  window_full,
  up_cooldown,
  down_cooldown,
  not_idle_enough,
};

const char* text_of(ScalingReason reason);

struct ScalingDecision {
  std::size_t grow = 0;    // Workers to start; zero if shrink is not.
  std::size_t shrink = 0;  // Workers to dismiss.
  ScalingState next;
  ScalingReason reason = ScalingReason::steady;
};

// `settings`, or which field makes no sense.
Result<ScalingSettings> check_scaling(const ScalingSettings& settings);

// REQUIRES: check_scaling(settings), and leaving <= workers.
ScalingDecision decide_scaling(const ScalingSettings& settings, const ScalingState& state,
                               const ScalingObservation& seen);

}  // namespace ordo
