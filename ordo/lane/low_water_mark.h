// LowWaterMark: the position below which everything is done, while work ends in any order.
//
//   LowWaterMark done(first_position);
//   for (Event event : events) {                        // rising positions, gaps allowed
//     if (done.start(event.position)) dispatch(event);  // false: was completed before a restart
//   }
//   ...
//   done.complete(position);                            // in any order
//   save(done.mark(), done.completed_above());          // a restart reads on from mark()
//
// What was completed above the mark is kept as intervals, so a single slow position costs one
// interval, however much is completed behind it. Positions that were passed over by start() do
// not exist (an event store has gaps) and count as completed.
//
// Threads: none of its own, no locks; call it from the one thread that owns it.
// Bounds:  not more intervals than positions in flight and intervals restored; the caller bounds
//          what is in flight.
// Cost:    O(log intervals); work on positions without gaps that ends in order keeps none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ordo/core/check.h"
#include "ordo/core/result.h"

namespace ordo {

class LowWaterMark {
 public:
  // The positions from `begin` on, `end` not included.
  struct Interval {
    std::uint64_t begin;
    std::uint64_t end;

    friend bool operator==(const Interval&, const Interval&) = default;
  };

  // The largest position there may be is one less than the largest number.
  static constexpr std::uint64_t kPositionEnd = std::numeric_limits<std::uint64_t>::max();

  // Everything below `first` counts as done.
  explicit LowWaterMark(std::uint64_t first = 0) : mark_(first), frontier_(first) {}

  // As it was when mark() and completed_above() were saved. Positions that had been started and
  // not completed are to be started again, from `mark` on. An error when the intervals are empty,
  // touch each other or the mark, or do not rise: then they were not written by us.
  static Result<LowWaterMark> restore(std::uint64_t mark, const std::vector<Interval>& completed) {
    LowWaterMark result(mark);
    std::uint64_t last_end = mark;
    for (const Interval& interval : completed) {
      if (interval.begin <= last_end || interval.end <= interval.begin) {
        return Error{ErrorCode::data_loss, "completed positions " + std::to_string(interval.begin) +
                                               " to " + std::to_string(interval.end) +
                                               " must not be empty and must lie above " +
                                               std::to_string(last_end)};
      }
      result.intervals_.emplace_hint(result.intervals_.end(), interval.begin, interval.end);
      last_end = interval.end;
    }
    return result;
  }

  // Registers `position` and passes over those between it and the one started before. Returns
  // false when it is completed already, which only happens after restore(): then leave it out.
  // REQUIRES: position >= frontier() and position < kPositionEnd.
  [[nodiscard]] bool start(std::uint64_t position) {
    ORDO_CHECK(position >= frontier_);
    ORDO_CHECK(position < kPositionEnd);
    if (position > frontier_) add(frontier_, position);
    frontier_ = position + 1;
    if (is_completed(position)) return false;
    ++in_flight_count_;
    return true;
  }

  // Returns false when it was completed already, so that doing so twice does no harm.
  // REQUIRES: position < frontier(), that is, it was started or passed over.
  bool complete(std::uint64_t position) {
    ORDO_CHECK(position < frontier_);
    if (is_completed(position)) return false;
    add(position, position + 1);
    --in_flight_count_;
    return true;
  }

  // Everything below is done: the position to read on from after a restart. It is the lowest
  // position in flight or, with nothing in flight, where the next one may be.
  std::uint64_t mark() const { return mark_; }

  // The lowest position that may be started next.
  std::uint64_t frontier() const { return frontier_; }

  // The position that holds the mark back, or nothing when none is in flight.
  std::optional<std::uint64_t> head() const {
    if (in_flight_count_ == 0) return std::nullopt;
    return mark_;
  }

  bool is_completed(std::uint64_t position) const {
    if (position < mark_) return true;
    const auto after = intervals_.upper_bound(position);
    return after != intervals_.begin() && position < std::prev(after)->second;
  }

  // Started and not completed.
  std::size_t in_flight_count() const { return in_flight_count_; }

  std::size_t interval_count() const { return intervals_.size(); }

  // What is completed above the mark: rising, not touching each other nor the mark.
  std::vector<Interval> completed_above() const {
    std::vector<Interval> result;
    result.reserve(intervals_.size());
    for (const auto& [begin, end] : intervals_) {
      result.push_back(Interval{begin, end});
    }
    return result;
  }

 private:
  // Marks [begin, end) as completed; parts of it may be completed already.
  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin <= mark_) {
      if (end > mark_) mark_ = end;
      advance();
      return;
    }
    auto next = intervals_.lower_bound(begin);
    if (next != intervals_.begin() && std::prev(next)->second >= begin) {
      --next;  // The one before reaches to us: grow it.
    } else {
      next = intervals_.emplace_hint(next, begin, end);
    }
    if (next->second < end) next->second = end;
    for (auto other = std::next(next); other != intervals_.end() && other->first <= next->second;
         other = intervals_.erase(other)) {
      if (next->second < other->second) next->second = other->second;
    }
  }

  // Takes the intervals that the mark has reached into it.
  void advance() {
    while (!intervals_.empty() && intervals_.begin()->first <= mark_) {
      if (mark_ < intervals_.begin()->second) mark_ = intervals_.begin()->second;
      intervals_.erase(intervals_.begin());
    }
  }

  std::uint64_t mark_;
  std::uint64_t frontier_;  // One more than the highest position started.
  std::size_t in_flight_count_ = 0;
  std::map<std::uint64_t, std::uint64_t> intervals_;  // From begin to end, above the mark.
};

}  // namespace ordo
