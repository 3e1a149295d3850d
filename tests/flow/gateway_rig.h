// GatewayRig: a gateway behind its TCP server, in this process, and clients for it.
//
//   GatewayRig rig({.gateway = {.engine = {.budget = 64}}});
//   order_tcp::Client client = rig.connect();
//
// Threads: made and used by one; clients may be given to others.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "ordo/adapters/order_tcp/client.h"
#include "ordo/adapters/order_tcp/server.h"
#include "ordo/core/clock.h"
#include "ordo/gateway/gateway.h"
#include "tests/support/waiting.h"

namespace ordo::flow {

struct RigOptions {
  gateway::GatewayOptions gateway = {};
  order_tcp::ServerOptions server = {};
};

class GatewayRig {
 public:
  explicit GatewayRig(RigOptions options) {
    options.server.port = 0;
    if (options.gateway.oms.default_venue.empty()) options.gateway.oms.default_venue = "XNYS";
    server_ = std::make_unique<order_tcp::Server>(options.server);
    gateway_ = std::make_unique<gateway::Gateway>(options.gateway, *server_);
    const Status started = server_->start(*gateway_);
    EXPECT_TRUE(started) << started.error().message;
  }
  // The server uses the gateway, and the gateway answers to the server.
  ~GatewayRig() {
    server_->finish(TimePoint::min());
    gateway_.reset();
  }

  order_tcp::Client connect(order_tcp::ClientOptions options = {}) const {
    options.port = server_->port();
    options.timeout = std::chrono::seconds(60);
    Result<order_tcp::Client> client = order_tcp::Client::connect(options);
    EXPECT_TRUE(client) << client.error().message;
    return std::move(*client);
  }

  order_tcp::Server& server() { return *server_; }
  gateway::Gateway& gateway() { return *gateway_; }

 private:
  testing_support::Watchdog watchdog_{
      testing::UnitTest::GetInstance()->current_test_info()->name()};
  std::unique_ptr<order_tcp::Server> server_;
  std::unique_ptr<gateway::Gateway> gateway_;
};

// The next reply; a failure of the test when there is none.
inline order_tcp::ClientReply receive(order_tcp::Client& client) {
  Result<order_tcp::ClientReply> reply = client.receive();
  EXPECT_TRUE(reply) << reply.error().message;
  return reply ? std::move(*reply) : order_tcp::ClientReply{};
}

}  // namespace ordo::flow
