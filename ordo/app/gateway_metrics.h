// What `ordo gateway` shows over HTTP.
//
//   GET /metrics   figures for Prometheus
//   GET /blocked   the ids that have held their lane longest, as JSON
//   GET /livez     200 while the process lives
//   GET /readyz    200 while it takes requests, 503 before and while it drains
//
// Threads: called by the admin server's thread; reads what any thread may read.
#pragma once

#include <atomic>
#include <string_view>

#include "ordo/adapters/admin_http/admin_server.h"
#include "ordo/adapters/order_tcp/server.h"
#include "ordo/core/clock.h"
#include "ordo/gateway/gateway.h"

namespace ordo::app {

struct GatewayParts {
  const gateway::Gateway& gateway;
  const order_tcp::Server& server;
  const std::atomic<bool>& ready;
  const std::atomic<std::uint64_t>& reloads;
  const std::atomic<std::uint64_t>& failed_reloads;
};

admin_http::AdminReply gateway_page(const GatewayParts& parts, std::string_view path);

}  // namespace ordo::app
