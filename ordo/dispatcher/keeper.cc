#include "ordo/dispatcher/keeper.h"

#include <algorithm>

namespace ordo::dispatcher {

void Keeper::start() {
  thread_ = Thread("ordo-keeper", [this](const std::stop_token&) { run(); });
}

void Keeper::call_by(TimePoint when) {
  if (next_.load(std::memory_order_acquire) <= when) return;
  std::lock_guard guard(mutex_);
  if (next_.load(std::memory_order_relaxed) <= when) return;
  next_.store(when, std::memory_order_release);
  changed_.notify_one();
}

void Keeper::request_stop() {
  std::lock_guard guard(mutex_);
  stopping_ = true;
  changed_.notify_one();
}

void Keeper::stop() {
  request_stop();
  thread_.join();
}

void Keeper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const TimePoint next = next_.load(std::memory_order_relaxed);
    if (!clock_.wait_until(lock, changed_, next)) continue;
    // Whatever is asked for from here on comes on top of what the call finds.
    next_.store(TimePoint::max(), std::memory_order_release);
    lock.unlock();
    const TimePoint again = tend_(clock_.now());
    lock.lock();
    next_.store(std::min(again, next_.load(std::memory_order_relaxed)), std::memory_order_release);
  }
}

}  // namespace ordo::dispatcher
