// EventCount: sleep until a condition somebody else makes true; telling is free while none sleeps.
//
// A condition variable for conditions made of atomics. The condition is the caller's; the event
// count only makes sure that nobody sleeps through its becoming true.
//
//   waiter                                          notifier
//     while (!ready()) {                              make_ready();          // release store
//       EventCount::Ticket ticket = event.prepare();  event.notify_one();
//       if (ready()) { event.cancel(); break; }
//       event.wait(ticket);
//     }
//
// Invariants. epoch = notifications that found a waiter. Of the waiters announced by prepare() and
// not yet back, `unsignalled` is how many still need a notification; a notifier takes one away
// before it wakes one, so a waiter that is slow to run is not woken again by every notification.
//   1. A waiter reads its ticket, then announces itself, then (heavy_fence) looks at its condition.
//      A notifier makes the condition true, then (light_fence) looks for announced waiters. One of
//      the two sees the other (asymmetric_fence.h).
//   2. A notifier that sees an unsignalled waiter first takes it off the count, then moves the
//      epoch, then wakes. A waiter sleeps only while the epoch equals its ticket, so whoever
//      announced itself before the epoch moved does not fall asleep, and is awake or woken.
//   3. unsignalled >= (threads asleep or bound to sleep) - (wakes still to be issued). Hence
//      unsignalled == 0 means: everybody who waits is being woken, and there is nothing to do.
//   4. A thread that was woken returns, even if its ticket is the current epoch: a wake is never
//      swallowed without the condition being looked at again.
// The ticket has 32 bits. It is mistaken only if a thread stands still between prepare() and wait()
// for an exact multiple of 2^32 notifications, each of which makes a system call (half an hour).
//
// Threads: any, all calls. A waiter calls cancel() or wait() exactly once for each prepare().
// Bounds:  2^31 waiters.
// Cost:    notify without a waiter: one load, no fence, no read-modify-write. prepare: two
//          read-modify-writes and a heavy_fence(). One cache line per EventCount for
//          the words that notifiers read, one for the word that sleepers sleep on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "ordo/core/check.h"
#include "ordo/runtime/atomics.h"

namespace ordo {

template <class Atomics = StdAtomics>
class BasicEventCount {
 public:
  using Ticket = std::uint32_t;

  BasicEventCount() = default;
  BasicEventCount(const BasicEventCount&) = delete;
  BasicEventCount& operator=(const BasicEventCount&) = delete;

  // Announces the caller as a waiter. It must look at its condition after this call, and then
  // call wait() if the condition is still false, cancel() otherwise.
  [[nodiscard]] Ticket prepare() {
    const Ticket ticket = epoch_.load(std::memory_order_acquire);
    waiters_.fetch_add(kOneWaiter | kOneUnsignalled, std::memory_order_seq_cst);
    Atomics::heavy_fence();
    return ticket;
  }

  // The same for a wait_for() by a thread that will look again in any case, and does not mind to
  // sleep through a notification that comes just now: without the fence.
  [[nodiscard]] Ticket prepare_nap() {
    const Ticket ticket = epoch_.load(std::memory_order_acquire);
    waiters_.fetch_add(kOneWaiter | kOneUnsignalled, std::memory_order_seq_cst);
    return ticket;
  }

  // Takes the announcement back without sleeping.
  void cancel() { leave(); }

  // Sleeps until a notification after the prepare() that gave `ticket`; at once if there was one.
  // May also return without one, so the caller looks at its condition again.
  void wait(Ticket ticket) {
    if (epoch_.load(std::memory_order_acquire) == ticket) Atomics::futex_wait(epoch_, ticket);
    synchronize_with_notifier();
    leave();
  }

  // As wait(), for at most `timeout`. Returns false if that passed without a notification.
  bool wait_for(Ticket ticket, std::chrono::nanoseconds timeout) {
    bool timed_out = false;
    if (epoch_.load(std::memory_order_acquire) == ticket) {
      timed_out = Atomics::futex_wait_for(epoch_, ticket, timeout) == Atomics::FutexWait::timed_out;
    }
    const bool notified = synchronize_with_notifier() != ticket;
    leave();
    return notified || !timed_out;
  }

  // Call after making the condition true. Wakes at least one waiter that needs it, if any does.
  void notify_one() {
    Atomics::light_fence();
    if (has_unsignalled(waiters_.load(std::memory_order_relaxed))) [[unlikely]]
      wake_one();
  }

  // Call after making the condition true. Wakes every thread that waits.
  void notify_all() {
    Atomics::light_fence();
    if (has_unsignalled(waiters_.load(std::memory_order_relaxed))) [[unlikely]]
      wake_all();
  }

  // Whether a thread is announced that no notification has reached yet. As a notifier's question
  // it needs the light fence of notify_one(); alone it is a hint.
  bool has_waiters() const { return has_unsignalled(waiters_.load(std::memory_order_relaxed)); }

 private:
  // The announced waiters in the upper half, those of them still to be signalled in the lower.
  using Waiters = std::uint64_t;
  static constexpr Waiters kOneWaiter = Waiters{1} << 32;
  static constexpr Waiters kOneUnsignalled = 1;
  static constexpr Waiters kUnsignalledMask = kOneWaiter - 1;
  static constexpr std::uint32_t kEverybody = 0x7fff'ffff;

  static bool has_unsignalled(Waiters waiters) { return (waiters & kUnsignalledMask) != 0; }

  // What the notifier wrote before it moved the epoch is visible to the caller afterwards.
  Ticket synchronize_with_notifier() { return epoch_.load(std::memory_order_acquire); }

  // One waiter fewer; what is unsignalled cannot be more than what waits.
  void leave() {
    Waiters old = waiters_.load(std::memory_order_relaxed);
    Waiters left = 0;
    do {
      ORDO_CHECK(old >= kOneWaiter);
      const Waiters count = (old >> 32) - 1;
      const Waiters unsignalled = old & kUnsignalledMask;
      left = (count << 32) | (unsignalled < count ? unsignalled : count);
    } while (!waiters_.compare_exchange_weak(old, left, std::memory_order_seq_cst,
                                             std::memory_order_relaxed));
  }

  void wake_one() {
    Waiters old = waiters_.load(std::memory_order_relaxed);
    do {
      if (!has_unsignalled(old)) return;
    } while (!waiters_.compare_exchange_weak(old, old - kOneUnsignalled, std::memory_order_seq_cst,
                                             std::memory_order_relaxed));
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    Atomics::futex_wake(epoch_, 1);
  }

  void wake_all() {
    Waiters old = waiters_.load(std::memory_order_relaxed);
    do {
      if (!has_unsignalled(old)) return;
    } while (!waiters_.compare_exchange_weak(old, old & ~kUnsignalledMask,
                                             std::memory_order_seq_cst, std::memory_order_relaxed));
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    Atomics::futex_wake(epoch_, kEverybody);
  }

  alignas(kCacheLineBytes) typename Atomics::template Atomic<Waiters> waiters_{0};
  alignas(kCacheLineBytes) typename Atomics::template Atomic<std::uint32_t> epoch_{0};
};

using EventCount = BasicEventCount<>;

}  // namespace ordo
