#include "ordo/adapters/push_http/push_window.h"

#include <algorithm>

#include "ordo/core/check.h"

namespace ordo::push_http {

PushWindow::PushWindow(const PushWindowOptions& options)
    : options_(options),
      size_(options.size_first) {
  ORDO_CHECK(options.size_first >= 1 && options.size_first <= options.size_max);
  ORDO_CHECK(options.pause_min > std::chrono::nanoseconds(0));
  ORDO_CHECK(options.pause_min <= options.pause_max);
  ORDO_CHECK(options.pause_min <= options.refused_pause_max);
}

void PushWindow::succeed() {
  size_ = std::min(size_ + 1, options_.size_max);
  pause_ = {};
  paused_until_.reset();
}

void PushWindow::fail(std::uint64_t round, Failure failure, TimePoint now) {
  if (round != round_) return;
  ++round_;
  if (size_ > 1) {
    size_ /= 2;
    return;
  }
  const std::chrono::nanoseconds longest =
      failure == Failure::refused ? std::min(options_.refused_pause_max, options_.pause_max)
                                  : options_.pause_max;
  pause_ = std::clamp(pause_ * 2, options_.pause_min, longest);
  paused_until_ = now + pause_;
}

}  // namespace ordo::push_http
