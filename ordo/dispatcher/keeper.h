// Keeper: the one thread of a dispatcher that looks at the clock: retries that are due, state that
// has been idle long enough.
//
//   Keeper keeper(clock, [&](TimePoint now) { return tend(now); });   // returns when to come again
//   keeper.start();
//   keeper.call_by(now + 500ms);   // something is due then
//   keeper.stop();
//
// Threads: any, all calls; the function runs on the keeper's own thread, which sleeps in between.
// Cost:    call_by() is one load unless nothing else is due earlier; an idle keeper costs nothing.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "ordo/core/clock.h"
#include "ordo/runtime/threads.h"

namespace ordo::dispatcher {

class Keeper {
 public:
  using Tend = std::function<TimePoint(TimePoint now)>;

  Keeper(Clock& clock, Tend tend) : clock_(clock), tend_(std::move(tend)) {}
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() { stop(); }

  void start();

  // Makes sure that the function is called at `when` or earlier.
  void call_by(TimePoint when);

  // The function is not called any more, except that a call that runs goes on. Idempotent.
  void request_stop();
  // The same, and waits for the end. Not from the keeper's own thread.
  void stop();

 private:
  void run();

  Clock& clock_;
  const Tend tend_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<TimePoint> next_{TimePoint::max()};  // Written under mutex_ only.
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace ordo::dispatcher
