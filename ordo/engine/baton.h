// Baton, Flag: who holds the baton runs the partition; it goes from thread to thread, and no work
// is forgotten.
//
// A partition has one owner at a time: its own thread, or a thread inside flush(). None of them
// ever waits for the baton. Who finds it taken goes away, since whoever lets go of it looks for
// work afterwards:
//
//   switch (baton.pass(rounds, run_turns, has_work)) {
//     case Pass::elsewhere: break;              // the holder will look again after letting go
//     case Pass::done: break;                   // nothing was left when we let go
//     case Pass::left: wake_the_own_thread();   // enough for now; it shall go on
//   }
//
// Invariant. Every change of held_ is a read-modify-write, the failed attempt to take it included.
// So an attempt that fails comes before the holder's letting go in the order of held_, and what its
// thread did before it (push a task) is seen by the holder's look for work after letting go. One
// of the two always takes care of the task; neither needs a fence or a lock.
// baton_schedules_test.cc tries every schedule of it.
//
// Flag: says that there is something to look at. Who takes it down sees all that was done before it
// was raised for the last time, since taking it down is a read-modify-write too.
//
// Threads: any.
// Cost:    two exchanges for a pass; one when it is held elsewhere. A flag: a store to raise it, a
//          load to see that it is down, an exchange to take it down.
#pragma once

#include <atomic>
#include <cstdint>

#include "ordo/runtime/atomics.h"

namespace ordo::engine {

enum class Pass : std::uint8_t {
  elsewhere,  // Somebody else holds the baton, and will look for work after letting it go.
  done,       // All work there was is done.
  left,       // There is work, and the caller has done his share.
};

template <class Atomics = StdAtomics>
class BasicBaton {
 public:
  // Up to `rounds` times: takes the baton, calls work(), lets go, and looks whether there is more.
  template <class Work, class HasWork>
  Pass pass(int rounds, Work&& work, HasWork&& has_work) {
    for (int round = 0; round < rounds; ++round) {
      if (held_.exchange(true, std::memory_order_acq_rel)) return Pass::elsewhere;
      work();
      held_.exchange(false, std::memory_order_acq_rel);
      if (!has_work()) return Pass::done;
    }
    return Pass::left;
  }

  // For one who is going to sleep: not held means that nobody will look for work by himself. Held
  // means that the holder will see whatever work the caller of this has seen, so the answer counts
  // as a failed attempt to take the baton, and is a read-modify-write as well.
  bool held() {
    bool is_held = true;
    return held_.compare_exchange_strong(is_held, true, std::memory_order_acq_rel,
                                         std::memory_order_acquire);
  }

 private:
  typename Atomics::template Atomic<bool> held_{false};
};

template <class Atomics = StdAtomics>
class BasicFlag {
 public:
  void raise() { up_.store(true, std::memory_order_release); }
  // Takes the flag down; false when it was not up.
  bool take() {
    return up_.load(std::memory_order_relaxed) && up_.exchange(false, std::memory_order_acq_rel);
  }
  bool is_up() const { return up_.load(std::memory_order_acquire); }

 private:
  typename Atomics::template Atomic<bool> up_{false};
};

using Baton = BasicBaton<>;
using Flag = BasicFlag<>;

}  // namespace ordo::engine
