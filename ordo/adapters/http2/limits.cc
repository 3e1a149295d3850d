#include "ordo/adapters/http2/limits.h"

#include <string>
#include <string_view>

namespace ordo::http2 {
namespace {

struct Range {
  std::string_view field;
  std::uint64_t given;
  std::uint64_t low;
  std::uint64_t high;
};

constexpr std::uint64_t kWindowMax = (std::uint64_t{1} << 31) - 1;
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 40;
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 31;
constexpr std::uint64_t kDayInMilliseconds = 86'400'000;

std::uint64_t count_of(std::chrono::milliseconds time) {
  return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

}  // namespace

Status check(const Limits& limits) {
  const Range ranges[] = {
      {"header_bytes_max", limits.header_bytes_max, 1'024, std::uint64_t{1} << 20},
      {"continuations_max", limits.continuations_max, 1, 1'024},
      {"message_bytes_max", limits.message_bytes_max, 1, kWindowMax},
      {"streams_max", limits.streams_max, 1, 100'000},
      {"stream_window_bytes", limits.stream_window_bytes, 1'024, kWindowMax},
      {"connection_window_bytes", limits.connection_window_bytes, 65'535, kWindowMax},
      {"stream_output_bytes_max", limits.stream_output_bytes_max, 1, kBytesMax},
      {"output_bytes_max", limits.output_bytes_max, 1, kBytesMax},
      {"output_pause_bytes", limits.output_pause_bytes, 1, kBytesMax},
      {"input_bytes_max", limits.input_bytes_max, 65'536, kBytesMax},
      {"resets_burst", limits.resets_burst, 1, kCountMax},
      {"resets_per_second", limits.resets_per_second, 1, kCountMax},
      {"controls_burst", limits.controls_burst, 16, kCountMax},
      {"controls_per_second", limits.controls_per_second, 1, kCountMax},
      {"handshake_timeout", count_of(limits.handshake_timeout), 1, kDayInMilliseconds},
      {"request_timeout", count_of(limits.request_timeout), 1, kDayInMilliseconds},
      {"idle_timeout", count_of(limits.idle_timeout), 1, kDayInMilliseconds},
      {"write_timeout", count_of(limits.write_timeout), 1, kDayInMilliseconds},
      {"keepalive_interval", count_of(limits.keepalive_interval), 1, kDayInMilliseconds},
      {"keepalive_timeout", count_of(limits.keepalive_timeout), 1, kDayInMilliseconds},
  };
  for (const Range& range : ranges) {
    if (range.given >= range.low && range.given <= range.high) continue;
    std::string message(range.field);
    message.append(" is ").append(std::to_string(range.given)).append("; allowed is ");
    message.append(std::to_string(range.low)).append(" to ").append(std::to_string(range.high));
    return Error{ErrorCode::invalid_argument, std::move(message)};
  }
  return {};
}

}  // namespace ordo::http2
