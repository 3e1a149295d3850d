// Replies as bytes, in either encoding.
//
//   append_reply(output, Encoding::text, reply);   // OK r-1 42 3 route:XNAS t0=17 t1=18
//
// Threads: pure but for the buffer, which has one owner.
// Cost:    about 60 ns in text, 15 ns in binary.
#pragma once

#include <cstdint>
#include <string_view>

#include "ordo/adapters/order_tcp/output_buffer.h"
#include "ordo/adapters/order_tcp/wire.h"
#include "ordo/gateway/request.h"

namespace ordo::order_tcp {

// OK, or REJ when it carries a refusal. In text, control characters of its words become spaces.
void append_reply(OutputBuffer& output, Encoding encoding, const gateway::Reply& reply);
void append_rejection(OutputBuffer& output, Encoding encoding, const Rejection& rejection);
void append_pong(OutputBuffer& output, Encoding encoding);
// json: one line.
void append_stats(OutputBuffer& output, Encoding encoding, std::string_view json);
void append_resumed(OutputBuffer& output, Encoding encoding, std::int64_t correlation_id);

}  // namespace ordo::order_tcp
