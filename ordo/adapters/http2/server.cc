#include "ordo/adapters/http2/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>

#include "ordo/adapters/http2/front.h"
#include "ordo/adapters/sockets/deal_out.h"
#include "ordo/adapters/sockets/descriptor.h"
#include "ordo/adapters/sockets/listener.h"
#include "ordo/core/check.h"
#include "ordo/core/counter.h"

namespace ordo::http2 {
namespace {

using sockets::Descriptor;

constexpr std::size_t kIoThreadsMax = 64;
constexpr std::size_t kBytesMin = std::size_t{1} << 20;
constexpr std::size_t kSpareShare = 64;  // Of the connections, one in so many is kept free.
constexpr auto kReliefPause = std::chrono::milliseconds(20);
constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 21\r\n\r\n"
    "too many connections\n";

Status check_options(const ServerOptions& options) {
  if (options.io_threads < 1 || options.io_threads > kIoThreadsMax) {
    return Error{ErrorCode::invalid_argument,
                 "io_threads is " + std::to_string(options.io_threads) + "; allowed is 1 to 64"};
  }
  if (options.connections_max < 1)
    return Error{ErrorCode::invalid_argument, "connections_max is 0; allowed is 1 or more"};
  if (options.input_bytes_max < kBytesMin)
    return Error{ErrorCode::invalid_argument, "input_bytes_max is below 1048576"};
  if (options.output_bytes_max < kBytesMin)
    return Error{ErrorCode::invalid_argument, "output_bytes_max is below 1048576"};
  if (options.idle_bytes_max < kBytesMin)
    return Error{ErrorCode::invalid_argument, "idle_bytes_max is below 1048576"};
  if (options.send_buffer_bytes > std::size_t{1} << 30)
    return Error{ErrorCode::invalid_argument, "send_buffer_bytes is above 1073741824"};
  return check(options.limits);
}

}  // namespace

struct Server::Parts {
  Parts(ServerOptions given, Routes given_routes)
      : options(std::move(given)),
        routes(std::move(given_routes)),
        budget(options.input_bytes_max),
        output(std::make_shared<OutputBudget>(options.output_bytes_max)) {}

  void welcome(Descriptor socket);
  void make_room();
  void relieve_output();
  void cut_off_slowest();
  void cut_off(Front& front, TimePoint limit);

