#include "ordo/adapters/order_tcp/server.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <latch>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "ordo/adapters/order_tcp/descriptor.h"
#include "ordo/adapters/order_tcp/front.h"

namespace ordo::order_tcp {
namespace {

using boost::asio::ip::tcp;

constexpr int kAcceptsMax = 64;  // In a row, before the connections are looked at again.
constexpr auto kAcceptPause = std::chrono::milliseconds(50);
constexpr std::string_view kTooMany = "REJ - - - busy too many connections\n";

Error out_of_range(std::string_view field, std::size_t given, std::string_view allowed) {
  std::string message(field);
  message.append(" is ").append(std::to_string(given)).append("; allowed is ").append(allowed);
  return {ErrorCode::invalid_argument, std::move(message)};
}

Status check(const ServerOptions& options) {
  if (options.io_threads < 1 || options.io_threads > 64)
    return out_of_range("io_threads", options.io_threads, "1 to 64");
  if (options.connections_max < 1)
    return out_of_range("connections_max", options.connections_max, "1 or more");
  if (options.request_bytes_max < 64 || options.request_bytes_max > kRequestBytesMax)
    return out_of_range("request_bytes_max", options.request_bytes_max, "64 to 65536");
  if (options.outstanding_max < 1)
    return out_of_range("outstanding_max", options.outstanding_max, "1 or more");
  if (options.output_pause_bytes < 1)
    return out_of_range("output_pause_bytes", options.output_pause_bytes, "1 or more");
  if (options.output_bytes_max < options.output_pause_bytes)
    return out_of_range("output_bytes_max", options.output_bytes_max, "output_pause_bytes or more");
  if (options.unread_time_max <= std::chrono::milliseconds::zero())
    return Error{ErrorCode::invalid_argument, "unread_time_max: must be above zero"};
  if (options.gap_ids_max < 1) return out_of_range("gap_ids_max", options.gap_ids_max, "1 or more");
  if (options.send_buffer_bytes > std::size_t{1} << 30)
    return out_of_range("send_buffer_bytes", options.send_buffer_bytes, "0 to 1073741824");
  return {};
}

ConnectionLimits limits_of(const ServerOptions& options) {
  return {.request_bytes_max = options.request_bytes_max,
          .outstanding_max = options.outstanding_max,
          .output_pause_bytes = options.output_pause_bytes,
          .output_bytes_max = options.output_bytes_max,
          .unread_time_max = options.unread_time_max,
          .gap_ids_max = options.gap_ids_max,
          .strict_gaps = options.strict_gaps};
}

// Says why, and closes; what the client has sent is read, lest the system reset the connection.
void refuse(const Descriptor& socket) {
  char ignored[4096];
  const ssize_t said = ::send(socket.get(), kTooMany.data(), kTooMany.size(), MSG_NOSIGNAL);
  if (said <= 0 || ::shutdown(socket.get(), SHUT_WR) != 0) return;
  for (int reads = 0; reads < 16; ++reads) {
    if (::recv(socket.get(), ignored, sizeof(ignored), 0) <= 0) return;
  }
}

}  // namespace

struct Server::Parts {
  explicit Parts(ServerOptions given) : options(std::move(given)), limits(limits_of(options)) {}

  Status listen();
  void wait_for_connections();
  void accept_ready();
  void pause_accepting();
  void welcome(Descriptor socket);

