// DeadlineQueue: which of many things is due, and when the next one will be.
//
//   DeadlineQueue<AckId> leases;
//   leases.add(ack_id, now + 10s);
//   leases.update(ack_id, now + 60s);
//   leases.cancel(ack_id);
//   while (auto expired = leases.pop_expired(now)) redeliver(*expired);
//   sleep_until(leases.next_deadline());
//
// Ids with equal deadlines expire in the order in which they were added or last updated, so a
// simulation run twice does the same twice.
//
// Threads: none of its own, no clock; call it from the one thread that owns it.
// Bounds:  as many ids as the caller adds: bound those. Memory is reused and stays at its peak.
// Cost:    O(log n) to add, update, cancel and pop, O(1) to look; no allocation once the peak was
//          reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "ordo/core/check.h"
#include "ordo/core/clock.h"
#include "ordo/core/hash.h"
#include "ordo/lane/deadline_heap.h"
#include "ordo/lane/flat_index.h"
#include "ordo/lane/slab.h"

namespace ordo {

// Id: copyable, equality-comparable, and hashable by hash_of().
template <class Id>
class DeadlineQueue {
 public:
  // REQUIRES: !contains(id).
  void add(const Id& id, TimePoint deadline) {
    const std::uint32_t hash = hash_of_id(id);
    ORDO_CHECK(find(hash, id) == kNoIndex);
    insert(hash, id, deadline);
  }

  // REQUIRES: contains(id).
  void update(const Id& id, TimePoint deadline) {
    const std::uint32_t index = find(hash_of_id(id), id);
    ORDO_CHECK(index != kNoIndex);
    move_to(index, deadline);
  }

  // Adds `id`, or updates it when it is there. Returns true when it was added.
  bool set(const Id& id, TimePoint deadline) {
    const std::uint32_t hash = hash_of_id(id);
    const std::uint32_t index = find(hash, id);
    if (index == kNoIndex) {
      insert(hash, id, deadline);
      return true;
    }
    move_to(index, deadline);
    return false;
  }

  // Returns false when `id` is not there, for example because it expired.
  bool cancel(const Id& id) {
    const std::uint32_t index = find(hash_of_id(id), id);
    if (index == kNoIndex) return false;
    erase(index);
    return true;
  }

  // Takes out the id with the earliest deadline if that is `now` or earlier.
  std::optional<Id> pop_expired(TimePoint now) {
    if (heap_.empty() || heap_.front_time() > now) return std::nullopt;
    const std::uint32_t index = heap_.front();
    std::optional<Id> id = std::move(timers_[index].id);
    erase(index);
    return id;
  }

  // The earliest deadline, or nothing when the queue is empty.
  std::optional<TimePoint> next_deadline() const {
    if (heap_.empty()) return std::nullopt;
    return heap_.front_time();
  }

  std::optional<TimePoint> deadline_of(const Id& id) const {
    const std::uint32_t index = find(hash_of_id(id), id);
    if (index == kNoIndex) return std::nullopt;
    return heap_.time_at(timers_[index].place);
  }

  bool contains(const Id& id) const { return find(hash_of_id(id), id) != kNoIndex; }
  std::size_t count() const { return heap_.count(); }
  bool empty() const { return heap_.empty(); }

  // Forgets all ids and gives their memory back.
  void clear() {
    heap_.clear();
    index_.clear();
    timers_.clear();
  }

 private:
  struct Timer {
    std::optional<Id> id;
    std::uint32_t hash = 0;
    std::uint32_t place = 0;  // In the heap.
    std::uint32_t next = kNoIndex;
  };

  static std::uint32_t hash_of_id(const Id& id) { return static_cast<std::uint32_t>(hash_of(id)); }

  std::uint32_t find(std::uint32_t hash, const Id& id) const {
    return index_.find(hash, [&](std::uint32_t index) { return *timers_[index].id == id; });
  }

  auto heap_moved() {
    return [this](std::uint32_t index, std::uint32_t place) { timers_[index].place = place; };
  }

  void insert(std::uint32_t hash, const Id& id, TimePoint deadline) {
    const std::uint32_t index = timers_.acquire();
    timers_[index].id.emplace(id);
    timers_[index].hash = hash;
    index_.insert(hash, index);
    heap_.push(deadline, index, heap_moved());
  }

  void move_to(std::uint32_t index, TimePoint deadline) {
    heap_.remove(timers_[index].place, heap_moved());
    heap_.push(deadline, index, heap_moved());
  }

  void erase(std::uint32_t index) {
    index_.erase(timers_[index].hash, index);
    heap_.remove(timers_[index].place, heap_moved());
    timers_[index].id.reset();
    timers_.release(index);
  }

  DeadlineHeap heap_;
  FlatIndex index_;  // From ids to timers.
  Slab<Timer> timers_;
};

}  // namespace ordo
