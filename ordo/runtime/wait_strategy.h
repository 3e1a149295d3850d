// BlockWait, YieldWait, SpinWait: what a thread does while a ring is empty or full.
//
// A strategy is a policy of SpscRing and MpscRing; each ring has one for each side.
//
//   MpscRing<Task> ring(1024);             // BlockWait: an idle program uses no CPU (the default)
//   MpscRing<Task, YieldWait> ring(1024);  // keeps looking, gives the core to others in between
//   MpscRing<Task, SpinWait> ring(1024);   // keeps looking; for threads that own their core
//
// The contract of all three: wait(ready) returns once ready() was true; whoever makes ready() true
// calls wake_one() or wake_all() afterwards; no wake-up is lost.
//
// Threads: any, all calls.
// Cost:    BlockWait: wake_one() without a sleeper is one load. It looks again for a few
//          microseconds before it sleeps, so threads that keep pace never enter the kernel.
//          YieldWait and SpinWait: waking is nothing, waiting is a whole core.
#pragma once

#include "ordo/runtime/atomics.h"
#include "ordo/runtime/event_count.h"

namespace ordo {

template <class Atomics = StdAtomics>
class BlockWait {
 public:
  template <class Ready>
  void wait(Ready&& ready) {
    if (look_for_a_while(ready)) return;
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
  static bool look_for_a_while(Ready& ready) {
    for (int i = 0; i < Atomics::kPausesBeforeSleep; ++i) {
      if (ready()) return true;
      Atomics::pause();
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
  void wait(Ready&& ready) {
    for (int i = 0; i < Atomics::kPausesBeforeSleep; ++i) {
      if (ready()) return;
      Atomics::pause();
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
  void wait(Ready&& ready) {
    while (!ready())
      Atomics::pause();
  }

  void wake_one() {}
  void wake_all() {}
};

}  // namespace ordo
