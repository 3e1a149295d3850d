// The whole gateway at its bounds: what is refused, when, and what happens to the rest.
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/flow/gateway_rig.h"
#include "tests/support/gates.h"
#include "tests/support/gateway_history.h"

namespace ordo::flow {
namespace {

using gateway::Refusal;
using order_tcp::Client;
using order_tcp::ClientReply;
using testing_support::eventually;
using testing_support::Gates;
using testing_support::GatewayHistory;

// One partition whose handler stops at a gate: all requests meet the same budget.
RigOptions gated(Gates<>& gates, std::size_t budget) {
  RigOptions options;
  options.gateway.engine.partitions = 1;
  options.gateway.engine.budget = budget;
  options.gateway.engine.per_id = budget;
  options.gateway.before_task = [&gates](const gateway::Request&) { gates.enter(0); };
  return options;
}

TEST(GatewayLimits, ABlockedHandlerAdmitsTheBudgetAndTheRestIsRefusedAtOnce) {
  Gates<> gates;
  GatewayRig rig(gated(gates, 64));
  GatewayHistory history({.partitions = 1});
  Client client = rig.connect();
  std::set<std::string> unanswered;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = "r" + std::to_string(i);
    unanswered.insert(id);
    history.request(1, id, 7);
    client.send(id, 7, "STATUS");
  }
  // The refusals come while the handler still stands at its gate.
  for (int i = 0; i < 1000 - 64; ++i) {
    const ClientReply reply = receive(client);
    history.reply(1, reply);
    ASSERT_EQ(reply.refusal, Refusal::busy);
    ASSERT_EQ(reply.correlation_id, 7);
    ASSERT_EQ(unanswered.erase(reply.request_id), 1u) << reply.request_id;
  }
  EXPECT_TRUE(gates.await(0));
  EXPECT_EQ(rig.server().stats().requests_refused, 936u);
  gates.open_all();
  for (int i = 0; i < 64; ++i) {
    const ClientReply reply = receive(client);
    history.reply(1, reply);
    ASSERT_TRUE(reply.is_ok());
    ASSERT_EQ(reply.request_id, "r" + std::to_string(i));
  }
  history.end();
  EXPECT_TRUE(history.write("budget"));
}

// Bytes of memory this process has in use.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

TEST(GatewayLimits, MemoryStaysFlatWhileAHundredThousandAreRefused) {
  Gates<> gates;
  GatewayRig rig(gated(gates, 64));
  Client client = rig.connect();
  const auto refuse = [&](int count) {
    for (int i = 0; i < count; ++i) {
      for (int each = 0; each < 100; ++each)
        client.send("r", 7, "STATUS");
      for (int each = 0; each < 100; ++each)
        ASSERT_EQ(receive(client).refusal, Refusal::busy);
    }
  };
  for (int i = 0; i < 64; ++i)
    client.send("r", 7, "STATUS");
  refuse(100);
  const std::size_t before = resident_bytes();
  refuse(1'000);
  EXPECT_LT(resident_bytes(), before + (std::size_t{8} << 20));
  gates.open_all();
  for (int i = 0; i < 64; ++i)
    ASSERT_TRUE(receive(client).is_ok());
}

TEST(GatewayLimits, AnIdAtItsLimitIsRefusedWhileItsHandlerIsBlocked) {
  Gates<> gates;
  RigOptions options;
  options.gateway.engine.per_id = 5;
  options.gateway.before_task = [&](const gateway::Request&) { gates.enter(0); };
  GatewayRig rig(options);
  Client client = rig.connect();
  for (int i = 0; i < 10; ++i)
    client.send("r" + std::to_string(i), 7, "STATUS");
  for (int i = 5; i < 10; ++i) {
    const ClientReply reply = receive(client);
    EXPECT_EQ(reply.refusal, Refusal::id_busy);
    EXPECT_EQ(reply.request_id, "r" + std::to_string(i));
  }
  gates.open_all();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(receive(client).request_id, "r" + std::to_string(i));
}

// Whatever is refused, what is admitted of an id between two RESUMEs is a prefix of what was sent.
TEST(GatewayLimits, WithStrictGapsTheAdmittedTasksOfAnIdAreAPrefixBetweenResumes) {
  RigOptions options;
  options.gateway.engine.partitions = 2;
  options.gateway.engine.budget = 8;
  options.gateway.engine.per_id = 3;
  options.server.strict_gaps = true;
  GatewayRig rig(options);
  GatewayHistory history({.partitions = 2, .strict_gaps = true});
  Client client = rig.connect();
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    std::map<std::string, std::int64_t> asked;
    for (int i = 0; i < 40; ++i) {
      const std::int64_t id = 1 + i % 4;
      const std::string name = "r" + std::to_string(round) + "-" + std::to_string(i);
      asked[name] = id;
      history.request(1, name, id);
      client.send(name, id, "STATUS");
    }
    std::map<std::int64_t, std::map<int, bool>> admitted;  // By id and place: whether.
    for (int i = 0; i < 40; ++i) {
      const ClientReply reply = receive(client);
      history.reply(1, reply);
      ASSERT_EQ(asked.at(reply.request_id), reply.correlation_id);
      const int place = std::stoi(reply.request_id.substr(reply.request_id.find('-') + 1));
      admitted[reply.correlation_id][place] = reply.is_ok();
      if (!reply.is_ok()) ++refused;
    }
    for (const auto& [id, places] : admitted) {
      bool is_over = false;
      for (const auto& [place, is_admitted] : places) {
        ASSERT_FALSE(is_admitted && is_over) << "id " << id << " round " << round;
        is_over = is_over || !is_admitted;
      }
      client.send_resume(id);
      EXPECT_EQ(receive(client).type, order_tcp::ReplyType::resumed);
    }
  }
  EXPECT_GT(refused, 0);
  history.end();
  EXPECT_TRUE(history.write("strict_gaps"));
}

TEST(GatewayLimits, AClientThatDiesWithAHundredQueuedLeavesNothingToTheNextOne) {
  Gates<> gates;
  GatewayRig rig(gated(gates, 1'024));
  GatewayHistory history({.partitions = 1});
  {
    Client dying = rig.connect();
    for (int i = 0; i < 100; ++i) {
      history.request(1, "dead" + std::to_string(i), 7);
      dying.send("dead" + std::to_string(i), 7, "STATUS");
    }
    ASSERT_TRUE(dying.flush());
    ASSERT_TRUE(eventually([&] { return rig.server().stats().requests == 100; }));
    const linger reset{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(dying.descriptor(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  }
  history.closed(1);
  ASSERT_TRUE(eventually([&] { return rig.server().stats().connections_now == 0; }));
  Client next = rig.connect();
  history.request(2, "next", 7);
  next.send("next", 7, "STATUS");
  ASSERT_TRUE(next.flush());
  ASSERT_TRUE(eventually([&] { return rig.server().stats().requests == 101; }));
  gates.open_all();
  const ClientReply reply = receive(next);
  history.reply(2, reply);
  EXPECT_EQ(reply.request_id, "next");
  EXPECT_TRUE(eventually([&] { return rig.server().stats().replies_dropped == 100; }));
  history.end();
  EXPECT_TRUE(history.write("dead_client"));
}

}  // namespace
}  // namespace ordo::flow
