#include "ordo/adapters/http2/frame_meter.h"

#include <algorithm>

namespace ordo::http2 {
namespace {

// RFC 9113, section 6.
constexpr std::uint8_t kData = 0;
constexpr std::uint8_t kHeaders = 1;
constexpr std::uint8_t kResetStream = 3;
constexpr std::uint8_t kWindowUpdate = 8;
constexpr std::uint8_t kContinuation = 9;
constexpr std::uint8_t kEndStream = 0x1;
constexpr std::uint8_t kEndHeaders = 0x4;

std::uint8_t byte_of(char character) {
  return static_cast<std::uint8_t>(character);
}

}  // namespace

FrameMeter::FrameMeter(const Limits& limits)
    : limits_(limits),
      resets_(limits.resets_burst, limits.resets_per_second),
      controls_(limits.controls_burst, limits.controls_per_second) {}

const char* FrameMeter::look(std::string_view bytes, TimePoint now) {
  while (!bytes.empty()) {
    if (payload_left_ > 0) {
      const std::size_t skipped = std::min(payload_left_, bytes.size());
      payload_left_ -= skipped;
      bytes.remove_prefix(skipped);
      continue;
    }
    const std::size_t taken = std::min(kFrameHeaderBytes - header_size_, bytes.size());
    std::copy_n(bytes.begin(), taken, header_.begin() + static_cast<std::ptrdiff_t>(header_size_));
    header_size_ += taken;
    bytes.remove_prefix(taken);
    if (header_size_ < kFrameHeaderBytes) return nullptr;
    header_size_ = 0;
    if (const char* reason = begin_frame(now)) return reason;
  }
  return nullptr;
}

const char* FrameMeter::begin_frame(TimePoint now) {
  has_frame_ = true;
  const std::size_t length = std::size_t{byte_of(header_[0])} << 16 |
                             std::size_t{byte_of(header_[1])} << 8 | byte_of(header_[2]);
  const std::uint8_t type = byte_of(header_[3]);
  const std::uint8_t flags = byte_of(header_[4]);
  payload_left_ = length;
  switch (type) {
    case kHeaders:
    case kContinuation:
      return count_block(type, flags, length);
    case kResetStream:
      return note_reset(now);
    case kWindowUpdate:
      return count_window_update(now);
    case kData:
      if (length > 0 && window_updates_paid_ < kGrantedMax) ++window_updates_paid_;
      return length == 0 && (flags & kEndStream) == 0 ? count_control(now) : nullptr;
    default:
      return count_control(now);
  }
}

const char* FrameMeter::count_block(std::uint8_t type, std::uint8_t flags, std::size_t length) {
  if (type == kHeaders) {
    block_bytes_ = 0;
    continuations_ = 0;
  } else if (++continuations_ > limits_.continuations_max) {
    return "too many CONTINUATION frames";
  }
  block_bytes_ += length;
  is_in_block_ = (flags & kEndHeaders) == 0;
  // What is too long, but not by far, is answered with a status that says so.
  if (block_bytes_ > 2 * limits_.header_bytes_max) return "a header block is too long";
  return nullptr;
}

const char* FrameMeter::note_reset(TimePoint now) {
  ++noise_;
  return resets_.take(now) ? nullptr : "too many streams were reset";
}

const char* FrameMeter::count_window_update(TimePoint now) {
  if (window_updates_paid_ == 0) return count_control(now);
  --window_updates_paid_;
  return nullptr;
}

const char* FrameMeter::count_control(TimePoint now) {
  if (granted_ > 0) {
    --granted_;
    return nullptr;
  }
  ++noise_;
  return controls_.take(now) ? nullptr : "too many control frames";
}

}  // namespace ordo::http2
