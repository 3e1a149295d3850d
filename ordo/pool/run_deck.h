// RunDeck: hands out the numbers 0, 1, 2, ... to workers, in runs that others can take over.
//
// Workers that take one item at a time fight over one cache line. Workers that take several leave
// the rest of a run behind when one item blocks: with nobody to run them, they wait although other
// workers are idle, for ever if the blocked item waits for one of them. So a run here is public: it
// is as long as a few microseconds of work, its owner takes items off its front, and a worker with
// nothing to do takes over the back half of a run that does not move.
//
//   deck.publish(h + 1);                          // producer: item h may start
//   while (!leaving) {                            // worker
//     const std::uint64_t item = deck.next(me);
//     if (item == RunDeck::kNone) { deck.await_work(me, leaving); continue; }
//     run(item);
//   }
//
// Invariants.
//   1. Every number below claim_ was given to exactly one run. A run is one word (front, back), so
//      the owner's step at the front and a thief's at the back exclude each other by compare and
//      exchange; a number leaves a run exactly once.
//   2. While an item that may start is not started and a worker sleeps, then somebody will look
//      again: a worker is spinning, or a watcher naps (it looks every kWatch), or a wake-up is on
//      its way. Publishing and claiming are read-modify-writes followed by a look at the sleepers;
//      going to sleep is an announcement followed by a look at the work (EventCount).
//   3. A wake-up costs the waker about 7 us here. It is saved only where it cannot help: while a
//      worker spins, and while a watcher naps and the work left is less than a wake-up is worth.
//
// Threads: publish() one caller at a time; next() and await_work() of a worker from its own thread;
//          the rest from any thread.
// Bounds:  workers_max workers; the numbers that are published and not finished must span less
//          than 2^31.
// Cost:    next() inside a run: one compare and exchange on the worker's own cache line. A run: one
//          on the shared line. publish(): one exchange. Idle workers sleep and cost nothing.
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

class RunDeck {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  // `run_max`: the longest run, in items. REQUIRES: workers_max > 0, run_max > 0.
  RunDeck(std::size_t workers_max, std::size_t run_max);

  // All items below `head` may be started. `head` never falls.
  void publish(std::uint64_t head) {
    head_.exchange(head, std::memory_order_seq_cst);
    light_fence();
    if (idle_.has_waiters()) wake_for_work();
  }

  // The next item for `worker` to run, or kNone if there is nothing to take right now.
  std::uint64_t next(std::size_t worker) {
    Seat& seat = seats_[worker];
    Run run = seat.run.load(std::memory_order_relaxed);
    while (!is_empty(run)) {
      if (seat.run.compare_exchange_weak(run, run + kFrontStep, std::memory_order_seq_cst,
                                         std::memory_order_relaxed)) {
        return seat.base + static_cast<std::uint32_t>(front(run) - seat.base_low);
      }
    }
    return next_run(worker);
  }

  // Whether the item that next() gave `worker` was the last of its run. Its own thread only.
  bool run_is_over(std::size_t worker) const {
    return is_empty(seats_[worker].run.load(std::memory_order_relaxed));
  }

  // Blocks until there may be something for `worker`, or `leaving()` is true. Whoever makes
  // leaving() true calls wake_all() afterwards.
  void await_work(std::size_t worker, const std::function<bool()>& leaving);

  void wake_all() { idle_.notify_all(); }

  // Tells the deck how long `item_count` items took, so that it can choose the length of runs.
  void note_pace(std::size_t worker, std::size_t item_count, std::chrono::nanoseconds took);

  // Items published and not yet started; a moment's picture.
  std::uint64_t unstarted() const;
  std::uint64_t head() const { return head_.load(std::memory_order_acquire); }

  // The item that `worker` took last, done or not; kNone if it has not taken any.
  std::uint64_t last_taken(std::size_t worker) const {
    const std::uint32_t next = front(seats_[worker].run.load(std::memory_order_seq_cst));
    return next == 0 ? kNone : whole(next - 1);
  }

 private:
  // A run: the low 32 bits of its first item in the upper half, of the item after its last in the
  // lower.
  using Run = std::uint64_t;
  static constexpr Run kFrontStep = Run{1} << 32;
  static std::uint32_t front(Run run) { return static_cast<std::uint32_t>(run >> 32); }
  static std::uint32_t back(Run run) { return static_cast<std::uint32_t>(run); }
  static bool is_empty(Run run) { return front(run) == back(run); }
  static std::uint32_t length(Run run) { return back(run) - front(run); }
  static Run make_run(std::uint32_t first, std::uint32_t end) {
    return (Run{first} << 32) | Run{end};
  }

  // What a worker has before it; on its own cache line.
  struct alignas(kCacheLineBytes) Seat {
    std::atomic<Run> run{0};
    std::uint64_t base = 0;  // The owner's: the whole number of the run's first item,
    std::uint32_t base_low = 0;
    double item_ns = 0;      // The owner's: estimate of what an item costs; 0: none yet.
    std::size_t victim = 0;  // The owner's: whose run to take over, if may_steal.
    bool may_steal = false;
    bool was_idle = true;  // The owner's: it has not had a run since it last waited.
  };

  // The whole number, of which `low` is the low half. It is less than 2^31 below claim_.
  std::uint64_t whole(std::uint32_t low) const {
    const std::uint64_t claim = claim_.load(std::memory_order_acquire);
    return claim - (static_cast<std::uint32_t>(claim) - low);
  }

  std::uint64_t next_run(std::size_t worker);
  std::uint64_t take_over(std::size_t worker);
  std::uint64_t begin_run(Seat& seat, std::uint64_t first, std::uint64_t count);
  std::uint64_t run_length(const Seat& seat) const;
  std::uint64_t backlog() const;  // Published and in no run.
  bool spin_for_work(const std::function<bool()>& leaving) const;
  bool sleep_until_needed(std::size_t worker, const std::function<bool()>& leaving);
  bool is_worth_waking() const;
  std::size_t find_remainder(std::size_t worker) const;
  void wake_for_work();

  const std::size_t worker_count_;
  const std::size_t run_max_;
  std::unique_ptr<Seat[]> seats_;
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> head_{0};
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> claim_{0};
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> spinners_{0};
  std::atomic<bool> watcher_{false};                    // A worker naps.
  std::atomic<bool> waking_{false};                     // A wake-up is on its way.
  std::atomic<std::uint64_t> item_ns_{kUnknownPaceNs};  // The last run's, of any worker.
  EventCount idle_;

  static constexpr std::uint64_t kUnknownPaceNs = 1'000'000;
};

}  // namespace ordo::pool
