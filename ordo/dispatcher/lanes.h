// Lanes: all shards of a dispatcher, and what every part of the engine does with them.
//
//   Lanes<T> lanes(settings);
//   const auto route = lanes.route(key);
//   auto& shard = lanes[route.shard];
//   { std::lock_guard lock(shard.lock); ...; publish = lanes.list(shard); }
//   if (publish) lanes.lookout().publish(route.shard);
//
// Threads: any. Functions that take a Shard& want its lock held, unless they say otherwise; no
//          function takes a second lock while it holds one.
// Bounds:  kShardsMax shards; `threads` turns at once.
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "ordo/core/check.h"
#include "ordo/core/clock.h"
#include "ordo/core/hash.h"
#include "ordo/dispatcher/budget.h"
#include "ordo/dispatcher/keeper.h"
#include "ordo/dispatcher/lookout.h"
#include "ordo/dispatcher/settings.h"
#include "ordo/dispatcher/shard.h"
#include "ordo/runtime/event_count.h"

namespace ordo::dispatcher {

template <class T>
class Lanes {
 public:
  using Key = typename T::Key;
  using KeyView = typename T::KeyView;
  using Record = typename T::Record;

  // Where an entity lives.
  struct Route {
    std::uint32_t shard;
    std::uint32_t hash;    // For the IdleTable.
    std::uint32_t stripe;  // When striped, the lane's id.
  };

  Lanes(const Settings& settings, Keeper::Tend tend)
      : settings_(settings),
        shard_count_(T::kStriped ? std::min(settings.stripes, Lookout::kShardsMax)
                                 : Lookout::kShardsMax),
        budget_(settings.max_queued, shard_count_),
        lookout_(settings.threads),
        keeper_(*settings.clock, std::move(tend)) {
    std::uint64_t random = settings.seed;
    for (std::size_t i = 0; i < shard_count_; ++i) {
      shards_.emplace_back(settings.max_queued_per_key).random = next_random(random);
    }
    for (std::size_t i = 0; i < settings.threads; ++i)
      turns_.emplace_back();
  }

  const Settings& settings() const { return settings_; }
  Clock& clock() const { return *settings_.clock; }
  Lookout& lookout() { return lookout_; }
  Keeper& keeper() { return keeper_; }
  Budget& budget() { return budget_; }
  std::size_t shard_count() const { return shard_count_; }
  Shard<T>& operator[](std::size_t index) { return shards_[index]; }
  Turn<T>& turn(std::size_t worker) { return turns_[worker]; }

  Route route(KeyView key) const {
    const std::uint64_t hash = hash_of(key);
    const auto low = static_cast<std::uint32_t>(hash);
    if constexpr (T::kStriped) {
      const auto stripe = static_cast<std::uint32_t>((hash >> 32) & (settings_.stripes - 1));
      return {static_cast<std::uint32_t>(stripe % shard_count_), low, stripe};
    } else {
      return {static_cast<std::uint32_t>(hash >> 58), low, 0};
    }
  }

  static typename T::LaneIdView lane_id(const Route& route, KeyView key) {
    if constexpr (T::kStriped) {
      return route.stripe;
    } else {
      return key;  // NOLINT(bugprone-return-const-ref-from-parameter): a view of a view.
    }
  }

  // The entity a record belongs to.
  static const Key& key_of(const typename T::LaneId& id, const Record& record) {
    if constexpr (T::kStriped) {
      return *record.key;
    } else {
      return id;
    }
  }

  // True when the shard has ready lanes that nobody was told of: the caller publishes it once it
  // has given the lock back.
  [[nodiscard]] bool list(Shard<T>& shard) const {
    if (shard.listed || shard.queue.ready_count() == 0) return false;
    shard.listed = true;
    return true;
  }

  // ---- the budget

  // One place for an event, if there is one at hand or in stock.
  bool take_place(Shard<T>& shard) {
    if (shard.stock == 0) shard.stock = budget_.take();
    if (shard.stock == 0) return false;
    --shard.stock;
    return true;
  }
  void free_places(Shard<T>& shard, std::uint64_t count) {
    shard.stock = budget_.settle(shard.stock + count);
  }

  // Brings all places that lie unused in shards back into stock. REQUIRES: no lock is held.
  void collect_places() {
    for (std::size_t i = 0; i < shard_count_; ++i) {
      Shard<T>& shard = shards_[i];
      std::lock_guard lock(shard.lock);
      settle_turns(i);
      budget_.give(std::exchange(shard.stock, 0));
    }
  }

  // ---- turns on workers

