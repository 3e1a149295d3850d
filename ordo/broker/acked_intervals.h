// AckedIntervals: which offsets of a partition a cursor is done with, and which rows say so.
//
//   AckedIntervals acked(Offset(1));
//   acked.add(Offset(3), Offset(4));                 // settled out of order: an interval
//   acked.add(Offset(1), Offset(3));                 // low_water() is 4, the interval is gone
//   std::vector<std::uint64_t> touched = acked.take_touched();
//   acked.append_rows(owner, touched, batch);        // puts and erases, as things are now
//   acked.touch(touched);                            // the commit failed: they are due again
//
// LowWaterMark counts what is in flight; here the question is what changed since the last commit,
// so that an ack writes two or three rows and a thousand acks in a row write one.
//
// Threads: one owner.
// Bounds:  not more intervals than messages unsettled behind a settled one.
// Cost:    O(log intervals); in order it keeps none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "ordo/broker/cursor_rows.h"
#include "ordo/broker/ids.h"
#include "ordo/broker/store.h"

namespace ordo::broker {

class AckedIntervals {
 public:
  // Everything below `low_water` is settled.
  explicit AckedIntervals(Offset low_water = Offset(1)) : mark_(low_water.value()) {}

  // As the rows say, and everything below `low_water`.
  AckedIntervals(const CursorState& state, Offset low_water);

  // Settles [begin, end); parts of it may be settled already.
  void add(Offset begin, Offset end);

  bool contains(Offset offset) const;

  // Everything below is settled.
  Offset low_water() const { return Offset(mark_); }

  // The first offset at or after `offset` that is not settled.
  Offset first_open(Offset offset) const;

  std::size_t interval_count() const { return intervals_.size(); }

  // Rows that no longer say what is so here, named by their begin (0: the prefix).
  bool has_touched() const { return prefix_touched_ || !touched_.empty(); }
  std::vector<std::uint64_t> take_touched();
  void touch(const std::vector<std::uint64_t>& begins);
  void touch_all();

  // The rows named by `begins` as they are now: put, or erased where no interval begins any more.
  void append_rows(const RowOwner& owner, const std::vector<std::uint64_t>& begins,
                   CommitBatch& batch) const;
  // All rows there are.
  void append_all_rows(const RowOwner& owner, CommitBatch& batch) const;

 private:
  void touch_interval(std::uint64_t begin) {
    if (touched_.empty() || touched_.back() != begin) touched_.push_back(begin);
  }
  void raise_mark(std::uint64_t end);

  std::uint64_t mark_;
  std::map<std::uint64_t, std::uint64_t> intervals_;  // From begin to end, above the mark.
  bool prefix_touched_ = false;
  std::vector<std::uint64_t> touched_;  // With repetitions.
};

}  // namespace ordo::broker
