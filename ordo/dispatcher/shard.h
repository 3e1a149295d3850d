// Shard: a part of a dispatcher's entities: their lanes, their events, what is remembered of them,
// and the account. Pure data under one short lock; the engine decides what happens to it.
//
// Entities are spread over the shards by their hash only to divide the lock: within a shard every
// entity has a lane of its own (elastic), or shares the lane of its stripe (striped). The ordering
// rule is KeyedQueue's.
//
// Threads: everything but `lock` is guarded by it. It is held for nanoseconds, and never while
//          calling out; copying or moving an event is the one thing of the user's it is held for.
// Bounds:  the engine's: max_queued_per_key, max_queued, idle_timeout.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "ordo/core/clock.h"
#include "ordo/dispatcher/idle_table.h"
#include "ordo/dispatcher/settings.h"
#include "ordo/lane/keyed_queue.h"
#include "ordo/runtime/atomics.h"
#include "ordo/runtime/short_lock.h"

namespace ordo::dispatcher {

struct NoKey {};

// An event on its way, and how far it has come.
template <class Key, class Event, bool kStriped>
struct EventRecord {
  struct New {
    LaneKeyView<Key> key;
    Event& event;  // Moved from, if it is admitted.
  };

  explicit EventRecord(New from) : event(std::move(from.event)) {
    if constexpr (kStriped) key = Key(from.key);
  }

  std::optional<Event> event;       // None: done with, its place is about to be free.
  std::exception_ptr error;         // What its last attempt failed with.
  std::uint64_t turn = 0;           // Names the attempt a token belongs to.
  std::uint32_t memory = kNoIndex;  // What is held in the IdleTable while a token is out.
  std::uint32_t tokens = 0;         // Copies of the token.
  std::uint32_t attempt = 0;        // Failed attempts of this step.
  std::uint8_t step = 0;
  bool is_running = false;  // Its handler has not returned.
  bool is_ended = false;    // Its token was used.
  [[no_unique_address]] std::conditional_t<kStriped, std::optional<Key>, NoKey> key;
};

// What is remembered of an entity beyond its events.
template <class Event, class State>
struct Memory {
  std::optional<State> state;
  std::optional<std::uint64_t> last_position;
  std::unique_ptr<std::map<std::uint64_t, Event>> held;  // By position, behind a gap.
  bool is_ending = false;                                // Its state is being cleaned up.
  bool resumes_lane = false;                             // Its lane waits for the end of that.
  bool is_touched = false;  // Its position moved since the clean-up began.
};

struct Account {
  std::uint64_t admitted = 0;
  std::uint64_t processed = 0;
  std::uint64_t failed = 0;
  std::uint64_t dead_lettered = 0;
  std::uint64_t dropped = 0;
  std::uint64_t undone = 0;
  std::uint64_t retried = 0;
  std::uint64_t failed_attempts = 0;
  std::uint64_t rejected = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t gaps = 0;
  std::uint64_t tokens_late = 0;
};

template <class KeyType, class EventType, class StateType, bool kStripedLanes>
struct Types {
  using Key = KeyType;
  using Event = EventType;
  using State = StateType;
  static constexpr bool kStriped = kStripedLanes;
  static constexpr bool kHasState = !std::is_same_v<State, NoState>;
  using KeyView = LaneKeyView<Key>;
  using LaneId = std::conditional_t<kStriped, std::uint32_t, Key>;
  using LaneIdView = LaneKeyView<LaneId>;
  using Record = EventRecord<Key, Event, kStriped>;
};

template <class T>
struct alignas(kCacheLineBytes) Shard {
  explicit Shard(std::size_t lane_events_max) : queue(std::size_t{1} << 31, lane_events_max) {}

  ShortLock lock;
  bool listed = false;      // The lookout has its bit, or is about to be told.
  bool closed = false;      // Admits nothing more.
  bool ended = false;       // Its events are accounted for; who is still running comes too late.
  std::uint64_t stock = 0;  // Places of the budget at hand.
  std::uint64_t turn_last = 0;
  std::uint64_t random = 0;
  std::size_t held_count = 0;
  std::size_t lanes_peak = 0;
  std::optional<TimePoint> shrink_at;  // When to give memory back, if it is empty then.
  std::size_t endings = 0;             // States being cleaned up by the keeper.
  Account account;
  KeyedQueue<typename T::LaneId, typename T::Record> queue;
  IdleTable<typename T::Key, Memory<typename T::Event, typename T::State>> memory;

  std::uint64_t queued() const { return ended ? 0 : queue.item_count() + held_count; }
};

// A turn of a lane on a worker: up to kBatchMax events of it, one after the other.
//
// The lane's first events are the batch. The worker moves `done` on after each; whoever wants the
// batch to end early (pause, shutdown) sets kRevoked and learns from the same word how far it has
// come; a worker that is about to destroy an event says so there first (kLeaving). Done events are
// taken off the lane when the turn ends, or earlier by somebody who needs the account to be exact
// now: `settled` of them are off already.
template <class T>
struct alignas(kCacheLineBytes) Turn {
  static constexpr std::size_t kBatchMax = 64;
  static constexpr std::uint32_t kRevoked = std::uint32_t{1} << 31;
  static constexpr std::uint32_t kLeaving = std::uint32_t{1} << 30;
  static constexpr std::uint32_t kCount = kLeaving - 1;
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  std::atomic<std::uint32_t> done{0};
  std::atomic<std::uint32_t> shard{kNowhere};  // Written under the lock of that shard.
  std::uint32_t revoked_at = 0;                // While revoked: what was done by then.
  std::uint32_t settled = 0;                   // Guarded by the shard's lock, as is the rest.
  std::uint32_t memory = kNoIndex;             // What it holds in the IdleTable.
  Memory<typename T::Event, typename T::State>* remembered = nullptr;  // The same.
  LaneHandle lane;
  const typename T::LaneId* lane_id = nullptr;
  std::size_t count = 0;                  // Events of the batch.
  std::uint32_t first = 0;                // Where they begin.
  typename T::Record* current = nullptr;  // The owner's: the event it is at.

  // The handler has done with event number done_count(), which may be gone already.
  bool is_leaving() const { return (done.load(std::memory_order_acquire) & kLeaving) != 0; }
  std::uint32_t done_count() const { return done.load(std::memory_order_acquire) & kCount; }
};

}  // namespace ordo::dispatcher
