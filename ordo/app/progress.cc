#include "ordo/app/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

#include <sys/ioctl.h>

#include "ordo/app/write_all.h"

namespace ordo::app {
namespace {

constexpr std::chrono::nanoseconds kInterval = std::chrono::milliseconds(100);
constexpr std::size_t kBarColumns = 28;

std::string short_time(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(std::min(seconds, 1e9)));
  if (whole < 60) return std::to_string(whole) + "s";
  if (whole < 3600) return std::to_string(whole / 60) + "m" + std::to_string(whole % 60) + "s";
  return std::to_string(whole / 3600) + "h" + std::to_string(whole / 60 % 60) + "m";
}

std::string bar(double share) {
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarColumns));
  char percent[16];
  std::snprintf(percent, sizeof percent, "] %3d%%  ", static_cast<int>(share * 100));
  std::string text(1, '[');
  text.append(filled, '#').append(kBarColumns - filled, '-');
  return text.append(percent);
}

std::size_t columns_of(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_line(const ProgressState& state, std::size_t columns) {
  const double seconds = std::chrono::duration<double>(state.elapsed).count();
  const double rate = seconds > 0 ? static_cast<double>(state.done) / seconds : 0;
  std::string line;
  if (state.share) line += bar(std::clamp(*state.share, 0.0, 1.0));
  line += std::to_string(state.done) + " done";
  if (state.failed > 0) line.append("  ").append(std::to_string(state.failed)).append(" failed");
  char text[48];
  std::snprintf(text, sizeof text, rate < 10 ? "  %.1f/s" : "  %.0f/s", rate);
  line += text;
  if (state.share && *state.share > 0 && state.done > 0) {
    line += "  ETA " + short_time(seconds / *state.share * (1 - std::min(*state.share, 1.0)));
  } else {
    line.append("  ").append(short_time(seconds));
  }
  return line.substr(0, columns);
}

Progress::Progress(bool wanted, int fd, const Clock& clock)
    : active_(wanted && ::isatty(fd) == 1),
      fd_(fd),
      clock_(clock) {}

void Progress::draw(const ProgressState& state) {
  if (!active_) return;
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.now();
  if (now < next_) return;
  next_ = now + kInterval;
  shown_ = true;
  write_all(fd_, "\r\033[K" + progress_line(state, columns_of(fd_) - 1));
}

void Progress::erase() {
  if (shown_) write_all(fd_, "\r\033[K");
  shown_ = false;
  next_ = TimePoint::min();
}

void Progress::hide() {
  const std::lock_guard lock(mutex_);
  erase();
}

std::unique_lock<std::mutex> Progress::pause() {
  std::unique_lock lock(mutex_);
  erase();
  return lock;
}

}  // namespace ordo::app
