#include "ordo/runtime/loop.h"

#include <utility>

#include "ordo/core/check.h"

namespace ordo {

Loop::Loop(LoopOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
      ring_(options_.tasks_max),
      parker_(clock_),
      thread_(options_.name, [this](const std::stop_token& /*stop*/) { run(); }) {
  ORDO_CHECK(options_.batch_max > 0);
}

bool Loop::post(Task&& task) {
  const bool taken =
      on_loop_thread() ? ring_.try_push(std::move(task)) : ring_.push(std::move(task));
  if (taken) parker_.wake();
  return taken;
}

bool Loop::try_post(Task&& task) {
  const bool taken = ring_.try_push(std::move(task));
  if (taken) parker_.wake();
  return taken;
}

TimerId Loop::run_at(TimePoint when, Task task) {
  ORDO_CHECK(on_loop_thread());
  if (timers_.size() >= options_.timers_max || ring_.closed()) return TimerId::none;
  return timers_.add(when, std::move(task));
}

bool Loop::cancel(TimerId id) {
  ORDO_CHECK(on_loop_thread());
  return timers_.cancel(id);
}

LoopRemains Loop::stop(TimePoint deadline) {
  ORDO_CHECK(!on_loop_thread());
  const std::lock_guard one_at_a_time(stop_mutex_);
  if (thread_.joinable()) {
    deadline_.store(deadline, std::memory_order_release);
    ring_.close();
    parker_.wake();
    thread_.stop();
  }
  return remains_;
}

bool Loop::past_deadline() const {
  const TimePoint deadline = deadline_.load(std::memory_order_acquire);
  return deadline != TimePoint::max() && clock_.now() >= deadline;
}

std::size_t Loop::run_tasks() {
  return ring_.try_consume(options_.batch_max, [this](Task& task) {
    if (past_deadline()) {
      ++remains_.tasks;
    } else {
      task();
    }
  });
}

std::size_t Loop::run_timers() {
  if (timers_.size() == 0 || ring_.closed()) return 0;
  std::size_t count = 0;
  const TimePoint now = clock_.now();
  while (count < options_.batch_max) {
    std::optional<TimerQueue::Due> due = timers_.take_due(now);
    if (!due) break;
    due->task();
    ++count;
  }
  return count;
}

// Looks for a short while, for the next task often comes soon, then sleeps.
void Loop::rest() {
  const auto ready = [this] { return !ring_.empty() || ring_.closed(); };
  for (int i = 0; i < StdAtomics::kPausesBeforeSleep; ++i) {
    if (ready()) return;
    StdAtomics::pause();
  }
  parker_.park_until(timers_.next(), ready);
}

void Loop::run() {
  loop_thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  while (!ring_.drained()) {
    if (run_tasks() + run_timers() == 0) rest();
  }
  remains_.timers = timers_.size();
  timers_.clear();
}

}  // namespace ordo
