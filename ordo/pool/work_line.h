// WorkLine: hands out the numbers 0, 1, 2, ... to workers, strictly in order, and wakes them.
//
// Items start in the order in which they were admitted, one at a time, so an item may wait for its
// successor to start as long as there is a second worker. What is left to decide is who should be
// awake: a wake-up costs some 7 us, an item perhaps 10 ns.
//
//   line.publish(h + 1);                          // producer: item h may start
//   while (!leaving()) {                          // worker
//     const std::uint64_t item = line.next(me);
//     if (item == WorkLine::kNone) { line.await_work(leaving); continue; }
//     run(item);
//   }
//
// Invariants.
//   1. Every number below claim_ was given to exactly one worker, in order; every number from
//      claim_ to head_ may start.
//   2. While an item that may start is not started and a worker sleeps, somebody will look again: a
//      worker spins, or a watcher naps (it looks every kWatch), or a wake-up is on its way.
//      Publishing and claiming are read-modify-writes followed by a look at the sleepers; going to
//      sleep is an announcement followed by a look at the work (EventCount).
//   3. A wake-up is saved only where it does not help: while a worker spins, while another wake-up
//      is on its way, and while a watcher naps and what waits is less work than a wake-up is worth.
//
// Threads: publish() one caller at a time; next() of a worker from its own thread; the rest any.
// Bounds:  workers_max workers.
// Cost:    next() one compare and exchange, on a line that is shared only while several workers are
//          at it. publish() one exchange. Idle workers sleep and cost nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "ordo/runtime/asymmetric_fence.h"
#include "ordo/runtime/event_count.h"

namespace ordo::pool {

class WorkLine {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  // REQUIRES: workers_max > 0.
  explicit WorkLine(std::size_t workers_max);

  // All items below `head` may be started. `head` never falls.
  void publish(std::uint64_t head) {
    head_.exchange(head, std::memory_order_seq_cst);
    light_fence();
    if (idle_.has_waiters()) wake_for_work();
  }

  // The next item for `worker` to run, or kNone if there is nothing to take right now.
  std::uint64_t next(std::size_t worker) {
    Seat& seat = seats_[worker];
    std::uint64_t claim = claim_.load(std::memory_order_relaxed);
    do {
      if (claim >= seat.head_seen && !look_ahead(seat, claim)) return kNone;
    } while (!claim_.compare_exchange_weak(claim, claim + 1, std::memory_order_seq_cst,
                                           std::memory_order_relaxed));
    seat.taken.exchange(claim, std::memory_order_seq_cst);
    if (seat.was_idle) begin_work(seat);
    return claim;
  }

  // Blocks until there may be something for `worker`, or `leaving()` is true. Whoever makes
  // leaving() true calls wake_all() afterwards. On the worker's own thread.
  void await_work(std::size_t worker, const std::function<bool()>& leaving);

  void wake_all() { idle_.notify_all(); }

  // `worker` leaves. What it may have been counted on for, somebody else is told.
  void leave(std::size_t worker);

  // Tells the line how long `item_count` items took, so that it can judge what a wake-up is worth.
  void note_pace(std::size_t worker, std::size_t item_count, std::chrono::nanoseconds took);
  // After how many items `worker` should look at the clock again.
  std::size_t items_per_look(std::size_t worker) const;

  // Items published and not yet started; a moment's picture.
  std::uint64_t unstarted() const;
  std::uint64_t head() const { return head_.load(std::memory_order_acquire); }

  // The item that `worker` took last, done or not; kNone if it has not taken any.
  std::uint64_t last_taken(std::size_t worker) const {
    return seats_[worker].taken.load(std::memory_order_seq_cst);
  }

 private:
  // What a worker has before it; on its own cache line.
  struct alignas(kCacheLineBytes) Seat {
    std::atomic<std::uint64_t> taken{kNone};
    std::uint64_t head_seen = 0;  // The owner's: head_, as last read.
    double item_ns = 0;           // The owner's: estimate of what an item costs; 0: none yet.
    bool was_idle = true;         // The owner's: it has not had an item since it last waited.
  };

  bool look_ahead(Seat& seat, std::uint64_t& claim);
  void begin_work(Seat& seat);
  bool spin_for_work(const std::function<bool()>& leaving) const;
  bool sleep_until_needed(const std::function<bool()>& leaving);
  bool is_worth_waking() const;
  void wake_for_work();

  const std::size_t worker_count_;
  std::unique_ptr<Seat[]> seats_;
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> head_{0};
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> claim_{0};
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> spinners_{0};
  std::atomic<std::uint32_t> active_{0};  // Workers that have had an item since they waited.
  std::atomic<bool> watcher_{false};      // A worker naps.
  std::atomic<bool> waking_{false};       // A wake-up is on its way.
  std::atomic<std::uint64_t> item_ns_{kUnknownPaceNs};  // As last noted, by any worker.
  EventCount idle_;

  static constexpr std::uint64_t kUnknownPaceNs = 1'000'000;
};

}  // namespace ordo::pool
