// LaneEngine: the parts of a dispatcher put together: intake, turns, reaper, keeper, workers; what
// an operator sees of the lanes; and the end.
//
// Threads: any, all calls. Owns `threads` workers and one keeper.
// Bounds:  those of Intake; threads + 1 threads.
#pragma once

#include <algorithm>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ordo/core/describe.h"
#include "ordo/dispatcher/callbacks.h"
#include "ordo/dispatcher/engine.h"
#include "ordo/dispatcher/handler.h"
#include "ordo/dispatcher/intake.h"
#include "ordo/dispatcher/lanes.h"
#include "ordo/dispatcher/reaper.h"
#include "ordo/dispatcher/turns.h"
#include "ordo/runtime/threads.h"

namespace ordo::dispatcher {

template <class T>
class LaneEngine final : public Engine<typename T::Key, typename T::Event> {
 public:
  using Key = typename T::Key;
  using Event = typename T::Event;
  using State = typename T::State;
  using KeyView = typename T::KeyView;
  using Base = Engine<Key, Event>;
  using Undone = typename Base::Undone;

  LaneEngine(std::unique_ptr<Handler<Key, Event, State>> handler,
             DispatcherOptions<Key, Event, State> options, const Settings& settings)
      : callbacks_(std::move(options), *settings.clock, this),
        lanes_(settings, [this](TimePoint now) { return tend(now); }),
        intake_(lanes_, callbacks_),
        turns_(lanes_, callbacks_, std::move(handler), this),
        reaper_(lanes_, callbacks_),
        workers_("ordo-dispatch",
                 [this](std::size_t me, const std::stop_token&) { turns_.work(me); }) {}

  // Also when start() could not make all its threads.
  ~LaneEngine() override {
    turns_.stop();
    join();
  }
  LaneEngine(const LaneEngine&) = delete;
  LaneEngine& operator=(const LaneEngine&) = delete;

  void start() {
    lanes_.keeper().start();
    workers_.grow(lanes_.settings().threads);
  }

  Dispatched dispatch(KeyView key, Event& event, const std::uint64_t* position) override {
    return intake_.dispatch(key, event, position, this);
  }

  bool end_turn(const TurnName& turn, std::exception_ptr error) override {
    return turns_.end_turn(turn, std::move(error));
  }
  void hold_turn(const TurnName& turn) override { turns_.hold_turn(turn); }
  void drop_turn(const TurnName& turn) override { turns_.drop_turn(turn); }

  // ---- out of service and back

  bool pause(KeyView key) override {
    const auto route = lanes_.route(key);
    Shard<T>& shard = lanes_[route.shard];
    const TimePoint now = lanes_.clock().now();
    std::unique_lock lock(shard.lock);
    if (shard.ended) return false;
    const auto id = lanes_.lane_id(route, key);
    if (is_ending(shard, route, key)) {
      auto& memory = shard.memory[shard.memory.find(route.hash, key)];
      if (std::exchange(memory.resumes_lane, false)) return true;  // Parked already: for good now.
    }
    const bool parked = shard.queue.park(id, now);
    if (const auto lane = shard.queue.lane(id); lane->state == LaneState::in_flight) {
      lanes_.revoke(route.shard, lane->lane);
    }
    lanes_.note_lanes(shard);
    const bool at_rest = lanes_.shard_is_at_rest(shard);
    lock.unlock();
    if (at_rest) lanes_.tell_drained();
    return parked;
  }

  bool resume(KeyView key) override {
    const auto route = lanes_.route(key);
    Shard<T>& shard = lanes_[route.shard];
    bool resumed = false;
    bool publish = false;
    {
      std::lock_guard lock(shard.lock);
      if (shard.ended) return false;
      if (!is_waiting_for_ending(shard, route, key)) {
        resumed = shard.queue.resume(lanes_.lane_id(route, key));
        lanes_.plan_shrink(shard);
      }
      publish = lanes_.list(shard);
    }
    if (publish) lanes_.lookout().publish(route.shard);
    return intake_.accept_gap(key) || resumed;
  }

