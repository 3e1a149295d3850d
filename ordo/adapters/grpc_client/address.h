// Address: a host, by name or number, and a port.
//
//   Result<Address> at = Address::parse("--host", "localhost:8085");
//   if (!at) return at.error();       // --host: 'localhost:x' is no address; write HOST:PORT
//
// Threads: pure functions and a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/core/result.h"

namespace ordo::grpc_client {

struct Address {
  std::string host = "127.0.0.1";  // An IPv6 number without its brackets.
  std::uint16_t port = 8085;

  // HOST:PORT, :PORT or PORT (on 127.0.0.1), with or without http:// before it. `origin` begins
  // the error.
  static Result<Address> parse(std::string_view origin, std::string_view text);

  std::string text() const;  // 127.0.0.1:8085, [::1]:8085
};

}  // namespace ordo::grpc_client
