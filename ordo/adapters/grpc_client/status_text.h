// How a gRPC call ended, from the words of its last headers.
//
//   Status end = status_of("5", "caf%C3%A9 not found");     // not_found, "café not found"
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ordo/core/result.h"

namespace ordo::grpc_client {

// grpc-message with each %XX as the byte it stands for; what is no escape stays.
std::string percent_decoded(std::string_view text);

// grpc-status and grpc-message. A number that is no code is unknown.
Status status_of(std::string_view code, std::string_view message);

// A timeout as grpc-timeout has it: at most 8 digits and a unit, rounded up.
std::string timeout_text(std::int64_t nanoseconds);

// The five bytes before a message of this size.
std::string message_prefix(std::size_t size);
// The size in those bytes. REQUIRES: prefix.size() >= 5.
std::size_t prefixed_size(std::string_view prefix);

}  // namespace ordo::grpc_client
