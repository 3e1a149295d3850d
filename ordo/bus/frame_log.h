// FrameLog: the frames published last, each once, with the set of those it was sent to.
//
// All subscribers read the same log, each with a cursor of its own, and take what is marked for
// their seat. So a frame costs the publisher one slot, however many take it.
//
//   log.write(position, frame, takers);                          // who claimed the position
//   if (log.is_published(position) && log.has(position, seat)) use(log.frame(position));
//
// Invariants.
//   1. A position is claimed by one publisher, which writes its slot once and then stamps it.
//   2. A slot is written again, for the position kSlots later, only when every subscriber's cursor
//      has passed it; so whoever finds the stamp of a position it has not passed reads it whole.
//
// Threads: any may read a stamped slot it has not passed; one writes (invariant 1).
// Bounds:  kSlots slots of a cache line each.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ordo/bus/frame.h"
#include "ordo/bus/seat_set.h"
#include "ordo/runtime/atomics.h"

namespace ordo::bus {

class FrameLog {
 public:
  static constexpr std::uint64_t kSlots = 1024;

  bool is_published(std::uint64_t position) const {
    return at(position).stamp.load(std::memory_order_acquire) > position;
  }
  // REQUIRES (both): is_published(position), and the caller's cursor has not passed it.
  bool has(std::uint64_t position, std::size_t seat) const {
    const auto& word = at(position).takers[seat / SeatSet::kBits];
    return (word.load(std::memory_order_relaxed) & SeatSet::bit(seat)) != 0;
  }
  FrameNode* frame(std::uint64_t position) const {
    return at(position).frame.load(std::memory_order_relaxed);
  }

  void write(std::uint64_t position, FrameNode* frame, const SeatSet& takers) {
    Slot& slot = slots_[position % kSlots];
    slot.frame.store(frame, std::memory_order_relaxed);
    for (std::size_t word = 0; word < SeatSet::kWords; ++word)
      slot.takers[word].store(takers.words[word], std::memory_order_relaxed);
    slot.stamp.store(position + 1, std::memory_order_release);
  }

 private:
  struct alignas(kCacheLineBytes) Slot {
    std::atomic<std::uint64_t> stamp{0};  // The position it was written for, plus one.
    std::atomic<FrameNode*> frame{nullptr};
    std::array<std::atomic<std::uint64_t>, SeatSet::kWords> takers{};
  };

  const Slot& at(std::uint64_t position) const { return slots_[position % kSlots]; }

  std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(kSlots);
};

}  // namespace ordo::bus
