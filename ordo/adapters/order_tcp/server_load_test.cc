// Many clients that send as much as they can: each gets its share, and so do newcomers.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/adapters/order_tcp/client.h"
#include "ordo/adapters/order_tcp/server.h"
#include "ordo/core/clock.h"
#include "tests/support/scripted_port.h"
#include "tests/support/waiting.h"

namespace ordo::order_tcp {
namespace {

using testing_support::eventually;
using testing_support::ScriptedPort;
using testing_support::Watchdog;
using namespace std::chrono_literals;

class ServerLoad : public testing::Test {
 protected:
  void start() {
    port_.reply_to(server_);
    const Status started = server_.start(port_);
    ASSERT_TRUE(started) << started.error().message;
  }
  void TearDown() override { server_.finish(TimePoint::min()); }

  Client connect() const {
    Result<Client> client = Client::connect({.port = server_.port(), .timeout = 60s});
    EXPECT_TRUE(client) << client.error().message;
    return std::move(*client);
  }

  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  ScriptedPort port_;
  std::atomic<bool> is_held_{false};
  std::atomic<bool> is_released_{false};
  std::atomic<bool> is_over_{false};
  std::atomic<int> flushes_before_{0};
  std::vector<Client> clients_;
  Server server_{{.port = 0}};
};

TEST_F(ServerLoad, ClientsThatAreReadTogetherDoNotUseUpWhatAFlushGivesBack) {
  constexpr int kClients = 10;
  constexpr int kRequests = 200;
  port_.before_flush([this] {
    if (!is_held_.exchange(true)) {
      ASSERT_TRUE(eventually([&] { return is_released_.load(); }));
    }
  });
  start();
  Client first = connect();
  first.send("first", 1, "x");
  ASSERT_TRUE(first.flush());
  ASSERT_TRUE(eventually([&] { return is_held_.load(); }));
  for (int i = 0; i < kClients; ++i) {
    clients_.push_back(connect());
    for (int n = 0; n < kRequests; ++n)
      clients_.back().send(std::to_string(n), 1 + i, "x");
    ASSERT_TRUE(clients_.back().flush());
  }
  is_released_ = true;
  for (Client& client : clients_) {
    for (int n = 0; n < kRequests; ++n) {
      const Result<ClientReply> reply = client.receive();
      ASSERT_TRUE(reply) << reply.error().message;
      EXPECT_EQ(reply->request_id, std::to_string(n));
    }
  }
  EXPECT_LT(port_.most_waiting(), 256u + kRequests);
}

TEST_F(ServerLoad, ClientsThatAreAlwaysReadyDoNotKeepOthersOut) {
  port_.before_flush([this] {
    if (is_over_) return;
    if (server_.stats().connections_total >= 3) {
      is_over_ = true;
      return;
    }
    if (clients_.size() == 1) clients_.push_back(connect());
    ++flushes_before_;
    clients_.front().send("again", 1, "x");
    EXPECT_TRUE(clients_.front().flush());
    const TimePoint busy_until = system_clock().now() + 2ms;
    while (system_clock().now() < busy_until) {
    }
  });
  start();
  clients_.push_back(connect());  // The I/O thread's from now on.
  Client first = connect();
  ASSERT_TRUE(eventually([&] { return server_.stats().connections_total == 2; }));
  first.send("first", 1, "x");
  ASSERT_TRUE(first.flush());
  ASSERT_TRUE(eventually([&] { return is_over_.load(); }));
  EXPECT_LE(flushes_before_, 8);
}

}  // namespace
}  // namespace ordo::order_tcp
