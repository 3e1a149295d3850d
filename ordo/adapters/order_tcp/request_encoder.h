// Requests as bytes, in either encoding: the client's side of request_decoder.h.
//
//   append_task(bytes, Encoding::text, {"r-1", 42, "NEW ACME BUY 10 99.5"});
//
// Nothing is checked: a client may send what it likes, and the server says what is wrong with it.
// What does not fit the numbers of a frame is cut.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/adapters/order_tcp/wire.h"

namespace ordo::order_tcp {

struct TaskFields {
  std::string_view request_id{};
  std::int64_t correlation_id = 0;
  std::string_view payload{};
};

void append_task(std::string& bytes, Encoding encoding, const TaskFields& task);
// ping, stats or resume; the correlation id is that of resume.
void append_command(std::string& bytes, Encoding encoding, RequestType type,
                    std::int64_t correlation_id = 0);

}  // namespace ordo::order_tcp
