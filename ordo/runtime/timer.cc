#include "ordo/runtime/timer.h"

#include <utility>

#include "ordo/core/check.h"

namespace ordo {

Timer::Timer(Clock& clock, std::string name, std::size_t calls_max)
    : clock_(clock),
      calls_max_(calls_max),
      thread_(std::move(name), [this](const std::stop_token& /*stop*/) { run(); }) {}

TimerId Timer::schedule(TimePoint when, Task call) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || queue_.size() >= calls_max_) return TimerId::none;
  const bool earliest = when < queue_.next();
  const TimerId id = queue_.add(when, std::move(call));
  if (earliest) changed_.notify_one();
  return id;
}

bool Timer::cancel(TimerId id) {
  std::unique_lock lock(mutex_);
  if (queue_.cancel(id)) return true;
  if (timer_thread_ != std::this_thread::get_id())
    finished_.wait(lock, [this, id] { return running_ != id; });
  return false;
}

std::size_t Timer::stop() {
  const std::lock_guard one_at_a_time(stop_mutex_);
  TimerQueue dropped;  // Its tasks are destroyed without the lock: they are foreign code.
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) dropped_ = queue_.size();
    stopping_ = true;
    std::swap(dropped, queue_);
    changed_.notify_one();
  }
  thread_.stop();
  return dropped_;
}

std::size_t Timer::pending_count() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

void Timer::run() {
  std::unique_lock lock(mutex_);
  timer_thread_ = std::this_thread::get_id();
  while (!stopping_) {
    std::optional<TimerQueue::Due> due = queue_.take_due(clock_.now());
    if (!due) {
      clock_.wait_until(lock, changed_, queue_.next());
      continue;
    }
    running_ = due->id;
    lock.unlock();
    due->task();
    due.reset();  // What it carried is gone before cancel() returns.
    lock.lock();
    running_ = TimerId::none;
    finished_.notify_all();
  }
}

}  // namespace ordo
