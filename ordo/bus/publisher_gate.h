// PublisherGate: lets publishers in without a lock, and tells when all who were inside have left.
//
// A roster may be freed when no publisher uses it any more. Publishers pass through the gate; who
// has replaced the roster waits until those who may have seen the old one are out. Newcomers are
// not held up, and do not prolong the wait: they are counted on the other side.
//
//   publisher                               who changes the roster (one at a time)
//     PublisherGate::Pass pass(gate);         roster = next;
//     use(roster);                            gate.await_leavers();
//                                             delete old;
//
// Why both sides are waited for: a publisher may read `side`, stand still, and enter on that side
// long after it was emptied and changed. It then sees the new roster, but counts on the idle side;
// so the next change empties the idle side first.
//
// Threads: any number pass; await_leavers() by one at a time, and not by one who is inside.
// Bounds:  who is inside must not wait for anything but other publishers' next few instructions.
// Cost:    two read-modify-writes to pass.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ordo/runtime/atomics.h"

namespace ordo::bus {

class PublisherGate {
  struct alignas(kCacheLineBytes) Side {
    std::atomic<std::uint64_t> inside{0};
  };

 public:
  class Pass {
   public:
    explicit Pass(PublisherGate& gate)
        : side_(gate.sides_[gate.side_.load(std::memory_order_relaxed)]) {
      side_.inside.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Pass() { side_.inside.fetch_sub(1, std::memory_order_release); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    Side& side_;
  };

  // Returns when everybody who was inside at the time of the call has left.
  void await_leavers() {
    const std::uint32_t side = side_.load(std::memory_order_relaxed);
    await_empty(sides_[1 - side]);
    side_.store(1 - side, std::memory_order_seq_cst);
    await_empty(sides_[side]);
  }

 private:
  static void await_empty(const Side& side) {
    while (side.inside.load(std::memory_order_seq_cst) != 0)
      StdAtomics::yield();
  }

  std::array<Side, 2> sides_;
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> side_{0};
};

}  // namespace ordo::bus
