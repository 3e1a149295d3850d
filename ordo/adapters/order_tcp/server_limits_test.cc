// One client does what it should not; the others must not notice.
#include <algorithm>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "ordo/adapters/order_tcp/client.h"
#include "ordo/adapters/order_tcp/server.h"
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

class ServerLimits : public testing::Test {
 protected:
  void start(ServerOptions options) {
    options.port = 0;
    server_ = std::make_unique<Server>(options);
    port_.reply_to(*server_);
    const Status started = server_->start(port_);
    ASSERT_TRUE(started) << started.error().message;
  }
  void TearDown() override { server_.reset(); }

  Client connect(ClientOptions options = {}) {
    options.port = server_->port();
    options.timeout = 60s;
    Result<Client> client = Client::connect(options);
    EXPECT_TRUE(client) << client.error().message;
    return std::move(*client);
  }
  // One request of a well-behaved client.
  void expect_service(Client& client) {
    client.send("good", 1, "x");
    const Result<ClientReply> reply = client.receive();
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->request_id, "good");
  }
  ServerStats stats() const { return server_->stats(); }

  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  ScriptedPort port_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerLimits, OneConnectionTooManyIsToldSoAndClosed) {
  start({.connections_max = 2});
  Client first = connect();
  Client second = connect();
  expect_service(first);
  expect_service(second);
  Client third = connect();
  const Result<ClientReply> reply = third.receive();
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->refusal, Refusal::busy);
  EXPECT_FALSE(third.receive());
  EXPECT_EQ(stats().connections_refused, 1u);
  EXPECT_EQ(stats().connections_now, 2u);
  { const Client gone = std::move(first); }
  ASSERT_TRUE(eventually([&] { return stats().connections_now == 1; }));
  Client fourth = connect();
  expect_service(fourth);
}

// Replies that nobody reads fill the buffers of the system, then ours; then nothing is read.
TEST_F(ServerLimits, AClientThatDoesNotReadIsThrottledAndLosesNothing) {
  start({.outstanding_max = 64, .output_pause_bytes = 8192, .send_buffer_bytes = 4096});
  Client lazy = connect({.receive_buffer_bytes = 4096});
  Client good = connect();
  constexpr int kCount = 20'000;
  testing_support::Background sender([&] {
    for (int i = 0; i < kCount; ++i)
      lazy.send("r" + std::to_string(i), 1, std::string(100, 'x'));
    EXPECT_TRUE(lazy.flush());
  });
  // It stands still: throttled, with all but a part of the requests not even read.
  std::uint64_t seen = 0;
  ASSERT_TRUE(eventually([&] {
    const std::uint64_t now = stats().requests;
    expect_service(good);
    return std::exchange(seen, now) == now - 1 && now > 10;
  }));
  EXPECT_LT(stats().requests, static_cast<std::uint64_t>(kCount));
  EXPECT_EQ(stats().disconnected_unread, 0u);
  const int socket = lazy.descriptor();
  std::string bytes;
  std::size_t lines = 0;
  char buffer[65536];
  while (lines < kCount) {
    const ssize_t count = ::recv(socket, buffer, sizeof(buffer), 0);
    ASSERT_GT(count, 0);
    lines += static_cast<std::size_t>(std::count(buffer, buffer + count, '\n'));
  }
  EXPECT_TRUE(sender.finished());
  EXPECT_EQ(lines, static_cast<std::size_t>(kCount));
}

TEST_F(ServerLimits, AClientThatPassesTheOutputLimitIsDisconnected) {
  start({.output_pause_bytes = 50'000, .output_bytes_max = 50'000, .send_buffer_bytes = 4096});
  port_.answer_in_flush(false);
  Client lazy = connect({.receive_buffer_bytes = 4096});
  for (int i = 0; i < 1000; ++i)
    lazy.send("r" + std::to_string(i), 1, std::string(500, 'x'));
  ASSERT_TRUE(lazy.flush());
  ASSERT_TRUE(eventually([&] { return port_.waiting() == 1000; }));
  port_.answer_all();
  ASSERT_TRUE(eventually([&] { return stats().connections_now == 0; }));
  EXPECT_EQ(stats().disconnected_unread, 1u);
  port_.answer_in_flush(true);
  Client good = connect();
  expect_service(good);
}

