// Turns: how events are worked off: workers take lanes in turn, run their events, and end the turn
// as handler, token and failure policy say.
//
// A turn of a lane goes
//
//   begin (lock)   the lane that has been ready longest; its first events are the batch
//   run            handler by handler, step by step; nothing is locked
//   judge          only if one failed: on_error, dead letter, the length of the back-off
//   end (lock)     done ones leave the lane, the failed one goes, waits, or parks it; the lane is
//                  ready again, or gone; the same lock begins the next turn
//
// so an event that costs nothing pays for one lock. A token that is used after the handler has
// returned does judge and end on the thread that uses it.
//
// Threads: work() on each worker's own; the calls of a token on any.
// Bounds:  a visit to a shard ends after kTurnsPerVisit turns, a batch after kBatchMax events or
//          about 4 us, whichever is less: so long may a lane be ahead of its neighbours.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "ordo/dispatcher/callbacks.h"
#include "ordo/dispatcher/handler.h"
#include "ordo/dispatcher/lanes.h"

namespace ordo::dispatcher {

template <class T>
class Turns {
 public:
  using Key = typename T::Key;
  using Event = typename T::Event;
  using State = typename T::State;
  using Record = typename T::Record;

  Turns(Lanes<T>& lanes, Callbacks<Key, Event, State>& callbacks,
        std::unique_ptr<Handler<Key, Event, State>> handler, TurnEnder* ender)
      : lanes_(lanes),
        callbacks_(callbacks),
        handler_(std::move(handler)),
        ender_(ender),
        step_count_(handler_->step_count()),
        is_async_(handler_->has_async_step()),
        takes_one_(is_async_ || (T::kStriped && T::kHasState) ||
                   lanes.settings().overflow != Overflow::reject) {}

  // The life of worker number `me`.
  void work(std::size_t me) {
    CallingOut calling(ender_);
    const std::function<bool()> leaving = [this] { return is_stopping(); };
    Pace pace{.now = lanes_.clock().now()};
    while (!is_stopping()) {
      const std::size_t shard = lanes_.lookout().next(me);
      if (shard != Lookout::kNone) {
        visit(me, shard, pace);
        continue;
      }
      lanes_.lookout().await_work(me, leaving);
      pace = {.now = lanes_.clock().now()};
    }
  }

  // Workers begin no further turn.
  void stop() {
    stopping_.store(true, std::memory_order_seq_cst);
    lanes_.lookout().wake_all();
  }

  bool reads_only() const { return handler_->reads_only(); }

  // ---- tokens

  bool end_turn(const TurnName& name, std::exception_ptr error) {
    Shard<T>& shard = lanes_[name.shard];
    std::unique_lock lock(shard.lock);
    Record* record = find(shard, name);
    if (record == nullptr) {
      ++shard.account.tokens_late;
      return false;
    }
    record->is_ended = true;
    record->error = std::move(error);
    if (!record->is_running) end_from_outside(name, *record, lock);
    return true;
  }

  void hold_turn(const TurnName& name) {
    std::lock_guard lock(lanes_[name.shard].lock);
    if (Record* record = find(lanes_[name.shard], name)) ++record->tokens;
  }

  void drop_turn(const TurnName& name) {
    Shard<T>& shard = lanes_[name.shard];
    std::unique_lock lock(shard.lock);
    Record* record = find(shard, name);
    if (record == nullptr || --record->tokens > 0 || record->is_running) return;
    record->is_ended = true;
    record->error = std::make_exception_ptr(CompletionDropped());
    end_from_outside(name, *record, lock);
  }

 private:
  static constexpr std::size_t kTurnsPerVisit = 64;

  enum class Ending : std::uint8_t { done, failed, pending };

  // What is to become of an event that failed.
  struct Sentence {
    enum class Kind : std::uint8_t { skip, dead_letter, retry, park } kind = Kind::skip;
    TimePoint due;
  };

