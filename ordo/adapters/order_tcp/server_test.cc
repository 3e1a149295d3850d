#include "ordo/adapters/order_tcp/server.h"

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "ordo/adapters/order_tcp/client.h"
#include "ordo/adapters/order_tcp/request_encoder.h"
#include "ordo/core/clock.h"
#include "tests/support/scripted_port.h"
#include "tests/support/waiting.h"

namespace ordo::order_tcp {
namespace {

using gateway::Refusal;
using testing_support::eventually;
using testing_support::ScriptedPort;
using testing_support::Watchdog;
using namespace std::chrono_literals;

class ServerTest : public testing::TestWithParam<Encoding> {
 protected:
  Server& start(ServerOptions options = {}) {
    options.port = 0;
    server_ = std::make_unique<Server>(options);
    port_.reply_to(*server_);
    const Status started = server_->start(port_);
    EXPECT_TRUE(started) << started.error().message;
    return *server_;
  }
  void TearDown() override { server_.reset(); }

  Client connect(ClientOptions options = {}) {
    options.port = server_->port();
    options.encoding = GetParam();
    options.timeout = 60s;
    Result<Client> client = Client::connect(options);
    EXPECT_TRUE(client) << client.error().message;
    return std::move(*client);
  }
  static ClientReply receive(Client& client) {
    Result<ClientReply> reply = client.receive();
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? *reply : ClientReply{};
  }
  static void expect_closed(Client& client) {
    const Result<ClientReply> reply = client.receive();
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::unavailable) << reply.error().message;
  }
  TimePoint soon() const { return system_clock().now() + 60s; }

  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  ScriptedPort port_;
  std::unique_ptr<Server> server_;
};

INSTANTIATE_TEST_SUITE_P(Encodings, ServerTest, testing::Values(Encoding::text, Encoding::binary),
                         [](const auto& each) {
                           return each.param == Encoding::text ? "Text" : "Binary";
                         });

TEST_P(ServerTest, AnswersARequest) {
  start();
  Client client = connect();
  client.send("r-1", 42, "STATUS");
  const ClientReply reply = receive(client);
  EXPECT_EQ(reply, (ClientReply{.request_id = "r-1",
                                .correlation_id = 42,
                                .partition = 3,
                                .words = "did:STATUS",
                                .began_ns = 17,
                                .ended_ns = 18}));
}

TEST_P(ServerTest, AnswersCommands) {
  start();
  Client client = connect();
  client.send_ping();
  client.send_stats();
  client.send_resume(5);
  EXPECT_EQ(receive(client).type, ReplyType::pong);
  EXPECT_EQ(receive(client).words, R"({"scripted":true})");
  EXPECT_EQ(receive(client).correlation_id, 5);
}

TEST_P(ServerTest, AnswersAHundredRequestsOfOneWriteInOrder) {
  start();
  Client client = connect();
  for (int i = 0; i < 100; ++i)
    client.send("r" + std::to_string(i), 1, "x");
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(receive(client).request_id, "r" + std::to_string(i));
}

TEST_P(ServerTest, UnderstandsRequestsCutAtEveryByte) {
  start();
  Client client = connect();
  std::string bytes;
  append_task(bytes, GetParam(), {"first", 42, "NEW ACME BUY 10 99.5"});
  append_task(bytes, GetParam(), {"second", 42, "STATUS"});
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    const std::size_t before = server_->stats().bytes_received;
    client.send_bytes(std::string_view(bytes).substr(0, cut));
    ASSERT_TRUE(client.flush());
    // The first piece has been read before the second is sent.
    ASSERT_TRUE(eventually([&] { return server_->stats().bytes_received == before + cut; }));
    client.send_bytes(std::string_view(bytes).substr(cut));
    EXPECT_EQ(receive(client).request_id, "first");
    EXPECT_EQ(receive(client).request_id, "second");
  }
}

