// PublishGate: how much may be on its way into the broker, and whether it takes anything.
//
//   if (Status status = gate.enter(bytes); !status) return refuse(status.error());
//   ...
//   gate.leave(bytes);                         // answered
//   gate.close(); gate.wait_until_empty(deadline);
//
// Threads: any, all calls.
// Bounds:  bytes_max; a request that is larger is taken when it is alone.
// Cost:    one short lock.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo::broker {

class PublishGate {
 public:
  PublishGate(std::size_t bytes_max, Clock& clock) : bytes_max_(bytes_max), clock_(clock) {}

  // Errors: resource_exhausted: try later; unavailable: closed.
  Status enter(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return Error{ErrorCode::unavailable, "The broker is closed."};
    if (count_ > 0 && bytes_ + bytes > bytes_max_)
      return Error{ErrorCode::resource_exhausted,
                   "As many publishes are under way as memory allows; try again later."};
    ++count_;
    bytes_ += bytes;
    return {};
  }

  void leave(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    --count_;
    bytes_ -= bytes;
    if (count_ == 0 && is_closed_) empty_.notify_all();
  }

  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }

  // False: not empty at the deadline.
  bool wait_until_empty(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    while (count_ > 0) {
      if (clock_.wait_until(lock, empty_, deadline)) return count_ == 0;
    }
    return true;
  }

  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  // 0 to 1: how full it is.
  double load() const {
    const double share = static_cast<double>(bytes()) / static_cast<double>(bytes_max_);
    return share < 1 ? share : 1;
  }

 private:
  const std::size_t bytes_max_;
  Clock& clock_;

  mutable std::mutex mutex_;  // Guards all below.
  std::condition_variable empty_;
  bool is_closed_ = false;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace ordo::broker