  // How a turn on a worker went.
  struct Outcome {
    Ending ending = Ending::done;
    std::exception_ptr error;   // Of the last event, if it failed.
    Sentence sentence;          // Likewise.
    std::optional<Event> gone;  // To be destroyed when no lock is held.
  };

  // How fast a worker gets on; its own.
  struct Pace {
    TimePoint now;           // As last read.
    std::size_t events = 0;  // Since then.
  };

  bool is_stopping() const { return stopping_.load(std::memory_order_acquire); }

  // ---- a worker's visit

  void visit(std::size_t me, std::size_t index, Pace& pace) {
    Shard<T>& shard = lanes_[index];
    Turn<T>& turn = lanes_.turn(me);
    std::unique_lock lock(shard.lock);
    for (std::size_t turns = 0; turns < kTurnsPerVisit; ++turns) {
      if (!begin(me, index, turn, pace.now)) break;
      lock.unlock();
      Outcome outcome;
      outcome.ending = run(static_cast<std::uint32_t>(index), turn, outcome.error);
      if (outcome.ending == Ending::failed) outcome.sentence = judge(index, turn, outcome.error);
      const std::optional<TimePoint> now = keep_pace(me, turn, pace);
      lock.lock();
      end(me, index, turn, outcome);
      if (now) note_pace(me, shard, *now, pace);
      const bool tells = lanes_.has_listeners(shard);
      if (!tells && !outcome.gone && !outcome.error) continue;
      lock.unlock();
      if (tells) lanes_.tell_room();
      if (tells) lanes_.tell_drained();
      outcome.gone.reset();  // What is destroyed here is the user's, and may call back.
      outcome.error = nullptr;
      lock.lock();
    }
  }

  // Counts the events of a turn; the time, when it is time to look at the clock.
  std::optional<TimePoint> keep_pace(std::size_t me, const Turn<T>& turn, Pace& pace) {
    pace.events += turn.count;
    lanes_.lookout().note_events(me, turn.count);
    if (pace.events < lanes_.lookout().events_per_look(me)) return std::nullopt;
    return lanes_.clock().now();
  }
  void note_pace(std::size_t me, Shard<T>& shard, TimePoint now, Pace& pace) {
    lanes_.lookout().note_pace(me, pace.events, now - pace.now, shard.queue.ready_count());
    pace = {.now = now};
  }

  // Begins the next turn in the shard. False when none is ready.
  bool begin(std::size_t me, std::size_t index, Turn<T>& turn, TimePoint now) {
    Shard<T>& shard = lanes_[index];
    while (!shard.ended) {
      auto taken = shard.queue.take(now);
      if (!taken) break;
      if (!hold_memory(shard, turn, *taken, now)) continue;
      turn.lane = taken->lane;
      turn.lane_id = &taken->key;
      turn.count = std::min(batch_of(me), shard.queue.item_count(taken->lane));
      turn.first = shard.queue.head_place(taken->lane);
      turn.settled = 0;
      turn.done.store(0, std::memory_order_relaxed);
      turn.shard.store(static_cast<std::uint32_t>(index), std::memory_order_relaxed);
      if (is_async_) mark_running(shard, taken->item);
      const bool more = shard.queue.ready_count() > 0;
      if (!more) unlist(me, index, shard);
      lanes_.lookout().leave_behind(me, more);
      return true;
    }
    unlist(me, index, shard);
    return false;
  }

  void unlist(std::size_t me, std::size_t index, Shard<T>& shard) {
    shard.listed = false;
    lanes_.lookout().drop(me, index);
  }

  std::size_t batch_of(std::size_t me) const {
    return takes_one_ ? 1 : std::min(Turn<T>::kBatchMax, lanes_.lookout().events_per_look(me));
  }

  static void mark_running(Shard<T>& shard, Record& record) {
    record.turn = ++shard.turn_last;
    record.is_running = true;
    record.is_ended = false;
    record.tokens = 0;
  }

