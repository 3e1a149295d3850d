// FrameMeter: looks at the frame headers of a client's HTTP/2 bytes, before anything else does, and
// says stop when there is too much of what costs us and not the client.
//
//   FrameMeter meter(limits);
//   if (const char* reason = meter.look(bytes, now)) close_with(ENHANCE_YOUR_CALM, reason);
//   meter.grant(2);                       // we sent DATA: two WINDOW_UPDATEs are only polite
//
// Some clients, gRPC's C++ library among them, send a WINDOW_UPDATE with every message they write:
// each DATA frame that holds something pays for one.
//
// The library below has limits of its own for some of these. Those differ between its versions;
// these hold for all, and before the library has spent a byte of memory.
//
// Threads: one owner.
// Bounds:  remembers 9 bytes of the stream.
// Cost:    a few comparisons per frame; the payload is skipped, not read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ordo/adapters/http2/limits.h"
#include "ordo/adapters/http2/token_bucket.h"
#include "ordo/core/clock.h"

namespace ordo::http2 {

class FrameMeter {
 public:
  explicit FrameMeter(const Limits& limits);

  // The bytes behind the preface, as they come. Says why to close, or nothing.
  const char* look(std::string_view bytes, TimePoint now);

  // A stream ended in a reset by our side that the client caused. As look().
  const char* note_reset(TimePoint now);

  // So many further control frames are paid for by what we sent.
  void grant(std::uint32_t count) {
    if (granted_ < kGrantedMax) granted_ += count;
  }

  // How many frames were counted: resets, and control frames that nothing paid for.
  std::uint64_t noise() const { return noise_; }
  // A header block has begun and has not ended.
  bool is_in_block() const { return is_in_block_; }
  // The client's first frame has come; everything else has to follow.
  bool has_frame() const { return has_frame_; }

 private:
  static constexpr std::size_t kFrameHeaderBytes = 9;
  static constexpr std::uint32_t kGrantedMax = 100'000;

  const char* begin_frame(TimePoint now);
  const char* count_block(std::uint8_t type, std::uint8_t flags, std::size_t length);
  const char* count_window_update(TimePoint now);
  const char* count_control(TimePoint now);

  const Limits& limits_;
  TokenBucket resets_;
  TokenBucket controls_;
  std::array<char, kFrameHeaderBytes> header_{};
  std::size_t header_size_ = 0;
  std::size_t payload_left_ = 0;
  std::size_t block_bytes_ = 0;
  std::size_t continuations_ = 0;
  std::uint64_t noise_ = 0;
  std::uint32_t granted_ = 0;
  std::uint32_t window_updates_paid_ = 0;
  bool is_in_block_ = false;
  bool has_frame_ = false;
};

}  // namespace ordo::http2
