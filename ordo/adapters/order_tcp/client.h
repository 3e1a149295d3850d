// Client: one connection to a gateway, for programs, tests and benchmarks.
//
//   Result<Client> client = Client::connect({.port = 7070, .encoding = Encoding::binary});
//   client->send("r-1", 42, "NEW ACME BUY 10 99.5");      // as many as you like: pipelined
//   client->send("r-2", 42, "STATUS");
//   Result<ClientReply> reply = client->receive();          // sends what waits, then waits itself
//
// send() gathers; flush() or receive() puts it on the wire. Replies of one correlation id come in
// the order of their requests, others in any order: match them by request id.
//
// Threads: one owner.
// Bounds:  keeps what was not flushed, and one read of 64 KiB; a reply of up to 16 MiB.
// Errors:  unavailable: the connection has ended or cannot be made; deadline_exceeded: no reply
//          in time; data_loss: the server sent what is no reply.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ordo/adapters/order_tcp/reply_decoder.h"
#include "ordo/adapters/order_tcp/wire.h"
#include "ordo/adapters/sockets/descriptor.h"
#include "ordo/core/result.h"

namespace ordo::order_tcp {

struct ClientOptions {
  std::string host = "127.0.0.1";  // A name or an address.
  std::uint16_t port = 7070;
  Encoding encoding = Encoding::text;
  std::chrono::milliseconds timeout{0};  // Of receive() and flush(); 0: none.
  std::size_t receive_buffer_bytes = 0;  // The system's; 0: as the system likes.
};

class Client {
 public:
  static Result<Client> connect(const ClientOptions& options);

  // Add a request to what is to be sent.
  void send(std::string_view request_id, std::int64_t correlation_id, std::string_view payload);
  void send_ping();
  void send_stats();
  void send_resume(std::int64_t correlation_id);
  // Any bytes, right or wrong.
  void send_bytes(std::string_view bytes) { unsent_.append(bytes); }

  // Sends what has gathered.
  Status flush();
  // flush(), then no more will be sent (the server answers what it has).
  Status end_sending();

  // flush(), then the next reply. When the server has closed: first all that it had sent.
  Result<ClientReply> receive();
  // The next reply if it has come already, without waiting or reading.
  std::optional<ClientReply> received();

  int descriptor() const { return socket_.get(); }

 private:
  Client(sockets::Descriptor socket, Encoding encoding);
  Status read_more();

  sockets::Descriptor socket_;
  Encoding encoding_;
  std::string unsent_;
  std::string bytes_;  // Read, and decoded up to decoded_.
  std::size_t decoded_ = 0;
};

}  // namespace ordo::order_tcp