TEST_P(ServerTest, GoesOnAfterTheLimitOfOutstandingRequests) {
  start({.outstanding_max = 4});
  Client client = connect();
  for (int i = 0; i < 2'000; ++i)
    client.send("r" + std::to_string(i), 1, "x");
  for (int i = 0; i < 2'000; ++i)
    ASSERT_EQ(receive(client).request_id, "r" + std::to_string(i));
}

TEST_P(ServerTest, AnswersFromOtherThreadsReachTheirConnections) {
  start({.io_threads = 3});
  port_.answer_in_flush(false);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> partitions;
  for (int i = 0; i < 2; ++i) {
    partitions.emplace_back([&] {
      while (!is_over.load())
        port_.waiting() > 0 ? port_.answer(16) : std::this_thread::yield();
    });
  }
  std::vector<Client> clients;
  for (int i = 0; i < 7; ++i)
    clients.push_back(connect());
  for (int round = 0; round < 20; ++round) {
    for (std::size_t c = 0; c < clients.size(); ++c) {
      for (int i = 0; i < 50; ++i)
        clients[c].send("c" + std::to_string(c) + "-" + std::to_string(i), 1, "x");
      ASSERT_TRUE(clients[c].flush());
    }
    for (std::size_t c = 0; c < clients.size(); ++c) {
      std::map<std::string, int> seen;
      for (int i = 0; i < 50; ++i)
        ++seen[receive(clients[c]).request_id];
      EXPECT_EQ(seen.size(), 50u);
      EXPECT_TRUE(seen.begin()->first.starts_with("c" + std::to_string(c) + "-"));
    }
  }
  is_over.store(true);
  for (std::thread& each : partitions)
    each.join();
  EXPECT_EQ(server_->stats().replies, 7u * 20 * 50);
  EXPECT_EQ(server_->stats().replies_dropped, 0u);
}

// A partition that changes hands: the first answer of an id comes from another thread, the next one
// from the I/O thread itself, inside its flush.
class ChangingHands final : public gateway::TaskPort {
 public:
  void reply_to(gateway::ReplyPort& replies) { replies_ = &replies; }
  gateway::Admitted submit(gateway::Request&& request) override {
    waiting_.push_back(std::move(request));
    return {Refusal::none, 0};
  }
  void flush() override {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const auto answer = [&] { replies_->reply(ScriptedPort::reply_to_request(waiting_[i])); };
      i % 2 == 0 ? std::thread(answer).join() : answer();
    }
    waiting_.clear();
    std::thread([this] { replies_->flush(); }).join();
  }
  std::string stats_line() const override { return "{}"; }

 private:
  gateway::ReplyPort* replies_ = nullptr;
  std::vector<gateway::Request> waiting_;  // The one I/O thread's.
};

TEST_P(ServerTest, AnswersGoOutInTheOrderTheyCameWhicheverThreadsBroughtThem) {
  ChangingHands port;
  server_ = std::make_unique<Server>(ServerOptions{.port = 0});
  port.reply_to(*server_);
  ASSERT_TRUE(server_->start(port));
  Client client = connect();
  for (int i = 0; i < 100; ++i)
    client.send("r" + std::to_string(i), 1, "x");
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(receive(client).request_id, "r" + std::to_string(i));
  server_.reset();  // Before its port.
}

TEST_P(ServerTest, AnswersWhatWasAdmittedAfterAHalfCloseThenCloses) {
  start();
  port_.answer_in_flush(false);
  Client client = connect();
  for (int i = 0; i < 10; ++i)
    client.send("r" + std::to_string(i), 1, "x");
  ASSERT_TRUE(client.end_sending());
  ASSERT_TRUE(eventually([&] { return port_.waiting() == 10; }));
  port_.answer_all();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(receive(client).request_id, "r" + std::to_string(i));
  expect_closed(client);
  EXPECT_TRUE(eventually([&] { return server_->stats().connections_now == 0; }));
}

TEST_P(ServerTest, SaysWhyItClosesAfterSomethingTooLong) {
  start({.request_bytes_max = 100});
  Client client = connect();
  client.send("good", 1, "x");
  client.send("bad", 1, std::string(200, 'x'));
  // Much more than it will read: the answer must survive that.
  client.send_bytes(std::string(300'000, 'y'));
  std::map<std::string, Refusal> refusals;
  for (int i = 0; i < 2; ++i) {
    const ClientReply reply = receive(client);
    refusals[reply.request_id] = reply.refusal;
  }
  EXPECT_EQ(refusals,
            (std::map<std::string, Refusal>{{"", Refusal::too_long}, {"good", Refusal::none}}));
  expect_closed(client);
  EXPECT_TRUE(eventually([&] { return server_->stats().malformed == 1; }));
}

// The number of a connection is not used again, its descriptor is.
TEST_P(ServerTest, DropsTheRepliesOfADeadConnectionThoughItsDescriptorIsTakenAgain) {
  start();
  port_.answer_in_flush(false);
  {
    Client dead = connect();
    for (int i = 0; i < 100; ++i)
      dead.send("dead" + std::to_string(i), 1, "x");
    ASSERT_TRUE(dead.flush());
    ASSERT_TRUE(eventually([&] { return port_.waiting() == 100; }));
    const linger reset{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(dead.descriptor(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  }
  ASSERT_TRUE(eventually([&] { return server_->stats().connections_now == 0; }));
  Client living = connect();
  living.send("living", 1, "x");
  ASSERT_TRUE(living.flush());
  ASSERT_TRUE(eventually([&] { return port_.waiting() == 101; }));
  port_.answer_all();
  EXPECT_EQ(receive(living).request_id, "living");
  EXPECT_EQ(server_->stats().replies_dropped, 100u);
  EXPECT_EQ(server_->stats().replies, 1u);
}

TEST_P(ServerTest, StopsReadingAndStillAnswers) {
  start();
  port_.answer_in_flush(false);
  Client client = connect();
  client.send("before", 1, "x");
  ASSERT_TRUE(client.flush());
  ASSERT_TRUE(eventually([&] { return port_.waiting() == 1; }));
  server_->stop_accepting_and_reading();
  client.send("after", 1, "x");
  ASSERT_TRUE(client.flush());
  ClientOptions options;
  options.port = server_->port();
  EXPECT_FALSE(Client::connect(options));
  port_.answer_all();
  server_->finish(soon());
  EXPECT_EQ(port_.submitted(), 1u);
  EXPECT_EQ(receive(client).request_id, "before");
  expect_closed(client);
  EXPECT_EQ(server_->stats().connections_now, 0u);
}

TEST_P(ServerTest, FinishingDropsRepliesThatComeTooLate) {
  start();
  port_.answer_in_flush(false);
  Client client = connect();
  client.send("r", 1, "x");
  ASSERT_TRUE(client.flush());
  ASSERT_TRUE(eventually([&] { return port_.waiting() == 1; }));
  server_->finish(soon());
  expect_closed(client);
  port_.answer_all();
  EXPECT_EQ(server_->stats().replies_dropped, 1u);
}

TEST_P(ServerTest, FinishesByItsDeadlineThoughAClientDoesNotRead) {
  start({.output_pause_bytes = 1 << 20, .output_bytes_max = 1 << 24, .send_buffer_bytes = 4096});
  port_.answer_in_flush(false);
  Client client = connect({.receive_buffer_bytes = 4096});
  for (int i = 0; i < 1000; ++i)
    client.send("r" + std::to_string(i), 1, std::string(1000, 'x'));
  ASSERT_TRUE(client.flush());
  ASSERT_TRUE(eventually([&] { return port_.waiting() == 1000; }));
  port_.answer_all();
  server_->finish(system_clock().now() + 50ms);
  EXPECT_EQ(server_->stats().connections_now, 0u);
}

TEST_P(ServerTest, CanBeFinishedWithoutEverBeingUsed) {
  start();
  server_->finish(soon());
  server_->finish(soon());
  Server never_started({});
  never_started.finish(soon());
}

TEST(ServerOptionsTest, ThatAreWrongAreNamed) {
  ScriptedPort port;
  const std::pair<ServerOptions, std::string> cases[] = {
      {{.address = "localhost"}, "'localhost' is not a numeric IPv4 or IPv6 address"},
      {{.io_threads = 0}, "io_threads is 0; allowed is 1 to 64"},
      {{.io_threads = 65}, "io_threads is 65; allowed is 1 to 64"},
      {{.connections_max = 0}, "connections_max is 0; allowed is 1 or more"},
      {{.request_bytes_max = 70'000}, "request_bytes_max is 70000; allowed is 64 to 65536"},
      {{.outstanding_max = 0}, "outstanding_max is 0; allowed is 1 or more"},
      {{.output_pause_bytes = 0}, "output_pause_bytes is 0; allowed is 1 or more"},
      {{.output_bytes_max = 5}, "output_bytes_max is 5; allowed is output_pause_bytes or more"},
      {{.gap_ids_max = 0}, "gap_ids_max is 0; allowed is 1 or more"},
  };
  for (const auto& [options, message] : cases) {
    Server server(options);
    const Status started = server.start(port);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().message, message);
  }
}

TEST(ServerOptionsTest, APortThatIsTakenIsNamed) {
  ScriptedPort port;
  Server first({.port = 0});
  ASSERT_TRUE(first.start(port));
  Server second({.port = first.port()});
  const Status started = second.start(port);
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find(std::to_string(first.port())), std::string::npos);
}

}  // namespace
}  // namespace ordo::order_tcp
