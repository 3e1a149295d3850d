// HostPort: an address to listen on or to connect to.
//
//   Result<HostPort> listen = parse_host_port("--listen", "127.0.0.1:7070");
//
// Threads: pure functions and a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/core/result.h"

namespace ordo::app {

struct HostPort {
  std::string host;  // A numeric address; an IPv6 one without its brackets.
  std::uint16_t port = 0;

  bool is_loopback() const;
  std::string text() const;  // 127.0.0.1:7070, [::1]:7070
};

// ADDRESS:PORT, :PORT or PORT (on 127.0.0.1); `localhost` is 127.0.0.1. `origin` begins the error.
Result<HostPort> parse_host_port(std::string_view origin, std::string_view text);

// Who listens on the port of this machine, as "redis-server (pid 812)"; "" when that cannot be
// seen, for example because it belongs to somebody else.
std::string listener_of(std::uint16_t port);

// Why `at` could not be listened on, who has it, and what to do: choose another with `flag`.
std::string cannot_listen(const Error& error, const HostPort& at, const char* flag);

}  // namespace ordo::app