  std::optional<Event> discard(KeyView key) override {
    const auto route = lanes_.route(key);
    Shard<T>& shard = lanes_[route.shard];
    std::optional<typename T::Record> record;
    {
      std::lock_guard lock(shard.lock);
      const auto lane = shard.queue.lane(lanes_.lane_id(route, key));
      if (shard.ended || !lane || lane->state != LaneState::parked) return std::nullopt;
      record = shard.queue.drop_head(lanes_.lane_id(route, key), lanes_.clock().now());
      if (!record) return std::nullopt;
      ++shard.account.dropped;
      lanes_.free_places(shard, 1);
    }
    lanes_.tell_room();
    return std::move(record->event);
  }

  // ---- what an operator sees

  std::vector<ParkedLane<Key, Event>> parked() override {
    std::vector<ParkedLane<Key, Event>> result;
    for (std::size_t i = 0; i < lanes_.shard_count(); ++i) {
      Shard<T>& shard = lanes_[i];
      std::lock_guard lock(shard.lock);
      if (shard.ended) continue;
      shard.queue.for_each_parked([&](const auto& lane) {
        const std::optional<Key> key = key_of(lane);
        if (!key || is_waiting_for_ending(shard, lanes_.route(*key), *key)) return;
        ParkedLane<Key, Event> entry{*key, {}, {}, "paused", *lane.parked_at, lane.item_count};
        if (lane.head != nullptr && lane.head->error) {
          entry.error = lane.head->error;
          entry.reason = describe(entry.error);
          if constexpr (std::copy_constructible<Event>) entry.event = lane.head->event;
        }
        result.push_back(std::move(entry));
      });
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const auto& a, const auto& b) { return a.since < b.since; });
    return result;
  }

  std::vector<LaneStatus<Key>> lanes(std::size_t count) override {
    std::vector<LaneStatus<Key>> result;
    for (std::size_t i = 0; i < lanes_.shard_count(); ++i) {
      Shard<T>& shard = lanes_[i];
      std::lock_guard lock(shard.lock);
      if (shard.ended) continue;
      lanes_.settle_turns(i);
      const std::size_t first = result.size();
      for (const auto& lane : shard.queue.deepest(count)) {
        if (const std::optional<Key> key = key_of(lane)) result.push_back(status_of(*key, lane));
      }
      if (shard.held_count > 0) add_held(shard, first, result);
    }
    const auto deeper = [](const auto& a, const auto& b) {
      return a.queued + a.held > b.queued + b.held;
    };
    std::stable_sort(result.begin(), result.end(), deeper);
    if (result.size() > count)
      result.erase(result.begin() + static_cast<std::ptrdiff_t>(count), result.end());
    return result;
  }

  DispatcherStats stats() override {
    DispatcherStats stats;
    stats.threads = lanes_.settings().threads;
    for (std::size_t i = 0; i < lanes_.shard_count(); ++i) {
      Shard<T>& shard = lanes_[i];
      std::lock_guard lock(shard.lock);
      lanes_.settle_turns(i);
      add_account(shard, stats);
    }
    return stats;
  }

  // ---- the end

  Undone shutdown(std::chrono::nanoseconds deadline) override {
    if (CallingOut::is_for(this)) {
      // tidy: allow(throw) becomes the error of the event whose handler called it
      throw std::logic_error("shutdown() was called by a handler of the dispatcher itself");
    }
    const TimePoint end =
        later(lanes_.clock().now(), std::max(deadline, std::chrono::nanoseconds(0)));
    if (!begin_shutdown(end)) return {};
    for (std::size_t i = 0; i < lanes_.shard_count(); ++i) {
      std::lock_guard lock(lanes_[i].lock);
      lanes_[i].closed = true;
    }
    lanes_.room().notify_all();
    lanes_.drain(end);
    turns_.stop();
    lanes_.keeper().request_stop();
    Undone undone;
    for (std::size_t i = 0; i < lanes_.shard_count(); ++i)
      account_for(i, undone);
    for (std::size_t i = 0; i < lanes_.shard_count(); ++i)
      reaper_.end_all(i);
    end_shutdown();
    return undone;
  }

