// Part: a piece of a response on its way to its connection: a head, some of the body, the end, or
// all of them at once, which then leave in one write.
//
// Chunk: a slice of the body, behind the five bytes that gRPC puts before a message.
//
// Threads: plain values; one owner.
// Bounds:  what a conversation may have queued, see Limits::stream_output_bytes_max.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ordo/adapters/http2/header_list.h"
#include "ordo/adapters/http2/slice.h"

namespace ordo::http2 {

struct Chunk {
  static constexpr std::size_t kPrefixBytes = 5;
  // What a chunk costs beside its bytes: many empty messages are not free.
  static constexpr std::size_t kOwnBytes = 64;

  Slice slice{};
  std::array<char, kPrefixBytes> prefix{};
  std::uint8_t prefix_size = 0;

  std::size_t size() const { return prefix_size + slice.bytes.size(); }
  std::size_t queued_bytes() const { return size() + kOwnBytes; }
};

struct Part {
  static constexpr int kNoGrpc = -1;

  unsigned status = 0;   // Of HTTP; 0: this part has no head.
  bool is_grpc = false;  // The head has gRPC's own headers too.
  bool is_gzip = false;  // ... and says that messages are compressed.
  HeaderList headers{};  // Of the head.
  std::vector<Chunk> body{};
  bool is_end = false;
  int grpc_status = kNoGrpc;  // Of the trailers.
  HeaderList trailers{};

  std::size_t queued_bytes() const {
    std::size_t sum = 0;
    for (const Chunk& chunk : body)
      sum += chunk.queued_bytes();
    return sum;
  }
};

}  // namespace ordo::http2