  // Sees to it that the entity's state is there and stays. False when it is just being cleaned up:
  // the lane then waits for that.
  bool hold_memory(Shard<T>& shard, Turn<T>& turn, const auto& taken, TimePoint now) {
    turn.memory = kNoIndex;
    if constexpr (T::kHasState) {
      const Key& key = Lanes<T>::key_of(taken.key, taken.item);
      turn.memory = shard.memory.hold(lanes_.route(key).hash, key);
      auto& memory = shard.memory[turn.memory];
      turn.remembered = &memory;
      if (memory.is_ending) {
        memory.resumes_lane = true;
        shard.memory.release(turn.memory, now);
        shard.queue.park(taken.lane, now);
        shard.queue.give_back(taken.lane);
        return false;
      }
    }
    return true;
  }

  Ending run(std::uint32_t index, Turn<T>& turn, std::exception_ptr& error) {
    auto& queue = lanes_[index].queue;
    std::uint32_t place = turn.first;
    for (std::size_t left = turn.count; left > 0; --left) {
      Record& record = queue.item_at(place);
      turn.current = &record;
      if (left > 1) {
        place = queue.place_behind(place);
        __builtin_prefetch(&queue.item_at(place));
      }
      const Ending ending = run_event(index, turn, record, error);
      if (ending != Ending::done) return ending;
      if (leave(turn, record)) break;
    }
    return Ending::done;
  }

  // The handler has done with `record`, which may be gone afterwards. True: the batch ends here.
  static bool leave(Turn<T>& turn, Record& record) {
    constexpr std::uint32_t kLeaving = Turn<T>::kLeaving;
    std::uint32_t before = 0;
    if constexpr (std::is_trivially_destructible_v<Event>) {
      if (turn.count == 1) {
        turn.done.store(1, std::memory_order_release);
        return true;
      }
      before = turn.done.fetch_add(1, std::memory_order_acq_rel);
    } else {
      // Destroyed here, without a lock; unless somebody may be reading it for the account.
      before = turn.done.fetch_or(kLeaving, std::memory_order_acq_rel);
      if ((before & Turn<T>::kRevoked) != 0) return true;  // end() does the rest.
      record.event.reset();
      before |= turn.done.fetch_sub(kLeaving - 1, std::memory_order_acq_rel);
    }
    return (before & Turn<T>::kRevoked) != 0;
  }

  Ending run_event(std::uint32_t index, Turn<T>& turn, Record& record, std::exception_ptr& error) {
    const Key& key = Lanes<T>::key_of(*turn.lane_id, record);
    if (record.error) record.error = nullptr;
    while (record.step < step_count_) {
      StepCall<State> call{nullptr, ender_, {index, turn.lane, record.turn}};
      std::exception_ptr thrown;
      try {
        call.state = state_of(turn, key);
        handler_->call(record.step, key, *record.event, call);
      } catch (...) {
        thrown = std::current_exception();
      }
      Ending ending = thrown ? Ending::failed : Ending::done;
      if (call.is_async) {
        ending = settle_token(index, turn, record, thrown, error);
      } else {
        error = thrown;
      }
      if (ending != Ending::done) return ending;
      if (record.step + 1U == step_count_) break;  // Done: the record is not touched again.
      ++record.step;
      record.attempt = 0;
    }
    return Ending::done;
  }

  // The turn is the only one of its entity, and the reaper leaves alone what is held.
  State* state_of(Turn<T>& turn, const Key& key) {
    if constexpr (T::kHasState) {
      if (!turn.remembered->state) turn.remembered->state.emplace(callbacks_.make_state(key));
      return &*turn.remembered->state;
    } else {
      return &no_state_;
    }
  }

