// BlockWait, YieldWait, SpinWait: what a thread does while a ring is empty or full.
//
// A strategy is a policy of SpscRing and MpscRing; each ring has one for each side.
//
//   MpscRing<Task> ring(1024);             // BlockWait: an idle program uses no CPU (the default)
//   MpscRing<Task, YieldWait> ring(1024);  // keeps looking, gives the core to others in between
//   MpscRing<Task, SpinWait> ring(1024);   // keeps looking; for threads that own their core
//
// The contract of all three: wait(ready, pauses) returns once ready() was true; whoever makes
// ready() true calls wake_one() or wake_all() afterwards; no wake-up is lost. `pauses` is how long
// to stay away between two looks, in pauses of the processor; 1 unless told.
//
// LookPace says how many pauses are good for a consumer. One that is faster than its producer
// and looks all the time takes the cache line away that the producer is writing to, for every
// single item. Staying away until several are there halves the cost of each; but only while a wait
// does end with several, for a lone item would just come late.
//
// Threads: any, all calls.
// Cost:    BlockWait: wake_one() without a sleeper is one load. It looks again for a few
//          microseconds before it sleeps, so threads that keep pace never enter the kernel.
//          YieldWait and SpinWait: waking is nothing, waiting is a whole core.
#pragma once

#include <algorithm>
#include <cstddef>

#include "ordo/runtime/atomics.h"
#include "ordo/runtime/event_count.h"

namespace ordo {

// Threads: one owner, the consumer.
class LookPace {
 public:
  static constexpr int kPausesMax = 32;
  static constexpr std::size_t kPausesPerItem = 4;  // A stream has an item as often as that.

  int pauses() const { return pauses_; }

  // After a wait that ended with `items` of them.
  void got(std::size_t items) {
    const bool stream = items >= static_cast<std::size_t>(pauses_) / kPausesPerItem;
    pauses_ = stream ? std::min(2 * pauses_, kPausesMax) : std::max(pauses_ / 2, 1);
  }

 private:
  int pauses_ = 1;
};

template <class Atomics = StdAtomics>
class BlockWait {
 public:
  template <class Ready>
  void wait(Ready&& ready, int pauses = 1) {
    if (look_for_a_while(ready, pauses)) return;
    while (true) {
      const auto ticket = event_.prepare();
      if (ready()) {
        event_.cancel();
        return;
      }
      event_.wait(ticket);
      if (ready()) return;
    }
  }

  void wake_one() { event_.notify_one(); }
  void wake_all() { event_.notify_all(); }

 private:
  template <class Ready>
  static bool look_for_a_while(Ready& ready, int pauses) {
    for (int i = 0; i < Atomics::kPausesBeforeSleep; i += pauses) {
      if (ready()) return true;
      Atomics::pause(pauses);
    }
    for (int i = 0; i < Atomics::kYieldsBeforeSleep; ++i) {
      if (ready()) return true;
      Atomics::yield();
    }
    return false;
  }

  BasicEventCount<Atomics> event_;
};

template <class Atomics = StdAtomics>
class YieldWait {
 public:
  template <class Ready>
  void wait(Ready&& ready, int pauses = 1) {
    for (int i = 0; i < Atomics::kPausesBeforeSleep; i += pauses) {
      if (ready()) return;
      Atomics::pause(pauses);
    }
    while (!ready())
      Atomics::yield();
  }

  void wake_one() {}
  void wake_all() {}
};

template <class Atomics = StdAtomics>
class SpinWait {
 public:
  template <class Ready>
  void wait(Ready&& ready, int pauses = 1) {
    while (!ready())
      Atomics::pause(pauses);
  }

  void wake_one() {}
  void wake_all() {}
};

}  // namespace ordo
