// Slice: bytes that never change, and what keeps them alive. Sent without being copied.
//
//   Slice::of(std::move(text))                       // takes a string
//   Slice::constant("pong")                          // text that lives as long as the program
//   Slice{message, message->bytes()}                 // shares what is stored elsewhere
//
// Threads: a plain value; the bytes may be read by any thread at any time.
// Cost:    of(): one allocation beside the string's own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace ordo::http2 {

struct Slice {
  std::shared_ptr<const void> owner{};
  std::string_view bytes{};

  static Slice of(std::string text) {
    auto kept = std::make_shared<const std::string>(std::move(text));
    const std::string_view bytes = *kept;
    return {std::move(kept), bytes};
  }
  static Slice constant(std::string_view text) { return {nullptr, text}; }
};

}  // namespace ordo::http2
