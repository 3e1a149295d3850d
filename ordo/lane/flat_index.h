// FlatIndex: from a key's hash to the 32-bit index of the object that holds the key.
//
// The keys live in the objects (a lane, a timer); this is only the way to them. The caller passes
// what tells whether an object is the one he looks for:
//
//   FlatIndex index;
//   std::uint32_t found = index.find(hash, [&](std::uint32_t i) { return lanes[i].key == key; });
//   if (found == kNoIndex) index.insert(hash, lane);
//   index.erase(hash, lane);
//
// Open addressing with linear probing; erasing moves followers back, so there are no tombstones
// and a table that is filled and emptied for years is as fast as a new one. At most three slots
// in four are taken.
//
// Threads: one owner.
// Bounds:  8 bytes for each slot; doubles when three in four are taken, never shrinks but by
// clear(). Cost:    O(1) with one cache miss in a large table; growing is a pass over the old
// table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ordo/core/check.h"
#include "ordo/lane/slab.h"

namespace ordo {

class FlatIndex {
 public:
  FlatIndex() : slots_(kSlotCountMin), mask_(kSlotCountMin - 1) {}

  // The object with this hash for which `is_wanted(object)` holds, or kNoIndex.
  template <class IsWanted>
  std::uint32_t find(std::uint32_t hash, IsWanted&& is_wanted) const {
    for (std::size_t place = hash & mask_;; place = (place + 1) & mask_) {
      const Slot& slot = slots_[place];
      if (slot.object == kNoIndex) return kNoIndex;
      if (slot.hash == hash && is_wanted(slot.object)) return slot.object;
    }
  }

  // REQUIRES: `object` is not in the index.
  void insert(std::uint32_t hash, std::uint32_t object) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    slots_[free_place(hash)] = Slot{hash, object};
    ++count_;
  }

  // REQUIRES: `object` was inserted with `hash`.
  void erase(std::uint32_t hash, std::uint32_t object) {
    std::size_t hole = hash & mask_;
    while (slots_[hole].object != object) {
      ORDO_CHECK(slots_[hole].object != kNoIndex);
      hole = (hole + 1) & mask_;
    }
    // A follower may move into the hole unless its home lies behind the hole.
    for (std::size_t place = (hole + 1) & mask_; slots_[place].object != kNoIndex;
         place = (place + 1) & mask_) {
      const std::size_t distance_home = (place - slots_[place].hash) & mask_;
      const std::size_t distance_hole = (place - hole) & mask_;
      if (distance_home >= distance_hole) {
        slots_[hole] = slots_[place];
        hole = place;
      }
    }
    slots_[hole] = Slot{};
    --count_;
  }

  // Begins to load what find() and erase() of this hash will look at.
  void prefetch(std::uint32_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }

  // Makes room for `count` objects, so that inserting them does not grow the table.
  void reserve(std::size_t count) {
    while (count * 4 > slots_.size() * 3)
      grow();
  }

  std::size_t count() const { return count_; }

  // Forgets everything and gives the memory back.
  void clear() { *this = FlatIndex(); }

 private:
  static constexpr std::size_t kSlotCountMin = 16;

  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t object = kNoIndex;  // None: the slot is empty.
  };

  std::size_t free_place(std::uint32_t hash) const {
    std::size_t place = hash & mask_;
    while (slots_[place].object != kNoIndex)
      place = (place + 1) & mask_;
    return place;
  }

  void grow() {
    ORDO_CHECK(slots_.size() <= kNoIndex);  // 32 bits of hash name no more homes than that.
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.object != kNoIndex) slots_[free_place(slot.hash)] = slot;
    }
  }

  std::vector<Slot> slots_;  // A power of two of them.
  std::size_t mask_;
  std::size_t count_ = 0;
};

}  // namespace ordo