TEST_F(ServerLimits, AClientThatTakesNothingForTooLongIsDisconnected) {
  start({.output_pause_bytes = 8192, .unread_time_max = 40ms, .send_buffer_bytes = 4096});
  Client lazy = connect({.receive_buffer_bytes = 4096});
  Client idle = connect();
  expect_service(idle);
  for (int i = 0; i < 1000; ++i)
    lazy.send("r" + std::to_string(i), 1, std::string(100, 'x'));
  static_cast<void>(lazy.flush());  // On a slow machine it may be cut off in the middle of it.
  ASSERT_TRUE(eventually([&] { return stats().connections_now == 1; }));
  EXPECT_TRUE(eventually([&] { return stats().disconnected_unread == 1; }));
  expect_service(idle);  // Who has nothing to read may stay for ever.
}

TEST_F(ServerLimits, AClientThatVanishesIsForgottenThoughItIsNotBeingRead) {
  start({.outstanding_max = 1});
  port_.answer_in_flush(false);
  {
    Client client = connect();
    client.send("r1", 1, "x");
    client.send("r2", 1, "x");
    ASSERT_TRUE(client.flush());
    ASSERT_TRUE(eventually([&] { return port_.waiting() == 1; }));
    const linger reset{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(client.descriptor(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  }
  EXPECT_TRUE(eventually([&] { return stats().connections_now == 0; }));
  port_.answer_all();
  EXPECT_TRUE(eventually([&] { return stats().replies_dropped == 1; }));
}

TEST_F(ServerLimits, AThousandSlowConnectionsAreServedByteByByte) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::size_t count = limit.rlim_cur >= 4096 ? 1000 : limit.rlim_cur / 4;
  start({.io_threads = 2});
  std::vector<Client> slow;
  for (std::size_t i = 0; i < count; ++i)
    slow.push_back(connect());
  Client good = connect();
  const std::string line = "slow 7 x\n";
  for (std::size_t at = 0; at < line.size(); ++at) {
    for (Client& client : slow) {
      client.send_bytes(line.substr(at, 1));
      ASSERT_TRUE(client.flush());
    }
    expect_service(good);
  }
  for (Client& client : slow) {
    const Result<ClientReply> reply = client.receive();
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->request_id, "slow");
  }
  EXPECT_EQ(stats().connections_now, count + 1);
  slow.clear();
  EXPECT_TRUE(eventually([&] { return stats().connections_now == 1; }));
}

TEST_F(ServerLimits, WithoutDescriptorsAcceptingPausesAndGoesOn) {
  start({});
  Client first = connect();
  expect_service(first);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  // The next descriptor is the client's, and then none is left for the server.
  const int next = ::dup(0);
  ASSERT_GE(next, 0);
  ::close(next);
  rlimit tight = old;
  tight.rlim_cur = static_cast<rlim_t>(next) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  Client second = connect();
  EXPECT_TRUE(eventually([&] { return stats().accepts_failed >= 2; }));
  expect_service(first);
  EXPECT_LT(stats().accepts_failed, 10'000u);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  expect_service(second);
}

TEST_F(ServerLimits, RandomBytesNeverHurtAnybodyElse) {
  start({});
  Client good = connect();
  std::uint64_t state = 88172645463325252u;
  for (int round = 0; round < 100; ++round) {
    std::string garbage(1 + round * 37, '\0');
    for (char& byte : garbage) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      byte = static_cast<char>(state);
    }
    if (round % 2 == 0) garbage[0] = 1;
    Client bad = connect();
    bad.send_bytes(garbage);
    (void)bad.end_sending();
    expect_service(good);
  }
  EXPECT_TRUE(eventually([&] { return stats().connections_now == 1; }));
  EXPECT_GT(stats().malformed, 50u);
}

}  // namespace
}  // namespace ordo::order_tcp
