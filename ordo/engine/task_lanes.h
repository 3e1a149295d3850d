// TaskLanes: the tasks of one partition and whose turn it is, without threads.
//
//   lanes.add(std::move(arrival));
//   lanes.begin_turn(64);                           // at most 64 of each kind until the next one
//   while (InTurn<Task> turn = lanes.take(now)) { run(turn); lanes.end(turn, now); }
//
// Correlated tasks stand in the lane of their id; uncorrelated ones have a lane each, in a queue of
// their own, so that they wait for nobody. take() alternates between the two kinds while both have
// something ready, so neither waits for more than one task of the other.
//
// Threads: one owner at a time (the lock of the partition).
// Bounds:  the caller's: the budget of the partition.
// Cost:    O(1) for each call but list(); no allocation once the peak was reached.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ordo/core/clock.h"
#include "ordo/engine/options.h"
#include "ordo/engine/report.h"
#include "ordo/engine/token_desk.h"
#include "ordo/lane/keyed_queue.h"

namespace ordo::engine {

// A task on its way from submit() to its lane.
template <class Task>
struct Arrival {
  Task task;
  CorrelationId id;
  TimePoint entered;
};

enum class Phase : std::uint8_t {
  waiting,    // In its lane.
  running,    // In its handler.
  in_flight,  // Its handler has returned; its token is out.
  answering,  // finished() or failed() is running.
};

template <class Task>
struct HeldTask {
  HeldTask(Arrival<Task>&& arrival) noexcept
      : task(std::move(arrival.task)),
        id(arrival.id),
        entered(arrival.entered) {}

  Task task;
  CorrelationId id;
  TimePoint entered;
  TimePoint began;
  TokenName token;
  Phase phase = Phase::waiting;
};

// A task whose turn it is, until end().
template <class Task>
struct InTurn {
  TaskPlace place;
  HeldTask<Task>* held = nullptr;

  explicit operator bool() const { return held != nullptr; }
};

template <class Task>
class TaskLanes {
 public:
  explicit TaskLanes(std::size_t budget) : correlated_(budget), uncorrelated_(budget) {
    correlated_.reserve(budget);
    uncorrelated_.reserve(budget);
  }

  void add(Arrival<Task>&& arrival) {
    const CorrelationId id = arrival.id;
    const TimePoint entered = arrival.entered;
    if (id > 0) {
      correlated_.push_admitted(id, HeldTask<Task>(std::move(arrival)), entered);
    } else {
      uncorrelated_.push_admitted(next_number_++, HeldTask<Task>(std::move(arrival)), entered);
    }
  }

  // take() gives up to `count_max` tasks of each kind until this is called again.
  void begin_turn(std::size_t count_max) {
    correlated_left_ = count_max;
    uncorrelated_left_ = count_max;
  }

  // The next task that may run, marked as running; nothing when there is none, or the turn is over.
  InTurn<Task> take(TimePoint now) {
    const bool uncorrelated_first = !last_was_uncorrelated_;
    InTurn<Task> turn = uncorrelated_first ? take_uncorrelated(now) : take_correlated(now);
    if (!turn) turn = uncorrelated_first ? take_correlated(now) : take_uncorrelated(now);
    if (!turn) return turn;
    last_was_uncorrelated_ = !turn.place.correlated;
    turn.held->phase = Phase::running;
    turn.held->began = std::max(now, turn.held->entered);
    return turn;
  }

  // Drops a task that was taken; the next one of its id may go.
  void end(TaskPlace place, TimePoint now) {
    if (place.correlated) {
      correlated_.finish(place.lane, now);
    } else {
      uncorrelated_.finish(place.lane, now);
    }
  }

  // REQUIRES: the task was taken and not ended.
  HeldTask<Task>& held_at(TaskPlace place) {
    HeldTask<Task>* held = place.correlated ? correlated_.in_flight_item(place.lane)
                                            : uncorrelated_.in_flight_item(place.lane);
    ORDO_CHECK(held != nullptr);
    return *held;
  }

  bool has_ready() const { return ready_count() > 0; }
  std::size_t ready_count() const {
    return correlated_.ready_count() + uncorrelated_.ready_count();
  }
  std::size_t in_flight_count() const {
    return correlated_.in_flight_count() + uncorrelated_.in_flight_count();
  }
  std::size_t lane_count() const { return correlated_.key_count(); }

  // Calls visit(HeldTask&) for each task, in order within each id.
  template <class Visit>
  void for_each(Visit&& visit) {
    correlated_.for_each_item([&](CorrelationId, HeldTask<Task>& held) { visit(held); });
    uncorrelated_.for_each_item([&](std::uint64_t, HeldTask<Task>& held) { visit(held); });
  }

  // Calls visit(id, since, behind, in_flight) for the head of each id.
  template <class Visit>
  void for_each_head(Visit&& visit) const {
    correlated_.for_each_lane([&](const auto& lane) {
      visit(lane.key, lane.head_since, lane.item_count - 1, lane.state == LaneState::in_flight);
    });
  }

 private:
  template <class Queue>
  static InTurn<Task> take_from(Queue& queue, std::size_t& left, bool correlated, TimePoint now) {
    if (left == 0) return {};
    const auto turn = queue.take(now);
    if (!turn) return {};
    --left;
    return {{turn->lane, correlated}, &turn->item};
  }
  InTurn<Task> take_correlated(TimePoint now) {
    return take_from(correlated_, correlated_left_, true, now);
  }
  InTurn<Task> take_uncorrelated(TimePoint now) {
    return take_from(uncorrelated_, uncorrelated_left_, false, now);
  }

  KeyedQueue<CorrelationId, HeldTask<Task>> correlated_;
  KeyedQueue<std::uint64_t, HeldTask<Task>> uncorrelated_;
  std::uint64_t next_number_ = 0;  // Of uncorrelated tasks; their key.
  std::size_t correlated_left_ = 0;
  std::size_t uncorrelated_left_ = 0;
  bool last_was_uncorrelated_ = false;
};

}  // namespace ordo::engine
