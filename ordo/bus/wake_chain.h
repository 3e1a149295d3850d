// WakeChain: who sleeps, and waking them without the publisher paying for each.
//
// Waking a thread costs the waker some microseconds; a hundred sleepers would cost the publisher
// most of a millisecond. So it wakes two, and whoever wakes up wakes two others before it does
// anything else; critical ones come first, all along.
//
//   sleeper     chain.doze(self, clock, deadline, [&] { return may_have_frame(tail); });
//   publisher   chain.wake(takers, critical_ones);          // four loads while nobody sleeps
//
// The handshake is that of asymmetric_fence.h: a sleeper marks its seat, heavy_fence(), looks; a
// publisher writes the frame, light_fence(), looks for marks.
// No wake-up is lost: a mark is taken off only by one who then notes the seat in `owed`, or by the
// last of the seat who stops sleeping; whoever takes a seat from `owed` wakes it, or finds nobody
// asleep there and takes the next; and everybody who stops sleeping, for whatever reason, serves
// `owed` before leaving. Who finds that its subscriber has left may have taken off the mark of the
// one that has its seat now, and so notes the seat in `owed`, too.
//
// Threads: any. Callers of wake() and wake_all() are inside the PublisherGate; sleepers pass it.
// Bounds:  kSubscribersMax seats.
// Cost:    wake(): four loads while nobody sleeps, else two wake-ups.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "ordo/bus/publisher_gate.h"
#include "ordo/bus/seat_set.h"
#include "ordo/bus/subscriber.h"
#include "ordo/core/clock.h"
#include "ordo/runtime/asymmetric_fence.h"

namespace ordo::bus {

class WakeChain {
 public:
  explicit WakeChain(PublisherGate& gate) : gate_(gate) {}

  // Who sits there; nullptr: nobody. A subscriber lives on until all inside the gate have left.
  void seat(std::size_t seat, Subscriber* subscriber) {
    seats_[seat].store(subscriber, std::memory_order_seq_cst);
  }

  // Sleeps until woken or the deadline; not at all if ready() is true. May return early.
  template <class Ready>
  void doze(Subscriber& self, Clock& clock, TimePoint deadline, Ready&& ready) {
    auto& marks = marks_[self.seat() / SeatSet::kBits];
    const std::uint64_t mark = SeatSet::bit(self.seat());
    {
      std::unique_lock lock(self.mutex);
      const std::uint64_t ticket = self.wake_count;
      ++self.sleeper_count;
      marks.fetch_or(mark, std::memory_order_seq_cst);
      heavy_fence();
      if (!ready()) {
        while (self.wake_count == ticket) {
          if (clock.wait_until(lock, self.woken, deadline)) break;
        }
      }
      if (--self.sleeper_count == 0) marks.fetch_and(~mark, std::memory_order_acq_rel);
    }
    const PublisherGate::Pass pass(gate_);
    if (self.has_left()) owed_[self.seat() / SeatSet::kBits].fetch_or(mark);
    serve_owed();
  }

  // Call after making a frame visible.
  void wake(const SeatSet& takers, const SeatSet& critical) {
    light_fence();
    std::uint64_t asleep = 0;
    for (std::size_t word = 0; word < SeatSet::kWords; ++word)
      asleep |= marks_[word].load(std::memory_order_relaxed) & takers.words[word];
    if (asleep != 0) [[unlikely]]
      wake_marked(takers, critical);
  }

  // Wakes everybody who sleeps on one seat, or on all.
  static void wake_one(Subscriber& subscriber) { wake_seat(subscriber); }
  void wake_all();

 private:
  static constexpr int kWakesEach = 2;

  void wake_marked(const SeatSet& takers, const SeatSet& critical);
  using Words = std::array<std::atomic<std::uint64_t>, SeatSet::kWords>;

  // Wakes up to kWakesEach of those that are owed it.
  void serve_owed();
  // Wakes up to `count` of these; returns how many it did not find.
  int serve(Words& owed_words, int count);
  static bool wake_seat(Subscriber& subscriber);

  PublisherGate& gate_;
  alignas(kCacheLineBytes) Words marks_{};
  alignas(kCacheLineBytes) Words owed_critical_{};
  Words owed_{};
  std::array<std::atomic<Subscriber*>, kSubscribersMax> seats_{};
};

}  // namespace ordo::bus
