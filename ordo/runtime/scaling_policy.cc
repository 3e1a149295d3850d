#include "ordo/runtime/scaling_policy.h"

#include <algorithm>
#include <array>
#include <string>

#include "ordo/core/check.h"

namespace ordo {

namespace {

Error bad(const std::string& field, const std::string& given, const std::string& allowed) {
  return Error{ErrorCode::invalid_argument, field + " is " + given + ", but must be " + allowed};
}

bool within(const std::optional<TimePoint>& since, TimePoint now, std::chrono::nanoseconds span) {
  return since.has_value() && now - *since < span;
}

std::size_t difference(std::size_t a, std::size_t b) {
  return a > b ? a - b : 0;
}

ScalingDecision keep(const ScalingState& next, ScalingReason reason) {
  return {.grow = 0, .shrink = 0, .next = next, .reason = reason};
}

ScalingDecision grow(ScalingState next, TimePoint now, std::size_t count, ScalingReason reason) {
  next.grown_at = now;
  next.changed_at = now;
  return {.grow = count, .shrink = 0, .next = next, .reason = reason};
}

ScalingDecision shrink(ScalingState next, TimePoint now, std::size_t count, ScalingReason reason) {
  next.changed_at = now;
  return {.grow = 0, .shrink = count, .next = next, .reason = reason};
}

// Input waits and every worker that stays is busy: would one more help?
ScalingDecision decide_growth(const ScalingSettings& settings, const ScalingState& next,
                              const ScalingObservation& seen) {
  if (seen.stalled_on_head) return keep(next, ScalingReason::stalled);
  if (seen.window_slots_free == 0) return keep(next, ScalingReason::window_full);
  const std::size_t room = difference(settings.max, seen.workers);
  if (room == 0) return keep(next, ScalingReason::at_max);
  if (within(next.grown_at, seen.now, settings.up_cooldown))
    return keep(next, ScalingReason::up_cooldown);
  const std::size_t useful = std::min(seen.runnable, seen.window_slots_free);
  return grow(next, seen.now, std::min({settings.step, room, useful}), ScalingReason::demand);
}

ScalingDecision decide_shrinking(const ScalingSettings& settings, const ScalingState& next,
                                 const ScalingObservation& seen, std::size_t staying) {
  const std::size_t spare = difference(staying, settings.min);
  if (spare == 0) return keep(next, ScalingReason::at_min);
  if (within(next.idle_since, seen.now, settings.down_after))
    return keep(next, ScalingReason::not_idle_enough);
  if (within(next.changed_at, seen.now, settings.down_cooldown))
    return keep(next, ScalingReason::down_cooldown);
  const std::size_t idle = difference(staying, seen.busy);
  return shrink(next, seen.now, std::min({settings.step, spare, idle}), ScalingReason::idle);
}

}  // namespace

const char* text_of(ScalingReason reason) {
  constexpr std::array<const char*, 12> kTexts = {"below the minimum",
                                                  "above the maximum",
                                                  "demand",
                                                  "idle",
                                                  "steady",
                                                  "demand, but at the maximum",
                                                  "idle, but at the minimum",
                                                  "stalled on the head of the line",
                                                  "the window is full",
                                                  "demand, but too soon after the last growth",
                                                  "idle, but too soon after the last change",
                                                  "idle, but not for long enough"};
  return kTexts[static_cast<std::size_t>(reason)];
}

Result<ScalingSettings> check_scaling(const ScalingSettings& settings) {
  const std::string min = std::to_string(settings.min);
  if (settings.min == 0) return bad("min workers", min, "at least 1");
  if (settings.max < settings.min)
    return bad("max workers", std::to_string(settings.max), "at least min workers (" + min + ")");
  if (settings.step == 0) return bad("step", "0", "at least 1");
  const auto check_span = [](const char* field, std::chrono::nanoseconds span) {
    return bad(field, std::to_string(span.count()) + " ns", "0 or more");
  };
  if (settings.up_cooldown.count() < 0)
    return check_span("scale_up_cooldown", settings.up_cooldown);
  if (settings.down_cooldown.count() < 0)
    return check_span("scale_down_cooldown", settings.down_cooldown);
  if (settings.down_after.count() < 0) return check_span("scale_down_after", settings.down_after);
  return settings;
}

ScalingDecision decide_scaling(const ScalingSettings& settings, const ScalingState& state,
                               const ScalingObservation& seen) {
  ORDO_CHECK(settings.min > 0 && settings.min <= settings.max && settings.step > 0);
  ORDO_CHECK(seen.leaving <= seen.workers);
  const std::size_t staying = seen.workers - seen.leaving;
  ScalingState next = state;

  const bool waiting = seen.runnable > 0 && seen.busy >= staying;
  const bool demand = waiting && seen.window_slots_free > 0 && !seen.stalled_on_head;
  const bool idle = !demand && seen.busy < staying;
  if (!idle) {
    next.idle_since.reset();
  } else if (!next.idle_since.has_value()) {
    next.idle_since = seen.now;
  }

  if (staying < settings.min) {
    const std::size_t wanted =
        std::min(settings.min - staying, difference(settings.max, seen.workers));
    if (wanted > 0) return grow(next, seen.now, wanted, ScalingReason::below_min);
  }
  if (staying > settings.max)
    return shrink(next, seen.now, staying - settings.max, ScalingReason::above_max);
  if (waiting) return decide_growth(settings, next, seen);
  if (idle) return decide_shrinking(settings, next, seen, staying);
  return keep(next, ScalingReason::steady);
}

}  // namespace ordo
