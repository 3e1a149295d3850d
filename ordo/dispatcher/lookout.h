// Lookout: which shards have lanes that may run, who goes there, and who should be awake.
//
// A dispatcher has at most 64 shards, so "which of them" is one word. Publishing a shard sets its
// bit in the common word; a worker that has nothing to do takes all the common bits over to its own
// word with one exchange, and works them off from there. Its own word stays in sight: a worker
// without work takes bits from one that is held up by a slow handler, so no shard waits for it.
//
//   lookout.publish(shard);                          // dispatch: the shard has a ready lane
//   while (!leaving()) {                             // worker
//     const std::size_t shard = lookout.next(me);
//     if (shard == Lookout::kNone) { lookout.await_work(me, leaving); continue; }
//     if (!visit(shard)) lookout.drop(me, shard);    // nothing ready there any more
//   }
//
// Invariants.
//   1. The bit of a shard with ready lanes is in the common word, in a worker's word, or in the
//      hands of somebody who is between two instructions and not in a handler. A bit moves by being
//      taken out first, so it is never removed where it was just set anew.
//   2. While a bit is set and a worker sleeps, somebody will look again: a worker looks around, or
//      a watcher naps (it looks every kWatch), or a wake-up is on its way, or the bit is with a
//      worker that has not called out yet and sees to it before it does (leave_behind). Publishing
//      is a read-modify-write followed by a look at the sleepers; going to sleep is an announcement
//      followed by a look at the words (EventCount).
//   3. A wake-up, some 7 us, is saved only where it does not help: while a worker looks around,
//      while another wake-up is on its way, and while a watcher naps and what waits is less work
//      than a wake-up is worth.
//
// Threads: publish() any; the calls of a worker from its own thread.
// Bounds:  kShardsMax shards.
// Cost:    publish() one read-modify-write on a word that is shared only while workers find little
//          to do; next() a load of the worker's own word. Idle workers sleep and cost nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "ordo/runtime/asymmetric_fence.h"
#include "ordo/runtime/atomics.h"
#include "ordo/runtime/event_count.h"

namespace ordo::dispatcher {

class Lookout {
 public:
  static constexpr std::size_t kShardsMax = 64;
  static constexpr std::size_t kNone = ~std::size_t{0};

  // REQUIRES: worker_count > 0.
  explicit Lookout(std::size_t worker_count);

  // `shard` has a lane that may run. Call it after the lane was made ready.
  void publish(std::size_t shard) {
    common_.fetch_or(bit_of(shard), std::memory_order_seq_cst);
    light_fence();
    if (idle_.has_waiters()) wake_for_work();
  }

  // The next shard for `worker` to visit, in turn; kNone when it sees nothing to do.
  std::size_t next(std::size_t worker);

  // `worker` is about to call out and leaves shards with ready lanes behind, this one (`more`) or
  // others it has taken over: somebody else has to be able to come.
  void leave_behind(std::size_t worker, bool more) {
    if (!more && seats_[worker].own.load(std::memory_order_relaxed) == 0) return;
    light_fence();
    if (idle_.has_waiters()) wake_for_work();
  }

  // `worker` itself made something ready in `shard` and will come back to it.
  void keep(std::size_t worker, std::size_t shard) {
    seats_[worker].own.fetch_or(bit_of(shard), std::memory_order_seq_cst);
  }

  // `worker` found nothing ready in `shard`, and whoever makes something ready there publishes it.
  void drop(std::size_t worker, std::size_t shard) {
    seats_[worker].own.fetch_and(~bit_of(shard), std::memory_order_seq_cst);
  }

  // Blocks until there may be something for `worker`, or `leaving()` is true. Whoever makes
  // leaving() true calls wake_all() afterwards.
  void await_work(std::size_t worker, const std::function<bool()>& leaving);
  void wake_all() { idle_.notify_all(); }

  // Tells how long `event_count` events took, and how many lanes are still ready where they came
  // from, so that the lookout can judge what a wake-up is worth.
  void note_pace(std::size_t worker, std::size_t event_count, std::chrono::nanoseconds took,
                 std::size_t lanes_left);
  // `worker` has run that many events since it was last told where to go.
  void note_events(std::size_t worker, std::size_t event_count) {
    seats_[worker].events += static_cast<std::uint32_t>(event_count);
  }
  // After how many events `worker` should look at the clock again.
  std::size_t events_per_look(std::size_t worker) const;

  bool has_work() const;

 private:
  // What a worker has before it; on its own cache line.
  struct alignas(kCacheLineBytes) Seat {
    std::atomic<std::uint64_t> own{0};         // The bits it has taken over.
    std::atomic<std::uint64_t> progress{0};    // Moves while it gets on.
    std::atomic<std::uint64_t> held_up_at{0};  // The progress at which it was seen to stand still.
    std::atomic<bool> active{false};           // It has had work since it waited.
    unsigned cursor = 0;                       // The owner's: where it was last.
    std::uint32_t visits = 0;                  // The owner's: since it last took over common bits.
    std::uint32_t events = 0;                  // The owner's: what those brought.
    double event_ns = 0;                       // The owner's: what an event costs; 0: not known.
    bool was_idle = true;                      // The owner's: it has not had work since it waited.
  };

  static std::uint64_t bit_of(std::size_t shard) { return std::uint64_t{1} << shard; }
  bool take_common(Seat& seat);
  void let_gather(Seat& seat);
  bool steal(std::size_t worker);
  void begin_work(Seat& seat);
  std::uint64_t progress() const;
  bool look_around(const std::function<bool()>& leaving);
  bool somebody_gets_on() const;
  void note_standstill();
  bool sleep_until_needed(const std::function<bool()>& leaving);
  bool is_worth_waking() const;
  void wake_for_work();

  const std::size_t worker_count_;
  std::unique_ptr<Seat[]> seats_;
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> common_{0};
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> lookers_{0};
  std::atomic<bool> watcher_{false};                     // A worker naps.
  std::atomic<bool> waking_{false};                      // A wake-up is on its way.
  std::atomic<std::uint64_t> event_ns_{kUnknownPaceNs};  // As last noted, by any worker.
  std::atomic<std::uint64_t> lanes_left_{0};             // Likewise.
  EventCount idle_;

  static constexpr std::uint64_t kUnknownPaceNs = 1'000'000;
};

}  // namespace ordo::dispatcher
