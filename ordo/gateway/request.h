// Request, Reply, Refusal: what a client asks and is told, in the gateway's words.
//
// A front (ordo/adapters/order_tcp) turns bytes into a Request and a Reply into bytes; in between
// nobody knows about sockets.
//
//   Request request{ReplyAddress{.front = 0, .connection = 7}, "r-1", 42, "NEW ACME BUY 10 99.5"};
//
// Threads: plain values; one owner.
#pragma once

#include <cstdint>
#include <string_view>

#include "ordo/core/inline_text.h"

namespace ordo::gateway {

// Why something was not done. The names are those of the wire.
enum class Refusal : std::uint8_t {
  none = 0,
  busy = 1,       // The partition's budget is used up.
  id_busy = 2,    // The limit of this correlation id is used up.
  gap = 3,        // An earlier task of the id was refused on this connection (strict gaps).
  malformed = 4,  // Not a request.
  too_long = 5,   // Longer than a request may be.
  error = 6,      // Admitted, and its handler failed.
  closing = 7,    // The gateway is shutting down.
};

// "busy", "id-busy", "gap", "malformed", "too-long", "error", "closing"; "none" for none.
std::string_view name_of(Refusal refusal);

// Names one connection for ever: numbers are not used again, so that the reply to a client that
// has gone never reaches the one that got its descriptor.
struct ReplyAddress {
  std::uint32_t front = 0;       // Which I/O thread it belongs to.
  std::uint64_t connection = 0;  // Which connection of that thread.

  friend bool operator==(const ReplyAddress&, const ReplyAddress&) = default;
};

using RequestId = InlineText<28>;  // The client's own token, 1 to 64 visible characters.
using Words = InlineText<44>;      // A payload, a decision or a detail.

struct Request {
  ReplyAddress from;
  RequestId id;
  std::int64_t correlation_id = 0;  // Above zero: correlated, in order. Else: uncorrelated.
  Words payload;
};

inline constexpr std::int32_t kNoPartition = -1;

struct Reply {
  ReplyAddress to;
  RequestId id;
  std::int64_t correlation_id = 0;
  std::int32_t partition = kNoPartition;
  Refusal refusal = Refusal::none;  // none: OK, and `words` is the decision; else the detail.
  Words words;
  std::int64_t began_ns = 0;  // Of processing, on the monotonic clock; 0 when it never began.
  std::int64_t ended_ns = 0;
};

}  // namespace ordo::gateway
