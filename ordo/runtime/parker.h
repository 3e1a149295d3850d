// Parker: puts its one owner to sleep until somebody wakes it or its Clock reaches a deadline.
//
//   owner                                              anybody
//     parker.park_until(deadline, [&] {                  ring.push(task);
//       return !ring.empty();                            parker.wake();
//     });
//
// Like EventCount, but the deadline belongs to a Clock, so that virtual time can end the sleep, and
// there is one sleeper only. The same handshake (asymmetric_fence.h): the owner announces itself,
// heavy_fence(), looks once more, sleeps; the waker acts, light_fence(), looks for the owner.
//
// Threads: park_until(): the owner; wake(): any.
// Cost:    wake() while the owner is awake: one load. Parking: a heavy_fence() and a lock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "ordo/core/clock.h"
#include "ordo/runtime/atomics.h"

namespace ordo {

class Parker {
 public:
  explicit Parker(Clock& clock) : clock_(clock) {}

  // Returns when ready() is true beforehand, when woken, or when the clock reaches `deadline`.
  template <class Ready>
  void park_until(TimePoint deadline, Ready&& ready) {
    parked_.store(true, std::memory_order_seq_cst);
    heavy_fence();
    if (ready()) {
      parked_.store(false, std::memory_order_relaxed);
      return;
    }
    std::unique_lock lock(mutex_);
    while (parked_.load(std::memory_order_relaxed)) {
      if (clock_.wait_until(lock, unparked_, deadline)) break;
    }
    parked_.store(false, std::memory_order_relaxed);
  }

  // Call after making ready() true.
  void wake() {
    light_fence();
    if (!parked_.load(std::memory_order_relaxed)) [[likely]]
      return;
    const std::lock_guard lock(mutex_);
    parked_.store(false, std::memory_order_relaxed);
    unparked_.notify_one();
  }

 private:
  Clock& clock_;
  alignas(kCacheLineBytes) std::atomic<bool> parked_{false};
  std::mutex mutex_;
  std::condition_variable unparked_;
};

}  // namespace ordo
