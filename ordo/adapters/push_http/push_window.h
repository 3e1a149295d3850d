// PushWindow: how many pushes of a subscription may be under way, and when none may.
//
//   PushWindow window({.size_max = 1000});
//   const std::uint64_t round = window.round();       // a push begins
//   ...
//   ok ? window.succeed() : window.fail(round, PushWindow::Failure::unanswered, now);
//   if (const auto until = window.paused_until()) wake_at(*until);   // then window.resume()
//
// It starts small and grows by one with every success, so that it doubles while all goes well. The
// first failure of a round halves it and begins a new round: failures of pushes that began before
// say nothing new. A failure while only one may be under way is the endpoint's, not a message's:
// nothing is sent for pause_min, then one push is tried, and the pause doubles up to pause_max
// until one succeeds. An endpoint that answers is there, and may refuse this message only: then the
// pause ends at refused_pause_max, so that one message does not hold up the few others for long.
//
// Threads: one owner; pure, the time is handed in.
// Bounds:  size_max.
// Cost:    O(1).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "ordo/core/clock.h"

namespace ordo::push_http {

struct PushWindowOptions {
  std::uint32_t size_first = 4;  // Pushes under way at the beginning.
  std::uint32_t size_max = 1'000;
  std::chrono::nanoseconds pause_min = std::chrono::milliseconds(100);
  std::chrono::nanoseconds pause_max = std::chrono::seconds(60);
  std::chrono::nanoseconds refused_pause_max = std::chrono::seconds(1);
};

class PushWindow {
 public:
  enum class Failure : std::uint8_t { refused, unanswered };

  // REQUIRES: 1 <= size_first <= size_max, 0 < pause_min <= pause_max, refused_pause_max.
  explicit PushWindow(const PushWindowOptions& options);

  // So many may be under way; 0 during a pause.
  std::uint32_t size() const { return paused_until_ ? 0 : size_; }
  std::uint64_t round() const { return round_; }

  void succeed();
  // Of a push that began in `round`.
  void fail(std::uint64_t round, Failure failure, TimePoint now);

  std::optional<TimePoint> paused_until() const { return paused_until_; }
  // The pause is over. Its length is kept until something succeeds.
  void resume() { paused_until_.reset(); }
  // How long the last pause was; zero: something has succeeded since.
  std::chrono::nanoseconds pause() const { return pause_; }

 private:
  const PushWindowOptions options_;
  std::uint32_t size_;
  std::uint64_t round_ = 0;
  std::chrono::nanoseconds pause_{};
  std::optional<TimePoint> paused_until_;
};

}  // namespace ordo::push_http
