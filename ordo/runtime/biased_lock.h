// BiasedLock: a short lock that costs its usual owner no atomic read-modify-write.
//
// Many locks that could be contended never are: one thread pushes, one pops. The first thread to
// take the lock becomes its owner, and from then on takes it with two plain stores, which, unlike
// an exchange, do not wait for the cache lines written before. The first other thread takes the
// bias away, once and for good, which costs that thread some microseconds; from then on it is an
// ordinary short lock.
//
//   BiasedLock<> lock;
//   std::lock_guard guard(lock);  // REQUIRES: what it guards never blocks and never calls out.
//
// Invariants.
//   1. owner_ goes from nobody to one thread to kShared, and moves only with held_ taken.
//   2. The owner raises inside_, then looks whether it still is the owner. Who takes the bias away
//      ends the ownership, then (heavy_fence) waits until inside_ is down. One of the two sees the
//      other, so they are never inside together.
//   3. shared_ is written once, after the owner was seen outside for good, and read only inside.
//
// Threads: any. Not fair, not recursive.
// Bounds:  one cache line.
// Cost:    for the owner 2 ns without read-modify-writes; else an exchange and a store. Taking the
//          bias away: one heavy_fence().
#pragma once

#include <atomic>
#include <cstdint>

#include "ordo/runtime/atomics.h"

namespace ordo {

template <class Atomics = StdAtomics>
class BasicBiasedLock {
 public:
  using Thread = std::uintptr_t;

  BasicBiasedLock() = default;
  BasicBiasedLock(const BasicBiasedLock&) = delete;
  BasicBiasedLock& operator=(const BasicBiasedLock&) = delete;

  void lock() { lock_as(this_thread()); }
  void unlock() {
    if (shared_.load(std::memory_order_relaxed)) {
      held_.store(false, std::memory_order_release);
    } else {
      inside_.store(false, std::memory_order_release);
    }
  }

  // The same for a thread that says who it is. REQUIRES: even, not 0, and nobody else's.
  void lock_as(Thread me) {
    if (!try_enter_as_owner(me)) [[unlikely]]
      lock_slowly(me);
  }

 private:
  static constexpr Thread kNobody = 0;
  static constexpr Thread kShared = 1;

  static Thread this_thread() {
    alignas(2) static thread_local char mark;
    return reinterpret_cast<Thread>(&mark);
  }

  bool try_enter_as_owner(Thread me) {
    if (owner_.load(std::memory_order_relaxed) != me) return false;
    // What an earlier thread at the same address did inside comes before what this one does.
    (void)inside_.load(std::memory_order_acquire);
    inside_.store(true, std::memory_order_relaxed);
    Atomics::light_fence();
    if (owner_.load(std::memory_order_relaxed) == me) [[likely]]
      return true;
    inside_.store(false, std::memory_order_release);
    return false;
  }

  [[gnu::noinline]] void lock_slowly(Thread me) {
    while (!take_shared(me)) {
      if (try_enter_as_owner(me)) return;
    }
  }

  // True: the caller holds the lock, which is shared now. False: the caller has become the owner.
  bool take_shared(Thread me) {
    while (held_.exchange(true, std::memory_order_acquire))
      await([this] { return !held_.load(std::memory_order_relaxed); });
    const Thread owner = owner_.load(std::memory_order_relaxed);
    if (owner == kShared) return true;
    if (owner == kNobody) {
      owner_.store(me, std::memory_order_relaxed);
      held_.store(false, std::memory_order_release);
      return false;
    }
    owner_.store(kShared, std::memory_order_relaxed);
    Atomics::heavy_fence();
    await([this] { return !inside_.load(std::memory_order_acquire); });
    shared_.store(true, std::memory_order_relaxed);
    return true;
  }

  template <class Ready>
  static void await(Ready ready) {
    constexpr int kLooks = 64;
    for (int look = 1; !ready(); ++look)
      look % kLooks == 0 ? Atomics::yield() : Atomics::pause();
  }

  alignas(kCacheLineBytes) typename Atomics::template Atomic<Thread> owner_{kNobody};
  typename Atomics::template Atomic<bool> inside_{false};  // The owner is, or tries to be.
  typename Atomics::template Atomic<bool> held_{false};    // By one of many, or for a change.
  typename Atomics::template Atomic<bool> shared_{false};
};

using BiasedLock = BasicBiasedLock<>;

}  // namespace ordo
