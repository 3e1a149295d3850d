// The words of the order protocol that both ends and both encodings share.
//
// docs/gateway-protocol.md describes the bytes; here are its numbers.
//
// Threads: constants and plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ordo/gateway/request.h"

namespace ordo::order_tcp {

// Chosen by the first byte of a connection: kWireVersion is binary, anything else is text.
enum class Encoding : std::uint8_t { text, binary };

inline constexpr std::uint8_t kWireVersion = 1;
inline constexpr std::size_t kRequestIdBytesMax = 64;
inline constexpr std::size_t kRequestBytesMax = std::size_t{64} * 1024;  // A line, or a body.
inline constexpr std::size_t kFrameHeaderBytes = 8;
inline constexpr std::size_t kCorrelationIdBytes = 8;
inline constexpr std::size_t kReplyFixedBytes = 32;  // Of the body of an ok or a rej.

enum class RequestType : std::uint8_t { task = 1, ping = 2, stats = 3, resume = 4 };
enum class ReplyType : std::uint8_t { ok = 129, rej = 130, pong = 131, stats = 132, resumed = 133 };

// What a client sent. The texts lie in the bytes it was read from.
struct Incoming {
  enum class Kind : std::uint8_t {
    task,
    ping,
    stats,
    resume,
    rejected,  // Not a request: answer `refusal`; the connection lives.
    broken,    // Nothing after it can be understood: answer `refusal`, then close.
  };

  Kind kind = Kind::task;
  gateway::Refusal refusal = gateway::Refusal::none;  // Of rejected and broken.
  std::string_view request_id{};                      // Empty: none that could be read.
  std::optional<std::int64_t> correlation_id{};       // Nothing: none that could be read.
  std::string_view words{};                           // The payload, or what is wrong.

  friend bool operator==(const Incoming&, const Incoming&) = default;
};

// A request that is answered with a refusal by the front itself.
struct Rejection {
  std::string_view request_id{};
  std::optional<std::int64_t> correlation_id{};
  std::int32_t partition = gateway::kNoPartition;
  gateway::Refusal refusal = gateway::Refusal::malformed;
  std::string_view detail{};
};

}  // namespace ordo::order_tcp
