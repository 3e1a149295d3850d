// Reaper: cleans up the state of entities that have been idle, and forgets their positions.
//
// A clean-up is a turn of its own: while it runs, the lane of the entity waits, so that the old
// state has ended before a new one is made, and nothing is handled beside it.
//
//   Reaper<T> reaper(lanes, callbacks);
//   TimePoint again = reaper.reap(index, now);   // on the keeper's thread; when to come again
//
// Threads: reap() on one thread; end_all() once, when the shards have ended.
// Cost:    O(1) for each entity reaped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "ordo/dispatcher/callbacks.h"
#include "ordo/dispatcher/lanes.h"

namespace ordo::dispatcher {

template <class T>
class Reaper {
 public:
  using Key = typename T::Key;
  using State = typename T::State;

  Reaper(Lanes<T>& lanes, Callbacks<Key, typename T::Event, State>& callbacks)
      : lanes_(lanes),
        callbacks_(callbacks) {}

  // Reaps what is due in one shard. Returns when the next one will be.
  TimePoint reap(std::size_t index, TimePoint now) {
    Shard<T>& shard = lanes_[index];
    const auto timeout = lanes_.settings().idle_timeout;
    std::unique_lock lock(shard.lock);
    while (!shard.ended) {
      const auto since = shard.memory.oldest_idle_since();
      if (!since) break;
      if (later(*since, timeout) > now) return later(*since, timeout);
      const std::uint32_t place = shard.memory.oldest_idle(*since);
      shard.memory.hold(place);
      if (is_active(shard, place)) {
        shard.memory.release(place, now);  // It is not idle, it waits: for a retry, or parked.
      } else if (!shard.memory[place].state) {
        shard.memory.erase(place);
      } else {
        end_one(index, place, now, lock);
      }
    }
    return TimePoint::max();
  }

  // Ends all states but those a worker is just using, which ends them itself.
  // REQUIRES: the shard has ended.
  void end_all(std::size_t index) {
    if constexpr (T::kHasState) {
      Shard<T>& shard = lanes_[index];
      std::vector<std::pair<Key, State>> ending;
      {
        std::lock_guard lock(shard.lock);
        shard.memory.for_each([&](std::uint32_t place) {
          auto& memory = shard.memory[place];
          if (memory.is_ending || is_in_use(index, place) || !memory.state) return;
          ending.emplace_back(shard.memory.key(place), std::move(*memory.state));
          memory.state.reset();
        });
      }
      for (auto& [key, state] : ending)
        callbacks_.end_state(key, state);
    }
  }

 private:
  bool is_active(Shard<T>& shard, std::uint32_t place) {
    const Key& key = shard.memory.key(place);
    const auto route = lanes_.route(key);
    return shard.memory[place].held != nullptr ||
           shard.queue.item_count(lanes_.lane_id(route, key)) > 0;
  }

  bool is_in_use(std::size_t index, std::uint32_t place) {
    for (std::size_t worker = 0; worker < lanes_.settings().threads; ++worker) {
      const Turn<T>& turn = lanes_.turn(worker);
      if (turn.shard.load(std::memory_order_relaxed) == index && turn.memory == place) return true;
    }
    return false;
  }

  void end_one(std::size_t index, std::uint32_t place, TimePoint now,
               std::unique_lock<ShortLock>& lock) {
    Shard<T>& shard = lanes_[index];
    auto* memory = &shard.memory[place];
    const Key& key = shard.memory.key(place);
    memory->is_ending = true;
    memory->is_touched = false;
    ++shard.endings;
    lock.unlock();
    callbacks_.end_state(key, *memory->state);
    memory->state.reset();
    lock.lock();
    memory->is_ending = false;
    --shard.endings;
    const auto route = lanes_.route(key);
    if (std::exchange(memory->resumes_lane, false)) shard.queue.resume(lanes_.lane_id(route, key));
    if (memory->is_touched || is_active(shard, place)) {
      shard.memory.release(place, now);
    } else {
      shard.memory.erase(place);
    }
    const bool publish = !shard.ended && lanes_.list(shard);
    lock.unlock();
    if (publish) lanes_.lookout().publish(index);
    lanes_.tell_drained();
    lock.lock();
  }

  Lanes<T>& lanes_;
  Callbacks<Key, typename T::Event, State>& callbacks_;
};

}  // namespace ordo::dispatcher
