// DispatcherModel: what a dispatcher has to show, event by event, as plain sequential code.
//
//   DispatcherModel model({.limit = 3, .retries = 1});
//   if (model.expect_dispatch(key) == Dispatched::admitted) model.admit(key, n);
//   problem = model.start(key, n);              // empty when that event may start now
//   model.end(key, failed, now);
//
// Threads: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ordo/dispatcher.h"

namespace ordo::testing_support {

struct DispatcherPlan {
  std::size_t limit = 1;         // Of one lane.
  std::size_t limit_of_all = 1;  // Of all.
  Overflow overflow = Overflow::reject;
  std::int64_t retries = 0;
  std::chrono::nanoseconds base{0};
  dispatcher::LastResort last = dispatcher::LastResort::skip;
};

class DispatcherModel {
 public:
  using Number = std::uint64_t;

  struct Lane {
    std::deque<Number> events;
    bool in_flight = false;
    bool is_parked = false;  // Or will be, when the event in flight has ended.
    bool is_delayed = false;
    std::int64_t attempts = 0;  // Failed ones of the head.
    TimePoint failed_at;
    std::optional<TimePoint> due;  // As the dispatcher told.

    bool is_ready() const { return !events.empty() && !in_flight && !is_parked && !is_delayed; }
  };

  explicit DispatcherModel(const DispatcherPlan& plan) : plan_(plan) {}

  // What dispatch() has to answer, and which event it has to drop for that.
  Dispatched expect_dispatch(std::uint64_t key, std::optional<Number>& dropped) {
    Lane& lane = lanes_[key];
    dropped.reset();
    const bool full = queued() >= plan_.limit_of_all;
    if (!full && lane.events.size() < plan_.limit) return Dispatched::admitted;
    const std::size_t first_waiting = lane.in_flight ? 1 : 0;
    if (plan_.overflow == Overflow::drop_oldest && lane.events.size() > first_waiting) {
      dropped = lane.events[first_waiting];
      return Dispatched::admitted;
    }
    return full ? Dispatched::full : Dispatched::key_full;
  }

  void admit(std::uint64_t key, Number n, std::optional<Number> dropped) {
    Lane& lane = lanes_[key];
    if (dropped) {
      const auto place = lane.events.begin() + (lane.in_flight ? 1 : 0);
      if (!lane.in_flight) forget_attempts(lane);
      lane.events.erase(place);
      ++dropped_;
    }
    lane.events.push_back(n);
    ++admitted_;
  }

  // Why event `n` must not start now; empty when it may.
  std::string start(std::uint64_t key, Number n) {
    Lane& lane = lanes_[key];
    if (lane.in_flight) return "started beside another of its lane";
    if (lane.is_parked) return "started in a parked lane";
    if (lane.is_delayed) return "started before its retry was due";
    if (lane.events.empty() || lane.events.front() != n) return "started out of turn";
    lane.in_flight = true;
    return "";
  }

  // The event in flight ends. True when it is given up or done, and not to be tried again.
  bool end(std::uint64_t key, bool failed, TimePoint now) {
    Lane& lane = lanes_[key];
    lane.in_flight = false;
    if (!failed) {
      ++processed_;
    } else {
      ++failed_attempts_;
      lane.failed_at = now;
      if (++lane.attempts <= plan_.retries) {
        ++retried_;
        lane.is_delayed = !lane.is_parked;
        return false;
      }
      if (plan_.last == dispatcher::LastResort::park) {
        lane.is_parked = true;
        lane.attempts = 0;
        return false;
      }
      ++(plan_.last == dispatcher::LastResort::skip ? failed_ : dead_lettered_);
    }
    lane.events.pop_front();
    lane.attempts = 0;
    return true;
  }

  void pause(std::uint64_t key) {
    Lane& lane = lanes_[key];
    lane.is_parked = true;
    lane.is_delayed = false;
    lane.due.reset();
  }
  void resume(std::uint64_t key) { lanes_[key].is_parked = false; }

  // Notes what the dispatcher says of a delayed lane. Why it is wrong, if it is.
  std::string note_due(std::uint64_t key, TimePoint due) {
    Lane& lane = lanes_[key];
    if (!lane.is_delayed) return "a lane is delayed that should not be";
    lane.due = due;
    std::chrono::nanoseconds whole = plan_.base;
    for (std::int64_t i = 1; i < lane.attempts; ++i)
      whole *= 2;
    const bool right = due - lane.failed_at >= whole / 2 && due - lane.failed_at <= whole;
    return right ? "" : "the back-off is out of its range";
  }
  void wake(TimePoint now) {
    for (auto& [key, lane] : lanes_) {
      if (!lane.is_delayed || !lane.due || *lane.due > now) continue;
      lane.is_delayed = false;
      lane.due.reset();
    }
  }

  std::size_t count_if(bool (*condition)(const Lane&)) const {
    return static_cast<std::size_t>(std::count_if(
        lanes_.begin(), lanes_.end(), [&](const auto& entry) { return condition(entry.second); }));
  }
  std::size_t ready() const {
    return count_if([](const Lane& lane) { return lane.is_ready(); });
  }
  std::size_t in_flight() const {
    return count_if([](const Lane& lane) { return lane.in_flight; });
  }
  std::size_t delayed() const {
    return count_if([](const Lane& lane) { return lane.is_delayed; });
  }
  std::size_t parked() const {
    return count_if([](const Lane& lane) { return lane.is_parked && !lane.in_flight; });
  }
  std::size_t queued() const {
    std::size_t sum = 0;
    for (const auto& [key, lane] : lanes_)
      sum += lane.events.size();
    return sum;
  }

  std::map<std::uint64_t, Lane>& lanes() { return lanes_; }
  std::uint64_t admitted() const { return admitted_; }
  std::uint64_t processed() const { return processed_; }
  std::uint64_t failed() const { return failed_; }
  std::uint64_t dead_lettered() const { return dead_lettered_; }
  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t retried() const { return retried_; }
  std::uint64_t failed_attempts() const { return failed_attempts_; }

 private:
  static void forget_attempts(Lane& lane) {
    lane.attempts = 0;
    lane.is_delayed = false;
    lane.due.reset();
  }

  const DispatcherPlan plan_;
  std::map<std::uint64_t, Lane> lanes_;
  std::uint64_t admitted_ = 0;
  std::uint64_t processed_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t dead_lettered_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t retried_ = 0;
  std::uint64_t failed_attempts_ = 0;
};

}  // namespace ordo::testing_support
