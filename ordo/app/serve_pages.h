// ServePages: what `ordo serve` shows over plain HTTP.
//
//   GET /          topics, subscriptions, backlog, blocked keys, for people
//   GET /metrics   figures for Prometheus
//   GET /livez     200 while the process lives
//   GET /readyz    200 while it takes requests; 503 while it starts and drains, and when nothing
//                  can be stored any more
//
// Nothing here changes anything: other methods than GET and HEAD are refused. So is a Host that is
// a name other than localhost, see host_check.h.
//
// Threads: serve() any I/O thread, and does not block: pages that ask the broker are made by a
//          thread of their own, "ordo-pages". stop() by the one that made it.
// Bounds:  kWaitingMax requests wait for that thread; more get 503. Of subscriptions 1,000 are in
//          the metrics.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ordo/adapters/http2/exchange.h"
#include "ordo/adapters/http2/server.h"
#include "ordo/adapters/push_http/courier.h"
#include "ordo/broker.h"
#include "ordo/core/clock.h"
#include "ordo/runtime/loop.h"

namespace ordo::app {

// What the pages know of the service; set by who runs it.
struct ServeState {
  enum class Phase : std::uint8_t { starting, ready, draining };

  std::atomic<Phase> phase{Phase::starting};
  std::atomic<bool> has_failed{false};                      // The broker stores nothing any more.
  std::atomic<Broker*> broker{nullptr};                     // Outlives the pages, once it is there.
  std::atomic<const http2::Server*> server{nullptr};        // Likewise.
  std::atomic<const push_http::Courier*> courier{nullptr};  // Likewise.
  TimePoint started_at{};
};

class ServePages {
 public:
  static constexpr std::size_t kWaitingMax = 64;

  // REQUIRES: `state` outlives this.
  explicit ServePages(const ServeState& state);

  void serve(const http2::ExchangePtr& exchange);
  // Answers what waits, and ends the thread. Idempotent.
  void stop() { loop_.stop(TimePoint::max()); }

 private:
  void make(const http2::ExchangePtr& exchange);

  const ServeState& state_;
  Loop loop_;
};

// The metrics page.
std::string serve_metrics(const ServeState& state);

}  // namespace ordo::app
