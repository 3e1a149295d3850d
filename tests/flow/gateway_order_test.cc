// The whole gateway from a client's side: order, partitions, one at a time, failures.
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/flow/gateway_rig.h"
#include "tests/support/gateway_history.h"

namespace ordo::flow {
namespace {

using gateway::Refusal;
using order_tcp::Client;
using order_tcp::ClientReply;
using order_tcp::Encoding;
using testing_support::GatewayHistory;

struct Mode {
  Encoding encoding;
  bool callers_run;
};

std::string name_of(const Mode& mode) {
  return std::string(mode.encoding == Encoding::text ? "Text" : "Binary") +
         (mode.callers_run ? "CallersRun" : "ThreadsRun");
}

class GatewayOrder : public testing::TestWithParam<Mode> {
 protected:
  RigOptions options() const {
    RigOptions options;
    options.gateway.engine.callers_run = GetParam().callers_run;
    return options;
  }
  static Client connect(const GatewayRig& rig) {
    return rig.connect({.encoding = GetParam().encoding});
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, GatewayOrder,
                         testing::Values(Mode{Encoding::text, false}, Mode{Encoding::text, true},
                                         Mode{Encoding::binary, false},
                                         Mode{Encoding::binary, true}),
                         [](const auto& each) { return name_of(each.param); });

// A client with many requests on their way, and what became of them, per correlation id.
class Pipeline {
 public:
  static constexpr std::size_t kOnTheirWayMax = 900;

  Pipeline(Client client, GatewayHistory& history, int connection)
      : client_(std::move(client)),
        history_(history),
        connection_(connection) {}

  void send(std::int64_t correlation_id, const std::string& payload) {
    const std::string id = "r" + std::to_string(++sent_);
    asked_[id] = correlation_id;
    orders_[correlation_id].push_back(id);
    history_.request(connection_, id, correlation_id);
    client_.send(id, correlation_id, payload);
    while (asked_.size() >= kOnTheirWayMax)
      take();
  }
  void take_all() {
    while (!asked_.empty())
      take();
  }
  void take() {
    const ClientReply reply = receive(client_);
    history_.reply(connection_, reply);
    const auto found = asked_.find(reply.request_id);
    ASSERT_TRUE(found != asked_.end()) << "nobody asked for " << reply.request_id;
    EXPECT_EQ(found->second, reply.correlation_id);
    asked_.erase(found);
    answers_[reply.correlation_id].push_back(reply);
  }

  const std::map<std::int64_t, std::vector<std::string>>& orders() const { return orders_; }
  const std::map<std::int64_t, std::vector<ClientReply>>& answers() const { return answers_; }

