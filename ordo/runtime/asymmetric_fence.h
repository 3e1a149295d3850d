// light_fence, heavy_fence: one side of a two-sided handshake pays for both.
//
// The pattern (Dekker's): two threads each write their own word, then read the other's.
//
//   notifier, often                         waiter, on its way to sleep, rarely
//     item = published;                       waiting = true;
//     light_fence();                          heavy_fence();
//     if (waiting) wake();                    if (item == published) do not sleep;
//
// Without a full barrier between write and read on BOTH sides, each store may sit in its core's
// store buffer while the other side reads the old value: the waiter sleeps, the notifier does not
// wake it. A full barrier per notification waits for the published item's own cache-line miss
// (about 200 ns between two cores), so it is moved to the waiter's side: heavy_fence() makes every
// running thread of this process pass a full barrier (membarrier, PRIVATE_EXPEDITED), after which
// either the waiter sees the item or the notifier sees the waiter. light_fence() then only has to
// keep the compiler from swapping the two accesses.
//
// Where the kernel offers no membarrier, and under thread sanitizer, both are full barriers.
//
// Threads: any.
// Cost:    light_fence() nothing (one predictable branch); heavy_fence() a system call and an
//          interrupt to each core that runs another thread of this process.
#pragma once

#include <atomic>

namespace ordo {

namespace fence_detail {
// True once the kernel has accepted the registration, then for ever. While false, light_fence()
// is a full barrier, which is right with either form of heavy_fence().
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a fact about the kernel.
extern std::atomic<bool> light_is_free;

inline void full_barrier() {
#if defined(__aarch64__)
  __asm__ __volatile__("dmb ish" ::: "memory");
#else
  static thread_local std::atomic<unsigned> word{0};
  word.fetch_add(1, std::memory_order_seq_cst);
#endif
}
}  // namespace fence_detail

// The side that is taken often. Stands between its write and its read.
inline void light_fence() {
  if (fence_detail::light_is_free.load(std::memory_order_relaxed)) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    fence_detail::full_barrier();
  }
}

// The side that is taken rarely. Stands between its write and its read.
void heavy_fence();

// Whether light_fence() costs nothing here. For reports and benchmarks.
bool light_fence_is_free();

}  // namespace ordo