  const ServerOptions options;
  const ConnectionLimits limits;
  std::atomic<std::size_t> connections_now{0};
  std::atomic<std::uint16_t> port{0};
  SharedCounter refused;
  SharedCounter accepts_failed;
  SharedCounter dropped_early;                 // Replies that came before start().
  std::vector<std::unique_ptr<Front>> fronts;  // Not changed after start().
  std::size_t next_front = 0;
  // On the thread of the first front.
  std::unique_ptr<tcp::acceptor> acceptor;
  std::unique_ptr<boost::asio::steady_timer> pause;
  bool is_started = false;
  bool is_stopped = false;
  bool is_finished = false;
};

Status Server::Parts::listen() {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(options.address, error);
  if (error) {
    return Error{ErrorCode::invalid_argument,
                 "'" + options.address + "' is not a numeric IPv4 or IPv6 address"};
  }
  const tcp::endpoint endpoint(address, options.port);
  boost::asio::io_context& context = fronts.front()->context();
  acceptor = std::make_unique<tcp::acceptor>(context);
  pause = std::make_unique<boost::asio::steady_timer>(context);
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(tcp::acceptor::max_listen_connections, error);
  if (!error) acceptor->non_blocking(true, error);
  if (error) {
    return Error{ErrorCode::unavailable, "cannot listen on " + options.address + " port " +
                                             std::to_string(options.port) + ": " + error.message()};
  }
  port.store(acceptor->local_endpoint().port());
  return {};
}

void Server::Parts::wait_for_connections() {
  acceptor->async_wait(tcp::acceptor::wait_read, [this](const boost::system::error_code& error) {
    if (!error && acceptor->is_open()) accept_ready();
  });
}

void Server::Parts::accept_ready() {
  for (int accepts = 0; accepts < kAcceptsMax; ++accepts) {
    Descriptor socket(
        ::accept4(acceptor->native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      welcome(std::move(socket));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    const bool is_exhausted =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (is_exhausted) {
      accepts_failed.add();
      pause_accepting();
      return;
    }
  }
  wait_for_connections();
}

// Those who wait stay in the system's queue; to try again at once would only burn the processor.
void Server::Parts::pause_accepting() {
  pause->expires_after(kAcceptPause);
  pause->async_wait([this](const boost::system::error_code& error) {
    if (!error && acceptor->is_open()) accept_ready();
  });
}

void Server::Parts::welcome(Descriptor socket) {
  if (connections_now.load(std::memory_order_relaxed) >= options.connections_max) {
    refused.add();
    refuse(socket);
    return;
  }
  connections_now.fetch_add(1, std::memory_order_relaxed);
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (options.send_buffer_bytes != 0) {
    const int size = static_cast<int>(options.send_buffer_bytes);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
  }
  Front& front = *fronts[next_front];
  next_front = (next_front + 1) % fronts.size();
  if (&front == fronts.front().get()) {
    front.adopt(std::move(socket));
  } else {
    boost::asio::post(front.context(), [&front, taken = std::move(socket)]() mutable {
      front.adopt(std::move(taken));
    });
  }
}

Server::Server(ServerOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {
  for (std::size_t i = 0; i < parts_->options.io_threads && i < 64; ++i) {
    parts_->fronts.push_back(std::make_unique<Front>(static_cast<std::uint32_t>(i), parts_->limits,
                                                     parts_->connections_now));
  }
}

// NOLINTNEXTLINE(bugprone-exception-escape): without memory to end a thread, the process ends.
Server::~Server() {
  finish(TimePoint::min());
}

Status Server::start(gateway::TaskPort& port) {
  ORDO_CHECK(!parts_->is_started);
  if (Status good = check(parts_->options); !good) return good;
  if (Status listening = parts_->listen(); !listening) return listening;
  for (const auto& front : parts_->fronts) {
    if (Status started = front->start(port); !started) {
      for (const auto& each : parts_->fronts)
        each->end();
      return started;
    }
  }
  parts_->is_started = true;
  boost::asio::post(parts_->fronts.front()->context(), [this] { parts_->wait_for_connections(); });
  return {};
}

std::uint16_t Server::port() const {
  return parts_->port.load();
}

void Server::stop_accepting_and_reading() {
  if (!parts_->is_started || parts_->is_stopped) return;
  parts_->is_stopped = true;
  std::latch closed(1);
  boost::asio::post(parts_->fronts.front()->context(), [&] {
    boost::system::error_code ignored;
    parts_->acceptor->close(ignored);
    parts_->pause->cancel();
    closed.count_down();
  });
  closed.wait();
  for (const auto& front : parts_->fronts)
    front->stop_reading();
}

void Server::finish(TimePoint deadline) {
  if (!parts_->is_started || parts_->is_finished) return;
  stop_accepting_and_reading();
  parts_->is_finished = true;
  for (const auto& front : parts_->fronts)
    front->begin_finish();
  for (const auto& front : parts_->fronts)
    front->wait_until_empty(deadline);
  for (const auto& front : parts_->fronts)
    front->end();
}

ServerStats Server::stats() const {
  ServerStats stats;
  stats.connections_now = parts_->connections_now.load(std::memory_order_relaxed);
  stats.connections_refused = parts_->refused.value();
  stats.accepts_failed = parts_->accepts_failed.value();
  stats.replies_dropped = parts_->dropped_early.value();
  for (const auto& front : parts_->fronts) {
    const FrontCounters& counters = front->counters();
    stats.connections_total += counters.connections.value();
    stats.bytes_received += counters.bytes_received.value();
    stats.bytes_sent += counters.bytes_sent.value();
    stats.requests += counters.of_connections.requests.value();
    stats.requests_refused += counters.of_connections.refused.value();
    stats.malformed += counters.of_connections.malformed.value();
    stats.replies += counters.replies.value();
    stats.replies_dropped += counters.replies_dropped.value() + front->dropped_late();
    stats.disconnected_unread += counters.disconnected_unread.value();
  }
  return stats;
}

void Server::reply(gateway::Reply&& reply) noexcept {
  if (reply.to.front < parts_->fronts.size()) {
    parts_->fronts[reply.to.front]->take(std::move(reply));
  } else {
    parts_->dropped_early.add();
  }
}

void Server::flush() noexcept {
  for (const auto& front : parts_->fronts)
    front->announce();
}

}  // namespace ordo::order_tcp
