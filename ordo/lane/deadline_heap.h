// DeadlineHeap: indexes of objects ordered by time, the earliest first, removable in the middle.
//
// The part that DeadlineQueue and KeyedQueue share. Each object remembers its place in the heap;
// the heap tells it by calling `moved(index, place)`:
//
//   DeadlineHeap heap;
//   auto moved = [&](std::uint32_t i, std::uint32_t place) { timers[i].place = place; };
//   heap.push(due, index, moved);
//   heap.remove(timers[other].place, moved);
//   if (!heap.empty() && heap.front_time() <= now) heap.remove(0, moved);
//
// Objects with equal times leave in the order in which they were pushed.
//
// Threads: one owner.
// Bounds:  24 bytes for each object in it.
// Cost:    O(log n) to push and remove, O(1) to look at the front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ordo/core/check.h"
#include "ordo/core/clock.h"

namespace ordo {

class DeadlineHeap {
 public:
  bool empty() const { return entries_.empty(); }
  std::size_t count() const { return entries_.size(); }

  // REQUIRES: !empty().
  TimePoint front_time() const { return time_at(0); }
  std::uint32_t front() const {
    ORDO_CHECK(!empty());
    return entries_[0].object;
  }
  // REQUIRES: place < count().
  TimePoint time_at(std::uint32_t place) const {
    ORDO_CHECK(place < entries_.size());
    return entries_[place].time;
  }

  template <class Moved>
  void push(TimePoint time, std::uint32_t object, Moved&& moved) {
    entries_.push_back(Entry{time, next_order_++, object});
    rise(entries_.size() - 1, moved);
  }

  // REQUIRES: place < count().
  template <class Moved>
  void remove(std::uint32_t place, Moved&& moved) {
    ORDO_CHECK(place < entries_.size());
    const Entry last = entries_.back();
    entries_.pop_back();
    if (place == entries_.size()) return;
    entries_[place] = last;
    rise(sink(place, moved), moved);
  }

  void clear() { entries_ = {}; }

 private:
  struct Entry {
    TimePoint time;
    std::uint64_t order;  // Of pushing; decides between equal times.
    std::uint32_t object;

    bool is_before(const Entry& other) const {
      return time != other.time ? time < other.time : order < other.order;
    }
  };

  // Moves the entry at `place` towards the front until it is where it belongs.
  template <class Moved>
  void rise(std::size_t place, Moved& moved) {
    const Entry entry = entries_[place];
    while (place > 0) {
      const std::size_t parent = (place - 1) / 2;
      if (!entry.is_before(entries_[parent])) break;
      put(place, entries_[parent], moved);
      place = parent;
    }
    put(place, entry, moved);
  }

  // Moves the entry at `place` away from the front; returns where it came to rest.
  template <class Moved>
  std::size_t sink(std::size_t place, Moved& moved) {
    const Entry entry = entries_[place];
    for (std::size_t child = 2 * place + 1; child < entries_.size(); child = 2 * place + 1) {
      if (child + 1 < entries_.size() && entries_[child + 1].is_before(entries_[child])) ++child;
      if (!entries_[child].is_before(entry)) break;
      put(place, entries_[child], moved);
      place = child;
    }
    put(place, entry, moved);
    return place;
  }

  template <class Moved>
  void put(std::size_t place, const Entry& entry, Moved& moved) {
    entries_[place] = entry;
    moved(entry.object, static_cast<std::uint32_t>(place));
  }

  std::vector<Entry> entries_;
  std::uint64_t next_order_ = 0;
};

}  // namespace ordo
