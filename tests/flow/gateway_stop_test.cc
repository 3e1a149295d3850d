// The whole gateway under load, and then it is told to stop.
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/flow/gateway_rig.h"
#include "tests/support/gates.h"

namespace ordo::flow {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using order_tcp::Client;
using order_tcp::ClientReply;
using testing_support::eventually;
using testing_support::Gates;

struct Account {
  std::uint64_t answered = 0;  // Replies to admitted requests.
  std::uint64_t refused = 0;
};

// Sends until the server closes, and counts what comes back until then.
Account run_client(Client client, int number) {
  Account account;
  std::uint64_t sent = 0;
  for (;;) {
    while (sent - account.answered - account.refused < 200) {
      client.send("r" + std::to_string(sent), 1 + static_cast<std::int64_t>(sent % 50) + number,
                  "STATUS");
      ++sent;
    }
    const Result<ClientReply> reply = client.receive();
    if (!reply) return account;
    reply->is_ok() ? ++account.answered : ++account.refused;
  }
}

class GatewayStop : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(CallersRun, GatewayStop, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "On" : "Off"; });

TEST_P(GatewayStop, UnderLoadEverythingAdmittedIsAnswered) {
  RigOptions options;
  options.gateway.engine.callers_run = GetParam();
  GatewayRig rig(options);
  std::vector<Account> accounts(4);
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    // Connected before the stop, however late its thread runs.
    clients.emplace_back(
        [&account = accounts[static_cast<std::size_t>(i)], i, client = rig.connect()]() mutable {
          account = run_client(std::move(client), i);
        });
  }
  ASSERT_TRUE(eventually([&] { return rig.server().stats().replies > 5'000; }));
  rig.server().stop_accepting_and_reading();
  const auto undone = rig.gateway().drain(60s);
  rig.server().finish(system_clock().now() + 60s);
  for (std::thread& each : clients)
    each.join();
  Account all;
  for (const Account& account : accounts) {
    all.answered += account.answered;
    all.refused += account.refused;
  }
  const order_tcp::ServerStats stats = rig.server().stats();
  EXPECT_TRUE(undone.empty());
  EXPECT_EQ(stats.requests - stats.requests_refused, all.answered);
  EXPECT_EQ(stats.requests_refused, all.refused);
  EXPECT_EQ(stats.replies, all.answered);
  EXPECT_EQ(stats.replies_dropped, 0u);
}

TEST(GatewayStopStuck, WhatIsNotDoneByTheDeadlineIsListed) {
  Gates<> gates;
  RigOptions options;
  options.gateway.engine.partitions = 1;
  options.gateway.before_task = [&](const gateway::Request& request) {
    if (request.id.view() == "stuck") gates.enter(0);
  };
  GatewayRig rig(options);
  Client client = rig.connect();
  client.send("first", 1, "STATUS");
  EXPECT_EQ(receive(client).request_id, "first");
  client.send("stuck", 1, "STATUS");
  client.send("behind", 1, "STATUS");
  ASSERT_TRUE(client.flush());
  ASSERT_TRUE(eventually([&] { return rig.server().stats().requests == 3; }));
  ASSERT_TRUE(gates.await(0));
  rig.server().stop_accepting_and_reading();
  std::set<std::string> undone;
  for (const gateway::UndoneRequest& each : rig.gateway().drain(10ms))
    undone.insert(std::string(each.id.view()));
  EXPECT_EQ(undone, (std::set<std::string>{"stuck", "behind"}));
  rig.server().finish(system_clock().now() + 60s);
  EXPECT_FALSE(client.receive());
  gates.open_all();
}

}  // namespace
}  // namespace ordo::flow
