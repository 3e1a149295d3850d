// The words of gRPC over HTTP/2 that are more than bytes: timeouts, escaped messages, base64.
//
//   parse_timeout("10S")                    // 10 s
//   percent_encoded("caf\xC3\xA9")          // "caf%C3%A9", for grpc-message
//   base64("\x01\x02")                      // "AQI", as binary metadata are sent
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ordo::http2 {

// The value of grpc-timeout: 1 to 8 digits and one of H M S m u n. Nothing when it is not that.
std::optional<std::chrono::nanoseconds> parse_timeout(std::string_view text);

// "application/grpc", alone or followed by `+format` or `;parameters`.
bool is_grpc_content_type(std::string_view text);
// Begins like one: the client means gRPC.
bool looks_like_grpc(std::string_view content_type);

// What grpc-message may not hold becomes %XX. What is then longer than bytes_max is cut behind a
// whole letter, and ends in dots. REQUIRES: bytes_max >= 3.
std::string percent_encoded(std::string_view text, std::size_t bytes_max = ~std::size_t{0});

// Without padding, as gRPC recommends; and back, with or without padding.
std::string base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);

}  // namespace ordo::http2