  // The handler of an asynchronous step has returned, or thrown `thrown`.
  Ending settle_token(std::uint32_t index, Turn<T>& turn, Record& record,
                      const std::exception_ptr& thrown, std::exception_ptr& error) {
    Shard<T>& shard = lanes_[index];
    std::lock_guard lock(shard.lock);
    if (shard.ended) return Ending::pending;  // It comes too late: end() sees to its state.
    if (record.is_ended) {
      error = std::exchange(record.error, nullptr);
      mark_running(shard, record);
      return error ? Ending::failed : Ending::done;
    }
    if (thrown || record.tokens == 0) {
      error = thrown ? thrown : std::make_exception_ptr(CompletionDropped());
      mark_running(shard, record);  // Tokens that are left belong to the past.
      return Ending::failed;
    }
    record.is_running = false;
    record.memory = std::exchange(turn.memory, kNoIndex);
    turn.shard.store(Turn<T>::kNowhere, std::memory_order_relaxed);
    return Ending::pending;
  }

  // ---- failure

  // Tells who wants to know, and decides. No lock is held; the event is still in flight.
  Sentence judge(std::size_t index, Turn<T>& turn, const std::exception_ptr& error) {
    const Key& key = Lanes<T>::key_of(*turn.lane_id, *turn.current);
    return judge(index, key, *turn.current, error);
  }

  Sentence judge(std::size_t index, const Key& key, Record& record,
                 const std::exception_ptr& error) {
    callbacks_.attempt_failed(key, *record.event, error);
    const Settings& settings = lanes_.settings();
    ++record.attempt;
    if (record.attempt <= static_cast<std::uint64_t>(settings.retry.retries)) {
      std::uint64_t random = 0;
      {
        std::lock_guard lock(lanes_[index].lock);
        random = next_random(lanes_[index].random);
      }
      const auto wait = back_off(settings.retry.base, record.attempt, random);
      return {Sentence::Kind::retry, later(lanes_.clock().now(), wait)};
    }
    if (settings.last == LastResort::park) return {Sentence::Kind::park, {}};
    if (settings.last == LastResort::skip) return {Sentence::Kind::skip, {}};
    if (callbacks_.dead_letter(key, *record.event, error)) return {Sentence::Kind::park, {}};
    return {Sentence::Kind::dead_letter, {}};
  }

  // Does with the head of a lane in flight what was decided, and ends the turn. Leaves what has to
  // be destroyed in `error` and `gone`.
  void carry_out(Shard<T>& shard, LaneHandle lane, const Sentence& sentence,
                 std::exception_ptr& error, std::optional<Event>& gone) {
    ++shard.account.failed_attempts;
    Record& record = *shard.queue.in_flight_item(lane);
    switch (sentence.kind) {
      case Sentence::Kind::skip:
      case Sentence::Kind::dead_letter:
        ++(sentence.kind == Sentence::Kind::skip ? shard.account.failed
                                                 : shard.account.dead_lettered);
        take_out(record, gone);
        shard.queue.pop(lane, 1);
        lanes_.free_places(shard, 1);
        shard.queue.give_back(lane);
        return;
      case Sentence::Kind::retry:
        ++shard.account.retried;
        std::swap(record.error, error);
        shard.queue.give_back(lane, sentence.due);
        lanes_.keeper().call_by(sentence.due);
        return;
      case Sentence::Kind::park:
        std::swap(record.error, error);
        record.attempt = 0;  // After resume() it starts afresh.
        shard.queue.park(lane, lanes_.clock().now());
        shard.queue.give_back(lane);
        return;
    }
  }

  // Events that nobody notices being destroyed, or whose move may throw, stay where they are.
  static void take_out(Record& record, std::optional<Event>& gone) {
    if constexpr (!std::is_trivially_destructible_v<Event> &&
                  std::is_nothrow_move_constructible_v<Event>) {
      if (record.event) gone.emplace(std::move(*record.event));
    }
  }

  // ---- the end of a turn

