// ShortLock: a lock for a handful of instructions, taken for every item.
//
// What it guards never blocks and never calls out, so it is held for nanoseconds, and a lock that
// could sleep would cost three times what it protects. Who finds it held looks a few times and then
// lets others run, the holder among them.
//
//   std::lock_guard lock(short_lock);
//
// Threads: any. Not fair, not recursive.
// Bounds:  one byte.
// Cost:    2 ns: one exchange to take it, one store to give it back.
#pragma once

#include <atomic>

#include "ordo/runtime/atomics.h"

namespace ordo {

class ShortLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire))
      await();
  }
  bool try_lock() { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  void await() const {
    constexpr int kLooks = 64;
    for (int look = 0; held_.load(std::memory_order_relaxed); ++look) {
      look % kLooks == kLooks - 1 ? StdAtomics::yield() : StdAtomics::pause();
    }
  }

  std::atomic<bool> held_{false};
};

}  // namespace ordo
