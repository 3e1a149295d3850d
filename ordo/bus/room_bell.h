// RoomBell: where publishers wait for a place in a queue; whoever pops rings it.
//
//   publisher                                        consumer
//     RoomBell::Waiter waiter(bell);                   pop a frame
//     for (;;) {                                       bell.ring();   // a load while nobody waits
//       const auto ticket = bell.ticket();
//       if (there is room) break;
//       bell.wait(ticket, clock, deadline);
//     }
//
// The handshake is that of asymmetric_fence.h: a publisher announces itself, heavy_fence(), looks;
// a consumer frees the place, light_fence(), looks for publishers.
//
// Threads: any.
// Cost:    ring(): one load while nobody waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "ordo/core/clock.h"
#include "ordo/runtime/asymmetric_fence.h"

namespace ordo::bus {

class RoomBell {
 public:
  class Waiter {
   public:
    explicit Waiter(RoomBell& bell) : bell_(bell) {
      bell_.waiters_.fetch_add(1, std::memory_order_seq_cst);
      heavy_fence();
    }
    ~Waiter() { bell_.waiters_.fetch_sub(1, std::memory_order_relaxed); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

   private:
    RoomBell& bell_;
  };

  std::uint64_t ticket() {
    const std::lock_guard lock(mutex_);
    return rings_;
  }

  // Sleeps until the bell was rung after ticket(), or the deadline.
  void wait(std::uint64_t ticket, Clock& clock, TimePoint deadline) {
    std::unique_lock lock(mutex_);
    while (rings_ == ticket) {
      if (clock.wait_until(lock, rung_, deadline)) return;
    }
  }

  // Call after freeing a place.
  bool has_waiters() const {
    light_fence();
    return waiters_.load(std::memory_order_relaxed) != 0;
  }
  void ring() {
    if (!has_waiters()) [[likely]]
      return;
    const std::lock_guard lock(mutex_);
    ++rings_;
    rung_.notify_all();
  }

 private:
  std::atomic<std::uint32_t> waiters_{0};
  std::mutex mutex_;
  std::condition_variable rung_;
  std::uint64_t rings_ = 0;  // Guarded by mutex_.
};

}  // namespace ordo::bus
