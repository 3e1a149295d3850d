// ClientReply, decode_reply: what a gateway answered, from its bytes.
//
//   ClientReply reply;
//   std::string_view bytes = what_has_come();
//   switch (decode_reply(Encoding::text, bytes, reply)) { ... }    // takes it from bytes
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ordo/adapters/order_tcp/wire.h"

namespace ordo::order_tcp {

struct ClientReply {
  ReplyType type = ReplyType::ok;
  gateway::Refusal refusal = gateway::Refusal::none;
  std::string request_id{};         // Empty: the server could not read it.
  std::int64_t correlation_id = 0;  // 0 too when the server could not read it.
  std::int32_t partition = gateway::kNoPartition;
  std::string words{};  // Decision, detail, or JSON of STATS.
  std::int64_t began_ns = 0;
  std::int64_t ended_ns = 0;

  bool is_ok() const { return type == ReplyType::ok; }
  friend bool operator==(const ClientReply&, const ClientReply&) = default;
};

enum class Decoded : std::uint8_t { reply, incomplete, nonsense };

// Takes the first reply from `bytes`. incomplete and nonsense take nothing.
Decoded decode_reply(Encoding encoding, std::string_view& bytes, ClientReply& reply);

// The words of a refusal on the wire ("id-busy"), or nothing when it is none of them.
std::optional<gateway::Refusal> refusal_of(std::string_view name);

}  // namespace ordo::order_tcp
