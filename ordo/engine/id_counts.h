// IdCounts: how many tasks each correlation id has, exactly, in memory that never grows.
//
//   IdCounts counts(1024);                        // room for 1,024 ids at a time
//   if (!counts.try_add(id, hash_of(id), 64)) return Entry::id_busy;
//   counts.remove(id, hash_of(id));
//
// Open addressing with linear probing in a table at most half full; removing moves followers back,
// so there are no tombstones. An id without tasks takes no place.
//
// Threads: one owner (the admission lock).
// Bounds:  `id_count_max` ids at a time, 16 bytes for each of at least twice as many places.
// Cost:    O(1), about one cache line; no allocation after construction.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ordo/core/check.h"
#include "ordo/core/hash.h"
#include "ordo/engine/options.h"

namespace ordo::engine {

class IdCounts {
 public:
  explicit IdCounts(std::size_t id_count_max)
      : slots_(std::bit_ceil(id_count_max * 2)),
        mask_(slots_.size() - 1) {}

  // One more task of `id`, unless it has `limit`. REQUIRES: id > 0, and room for its id.
  [[nodiscard]] bool try_add(CorrelationId id, std::uint64_t hash, std::size_t limit) {
    Slot& slot = slots_[place_of(id, hash)];
    if (slot.count >= limit) return false;
    slot.id = id;
    ++slot.count;
    return true;
  }

  // One task less. REQUIRES: `id` has one.
  void remove(CorrelationId id, std::uint64_t hash) {
    const std::size_t place = place_of(id, hash);
    ORDO_CHECK(slots_[place].count > 0);
    if (--slots_[place].count == 0) close(place);
  }

  std::size_t count_of(CorrelationId id) const { return slots_[place_of(id, hash_of(id))].count; }

 private:
  struct Slot {
    CorrelationId id = 0;  // 0: the place is empty.
    std::uint32_t count = 0;
  };

  // Where `id` is, or the empty place where it would be.
  std::size_t place_of(CorrelationId id, std::uint64_t hash) const {
    std::size_t place = hash & mask_;
    while (slots_[place].id != id && slots_[place].id != 0)
      place = (place + 1) & mask_;
    return place;
  }

  // A follower may move into the hole unless its home lies behind the hole.
  void close(std::size_t hole) {
    for (std::size_t place = (hole + 1) & mask_; slots_[place].id != 0;
         place = (place + 1) & mask_) {
      const std::size_t distance_home = (place - hash_of(slots_[place].id)) & mask_;
      const std::size_t distance_hole = (place - hole) & mask_;
      if (distance_home >= distance_hole) {
        slots_[hole] = slots_[place];
        hole = place;
      }
    }
    slots_[hole] = Slot{};
  }

  std::vector<Slot> slots_;  // A power of two of them.
  std::size_t mask_;
};

}  // namespace ordo::engine
