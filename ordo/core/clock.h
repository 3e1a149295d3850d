// Clock: where all code takes the time from and waits for it, so that tests can move it by hand.
//
//   bool done = false;  // guarded by mutex
//   std::unique_lock lock(mutex);
//   const TimePoint deadline = clock.now() + 5s;
//   while (!done && !clock.wait_until(lock, condition, deadline)) {
//   }
//
// In a test the same code gets a ManualClock, and five seconds pass at once:
//
//   clock.wait_for_waiters(1);  // the thread under test has begun to wait
//   clock.advance(5s);
//
// Threads: any thread may call any function of a clock.
// Bounds:  ManualClock keeps one entry for each thread that waits with a deadline.
// Cost:    system now() is one clock_gettime in user space, rough_now() a cheaper one that does not
//          ask the hardware; manual now() is one atomic load.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace ordo {

using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// The time of day, for what is written down. It may jump: never wait for it.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  virtual TimePoint now() const = 0;

  // As now(), but may lag behind it by some milliseconds where that makes it cheaper. For what is
  // asked at every step of a hot path and does not decide a deadline, such as which second it is.
  virtual TimePoint rough_now() const { return now(); }

  virtual WallTime wall_now() const = 0;

  // Blocks on `condition` until it is notified, spuriously woken, or now() >= deadline; does not
  // block when that is so already. TimePoint::max() means no deadline. Returns now() >= deadline.
  // REQUIRES: the caller holds `lock`, and all who wait on `condition` use the same mutex.
  virtual bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition,
                          TimePoint deadline) = 0;
};

// CLOCK_MONOTONIC: never goes back, and is the same for all processes of the host.
Clock& system_clock();

// Virtual time: stands still until a test moves it.
//
// A wake-up cannot be lost: a waiter registers itself while it holds its own mutex, and advance()
// notifies it while holding that mutex, so the waiter either sees the new time before it blocks or
// is blocked when the notification comes.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint start = TimePoint{});
  // REQUIRES: nobody waits.
  ~ManualClock() override;

  TimePoint now() const override;
  // Moves with now(); time zero is the first second of the year 2020.
  WallTime wall_now() const override;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition,
                  TimePoint deadline) override;

  // Moves the time on and wakes the waiters whose deadline is reached; returns when all of them
  // have been notified, which may be before they run.
  // REQUIRES: step >= 0, and the caller holds no mutex that a waiter waits with.
  void advance(std::chrono::nanoseconds step);

  // Blocks until at least `n` threads wait for a deadline that lies ahead. A thread that was
  // notified by others counts until it has run.
  void wait_for_waiters(std::size_t n);

  // Threads that wait for a deadline that lies ahead; those without deadline are not counted.
  std::size_t waiter_count() const;

  // The earliest deadline somebody waits for, or nothing when nobody does.
  std::optional<TimePoint> next_deadline() const;

 private:
  struct Waiter {
    std::mutex* mutex;
    std::condition_variable* condition;
    TimePoint deadline;
    bool notified = false;
  };

  std::size_t pending_count() const;  // REQUIRES: mutex_ is held.
  bool notify_expired();              // REQUIRES: mutex_ is held. True when all are notified.

  mutable std::mutex mutex_;
  std::condition_variable arrived_;  // A waiter registered.
  std::atomic<TimePoint> now_;       // Written under mutex_ only.
  std::vector<Waiter*> waiters_;     // Guarded by mutex_; a waiter here is alive, in wait_until().
};

}  // namespace ordo