  void end(std::size_t me, std::size_t index, Turn<T>& turn, Outcome& outcome) {
    Shard<T>& shard = lanes_[index];
    if (shard.ended) return end_late(shard, turn);
    if (outcome.ending == Ending::pending) return;
    if (turn.is_leaving()) {
      take_out(*turn.current, outcome.gone);
      turn.done.fetch_sub(Turn<T>::kLeaving - 1, std::memory_order_acq_rel);
    }
    lanes_.settle(turn, shard);
    turn.shard.store(Turn<T>::kNowhere, std::memory_order_relaxed);
    if (outcome.ending == Ending::failed) {
      carry_out(shard, turn.lane, outcome.sentence, outcome.error, outcome.gone);
    } else {
      shard.queue.give_back(turn.lane);
    }
    lanes_.release_memory(shard, turn.memory);
    lanes_.plan_shrink(shard);
    if (lanes_.list(shard)) lanes_.lookout().keep(me, index);
  }

  // A handler has come back after shutdown() has accounted for its event.
  void end_late(Shard<T>& shard, Turn<T>& turn) {
    turn.shard.store(Turn<T>::kNowhere, std::memory_order_relaxed);
    if (turn.memory == kNoIndex) return;
    if constexpr (T::kHasState) {
      const Key key = shard.memory.key(turn.memory);
      std::optional<State> state = std::exchange(shard.memory[turn.memory].state, std::nullopt);
      shard.lock.unlock();
      if (state) callbacks_.end_state(key, *state);
      state.reset();
      shard.lock.lock();
    }
  }

  // The token of a turn whose handler has returned was used or dropped: the turn ends here.
  void end_from_outside(const TurnName& name, Record& record, std::unique_lock<ShortLock>& lock) {
    CallingOut calling(ender_);
    Shard<T>& shard = lanes_[name.shard];
    std::exception_ptr error = std::exchange(record.error, nullptr);
    std::optional<Event> gone;
    if (error) {
      const auto& id = shard.queue.key_of(name.lane);
      record.is_running = true;  // Nobody else touches it.
      lock.unlock();
      const Sentence sentence = judge(name.shard, Lanes<T>::key_of(id, record), record, error);
      lock.lock();
      if (shard.ended) return lock.unlock();  // It is accounted for.
      record.is_running = false;
      lanes_.release_memory(shard, std::exchange(record.memory, kNoIndex));
      carry_out(shard, name.lane, sentence, error, gone);
    } else {
      lanes_.release_memory(shard, std::exchange(record.memory, kNoIndex));
      record.attempt = 0;
      if (++record.step == step_count_) {
        take_out(record, gone);
        shard.queue.pop(name.lane, 1);
        ++shard.account.processed;
        lanes_.free_places(shard, 1);
      }
      shard.queue.give_back(name.lane);
    }
    lanes_.plan_shrink(shard);
    const bool publish = lanes_.list(shard);
    const bool is_quiet = Lanes<T>::shard_is_at_rest(shard);
    lock.unlock();
    if (publish) lanes_.lookout().publish(name.shard);
    lanes_.tell_room();
    if (is_quiet) lanes_.tell_drained();
  }

  // The record of the turn, if that turn has not ended.
  static Record* find(Shard<T>& shard, const TurnName& name) {
    if (shard.ended) return nullptr;
    Record* record = shard.queue.in_flight_item(name.lane);
    if (record == nullptr || record->turn != name.turn || record->is_ended) return nullptr;
    return record;
  }

  Lanes<T>& lanes_;
  Callbacks<Key, Event, State>& callbacks_;
  const std::unique_ptr<Handler<Key, Event, State>> handler_;
  TurnEnder* const ender_;
  const std::size_t step_count_;
  const bool is_async_;
  const bool takes_one_;  // A turn is one event.
  NoState no_state_;
  std::atomic<bool> stopping_{false};
};

}  // namespace ordo::dispatcher
