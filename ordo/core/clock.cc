#include "ordo/core/clock.h"

#include <algorithm>
#include <ctime>
#include <thread>

#include "ordo/core/check.h"

namespace ordo {
namespace {

class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }

  WallTime wall_now() const override { return std::chrono::system_clock::now(); }

  // The time of the last tick of the kernel, on the same scale: at most 10 ms ago.
  TimePoint rough_now() const override {
    timespec time{};
    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &time) != 0) return now();
    return TimePoint(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }

  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition,
                  TimePoint deadline) override {
    ORDO_CHECK(lock.owns_lock());
    if (deadline == TimePoint::max()) {
      condition.wait(lock);
      return false;
    }
    if (now() >= deadline) return true;
    condition.wait_until(lock, deadline);
    return now() >= deadline;
  }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

ManualClock::ManualClock(TimePoint start) : now_(start) {}

ManualClock::~ManualClock() {
  std::lock_guard guard(mutex_);
  ORDO_CHECK(waiters_.empty());
}

TimePoint ManualClock::now() const {
  return now_.load(std::memory_order_acquire);
}

WallTime ManualClock::wall_now() const {
  constexpr std::chrono::seconds kYear2020(1'577'836'800);
  return WallTime(kYear2020 + now().time_since_epoch());
}

bool ManualClock::wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition,
                             TimePoint deadline) {
  ORDO_CHECK(lock.owns_lock());
  if (deadline == TimePoint::max()) {
    condition.wait(lock);
    return false;
  }
  Waiter self{lock.mutex(), &condition, deadline};
  {
    std::lock_guard guard(mutex_);
    if (now() >= deadline) return true;
    waiters_.push_back(&self);
    arrived_.notify_all();
  }
  condition.wait(lock);
  std::lock_guard guard(mutex_);
  std::erase(waiters_, &self);
  return now() >= deadline;
}

void ManualClock::advance(std::chrono::nanoseconds step) {
  ORDO_CHECK(step >= std::chrono::nanoseconds::zero());
  std::unique_lock lock(mutex_);
  ORDO_CHECK(step < TimePoint::max() - now());
  now_.store(now() + step, std::memory_order_release);
  while (!notify_expired()) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
}

// Waiters lock their own mutex first and ours second; here ours comes first, so theirs may only
// be tried. As long as ours is held the waiter cannot leave, hence its mutex and condition live.
bool ManualClock::notify_expired() {
  bool all_notified = true;
  for (Waiter* waiter : waiters_) {
    if (waiter->notified || waiter->deadline > now()) continue;
    if (waiter->mutex->try_lock()) {
      waiter->condition->notify_all();
      waiter->notified = true;
      waiter->mutex->unlock();
    } else {
      all_notified = false;
    }
  }
  return all_notified;
}

void ManualClock::wait_for_waiters(std::size_t n) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return pending_count() >= n; });
}

std::size_t ManualClock::waiter_count() const {
  std::lock_guard guard(mutex_);
  return pending_count();
}

std::optional<TimePoint> ManualClock::next_deadline() const {
  std::lock_guard guard(mutex_);
  std::optional<TimePoint> earliest;
  for (const Waiter* waiter : waiters_) {
    if (waiter->deadline <= now()) continue;
    if (!earliest || waiter->deadline < *earliest) earliest = waiter->deadline;
  }
  return earliest;
}

std::size_t ManualClock::pending_count() const {
  return static_cast<std::size_t>(std::count_if(
      waiters_.begin(), waiters_.end(), [&](const Waiter* w) { return w->deadline > now(); }));
}

}  // namespace ordo
