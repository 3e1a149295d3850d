// DispatcherOptions: everything about a Dispatcher that can be chosen, with its default; and what a
// Dispatcher tells.
//
//   ordo::Dispatcher<std::string, Event> d(fn, {.threads = 8, .max_queued_per_key = 100,
//                                               .on_failure = ordo::retry(3, 500ms).then_park()});
//
// A value that makes no sense (no threads, stripes that are no power of two, ...) makes the
// constructor throw std::invalid_argument with a message that names the field.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "ordo/core/clock.h"
#include "ordo/dispatcher/failure_policy.h"
#include "ordo/lane/lane.h"

namespace ordo {

// What became of an event that was dispatched. Unless admitted it was not taken: an event passed by
// std::move() is still whole.
enum class Dispatched : std::uint8_t {
  admitted,   // From here on it is accounted for.
  key_full,   // Refused: its entity has max_queued_per_key events.
  full,       // Refused: all entities together have max_queued events.
  duplicate,  // Refused: its position was seen before.
  closed,     // Refused: shutdown() has begun.
};

// What dispatch() does at a limit.
enum class Overflow : std::uint8_t {
  reject,       // Returns key_full or full at once.
  block,        // Waits for room; in a handler, which must not wait for itself, as reject.
  drop_oldest,  // Drops the entity's oldest event that is not in flight, if there is one.
};

// What dispatch() does when positions of an entity are not dense: one above the next was given.
enum class GapPolicy : std::uint8_t {
  accept,  // Takes it, and counts the gap.
  report,  // The same, and tells on_gap.
  wait,    // Tells on_gap, and holds it back until the missing ones came or resume(key) is called.
};

// The state of a dispatcher whose entities have none.
struct NoState {};

template <class Key, class Event, class State = NoState>
struct DispatcherOptions {
  // Shared workers.
  std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::size_t stripes = 0;  // 0: elastic. Otherwise so many fixed slots, a power of 2.
  std::size_t max_queued_per_key =
      1000;                            // Of one entity (of one slot when striped), in flight too.
  std::size_t max_queued = 1'000'000;  // Of all entities together, in flight too.
  // How long an entity's state and its last position are kept after its last event.
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(60);
  Overflow overflow = Overflow::reject;
  FailurePolicy<Key, Event> on_failure = skip();
  // Once per failed attempt, on the thread where it failed. None: a line on stderr, one a second.
  std::function<void(const Key&, const Event&, std::exception_ptr)> on_error = {};

  // What drop_oldest dropped, on the thread that dispatched.
  std::function<void(const Key&, const Event&)> on_drop = {};
  GapPolicy gaps = GapPolicy::accept;
  // (key, position expected, position given), on the thread that dispatched.
  std::function<void(const Key&, std::uint64_t, std::uint64_t)> on_gap = {};
  // Makes an entity's state before its first event, on a worker. None: State().
  std::function<State(const Key&)> make_state = {};
  // Cleans up an entity's state when it is reaped, once. Never beside a handler of that entity.
  std::function<void(const Key&, State&)> end_state = {};
  std::uint64_t seed = 1;  // Of the jitter in back-offs.
  Clock* clock = nullptr;  // Not owned, outlives the dispatcher. None: the system's.
};

// A lane that is out of service.
template <class Key, class Event>
struct ParkedLane {
  Key key;
  std::optional<Event> event;  // The one that failed; none when paused, or if it cannot be copied.
  std::exception_ptr error;    // What it failed with last; none when paused.
  std::string reason;          // The same for people.
  TimePoint since;             // When it was parked.
  std::size_t queued = 0;      // Its events, the one that failed included.
};

// What a lane waits for.
template <class Key>
struct LaneStatus {
  Key key;                         // When striped, of the event at the head.
  LaneState state;                 // none: all its events are held back by a gap in positions.
  std::size_t queued = 0;          // The one in flight included.
  std::size_t held = 0;            // Held back by a gap in positions.
  std::optional<TimePoint> since;  // In flight, delayed or parked since then.
  std::optional<TimePoint> due;    // Delayed until then.
  unsigned attempt = 0;            // Of the event at the head; 1 in its first turn.
};

// A snapshot, exact at any moment:
//   admitted = processed + failed + dead_lettered + dropped + undone + queued
struct DispatcherStats {
  std::uint64_t admitted = 0;
  std::uint64_t processed = 0;
  std::uint64_t failed = 0;         // Given up by skip.
  std::uint64_t dead_lettered = 0;  // Given up to the dead letter function.
  std::uint64_t dropped = 0;        // By drop_oldest, or by discard().
  std::uint64_t undone = 0;         // Not processed when shutdown() ended.
  std::uint64_t queued = 0;         // Waiting, in flight or held back, now.

  std::uint64_t retried = 0;          // Attempts that will be repeated.
  std::uint64_t failed_attempts = 0;  // All of them: what on_error was told.
  std::uint64_t rejected = 0;         // key_full and full.
  std::uint64_t duplicates = 0;
  std::uint64_t gaps = 0;
  std::uint64_t tokens_late = 0;  // Tokens used after their turn had ended.

  std::size_t active_lanes = 0;  // Lanes with events, and paused ones.
  std::size_t in_flight = 0;
  std::size_t held = 0;  // Of queued, those held back by a gap in positions.
  std::size_t delayed_lanes = 0;
  std::size_t parked_lanes = 0;
  std::size_t entities_remembered = 0;  // Entities whose state or position is kept.
  std::size_t threads = 0;
};

}  // namespace ordo
