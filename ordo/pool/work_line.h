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
// Who waits for the output of the next item may run it himself, as a helper, if items are short:
// that saves two hand-overs between threads, each of which costs more than such an item.
//
// Invariants.
//   1. Every number below claim_ was given to exactly one worker, in order; every number from
//      claim_ to head_ may start.
//   2. While an item that may start is not started and a worker sleeps, somebody will look again: a
//      worker spins, or a watcher naps (it looks every kWatch), or a wake-up is on its way.
//      Publishing is a store followed by a look for sleepers; going to sleep is an announcement
//      followed by a look at the work (EventCount). What makes a look for sleepers skip one (a
//      spinner, a wake-up on its way) is taken back by a read-modify-write followed by a look at
//      the work, and read after one that follows the store. publish() reads watcher_ without: a
//      watcher that gets up does a heavy_fence() before it looks. A helper that spun looks at what
//      else there is, as a worker does, whether it found something for itself or not.
//   3. A wake-up is saved only where it does not help: while somebody spins, while another wake-up
//      is on its way, and while a watcher naps and what waits is less work than a wake-up is worth.
//   4. A worker stands down, as the watcher if there is none, while items are short, what waits is
//      not worth waking for, and outputs are being taken: who takes them helps.
//
// Threads: publish() one caller at a time; next() of a worker from its own thread; the rest any.
// Bounds:  workers_max workers.
// Cost:    next() one compare and exchange, on a line that is shared only while several workers are
//          at it. publish() a store and a look. Idle workers sleep and cost nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "ordo/pool/pace.h"
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
    head_.store(head, std::memory_order_release);
    light_fence();
    if (!idle_.has_waiters()) return;
    // What waits is a watcher's to look at, and seldom ours: who works has that cache line.
    const bool look_closely = head % kPublishedPerLook == 0;
    if (look_closely || !watcher_.load(std::memory_order_seq_cst)) wake_for_work();
  }

  // The next item for `worker` to run, or kNone if there is nothing to take right now.
  std::uint64_t next(std::size_t worker) {
    Seat& seat = seats_[worker];
    std::uint64_t claim = claim_.load(std::memory_order_relaxed);
    do {
      if (claim >= seat.head_seen && !look_ahead(seat, claim)) return kNone;
    } while (!claim_.compare_exchange_weak(claim, claim + 1, std::memory_order_seq_cst,
                                           std::memory_order_relaxed));
    seat.taken.store(claim, std::memory_order_release);
    if (seat.was_idle) begin_work(seat);
    return claim;
  }

  // Blocks until there may be something for `worker`, or `leaving()` is true. Whoever makes
  // leaving() true calls wake_all() afterwards. On the worker's own thread.
  void await_work(std::size_t worker, const std::function<bool()>& leaving);

  void wake_all() { idle_.notify_all(); }

  // `worker` cannot take what it may have been counted on for: somebody else is told.
  void pass_on(std::size_t worker);

  // ---- Helpers ----

  // From now on workers count on who takes outputs: `released` is how many have been, and at most
  // `window` more are published. Once, before anything is.
  void expect_helpers(const std::atomic<std::uint64_t>& released, std::size_t window) {
    released_ = &released;
    window_ = window;
  }
  // Whether a helper would be of use. Items that are worth handing over, workers that are at it get
  // on with.
  bool wants_help() const;
  // Nobody has started `item`.
  bool is_unstarted(std::uint64_t item) const {
    return claim_.load(std::memory_order_acquire) <= item;
  }
  // `item` may be started, and nobody has.
  bool is_next(std::uint64_t item) const { return is_unstarted(item) && head() > item; }
  // Takes `item` for a helper in the seat of `worker`, who is not there. REQUIRES: it is published.
  bool try_take(std::uint64_t item, std::size_t worker) {
    std::uint64_t claim = item;
    const bool won = claim_.compare_exchange_strong(claim, item + 1, std::memory_order_seq_cst,
                                                    std::memory_order_relaxed);
    if (!won) return false;
    seats_[worker].taken.store(item, std::memory_order_release);
    helped_.store(item, std::memory_order_relaxed);
    return true;
  }
  // Around a helper's looking for items. After it, look_behind(): once the helper has taken an
  // item, or when it does not take one.
  void begin_looking() { spinners_.fetch_add(1, std::memory_order_seq_cst); }
  void end_looking() { spinners_.fetch_sub(1, std::memory_order_seq_cst); }
  // A helper that had to wait does not look any more: is somebody needed for what it did not take?
  void look_behind() {
    if (idle_.has_waiters() && unstarted() > 0) wake_for_work();
  }
  // The same for who waits without helping: pushers that wait for room wake nobody.
  void call_for_work() {
    if (active_.load(std::memory_order_relaxed) == 0) look_behind();
  }
  // How long an item took that a helper ran. One helper at a time.
  void note_help(std::chrono::nanoseconds took);
  // Whether `worker` should leave what is there to helpers.
  bool may_stand_down(std::size_t worker);

  // ---- Pace ----

  // `worker` spent so long on telling poppers, which is no part of what an item costs.
  void note_telling(std::size_t worker, std::chrono::nanoseconds took) {
    seats_[worker].telling += took;
  }
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
    // The owner's:
    std::uint64_t head_seen = 0;         // head_, as last read.
    std::uint64_t released_seen = 0;     // *released_, as last read.
    std::chrono::nanoseconds telling{};  // Spent on it since the last note_pace().
    std::size_t lean = 0;                // Items it ran of late that had nothing behind them.
    double item_ns = 0;                  // Estimate of what an item costs; 0: none yet.
    bool was_idle = true;                // It has not had an item since it last waited.
  };

  bool look_ahead(Seat& seat, std::uint64_t& claim);
  void begin_work(Seat& seat);
  bool spin_for_work(std::size_t worker, const std::function<bool()>& leaving);
  bool sleep_until_needed(const std::function<bool()>& leaving);
  bool watch(EventCount::Ticket ticket, const std::function<bool()>& leaving);
  bool helpers_are_at_it() const;
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
  std::atomic<std::uint64_t> helped_before_nap_{0};  // helped_, as the watcher last read it.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> helped_{0};  // The last item a helper took.
  double help_ns_ = 0;  // The helper's: estimate of what an item costs.
  alignas(kCacheLineBytes) Pace pace_;
  const std::atomic<std::uint64_t>* released_ = nullptr;  // None: nobody will help.
  std::size_t window_ = 0;
  EventCount idle_;

  static constexpr std::uint64_t kPublishedPerLook = 32;
};

}  // namespace ordo::pool
