// TimerQueue: calls by the time they are due. The shared heart of Timer and Loop.
//
//   TimerQueue queue;
//   TimerId id = queue.add(now + 5s, [] { ... });
//   queue.cancel(id);
//   while (auto due = queue.take_due(now)) due->task();
//
// Calls due at the same time come in the order they were added.
//
// Threads: none of its own; one owner.
// Bounds:  none of its own; the owner states one.
// Cost:    O(log n) and one allocation for add, O(log n) for cancel and take_due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "ordo/core/clock.h"
#include "ordo/runtime/task.h"

namespace ordo {

// Never used twice. none: no call was scheduled.
enum class TimerId : std::uint64_t { none = 0 };

class TimerQueue {
 public:
  struct Due {
    TimerId id;
    Task task;
  };

  TimerId add(TimePoint when, Task task) {
    const auto id = static_cast<TimerId>(++last_id_);
    calls_.emplace(std::pair(when, id), std::move(task));
    times_.emplace(id, when);
    return id;
  }

  // False when the call is not there: taken, cancelled before, or never added.
  bool cancel(TimerId id) {
    const auto place = times_.find(id);
    if (place == times_.end()) return false;
    calls_.erase(std::pair(place->second, id));
    times_.erase(place);
    return true;
  }

  // The earliest call that is due at `now`, taken out; or nothing.
  std::optional<Due> take_due(TimePoint now) {
    if (calls_.empty() || calls_.begin()->first.first > now) return std::nullopt;
    auto node = calls_.extract(calls_.begin());
    times_.erase(node.key().second);
    return Due{node.key().second, std::move(node.mapped())};
  }

  // When the earliest call is due; TimePoint::max() when there is none.
  TimePoint next() const { return calls_.empty() ? TimePoint::max() : calls_.begin()->first.first; }

  std::size_t size() const { return calls_.size(); }
  void clear() {
    calls_.clear();
    times_.clear();
  }

 private:
  std::uint64_t last_id_ = 0;
  std::map<std::pair<TimePoint, TimerId>, Task> calls_;
  std::unordered_map<TimerId, TimePoint> times_;
};

}  // namespace ordo
