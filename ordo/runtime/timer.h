// Timer: makes calls when they are due, on one thread of its own.
//
//   Timer timer(clock);
//   TimerId id = timer.schedule(clock.now() + 500ms, [&] { retry(lane); });
//   timer.cancel(id);          // it is not running now and will not run
//   std::size_t dropped = timer.stop();
//
// For short calls that hand work on; a slow one delays those behind it. Code that has a Loop uses
// the loop's own timers, and needs no second thread.
//
// Threads: schedule, cancel and the questions: any thread, the calls themselves included; stop():
//          any thread but the timer's. Owns one thread, which sleeps until the next call is due.
// Bounds:  calls_max scheduled calls; schedule() refuses more.
// Cost:    O(log n) under a lock; a wake-up only when the new call is the earliest.
// Errors:  a call that throws ends the process.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

#include "ordo/core/clock.h"
#include "ordo/runtime/task.h"
#include "ordo/runtime/threads.h"
#include "ordo/runtime/timer_queue.h"

namespace ordo {

class Timer {
 public:
  static constexpr std::size_t kCallsMax = 1'000'000;

  explicit Timer(Clock& clock = system_clock(), std::string name = "ordo-timer",
                 std::size_t calls_max = kCallsMax);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { stop(); }

  // Will make `call` once clock.now() >= when. TimerId::none, and nothing is scheduled, after
  // stop() or when calls_max are.
  TimerId schedule(TimePoint when, Task call);

  // When it returns, the call is not running and will not run; except from inside that very call.
  // True if this prevented it.
  bool cancel(TimerId id);

  // Waits for the call now running, makes no more, and returns how many were dropped. Later calls
  // return the same.
  std::size_t stop();

  std::size_t pending_count() const;

 private:
  void run();

  Clock& clock_;
  const std::size_t calls_max_;

  mutable std::mutex mutex_;          // Guards all below but thread_.
  std::condition_variable changed_;   // An earlier call came, or stop().
  std::condition_variable finished_;  // A call returned.
  TimerQueue queue_;
  TimerId running_ = TimerId::none;
  std::thread::id timer_thread_;
  bool stopping_ = false;
  std::size_t dropped_ = 0;

  std::mutex stop_mutex_;  // Held while joining.
  Thread thread_;
};

}  // namespace ordo
