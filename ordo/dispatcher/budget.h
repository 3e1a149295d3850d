// Budget: one limit over all shards, without a counter that every dispatch would fight for.
//
// A place is a right to hold one event. The shards keep some free places at hand, guarded by their
// own locks, and fetch and return them by the handful; when the common stock is empty, the caller
// collects what lies unused in the shards before it says "full". So the limit is exact, and the
// shared word is touched once in kHandful events.
//
//   if (stock_at_hand == 0) stock_at_hand = budget.take();
//   if (stock_at_hand == 0) return full;        // after collecting from the other shards
//   ...
//   stock_at_hand = budget.settle(stock_at_hand + freed);
//
// Threads: any.
// Bounds:  place_count places in all, for ever: taken ones plus those in stock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ordo/core/check.h"
#include "ordo/runtime/atomics.h"

namespace ordo::dispatcher {

class Budget {
 public:
  static constexpr std::uint64_t kHandfulMax = 64;

  // REQUIRES: place_count > 0, shard_count > 0.
  Budget(std::uint64_t place_count, std::size_t shard_count)
      : handful_(std::clamp<std::uint64_t>(place_count / (shard_count * 8), 1, kHandfulMax)),
        free_(place_count) {
    ORDO_CHECK(place_count > 0);
  }

  // A handful of places, or fewer; 0 when there are none in stock.
  std::uint64_t take() {
    std::uint64_t free = free_.load(std::memory_order_relaxed);
    do {
      if (free == 0) {
        scarce_.store(true, std::memory_order_relaxed);
        return 0;
      }
    } while (!free_.compare_exchange_weak(free, free - std::min(free, handful_),
                                          std::memory_order_acq_rel, std::memory_order_relaxed));
    return std::min(free, handful_);
  }

  void give(std::uint64_t places) {
    if (places == 0) return;
    const std::uint64_t before = free_.fetch_add(places, std::memory_order_acq_rel);
    if (before + places > handful_ * kPlenty) scarce_.store(false, std::memory_order_relaxed);
  }

  // How many of `at_hand` a shard should keep; the rest is given back.
  std::uint64_t settle(std::uint64_t at_hand) {
    const bool scarce = scarce_.load(std::memory_order_relaxed);
    if (!scarce && at_hand <= 2 * handful_) return at_hand;
    const std::uint64_t kept = scarce ? 0 : handful_;
    give(at_hand - kept);
    return kept;
  }

  std::uint64_t free_count() const { return free_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint64_t kPlenty = 16;  // So many handfuls in stock end the scarcity.

  const std::uint64_t handful_;
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> free_;
  // The stock was empty lately: shards keep nothing.
  alignas(kCacheLineBytes) std::atomic<bool> scarce_{false};
};

}  // namespace ordo::dispatcher
