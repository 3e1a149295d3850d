// log_line: one line to standard error. RateLimit: not more of them than a person can read.
//
//   RateLimit limit(clock, 1s);
//   ...
//   if (auto suppressed = limit.allow()) {
//     log_line("handler failed: " + reason + " (" + std::to_string(*suppressed) + " more)");
//   }
//
// A service says set_log_format(LogFormat::json) at its start, and each line is a JSON object:
//
//   {"time":"2026-11-15T20:50:25.120Z","message":"ordo: stopping"}
//
// Threads: any thread may call anything here; lines do not mix.
// Bounds:  a line is cut after kLogLineBytesMax bytes, and says so.
// Cost:    one write call per line; allow() is a short lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "ordo/core/clock.h"

namespace ordo {

inline constexpr std::size_t kLogLineBytesMax = 4000;  // Pipes keep writes up to 4096 whole.

// Writes `text` and a newline to standard error. What a terminal would act on is escaped, so that
// text from users and peers cannot forge a line or move the cursor.
void log_line(std::string_view text);

enum class LogFormat : std::uint8_t { text, json };

// Of all lines of this process from now on.
void set_log_format(LogFormat format);

// `text` as a line of that form at that time, without its newline.
std::string json_log_line(std::string_view text, WallTime time);

// `text` with control characters as \n, \t, \r or \xNN, and cut after `bytes_max` bytes of the
// original with a note of how many were left out.
std::string printable(std::string_view text, std::size_t bytes_max = kLogLineBytesMax);

// Lets one event pass per interval and counts those it holds back.
class RateLimit {
 public:
  // REQUIRES: interval >= 0, and `clock` outlives this.
  RateLimit(const Clock& clock, std::chrono::nanoseconds interval);

  // How many were held back since the last one that passed, if this one may pass; nothing if
  // this one is held back. The first one passes.
  std::optional<std::uint64_t> allow();

  // How many were held back since the last one that passed.
  std::uint64_t suppressed_count() const;

 private:
  const Clock& clock_;
  const std::chrono::nanoseconds interval_;
  mutable std::mutex mutex_;
  std::optional<TimePoint> last_;  // When one passed. Guarded by mutex_, as is the count.
  std::uint64_t suppressed_count_ = 0;
};

}  // namespace ordo
