// Listener: accepts connections on a port and hands them over.
//
//   Listener listener(loop.context(), [&](Descriptor socket) { welcome(std::move(socket)); });
//   if (Status listening = listener.listen("127.0.0.1", 0); !listening) return listening;
//   loop.call([&] { listener.start(); });
//   ...
//   loop.call([&] { listener.close(); });
//
// When the system has no descriptor or memory left, those who knock wait in the system's queue, and
// the listener tries again after kAcceptPause: to try at once would only burn the processor.
//
// Threads: listen() by the one that made it, before start(); start() and close() on the thread of
//          the context, which calls `welcome`; port() and accepts_failed() any thread.
// Bounds:  2 connections in a row, before the others are looked at again.
// Errors:  listen() says what is wrong with the address or the port.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "ordo/adapters/sockets/descriptor.h"
#include "ordo/core/counter.h"
#include "ordo/core/result.h"

namespace ordo::sockets {

class Listener {
 public:
  static constexpr auto kAcceptPause = std::chrono::milliseconds(50);

  // `welcome` gets sockets that do not block.
  Listener(boost::asio::io_context& context, std::function<void(Descriptor)> welcome);

  // `address` is numeric; port 0: any free one.
  Status listen(const std::string& address, std::uint16_t port);
  void start() { wait(); }
  void close();

  std::uint16_t port() const { return port_.load(); }
  std::uint64_t accepts_failed() const { return accepts_failed_.value(); }

 private:
  void wait();
  void accept_ready();
  void accept_later();

  const std::function<void(Descriptor)> welcome_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  std::atomic<std::uint16_t> port_{0};
  Counter accepts_failed_;
};

// No delay for small writes; send_buffer_bytes: the system's, 0: as it likes.
void set_options(const Descriptor& socket, std::size_t send_buffer_bytes);

// Says `words`, and closes; what the client has sent is read, lest the system reset the connection.
void turn_away(const Descriptor& socket, std::string_view words);

}  // namespace ordo::sockets
