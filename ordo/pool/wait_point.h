// WaitPoint: where a pusher waits for room and a popper for output: first awake, then asleep.
//
// Under load the wait is over in microseconds, and a wake-up costs more than that, so a waiter
// looks up to kLooksMax times, letting others run, before it sleeps.
//
//   waiter:    point.await([&] { return ready(); });
//   notifier:  make_ready();  point.notify();           // Nothing but a load while none sleeps.
//
// A waiter that can stand a little delay naps before it sleeps for good: notify_lazily() spares
// nappers, who come back by themselves, and so saves wake-ups while the condition is just barely
// true. Once the nap is over without it, the waiter is woken by the first notification of any kind.
//
// Threads: any.
// Cost:    notify: a load. A sleep and a wake-up: some 10 us together. Asleep: nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "ordo/core/clock.h"
#include "ordo/runtime/asymmetric_fence.h"
#include "ordo/runtime/event_count.h"

namespace ordo::pool {

class WaitPoint {
 public:
  // Blocks until ready() is true. `plenty` means that there is so much that waiting for more would
  // not pay; at first it is what is waited for. REQUIRES: plenty() implies ready().
  template <class Ready, class Plenty>
  void await(Ready ready, Plenty plenty, std::chrono::nanoseconds nap) {
    if (!look(ready, plenty)) rest(ready, nap);
  }

  // The second half of await().
  template <class Ready>
  void rest(Ready ready, std::chrono::nanoseconds nap) {
    bool rested = nap.count() == 0;
    for (;;) {
      if (rested) sleepers_.fetch_add(1, std::memory_order_seq_cst);
      const EventCount::Ticket ticket = event_.prepare();
      const bool is_ready = ready();
      if (is_ready) {
        event_.cancel();
      } else if (rested) {
        event_.wait(ticket);
      } else {
        event_.wait_for(ticket, nap);
      }
      if (rested) sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      if (is_ready) return;
      rested = true;
    }
  }

  // The same, but until `deadline` of `clock` at the latest. Returns whether ready() is true.
  template <class Ready>
  bool await_until(Ready ready, Clock& clock, TimePoint deadline) {
    std::unique_lock lock(timed_mutex_);
    timed_waiters_.fetch_add(1, std::memory_order_seq_cst);
    heavy_fence();  // As EventCount::prepare(): announced first, then looks.
    bool is_ready = ready();
    while (!is_ready) {
      const bool late = clock.wait_until(lock, timed_, deadline);
      is_ready = ready();
      if (late) break;
    }
    timed_waiters_.fetch_sub(1, std::memory_order_seq_cst);
    return is_ready;
  }

  // Tells one waiter, if there is one, and all that wait with a deadline.
  void notify() {
    light_fence();
    if (event_.has_waiters()) event_.notify_one();
    notify_timed();
  }
  void notify_all() {
    event_.notify_all();
    notify_timed();
  }

  // Whether a waiter needs to be told; `lazily` leaves those out that nap.
  bool has_waiters(bool lazily = false) const {
    light_fence();
    if (timed_waiters_.load(std::memory_order_relaxed) > 0) return true;
    if (!event_.has_waiters()) return false;
    return !lazily || sleepers_.load(std::memory_order_seq_cst) > 0;
  }

  // The first half of await(): looks for a while, letting others run in between. How often, and how
  // often only for plenty, depends on whether that was of use lately: where waits are long, looking
  // is just waste; where little comes, so is patience. Looks are counted, not time: while others
  // run, time passes.
  template <class Ready, class Plenty>
  bool look(Ready ready, Plenty plenty) {
    const int looks = looks_.load(std::memory_order_relaxed);
    const int patience = patience_.load(std::memory_order_relaxed);
    for (int look = 0; look < looks; ++look) {
      const bool patient = look < patience;
      if (patient ? plenty() : ready()) {
        adapt(patience_, patient ? patience * 2 : patience / 2, kPatienceMax);
        adapt(looks_, looks * 2, kLooksMax);
        return true;
      }
      // Not too often: a look takes the cache line away from who is about to write it.
      for (int pause = 0; pause < kPausesPerLook; ++pause)
        StdAtomics::pause();
      if (look % 2 == 1) StdAtomics::yield();
    }
    adapt(patience_, patience / 2, kPatienceMax);
    adapt(looks_, looks / 2, kLooksMax);
    return false;
  }

 private:
  static void adapt(std::atomic<int>& value, int wanted, int most) {
    value.store(std::clamp(wanted, kLooksMin, most), std::memory_order_relaxed);
  }

  void notify_timed() {
    if (timed_waiters_.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    std::lock_guard lock(timed_mutex_);
    timed_.notify_all();
  }

  static constexpr int kLooksMin = 2;
  static constexpr int kLooksMax = 64;  // Some 40 us, if nobody else runs.
  static constexpr int kPatienceMax = 16;
  static constexpr int kPausesPerLook = 32;

  EventCount event_;
  std::atomic<int> looks_{kLooksMax};
  std::atomic<int> patience_{kLooksMin};
  std::atomic<std::uint32_t> sleepers_{0};       // Waiters that do not nap any more.
  std::atomic<std::uint32_t> timed_waiters_{0};  // Those in await_until().
  std::mutex timed_mutex_;
  std::condition_variable timed_;
};

}  // namespace ordo::pool
