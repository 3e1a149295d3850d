// Server: a gateway on a TCP port, for clients that speak text or binary.
//
//   Server server({.port = 7070});
//   gateway::Gateway gateway(options, server);      // replies go to the server
//   if (Status started = server.start(gateway); !started) return started.error();
//   ...
//   server.stop_accepting_and_reading();            // SIGTERM: nothing new comes in
//   gateway.drain(5s);                              // what was admitted is answered
//   server.finish(clock.now() + 1s);                // the answers are sent, connections closed
//
// The protocol is described byte by byte in docs/gateway-protocol.md. Each I/O thread serves all of
// its connections that are ready in one round: one read of each, all requests to the port, one
// flush of the port, one write to each. A gateway that runs a partition inside that flush answers
// without any hand-over between threads.
//
// Threads: owns io_threads threads "ordo-io-<n>". reply() and flush() any thread; stats() any;
//          the others by the one that made it.
// Bounds:  see ServerOptions; what happens there is in docs/limits.md.
// Errors:  start() says what is wrong with the options, the address or the port.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ordo/core/clock.h"
#include "ordo/core/result.h"
#include "ordo/gateway/ports.h"

namespace ordo::order_tcp {

struct ServerOptions {
  std::string address = "127.0.0.1";     // Numeric, IPv4 or IPv6.
  std::uint16_t port = 7070;             // 0: any free one, see Server::port().
  std::size_t io_threads = 1;            // 1 to 64.
  bool strict_gaps = false;              // After a refusal, refuse its id until RESUME.
  std::size_t connections_max = 10'000;  // More are answered `REJ - - - busy` and closed.
  std::size_t request_bytes_max = std::size_t{64} * 1024;       // 64 to 64 KiB; longer: closed.
  std::size_t outstanding_max = 1'024;                          // Of a connection; then it waits.
  std::size_t output_pause_bytes = std::size_t{256} * 1024;     // Unsent; then reading stops.
  std::size_t output_bytes_max = std::size_t{4} * 1024 * 1024;  // Unsent; then disconnected.
  std::chrono::milliseconds unread_time_max{60'000};  // Output that waits and of which no byte is
                                                      // taken for so long; then disconnected.
  std::size_t gap_ids_max = 4'096;    // Ids with a gap, of a connection; then it is closed.
  std::size_t send_buffer_bytes = 0;  // The system's, of each socket; 0: as the system likes.
};

// Since start(); of all I/O threads together.
struct ServerStats {
  std::uint64_t connections_now = 0;
  std::uint64_t connections_total = 0;    // Accepted and served.
  std::uint64_t connections_refused = 0;  // Above connections_max.
  std::uint64_t accepts_failed = 0;       // The system had no descriptor or memory; tried again.
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t requests = 0;             // Well-formed tasks, refused ones included.
  std::uint64_t requests_refused = 0;     // busy, id-busy, gap, closing.
  std::uint64_t malformed = 0;            // Neither task nor command; too long ones included.
  std::uint64_t replies = 0;              // To admitted requests, given to a connection.
  std::uint64_t replies_dropped = 0;      // To admitted requests whose connection had gone.
  std::uint64_t disconnected_unread = 0;  // Did not read: output_bytes_max, unread_time_max.
};

class Server final : public gateway::ReplyPort {
 public:
  explicit Server(ServerOptions options);
  ~Server() override;  // finish() at once.

  // Listens and serves.
  // REQUIRES: called once; `port` outlives this, or finish() has been called.
  Status start(gateway::TaskPort& port);
  // The port it listens on; 0 before start().
  std::uint16_t port() const;

  // Returns when no connection is accepted and nothing is read any more. What was admitted is
  // still answered; what was sent and not admitted by then never is. Idempotent.
  void stop_accepting_and_reading();
  // Sends what is there to be sent, until `deadline`, closes all connections and ends the threads.
  // Replies that come later are dropped and counted. Idempotent.
  void finish(TimePoint deadline);

  ServerStats stats() const;

  void reply(gateway::Reply&& reply) noexcept override;
  void flush() noexcept override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ordo::order_tcp