  void join() final {
    workers_.stop();
    lanes_.keeper().stop();
  }

 private:
  // False: somebody else's is, or was, at it; returns when that has ended, or at `end`.
  bool begin_shutdown(TimePoint end) {
    std::unique_lock lock(shutdown_mutex_);
    if (!std::exchange(is_shutting_down_, true)) return true;
    while (!is_shut_down_ && !lanes_.clock().wait_until(lock, shut_down_, end)) {
    }
    return false;
  }
  void end_shutdown() {
    std::lock_guard lock(shutdown_mutex_);
    is_shut_down_ = true;
    shut_down_.notify_all();
  }

  // On the keeper's thread: what is due by now. Returns when to come again.
  TimePoint tend(TimePoint now) {
    TimePoint again = TimePoint::max();
    for (std::size_t i = 0; i < lanes_.shard_count(); ++i) {
      Shard<T>& shard = lanes_[i];
      bool publish = false;
      {
        std::lock_guard lock(shard.lock);
        if (shard.ended) continue;
        shard.queue.wake(now);
        lanes_.shrink(shard, now);
        publish = lanes_.list(shard);
        again = std::min(again, shard.queue.next_due().value_or(TimePoint::max()));
        again = std::min(again, shard.shrink_at.value_or(TimePoint::max()));
      }
      if (publish) lanes_.lookout().publish(i);
      again = std::min(again, reaper_.reap(i, now));
    }
    return again;
  }

  static bool is_ending(Shard<T>& shard, const auto& route, KeyView key) {
    const std::uint32_t place = shard.memory.find(route.hash, key);
    return place != kNoIndex && shard.memory[place].is_ending;
  }
  static bool is_waiting_for_ending(Shard<T>& shard, const auto& route, KeyView key) {
    const std::uint32_t place = shard.memory.find(route.hash, key);
    return place != kNoIndex && shard.memory[place].is_ending && shard.memory[place].resumes_lane;
  }

  // None for a paused stripe without events, which could be anybody's.
  static std::optional<Key> key_of(const auto& lane) {
    if constexpr (T::kStriped) {
      if (lane.head == nullptr) return std::nullopt;
      return lane.head->key;
    } else {
      return lane.key;
    }
  }

  static LaneStatus<Key> status_of(const Key& key, const auto& lane) {
    LaneStatus<Key> status{key, lane.state, lane.item_count, 0, {}, lane.due, lane.attempt};
    if (lane.state == LaneState::in_flight) status.since = lane.taken_at;
    if (lane.state == LaneState::parked) status.since = lane.parked_at;
    return status;
  }

  // Adds what is held back to the lanes of the shard, which stand from `first` on.
  void add_held(Shard<T>& shard, std::size_t first, std::vector<LaneStatus<Key>>& result) {
    const std::size_t last = result.size();
    shard.memory.for_each([&](std::uint32_t place) {
      if (!shard.memory[place].held) return;
      const Key& key = shard.memory.key(place);
      const std::size_t held = shard.memory[place].held->size();
      const auto end = result.begin() + static_cast<std::ptrdiff_t>(last);
      const auto found = std::find_if(result.begin() + static_cast<std::ptrdiff_t>(first), end,
                                      [&](const auto& status) { return status.key == key; });
      if (found != end) {
        found->held = held;
        return;
      }
      LaneStatus<Key> status{key, LaneState::none, 0, held, {}, {}, 0};
      if constexpr (!T::kStriped) {
        if (const auto lane = shard.queue.lane(key)) status = status_of(key, *lane);
        status.held = held;
      }
      result.push_back(std::move(status));
    });
  }

