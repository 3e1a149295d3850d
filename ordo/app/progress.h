// Progress: one line at the bottom of a terminal that says how far the run is.
//
//   [############----------------]  42%  8410 done  12 failed  1650/s  ETA 7s
//
// Nothing is ever written when standard error is not a terminal.
//
// Threads: any thread may call any function; whoever writes to the terminal holds a pause().
// Cost:    draw() writes at most ten times a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "ordo/core/clock.h"

namespace ordo::app {

struct ProgressState {
  std::uint64_t done = 0;  // Failed ones included.
  std::uint64_t failed = 0;
  std::chrono::nanoseconds elapsed{0};
  std::optional<double> share;  // Of the work that is done, 0 to 1, when it is known.
};

// The line, at most `columns` wide.
std::string progress_line(const ProgressState& state, std::size_t columns);

class Progress {
 public:
  // Active when wanted and `fd` is a terminal.
  Progress(bool wanted, int fd, const Clock& clock);
  ~Progress() { hide(); }

  bool active() const { return active_; }
  void draw(const ProgressState& state);
  void hide();

  // Takes the line away and keeps it away as long as the result lives.
  [[nodiscard]] std::unique_lock<std::mutex> pause();

 private:
  void erase();  // REQUIRES: mutex_ is held.

  const bool active_;
  const int fd_;
  const Clock& clock_;
  std::mutex mutex_;  // Guards the rest.
  bool shown_ = false;
  TimePoint next_ = TimePoint::min();
};

}  // namespace ordo::app
