// LaneTail: the offsets that wait behind the head of a lane, the oldest first.
//
//   TailPool pool(16 << 20, 512);
//   LaneTail tail;
//   pool.push(tail, Offset(7));
//   if (pool.wants_to_spill(tail)) for (auto& chunk : pool.spill(tail)) write(chunk);
//   while (!tail.empty()) {
//     if (pool.front_is_spilled(tail)) { pool.refill(tail, read(tail.spilled_first)); continue; }
//     deliver(pool.pop(tail));
//   }
//
// Offsets that follow each other are one run of 8 bytes. A tail is a front piece, chunks that were
// put out of memory, and a back piece, in this order; a tail that never was long has only a front.
//
// Threads: one owner of the pool and all its tails.
// Bounds:  in_memory_bytes() beyond bytes_max makes tails want to spill, and a new one keeps only a
//          node in front: at most about twice bytes_max and 128 bytes for each tail.
// Cost:    O(1) for push and pop; 64 bytes for seven runs. Memory is reused and stays at its peak.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/broker/ids.h"
#include "ordo/lane/slab.h"

namespace ordo::broker {

struct LaneTail {
  std::uint64_t count = 0;          // Offsets, spilled ones included.
  std::uint64_t spilled_first = 0;  // Number of the oldest spilled chunk.
  std::uint32_t spilled_chunks = 0;
  std::uint32_t front_first = kNoIndex, front_last = kNoIndex;
  std::uint32_t back_first = kNoIndex, back_last = kNoIndex;
  std::uint32_t front_runs = 0, back_runs = 0;

  bool empty() const { return count == 0; }
};

class TailPool {
 public:
  TailPool(std::size_t bytes_max, std::size_t chunk_runs)
      : bytes_max_(bytes_max),
        chunk_runs_(chunk_runs < 1 ? 1 : chunk_runs) {}

  // REQUIRES: `offset` is above all others in the tail.
  void push(LaneTail& tail, Offset offset);

  // True while the oldest offsets must be read back first: chunk tail.spilled_first.
  bool front_is_spilled(const LaneTail& tail) const {
    return tail.front_runs == 0 && tail.spilled_chunks > 0;
  }

  // REQUIRES: !tail.empty() and !front_is_spilled(tail).
  Offset front(const LaneTail& tail) const;
  Offset pop(LaneTail& tail);

  // Too much is in memory, and this tail has something that can leave.
  bool wants_to_spill(const LaneTail& tail) const;

  // Takes the back piece out of memory: the chunks to write, the first of which has the number
  // tail.spilled_first + tail.spilled_chunks as it was before the call.
  std::vector<std::string> spill(LaneTail& tail);

  // Gives back chunk tail.spilled_first, as it was written. False: these bytes are not it.
  // REQUIRES: front_is_spilled(tail).
  bool refill(LaneTail& tail, std::string_view bytes);

  // Forgets everything in the tail; spilled chunks are the caller's to erase.
  void clear(LaneTail& tail);

  std::size_t in_memory_bytes() const { return node_count_ * sizeof(Node); }

 private:
  // Offset in the upper 48 bits, length in the lower 16.
  static constexpr unsigned kLengthBits = 16;
  static constexpr std::uint64_t kLengthMax = (1u << kLengthBits) - 1;
  static constexpr std::uint8_t kNodeRuns = 7;

  struct Node {
    std::uint64_t runs[kNodeRuns];
    std::uint32_t next = kNoIndex;
    std::uint8_t begin = 0;
    std::uint8_t end = 0;
  };

  bool extend(std::uint32_t last, Offset offset);
  void push_run(std::uint32_t& first, std::uint32_t& last, std::uint32_t& runs, std::uint64_t run);
  std::uint64_t pop_run(std::uint32_t& first, std::uint32_t& last, std::uint32_t& runs);
  void release_list(std::uint32_t first);

  std::size_t bytes_max_;
  std::size_t chunk_runs_;
  Slab<Node> nodes_;
  std::size_t node_count_ = 0;
};

}  // namespace ordo::broker
