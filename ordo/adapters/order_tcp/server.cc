#include "ordo/adapters/order_tcp/server.h"

#include <atomic>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>

#include "ordo/adapters/order_tcp/front.h"
#include "ordo/adapters/sockets/deal_out.h"
#include "ordo/adapters/sockets/descriptor.h"
#include "ordo/adapters/sockets/listener.h"

namespace ordo::order_tcp {
namespace {

using sockets::Descriptor;

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

}  // namespace

struct Server::Parts {
  explicit Parts(ServerOptions given) : options(std::move(given)), limits(limits_of(options)) {}

  void welcome(Descriptor socket);

  const ServerOptions options;
  const ConnectionLimits limits;
  std::atomic<std::size_t> connections_now{0};
  SharedCounter refused;
  SharedCounter dropped_early;                 // Replies that came before start().
  std::vector<std::unique_ptr<Front>> fronts;  // Not changed after start().
  std::size_t next_front = 0;
  std::unique_ptr<sockets::Listener> listener;  // On the thread of the first front.
  bool is_started = false;
  bool is_stopped = false;
  bool is_finished = false;
};

void Server::Parts::welcome(Descriptor socket) {
  if (connections_now.load(std::memory_order_relaxed) >= options.connections_max) {
    refused.add();
    sockets::turn_away(socket, kTooMany);
    return;
  }
  connections_now.fetch_add(1, std::memory_order_relaxed);
  sockets::set_options(socket, options.send_buffer_bytes);
  sockets::deal_out(fronts, next_front, std::move(socket));
}

Server::Server(ServerOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {
  for (std::size_t i = 0; i < parts_->options.io_threads && i < 64; ++i) {
    parts_->fronts.push_back(std::make_unique<Front>(static_cast<std::uint32_t>(i), parts_->limits,
                                                     parts_->connections_now));
  }
  if (parts_->fronts.empty()) return;
  parts_->listener = std::make_unique<sockets::Listener>(
      parts_->fronts.front()->context(),
      [parts = parts_.get()](Descriptor socket) { parts->welcome(std::move(socket)); });
}

// NOLINTNEXTLINE(bugprone-exception-escape): without memory to end a thread, the process ends.
Server::~Server() {
  finish(TimePoint::min());
}

Status Server::start(gateway::TaskPort& port) {
  ORDO_CHECK(!parts_->is_started);
  if (Status good = check(parts_->options); !good) return good;
  const ServerOptions& options = parts_->options;
  if (Status listening = parts_->listener->listen(options.address, options.port); !listening)
    return listening;
  for (const auto& front : parts_->fronts) {
    if (Status started = front->start(port); !started) {
      for (const auto& each : parts_->fronts)
        each->end();
      return started;
    }
  }
  parts_->is_started = true;
  boost::asio::post(parts_->fronts.front()->context(), [this] { parts_->listener->start(); });
  return {};
}

std::uint16_t Server::port() const {
  return parts_->listener ? parts_->listener->port() : std::uint16_t{0};
}

void Server::stop_accepting_and_reading() {
  if (!parts_->is_started || parts_->is_stopped) return;
  parts_->is_stopped = true;
  parts_->fronts.front()->call([this] { parts_->listener->close(); });
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
  if (parts_->listener) stats.accepts_failed = parts_->listener->accepts_failed();
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