  static void add_account(const Shard<T>& shard, DispatcherStats& stats) {
    const Account& account = shard.account;
    stats.admitted += account.admitted;
    stats.processed += account.processed;
    stats.failed += account.failed;
    stats.dead_lettered += account.dead_lettered;
    stats.dropped += account.dropped;
    stats.undone += account.undone;
    stats.retried += account.retried;
    stats.failed_attempts += account.failed_attempts;
    stats.rejected += account.rejected;
    stats.duplicates += account.duplicates;
    stats.gaps += account.gaps;
    stats.tokens_late += account.tokens_late;
    if (shard.ended) return;
    stats.queued += shard.queued();
    stats.held += shard.held_count;
    stats.active_lanes += shard.queue.key_count();
    stats.in_flight += shard.queue.in_flight_count();
    stats.delayed_lanes += shard.queue.delayed_count();
    stats.parked_lanes += shard.queue.parked_count();
    stats.entities_remembered += shard.memory.count();
  }

  // Lists what is left in a shard, and ends it: who still runs there comes too late.
  void account_for(std::size_t index, Undone& undone) {
    Shard<T>& shard = lanes_[index];
    std::lock_guard lock(shard.lock);
    const std::vector<const typename T::Record*> running = stop_turns(index);
    shard.queue.for_each_item([&](const auto& id, typename T::Record& record) {
      const bool is_leaving = std::count(leaving_.begin(), leaving_.end(), &record) > 0;
      if (is_leaving) return;
      const bool runs = record.is_running || record.tokens > 0 ||
                        std::count(running.begin(), running.end(), &record) > 0;
      std::vector<Event>& events = undone[Lanes<T>::key_of(id, record)];
      if (!runs) {
        events.push_back(std::move(*record.event));
      } else if constexpr (std::copy_constructible<Event>) {
        // Handlers that only read their event leave it readable for us.
        if (turns_.reads_only()) events.push_back(*record.event);
      }
    });
    shard.memory.for_each([&](std::uint32_t place) {
      auto held = std::exchange(shard.memory[place].held, nullptr);
      if (!held) return;
      for (auto& [position, event] : *held)
        undone[shard.memory.key(place)].push_back(std::move(event));
    });
    std::erase_if(undone, [](const auto& entry) { return entry.second.empty(); });
    shard.account.processed += leaving_.size();
    shard.account.undone += shard.queued() - leaving_.size();
    shard.ended = true;
  }

  // Makes the turns on workers end with the event they are at; returns those events. Those that
  // are as good as done are in leaving_.
  std::vector<const typename T::Record*> stop_turns(std::size_t index) {
    std::vector<const typename T::Record*> running;
    leaving_.clear();
    for (std::size_t worker = 0; worker < lanes_.settings().threads; ++worker) {
      Turn<T>& turn = lanes_.turn(worker);
      if (turn.shard.load(std::memory_order_relaxed) != index) continue;
      lanes_.revoke(index, turn.lane);
      std::uint32_t word = 0;
      do {
        lanes_.settle(turn, lanes_[index]);
        word = turn.done.load(std::memory_order_acquire);
      } while ((word & Turn<T>::kCount) != turn.settled);
      if (turn.settled != turn.revoked_at || turn.settled >= turn.count) continue;  // It is over.
      const auto* record = lanes_[index].queue.in_flight_item(turn.lane);
      ((word & Turn<T>::kLeaving) != 0 ? leaving_ : running).push_back(record);
    }
    return running;
  }

  Callbacks<Key, Event, State> callbacks_;
  Lanes<T> lanes_;
  Intake<T> intake_;
  Turns<T> turns_;
  Reaper<T> reaper_;
  std::mutex shutdown_mutex_;
  std::condition_variable shut_down_;
  bool is_shutting_down_ = false;
  bool is_shut_down_ = false;
  std::vector<const typename T::Record*> leaving_;  // Of shutdown().
  WorkerSet workers_;
};

}  // namespace ordo::dispatcher