  const ServerOptions options;
  RouteSwitch routes;
  InputBudget budget;
  const std::shared_ptr<OutputBudget> output;
  const std::function<void()> relieve = [this] { relieve_output(); };
  std::atomic<std::size_t> connections_now{0};
  SharedCounter refused;
  std::vector<std::unique_ptr<Front>> fronts;   // Not changed after start().
  std::unique_ptr<sockets::Listener> listener;  // On the thread of the first front.
  std::size_t next_front = 0;
  std::atomic<bool> is_relieving{false};
  std::atomic<std::size_t> fronts_left{0};  // Meanwhile: those that have not done their part.
  std::mutex waiting_mutex;
  std::vector<Front::Waiting> waiting;  // Meanwhile: who waits. Guarded by waiting_mutex.
  std::atomic<TimePoint> relief_paused_until{TimePoint::min()};
  bool is_started = false;
  bool is_draining = false;
  bool is_stopped = false;
};

void Server::Parts::make_room() {
  for (const auto& front : fronts)
    boost::asio::post(front->context(), [&front] { front->shed_idle(); });
}

// Any thread. First all fronts say who waits; then those of all that have waited longest are cut
// off, until enough would be free. To look at all costs time: when nobody waits, not at once again.
void Server::Parts::relieve_output() {
  if (system_clock().now() < relief_paused_until.load()) return;
  if (is_relieving.exchange(true)) return;
  fronts_left.store(fronts.size());
  for (const auto& front : fronts) {
    boost::asio::post(front->context(), [this, &front] {
      const std::vector<Front::Waiting> some = front->waiting();
      {
        const std::lock_guard lock(waiting_mutex);
        waiting.insert(waiting.end(), some.begin(), some.end());
      }
      if (fronts_left.fetch_sub(1) == 1) cut_off_slowest();
    });
  }
}

void Server::Parts::cut_off_slowest() {
  std::vector<Front::Waiting> all;
  {
    const std::lock_guard lock(waiting_mutex);
    std::swap(all, waiting);
  }
  std::sort(all.begin(), all.end(),
            [](const Front::Waiting& a, const Front::Waiting& b) { return a.sent_at < b.sent_at; });
  TimePoint limit = TimePoint::min();
  std::size_t excess = output->is_full() ? output->excess() : 0;
  for (std::size_t i = 0; i < all.size() && excess > 0; ++i) {
    limit = all[i].sent_at;
    excess -= std::min(excess, all[i].bytes);
  }
  if (limit == TimePoint::min()) {
    relief_paused_until.store(system_clock().now() + kReliefPause);
    is_relieving.store(false);
    return;
  }
  fronts_left.store(fronts.size());
  for (const auto& front : fronts)
    cut_off(*front, limit);
}

// Some, and after what else the front has to do the others.
void Server::Parts::cut_off(Front& front, TimePoint limit) {
  boost::asio::post(front.context(), [this, &front, limit] {
    if (front.cut_off(limit)) return cut_off(front, limit);
    if (fronts_left.fetch_sub(1) > 1) return;
    is_relieving.store(false);
    if (output->is_full()) relieve_output();
  });
}

void Server::Parts::welcome(Descriptor socket) {
  const std::size_t near = options.connections_max - options.connections_max / kSpareShare;
  if (connections_now.load(std::memory_order_relaxed) >= near) make_room();
  if (connections_now.load(std::memory_order_relaxed) >= options.connections_max) {
    refused.add();
    sockets::turn_away(socket, kTooMany);
    return;
  }
  connections_now.fetch_add(1, std::memory_order_relaxed);
  sockets::set_options(socket, options.send_buffer_bytes);
  sockets::deal_out(fronts, next_front, std::move(socket));
}

Server::Server(ServerOptions options, Routes routes)
    : parts_(std::make_unique<Parts>(std::move(options), std::move(routes))) {}

// NOLINTNEXTLINE(bugprone-exception-escape): without memory to end a thread, the process ends.
Server::~Server() {
  stop();
}

Status Server::start() {
  Parts& parts = *parts_;
  ORDO_CHECK(!parts.is_started);
  if (Status good = check_options(parts.options); !good) return good;
  for (std::size_t i = 0; i < parts.options.io_threads; ++i) {
    parts.fronts.push_back(std::make_unique<Front>(
        i, ServerParts{parts.options.limits, parts.routes, parts.budget, parts.connections_now,
                       parts.output, parts.options.idle_bytes_max / parts.options.io_threads,
                       parts.relieve}));
  }
  Front& first = *parts.fronts.front();
  parts.listener = std::make_unique<sockets::Listener>(
      first.context(), [&parts](Descriptor socket) { parts.welcome(std::move(socket)); });
  if (Status listening = parts.listener->listen(parts.options.address, parts.options.port);
      !listening) {
    return listening;
  }
  for (const auto& front : parts.fronts) {
    if (Status started = front->start(); !started) return started;
  }
  parts.is_started = true;
  first.call([&parts] { parts.listener->start(); });
  return {};
}

std::uint16_t Server::port() const {
  return parts_->listener ? parts_->listener->port() : std::uint16_t{0};
}

void Server::change_routes(Routes routes) {
  parts_->routes.change(std::move(routes));
}

void Server::begin_drain() {
  Parts& parts = *parts_;
  if (!parts.is_started || std::exchange(parts.is_draining, true)) return;
  parts.fronts.front()->call([&parts] { parts.listener->close(); });
  for (const auto& front : parts.fronts)
    front->begin_drain();
}

void Server::drain(TimePoint deadline) {
  Parts& parts = *parts_;
  if (!parts.is_started || std::exchange(parts.is_stopped, true)) return;
  if (deadline == TimePoint::min()) {
    parts.is_draining = true;
    parts.fronts.front()->call([&parts] { parts.listener->close(); });
  } else {
    begin_drain();
    for (const auto& front : parts.fronts)
      front->wait_until_empty(deadline);
  }
  for (const auto& front : parts.fronts)
    front->end();
}

ServerStats Server::stats() const {
  ServerStats stats;
  if (!parts_->is_started) return stats;
  stats.connections_now = parts_->connections_now.load(std::memory_order_relaxed);
  stats.connections_refused = parts_->refused.value();
  stats.accepts_failed = parts_->listener->accepts_failed();
  stats.input_bytes_now = parts_->budget.used();
  stats.output_bytes_now = parts_->output->used();
  for (const auto& front : parts_->fronts) {
    const FrontCounters& counters = front->counters();
    stats.connections_total += counters.connections.value();
    stats.connections_shed += counters.shed.value();
    stats.connections_cut_off += counters.cut_off.value();
    stats.bytes_received += counters.bytes_received.value();
    stats.bytes_sent += counters.bytes_sent.value();
    stats.calls += counters.of_sessions.calls.value();
    stats.requests += counters.of_sessions.requests.value();
    stats.cancelled += counters.of_sessions.cancelled.value();
    stats.malformed += counters.of_sessions.malformed.value();
    stats.calmed += counters.of_sessions.calmed.value();
    stats.timed_out += counters.of_sessions.timed_out.value();
  }
  return stats;
}

}  // namespace ordo::http2
