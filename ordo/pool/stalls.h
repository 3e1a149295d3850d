// Stalls: how long the line stood still, each time, because its head was not done.
//
// Threads: any. Whoever moves the line calls end(); whoever sees that it does not move, begin().
// Cost:    one load while nothing changes; a clock reading and a short lock at the end of a stall.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "ordo/core/clock.h"
#include "ordo/core/histogram.h"

namespace ordo::pool {

class Stalls {
 public:
  explicit Stalls(const Clock* clock) : clock_(clock) {}

  // The line waits for its head, since now unless it did already.
  void begin() {
    if (since_.load(std::memory_order_relaxed) != kMoving) return;
    std::int64_t moving = kMoving;
    since_.compare_exchange_strong(moving, now(), std::memory_order_relaxed);
  }

  // The line moves.
  void end() {
    if (since_.load(std::memory_order_relaxed) == kMoving) [[likely]]
      return;
    const std::int64_t since = since_.exchange(kMoving, std::memory_order_relaxed);
    if (since == kMoving) return;
    const std::int64_t stood = now() - since;
    std::lock_guard lock(mutex_);
    histogram_.record(stood > 0 ? static_cast<std::uint64_t>(stood) : 0);
  }

  Histogram histogram() const {
    std::lock_guard lock(mutex_);
    return histogram_;
  }

 private:
  static constexpr std::int64_t kMoving = INT64_MIN;

  std::int64_t now() const { return clock_->now().time_since_epoch().count(); }

  const Clock* clock_;
  std::atomic<std::int64_t> since_{kMoving};
  mutable std::mutex mutex_;
  Histogram histogram_;  // Under mutex_.
};

}  // namespace ordo::pool