  // Takes what `turn` has done off its lane, now. REQUIRES: the lock of its shard is held.
  void settle(Turn<T>& turn, Shard<T>& shard) {
    const std::uint32_t done = turn.done_count();
    const std::uint32_t count = done - turn.settled;
    if (count == 0 || shard.ended) return;
    turn.settled = done;
    shard.queue.pop(turn.lane, count);
    shard.account.processed += count;
    free_places(shard, count);
  }

  // The same for every turn in shard `index`, so that its account is exact.
  void settle_turns(std::size_t index) {
    for (Turn<T>& turn : turns_) {
      if (turn.shard.load(std::memory_order_relaxed) == index) settle(turn, shards_[index]);
    }
  }

  // Makes the turn of `lane` in shard `index`, if it is on a worker, end with the event it is at.
  void revoke(std::size_t index, LaneHandle lane) {
    for (Turn<T>& turn : turns_) {
      if (turn.shard.load(std::memory_order_relaxed) != index || turn.lane != lane) continue;
      const std::uint32_t word = turn.done.fetch_or(Turn<T>::kRevoked, std::memory_order_acq_rel);
      if ((word & Turn<T>::kRevoked) == 0) turn.revoked_at = word & Turn<T>::kCount;
      settle(turn, shards_[index]);
    }
  }

  // Lets go of what was held for a turn in the IdleTable.
  void release_memory(Shard<T>& shard, std::uint32_t place) {
    if (place == kNoIndex || shard.ended) return;
    const TimePoint now = clock().now();
    shard.memory.release(place, now);
    keeper_.call_by(later(now, settings_.idle_timeout));
  }

  // The last of many lanes may be gone: if none is there after idle_timeout either, the memory is
  // given back. At once would be too soon, as a shard that is busy is empty every other moment.
  void plan_shrink(Shard<T>& shard) {
    if (shard.lanes_peak <= kLanesKept || shard.queue.key_count() > 0 || shard.shrink_at) return;
    shard.shrink_at = later(clock().now(), settings_.idle_timeout);
    keeper_.call_by(*shard.shrink_at);
  }
  void shrink(Shard<T>& shard, TimePoint now) {
    if (!shard.shrink_at || *shard.shrink_at > now) return;
    shard.shrink_at.reset();
    if (shard.queue.shrink()) shard.lanes_peak = 0;
  }
  void note_lanes(Shard<T>& shard) {
    if (shard.queue.key_count() > shard.lanes_peak) shard.lanes_peak = shard.queue.key_count();
  }

  // ---- waiting for room and for the end

  EventCount& room() { return room_; }

  // There may be room for blocked callers. REQUIRES: no lock is held.
  void tell_room() {
    if (settings_.overflow == Overflow::block) room_.notify_all();
  }

  static bool shard_is_at_rest(const Shard<T>& shard) {
    return shard.queue.ready_count() == 0 && shard.queue.in_flight_count() == 0 &&
           shard.queue.delayed_count() == 0 && shard.endings == 0;
  }

  // Whether tell_room() or tell_drained() may have somebody to tell of what changed in `shard`.
  bool has_listeners(const Shard<T>& shard) const {
    return settings_.overflow == Overflow::block ||
           (draining_.load(std::memory_order_seq_cst) && shard_is_at_rest(shard));
  }

  // A shard has come to rest: who drains looks again. REQUIRES: no lock is held.
  void tell_drained() {
    if (!draining_.load(std::memory_order_seq_cst)) return;
    std::lock_guard guard(drain_mutex_);
    drained_.notify_all();
  }

  // Waits until nothing is ready, running or about to be retried, at most until `deadline`.
  void drain(TimePoint deadline) {
    draining_.store(true, std::memory_order_seq_cst);
    std::unique_lock lock(drain_mutex_);
    while (!is_at_rest() && !clock().wait_until(lock, drained_, deadline)) {
    }
  }

 private:
  static constexpr std::size_t kLanesKept = 256;

  bool is_at_rest() {
    for (Shard<T>& shard : shards_) {
      std::lock_guard lock(shard.lock);
      if (!shard_is_at_rest(shard)) return false;
    }
    return true;
  }

  const Settings settings_;
  const std::size_t shard_count_;
  std::deque<Shard<T>> shards_;
  std::deque<Turn<T>> turns_;
  Budget budget_;
  Lookout lookout_;
  EventCount room_;
  std::atomic<bool> draining_{false};
  std::mutex drain_mutex_;
  std::condition_variable drained_;
  Keeper keeper_;
};

}  // namespace ordo::dispatcher
