#include "ordo/broker/acked_intervals.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ordo::broker {

AckedIntervals::AckedIntervals(const CursorState& state, Offset low_water)
    : mark_(low_water.value()) {
  for (const auto& [begin, end] : state.acked)
    add(Offset(begin), Offset(end));
  touched_.clear();
  prefix_touched_ = false;
  // What the union of the rows says in fewer rows is written when something else is.
  for (const auto& [begin, end] : state.acked) {
    const auto interval = intervals_.find(begin);
    if (begin == 0 ? end == mark_ : (interval != intervals_.end() && interval->second == end))
      continue;
    if (begin == 0) {
      prefix_touched_ = true;
    } else {
      touch_interval(begin);
      prefix_touched_ = true;
    }
  }
}

void AckedIntervals::add(Offset begin_offset, Offset end_offset) {
  const std::uint64_t begin = begin_offset.value();
  const std::uint64_t end = end_offset.value();
  if (begin >= end) return;
  if (begin <= mark_) {
    if (end > mark_) raise_mark(end);
    return;
  }
  auto at = intervals_.lower_bound(begin);
  if (at != intervals_.begin() && std::prev(at)->second >= begin) {
    --at;  // The one before reaches to us: it grows.
    if (at->second >= end) return;
    at->second = end;
  } else if (at != intervals_.end() && at->first == begin) {
    if (at->second >= end) return;
    at->second = end;
  } else {
    at = intervals_.emplace_hint(at, begin, end);
  }
  touch_interval(at->first);
  for (auto other = std::next(at); other != intervals_.end() && other->first <= at->second;
       other = intervals_.erase(other)) {
    touch_interval(other->first);
    at->second = std::max(at->second, other->second);
  }
}

void AckedIntervals::raise_mark(std::uint64_t end) {
  mark_ = end;
  prefix_touched_ = true;
  while (!intervals_.empty() && intervals_.begin()->first <= mark_) {
    mark_ = std::max(mark_, intervals_.begin()->second);
    touch_interval(intervals_.begin()->first);
    intervals_.erase(intervals_.begin());
  }
}

bool AckedIntervals::contains(Offset offset) const {
  if (offset.value() < mark_) return true;
  if (intervals_.empty()) return false;
  const auto after = intervals_.upper_bound(offset.value());
  return after != intervals_.begin() && offset.value() < std::prev(after)->second;
}

Offset AckedIntervals::first_open(Offset offset) const {
  if (offset.value() < mark_) return Offset(mark_);
  const auto after = intervals_.upper_bound(offset.value());
  if (after == intervals_.begin()) return offset;
  return std::max(offset, Offset(std::prev(after)->second));
}

std::vector<std::uint64_t> AckedIntervals::take_touched() {
  std::vector<std::uint64_t> result = std::exchange(touched_, {});
  if (prefix_touched_) result.push_back(0);
  prefix_touched_ = false;
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

void AckedIntervals::touch(const std::vector<std::uint64_t>& begins) {
  for (const std::uint64_t begin : begins) {
    if (begin == 0) {
      prefix_touched_ = true;
    } else {
      touch_interval(begin);
    }
  }
}

void AckedIntervals::touch_all() {
  prefix_touched_ = true;
  for (const auto& [begin, end] : intervals_)
    touch_interval(begin);
}

void AckedIntervals::append_rows(const RowOwner& owner, const std::vector<std::uint64_t>& begins,
                                 CommitBatch& batch) const {
  for (const std::uint64_t begin : begins) {
    RowKey key = row_key(owner, RowKind::acked, begin);
    if (begin == 0) {
      batch.emplace_back(PutRow{std::move(key), encode_number(mark_)});
      continue;
    }
    const auto interval = intervals_.find(begin);
    if (interval == intervals_.end()) {
      batch.emplace_back(EraseRow{std::move(key)});
    } else {
      batch.emplace_back(PutRow{std::move(key), encode_number(interval->second)});
    }
  }
}

void AckedIntervals::append_all_rows(const RowOwner& owner, CommitBatch& batch) const {
  batch.emplace_back(PutRow{row_key(owner, RowKind::acked, 0), encode_number(mark_)});
  for (const auto& [begin, end] : intervals_) {
    batch.emplace_back(PutRow{row_key(owner, RowKind::acked, begin), encode_number(end)});
  }
}

}  // namespace ordo::broker
