// Server: HTTP/2 and HTTP/1.1 on one port: gRPC calls and plain requests.
//
//   Routes routes;
//   routes.unary("/echo.Echo/Say", [](const CallPtr& call, std::string_view request) {
//     call->reply(Slice::of(std::string(request)));
//   });
//   Server server({.port = 8085}, std::move(routes));
//   if (Status started = server.start(); !started) return started.error();
//   ...
//   server.drain(clock.now() + 10s);      // SIGTERM: GOAWAY, what runs is finished, then closed
//
// What it serves and refuses is in docs/http2.md. Each I/O thread serves all of its connections
// that are ready in one round: one read of each, their handlers, one write to each.
//
// Threads: owns io_threads threads "ordo-http-<n>", which call the handlers of the routes. stats()
//          and port() any thread; the others by the one that made it.
// Bounds:  see ServerOptions and Limits; what happens there is in docs/limits.md.
// Errors:  start() says what is wrong with the options, the address or the port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ordo/adapters/http2/limits.h"
#include "ordo/adapters/http2/routes.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo::http2 {

struct ServerOptions {
  std::string address = "127.0.0.1";  // Numeric, IPv4 or IPv6.
  std::uint16_t port = 0;             // 0: any free one, see Server::port().
  std::size_t io_threads = 1;         // 1 to 64.
  // Near it idle ones are closed, see IdleList; at it others are answered 503 and closed.
  std::size_t connections_max = 10'000;
  // Incomplete messages, and heads of HTTP/2's calls that are under way, of all connections.
  std::size_t input_bytes_max = std::size_t{256} << 20;
  // Answers that are not sent yet, of all connections. At it nobody may queue a second message, and
  // the connections that have taken nothing for the longest time are reset.
  std::size_t output_bytes_max = std::size_t{256} << 20;
  // What idle connections may take of memory; above it the first of them are closed.
  std::size_t idle_bytes_max = std::size_t{48} << 20;
  std::size_t send_buffer_bytes = 0;  // The system's, of each socket; 0: as the system likes.
  Limits limits{};                    // Of each connection.
};

// Since start(); of all I/O threads together.
struct ServerStats {
  std::uint64_t connections_now = 0;
  std::uint64_t connections_total = 0;    // Accepted and served.
  std::uint64_t connections_refused = 0;  // Above connections_max.
  std::uint64_t connections_shed = 0;     // Idle, closed to make room for others.
  std::uint64_t connections_cut_off = 0;  // Took nothing, and output_bytes_max was reached.
  std::uint64_t accepts_failed = 0;       // The system had no descriptor or memory; tried again.
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t calls = 0;             // gRPC, refused ones included.
  std::uint64_t requests = 0;          // Plain, refused ones included.
  std::uint64_t cancelled = 0;         // Of both: the client went, or its deadline passed.
  std::uint64_t malformed = 0;         // Not HTTP, or not gRPC.
  std::uint64_t calmed = 0;            // Connections closed because of a flood.
  std::uint64_t timed_out = 0;         // Connections closed: nothing came, or nothing was taken.
  std::uint64_t input_bytes_now = 0;   // Of incomplete messages, and of calls under way.
  std::uint64_t output_bytes_now = 0;  // Not sent yet.
};

class Server {
 public:
  Server(ServerOptions options, Routes routes);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // stop().

  // Listens and serves. REQUIRES: called once.
  Status start();
  // The port it listens on; 0 before start().
  std::uint16_t port() const;

  // From now on new calls and requests are served by these. REQUIRES: one thread at a time.
  void change_routes(Routes routes);

  // Accepts no more and tells all clients to go (GOAWAY); does not wait. Idempotent.
  void begin_drain();
  // begin_drain(), and finishes the calls and requests that run, until `deadline`; then stop().
  // Calls that would run for ever have to be finished by who serves them. Idempotent.
  void drain(TimePoint deadline);
  // Closes all connections, whose calls are cancelled, and ends the threads. Idempotent.
  void stop() { drain(TimePoint::min()); }

  ServerStats stats() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ordo::http2
