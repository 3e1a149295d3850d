// Loop: one thread that owns some state, and runs what others send it, one task after the other.
//
// State that only the loop's tasks touch needs no lock. Engine partitions and the broker's
// committer are loops.
//
//   Loop loop({.name = "ordo-part-0"});
//   loop.post([&] { partition.add(order); });                   // any thread
//   loop.post([&] {
//     loop.run_at(loop.now() + 5s, [&] { partition.expire(); });  // the loop's thread
//   });
//   LoopRemains left = loop.stop(clock.now() + 1s);             // drains, at most a second
//
// Order: the tasks of one poster run in the order it posted them; a task posted after another
// post() returned runs after it. Timers run between tasks, by deadline, at the latest after
// batch_max tasks.
//
// Threads: post, try_post, stop and the questions: any thread; run_at and cancel: the loop's own.
//          Owns one thread, which sleeps while there is nothing to run.
// Bounds:  tasks_max waiting tasks; timers_max timers.
// Cost:    post: as a push into an MpscRing; no lock, no allocation for small tasks.
// Errors:  a task that throws ends the process: tasks catch what foreign code throws.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

#include "ordo/core/clock.h"
#include "ordo/runtime/mpsc_ring.h"
#include "ordo/runtime/parker.h"
#include "ordo/runtime/task.h"
#include "ordo/runtime/threads.h"
#include "ordo/runtime/timer_queue.h"

namespace ordo {

struct LoopOptions {
  std::string name = "ordo-loop";    // Of the thread.
  std::size_t tasks_max = 1024;      // Waiting tasks; a power of two.
  std::size_t timers_max = 100'000;  // Timers not yet due.
  std::size_t batch_max = 64;        // Tasks between two looks at the timers.
  Clock* clock = nullptr;            // nullptr: system_clock().
};

// What stop() did not run.
struct LoopRemains {
  std::size_t tasks = 0;
  std::size_t timers = 0;
};

class Loop {
 public:
  explicit Loop(LoopOptions options = {});
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  // Stops at once: what waits is not run.
  ~Loop() { stop(TimePoint::min()); }

  // Takes `task` in. Waits while full, except on the loop's own thread, which would wait for
  // itself. False, and `task` stays with the caller, once stopping, or full on the own thread.
  bool post(Task&& task);

  // As post(), without waiting: false when full or stopping.
  [[nodiscard]] bool try_post(Task&& task);

  // Runs `task` once now() >= when. TimerId::none when timers_max are set or the loop is stopping.
  // REQUIRES: on the loop's thread.
  TimerId run_at(TimePoint when, Task task);

  // False when the timer has run, or was cancelled before.
  // REQUIRES: on the loop's thread.
  bool cancel(TimerId id);

  // Takes no more tasks, runs those that wait until `deadline`, drops the rest and all timers, ends
  // the thread, and says what was dropped. The task that runs is always waited for. Later calls
  // return the same.
  // REQUIRES: not on the loop's thread.
  LoopRemains stop(TimePoint deadline);

  bool on_loop_thread() const {
    return loop_thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  TimePoint now() const { return clock_.now(); }
  std::size_t waiting_count() const { return ring_.size(); }

 private:
  void run();
  void rest();
  std::size_t run_tasks();
  std::size_t run_timers();
  bool past_deadline() const;

  const LoopOptions options_;
  Clock& clock_;
  MpscRing<Task> ring_;
  Parker parker_;
  std::atomic<TimePoint> deadline_{TimePoint::max()};  // Of stop().
  std::atomic<std::thread::id> loop_thread_{};         // Set once by the loop's thread.

  // The loop thread's own.
  TimerQueue timers_;
  LoopRemains remains_;

  std::mutex stop_mutex_;  // Held while joining.
  Thread thread_;
};

}  // namespace ordo
