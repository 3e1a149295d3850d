#include "ordo/core/log.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <unistd.h>
#include <utility>

#include "ordo/core/check.h"
#include "ordo/core/utf8.h"

namespace ordo {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): of the whole process.
std::atomic<LogFormat> log_format{LogFormat::text};

void append_escaped(std::string& out, unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  switch (byte) {
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
  }
}

// A control character of ASCII, or the first byte of one of U+0080..U+009F written as UTF-8.
bool is_control(std::string_view text, std::size_t place) {
  const auto byte = static_cast<unsigned char>(text[place]);
  if (byte < 0x20 || byte == 0x7f) return true;
  if (byte != 0xc2 || place + 1 == text.size()) return false;
  const auto next = static_cast<unsigned char>(text[place + 1]);
  return next >= 0x80 && next < 0xa0;
}

}  // namespace

std::string printable(std::string_view text, std::size_t bytes_max) {
  const std::string_view shown = text.substr(0, bytes_max);
  std::string out;
  out.reserve(shown.size());
  for (std::size_t place = 0; place < shown.size(); ++place) {
    if (is_control(shown, place)) {
      append_escaped(out, static_cast<unsigned char>(shown[place]));
      if (shown[place] == '\xc2') append_escaped(out, static_cast<unsigned char>(shown[++place]));
    } else {
      out += shown[place];
    }
  }
  if (shown.size() < text.size()) {
    out += "... (" + std::to_string(text.size() - shown.size()) + " bytes more)";
  }
  return out;
}

void set_log_format(LogFormat format) {
  log_format.store(format, std::memory_order_relaxed);
}

std::string json_log_line(std::string_view text, WallTime time) {
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch();
  const auto seconds = static_cast<std::time_t>(milliseconds.count() / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char digits[32];
  const std::size_t size = std::strftime(digits, sizeof(digits), "%Y-%m-%dT%H:%M:%S", &parts);
  char fraction[8];
  std::snprintf(fraction, sizeof(fraction), ".%03dZ",
                static_cast<int>(milliseconds.count() % 1000));
  std::string line = "{\"time\":\"";
  line.append(digits, size).append(fraction).append("\",\"message\":\"");
  const std::string shown = printable(text);
  const bool is_text = is_utf8(shown);  // Otherwise its bytes are shown, as control characters are.
  for (const char character : shown) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') line += '\\';
    if (is_text || byte < 0x80) {
      line += character;
    } else {
      line += '\\';
      append_escaped(line, byte);
    }
  }
  return line.append("\"}");
}

void log_line(std::string_view text) {
  const bool is_json = log_format.load(std::memory_order_relaxed) == LogFormat::json;
  const std::string line =
      (is_json ? json_log_line(text, system_clock().wall_now()) : printable(text)) + '\n';
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // There is nowhere left to complain.
    left.remove_prefix(static_cast<std::size_t>(written));
  }
}

RateLimit::RateLimit(const Clock& clock, std::chrono::nanoseconds interval)
    : clock_(clock),
      interval_(interval) {
  ORDO_CHECK(interval >= std::chrono::nanoseconds::zero());
}

std::optional<std::uint64_t> RateLimit::allow() {
  const TimePoint now = clock_.now();
  std::lock_guard guard(mutex_);
  if (last_ && now - *last_ < interval_) {
    ++suppressed_count_;
    return std::nullopt;
  }
  last_ = now;
  return std::exchange(suppressed_count_, 0);
}

std::uint64_t RateLimit::suppressed_count() const {
  std::lock_guard guard(mutex_);
  return suppressed_count_;
}

}  // namespace ordo