 private:
  Client client_;
  GatewayHistory& history_;
  const int connection_;
  std::size_t sent_ = 0;
  std::map<std::string, std::int64_t> asked_;
  std::map<std::int64_t, std::vector<std::string>> orders_;
  std::map<std::int64_t, std::vector<ClientReply>> answers_;
};

void expect_order_of_one_id(const std::vector<std::string>& sent,
                            const std::vector<ClientReply>& answers) {
  ASSERT_EQ(sent.size(), answers.size());
  std::int64_t ended = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_EQ(answers[i].request_id, sent[i]);
    ASSERT_TRUE(answers[i].is_ok());
    ASSERT_EQ(answers[i].partition, answers[0].partition);
    ASSERT_LE(ended, answers[i].began_ns) << "two of one id at once";
    ASSERT_LE(answers[i].began_ns, answers[i].ended_ns);
    ended = answers[i].ended_ns;
  }
}

TEST_P(GatewayOrder, TenThousandTasksOverAHundredIdsAreAnsweredInOrder) {
  GatewayRig rig(options());
  GatewayHistory history({});
  Pipeline pipeline(connect(rig), history, 1);
  for (std::int64_t id = 1; id <= 100; ++id)
    pipeline.send(id, "NEW ACME BUY 1000 99.5");
  for (int turn = 1; turn < 100; ++turn) {
    for (std::int64_t id = 1; id <= 100; ++id)
      pipeline.send(id, "FILL 1");
  }
  pipeline.take_all();
  for (std::int64_t id = 1; id <= 100; ++id) {
    const auto& answers = pipeline.answers().at(id);
    expect_order_of_one_id(pipeline.orders().at(id), answers);
    EXPECT_EQ(answers.front().words, "route:XNYS");
    for (std::size_t i = 1; i < answers.size(); ++i)
      ASSERT_EQ(answers[i].words, "filled:" + std::to_string(1000 - i));
  }
  history.end();
  EXPECT_TRUE(history.write("order_" + name_of(GetParam())));
}

TEST_P(GatewayOrder, ConnectionsShareAnIdWithoutTwoOfItAtOnce) {
  GatewayRig rig(options());
  GatewayHistory history({});
  std::vector<Pipeline> pipelines;
  pipelines.reserve(4);
  for (int connection = 1; connection <= 4; ++connection)
    pipelines.emplace_back(connect(rig), history, connection);
  for (int turn = 0; turn < 300; ++turn) {
    for (Pipeline& pipeline : pipelines)
      pipeline.send(1 + turn % 7, "STATUS");
    if (turn % 10 != 9) continue;
    for (Pipeline& pipeline : pipelines)
      pipeline.take_all();
  }
  for (Pipeline& pipeline : pipelines)
    pipeline.take_all();
  history.end();
  EXPECT_TRUE(history.write("shared_" + name_of(GetParam())));
}

TEST_P(GatewayOrder, UncorrelatedTasksAreSpreadOverAllPartitions) {
  GatewayRig rig(options());
  GatewayHistory history({.spread_min = 0.5});
  Pipeline pipeline(connect(rig), history, 1);
  for (int i = 0; i < 400; ++i) {
    for (const std::int64_t id :
         {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0}})
      pipeline.send(id, "QUOTE ACME 10");
  }
  pipeline.take_all();
  for (const auto& [id, answers] : pipeline.answers()) {
    std::set<std::int32_t> partitions;
    for (const ClientReply& answer : answers) {
      ASSERT_EQ(answer.words, "target:XNYS");
      partitions.insert(answer.partition);
    }
    EXPECT_EQ(partitions.size(), 4u) << id;
  }
  history.end();
  EXPECT_TRUE(history.write("uncorrelated_" + name_of(GetParam())));
}

TEST_P(GatewayOrder, AHandlerThatThrowsFailsItsTaskAlone) {
  RigOptions with_thrower = options();
  with_thrower.gateway.before_task = [](const gateway::Request& request) {
    if (request.id.view() == "bad") throw std::runtime_error("it\nbroke");
  };
  GatewayRig rig(with_thrower);
  Client client = connect(rig);
  client.send("r1", 5, "NEW ACME BUY 10 1");
  client.send("bad", 5, "CANCEL");
  client.send("other", 6, "STATUS");
  client.send("r3", 5, "FILL 1");
  client.send("r4", 5, "FILL 1");
  std::vector<ClientReply> of_five;
  for (int i = 0; i < 5; ++i) {
    ClientReply reply = receive(client);
    if (reply.correlation_id == 6) {
      EXPECT_TRUE(reply.is_ok());
    } else {
      of_five.push_back(std::move(reply));
    }
  }
  ASSERT_EQ(of_five.size(), 4u);
  EXPECT_EQ(of_five[0].request_id, "r1");
  EXPECT_EQ(of_five[1].request_id, "bad");
  EXPECT_EQ(of_five[1].refusal, Refusal::error);
  EXPECT_EQ(of_five[2].words, "filled:9");
  EXPECT_EQ(of_five[3].words, "filled:8");
}

}  // namespace
}  // namespace ordo::flow
