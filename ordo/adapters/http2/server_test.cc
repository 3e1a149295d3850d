// The server on real sockets: threads, the end, and what only a socket can show.
#include "ordo/adapters/http2/server.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http2_rig.h"
#include "tests/support/raw_socket.h"
#include "tests/support/waiting.h"

namespace ordo::http2 {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing_support::Background;
using testing_support::eventually;
using testing_support::framed;
using testing_support::Http2Client;
using testing_support::is_served;
using testing_support::others_sleep;
using testing_support::RawSocket;
using testing_support::Watchdog;

// A client by libnghttp2 on a socket that blocks.
class SocketClient {
 public:
  explicit SocketClient(std::uint16_t port) : socket_(port) {}

  Http2Client& http2() { return client_; }
  // Reads and writes until `condition()`; false: the server closed before.
  template <class Condition>
  bool run_until(Condition&& condition) {
    while (!condition()) {
      const std::string output = client_.take_output();
      if (!output.empty() && !socket_.send(output)) return condition();
      if (condition()) return true;
      const std::string input = socket_.read();
      if (input.empty()) return condition();
      client_.receive(input);
    }
    socket_.send(client_.take_output());
    return true;
  }
  bool finish(std::int32_t id) {
    return run_until([&] { return client_.answer(id).closed_with.has_value(); });
  }
  bool is_closed() { return socket_.is_closed(); }

 private:
  RawSocket socket_;
  Http2Client client_;
};

// Calls that wait for somebody to finish them.
struct Waiting {
  std::mutex mutex{};
  std::vector<CallPtr> calls{};  // Guarded by mutex.
  std::atomic<int> cancelled{0};

  std::size_t count() {
    const std::lock_guard lock(mutex);
    return calls.size();
  }
  void finish_all(int code) {
    const std::lock_guard lock(mutex);
    for (const CallPtr& call : calls)
      call->finish(code);
  }
};

Routes routes_with(Waiting& waiting) {
  Routes routes;
  routes.unary("/test.Echo/Say", [](const CallPtr& call, std::string_view request) {
    call->reply(Slice::of(std::string(request)));
  });
  routes.streaming("/test.Echo/Wait", [&waiting](const CallPtr& call) {
    class Wait final : public CallHandler {
     public:
      explicit Wait(std::atomic<int>& cancelled) : cancelled_(cancelled) {}
      void on_message(std::string_view) override {}
      void on_half_close() override {}
      void on_cancelled() override { ++cancelled_; }

     private:
      std::atomic<int>& cancelled_;
    };
    const std::lock_guard lock(waiting.mutex);
    waiting.calls.push_back(call);
    return std::make_unique<Wait>(waiting.cancelled);
  });
  routes.plain(
      [](const ExchangePtr& exchange) { exchange->respond({.body = Slice::constant("hello\n")}); });
  return routes;
}

class Http2ServerTest : public testing::Test {
 protected:
  void start(ServerOptions options = {}) {
    server_ = std::make_unique<Server>(std::move(options), routes_with(waiting_));
    const Status started = server_->start();
    ASSERT_TRUE(started) << started.error().message;
  }
  std::uint16_t port() const { return server_->port(); }

  Watchdog watchdog_{"Http2ServerTest"};
  Waiting waiting_;
  std::unique_ptr<Server> server_;
};

TEST_F(Http2ServerTest, ServesBothProtocolsOnOnePort) {
  start({.io_threads = 2});
  EXPECT_TRUE(is_served(port()));
  SocketClient client(port());
  const auto id = client.http2().call("/test.Echo/Say", framed("hello"), true);
  EXPECT_TRUE(client.finish(id));
  EXPECT_THAT(client.http2().answer(id).messages(), testing::ElementsAre("hello"));
  const ServerStats stats = server_->stats();
  EXPECT_EQ(stats.calls, 1u);
  EXPECT_EQ(stats.requests, 1u);
  EXPECT_EQ(stats.connections_total, 2u);
}

// Goal: what other threads send arrives, whole and in order, whichever thread runs the connection.
TEST_F(Http2ServerTest, OtherThreadsMaySendAndFinish) {
  start({.io_threads = 2});
  constexpr int kMessages = 500;
  SocketClient client(port());
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 4; ++i)
    ids.push_back(client.http2().call("/test.Echo/Wait", "", false));
  std::vector<std::unique_ptr<Background>> senders;
  Background starter([&] {
    ASSERT_TRUE(eventually([&] { return waiting_.count() == ids.size(); }));
    const std::lock_guard lock(waiting_.mutex);
    for (const CallPtr& call : waiting_.calls) {
      senders.push_back(std::make_unique<Background>([call] {
        for (int i = 0; i < kMessages; ++i) {
          const Slice message = Slice::of(std::to_string(i));
          while (!call->send(message) && !call->is_cancelled())
            std::this_thread::yield();
        }
        call->finish(0);
      }));
    }
  });
  for (const std::int32_t id : ids) {
    ASSERT_TRUE(client.finish(id));
    const auto messages = client.http2().answer(id).messages();
    ASSERT_EQ(messages.size(), static_cast<std::size_t>(kMessages));
    for (int i = 0; i < kMessages; ++i)
      EXPECT_EQ(messages[static_cast<std::size_t>(i)], std::to_string(i));
  }
  ASSERT_TRUE(starter.finished());
}

TEST_F(Http2ServerTest, AnIdleServerSleeps) {
  start({.io_threads = 2});
  const RawSocket idle(port());
  EXPECT_TRUE(is_served(port()));
  EXPECT_TRUE(eventually(others_sleep));
}

TEST_F(Http2ServerTest, AConnectionAboveTheLimitIsToldAndClosed) {
  start({.connections_max = 2});
  SocketClient first(port());
  SocketClient second(port());
  for (SocketClient* client : {&first, &second})
    client->http2().call("/test.Echo/Wait", "", false);
  ASSERT_TRUE(first.run_until([&] { return waiting_.count() >= 1; }));
  ASSERT_TRUE(second.run_until([&] { return waiting_.count() == 2; }));
  RawSocket third(port());
  EXPECT_THAT(third.read_until("too many connections\n"), HasSubstr("503 Service Unavailable"));
  EXPECT_EQ(server_->stats().connections_refused, 1u);
}

// Goal: connections that are held and not used keep nobody out, and those that are used stay.
TEST_F(Http2ServerTest, NearTheLimitIdleConnectionsMakeRoomForOthers) {
  start({.io_threads = 2, .connections_max = 64});
  SocketClient busy(port());
  busy.http2().call("/test.Echo/Wait", "", false);
  ASSERT_TRUE(busy.run_until([&] { return waiting_.count() == 1; }));
  std::vector<RawSocket> idle;
  for (int i = 0; i < 200; ++i)
    idle.emplace_back(port());
  EXPECT_TRUE(eventually([&] { return is_served(port()); }));
  EXPECT_GE(server_->stats().connections_shed, 1u);
  EXPECT_EQ(waiting_.cancelled, 0);
  waiting_.finish_all(0);
}

TEST_F(Http2ServerTest, ADrainFinishesWhatRunsAndAcceptsNoMore) {
  start();
  SocketClient client(port());
  const auto id = client.http2().call("/test.Echo/Wait", "", false);
  client.run_until([&] { return waiting_.count() == 1; });
  Background drain([&] { server_->drain(system_clock().now() + seconds(60)); });
  EXPECT_TRUE(client.run_until([&] { return client.http2().goaway_count() == 2; }));
  waiting_.finish_all(14);
  EXPECT_TRUE(client.finish(id));
  EXPECT_EQ(client.http2().answer(id).trailer("grpc-status"), "14");
  EXPECT_TRUE(client.is_closed());
  EXPECT_FALSE(is_served(port()));
}

// Goal: a program that ends has its say between the notice to its clients and their end.
TEST_F(Http2ServerTest, ADrainMayBeginBeforeItIsWaitedFor) {
  start();
  SocketClient client(port());
  const auto id = client.http2().call("/test.Echo/Wait", "", false);
  client.run_until([&] { return waiting_.count() == 1; });
  server_->begin_drain();
  server_->begin_drain();
  EXPECT_FALSE(is_served(port()));
  EXPECT_TRUE(client.run_until([&] { return client.http2().goaway_count() == 2; }));
  waiting_.finish_all(14);
  EXPECT_TRUE(client.finish(id));
  server_->drain(system_clock().now() + seconds(60));
  EXPECT_TRUE(client.is_closed());
}

TEST_F(Http2ServerTest, RoutesMayBeChangedWhileTheyAreUsed) {
  Routes starting;
  starting.otherwise({ErrorCode::unavailable, "starting"});
  Server server({}, std::move(starting));
  ASSERT_TRUE(server.start());
  SocketClient client(server.port());
  const auto early = client.http2().call("/test.Echo/Say", framed("early"), true);
  ASSERT_TRUE(client.finish(early));
  EXPECT_EQ(client.http2().answer(early).header("grpc-status"), "14");
  server.change_routes(routes_with(waiting_));
  const auto late = client.http2().call("/test.Echo/Say", framed("late"), true);
  ASSERT_TRUE(client.finish(late));
  EXPECT_THAT(client.http2().answer(late).messages(), testing::ElementsAre("late"));
  server.stop();
}

TEST_F(Http2ServerTest, AStopCancelsWhatRuns) {
  start();
  SocketClient client(port());
  client.http2().call("/test.Echo/Wait", "", false);
  client.run_until([&] { return waiting_.count() == 1; });
  server_->stop();
  EXPECT_EQ(waiting_.cancelled, 1);
  waiting_.finish_all(0);  // Too late, and harmless.
  server_->stop();
  server_->begin_drain();
  server_.reset();
  waiting_.finish_all(0);
}

TEST_F(Http2ServerTest, ADrainEndsAtItsDeadlineThoughACallRuns) {
  start();
  SocketClient client(port());
  client.http2().call("/test.Echo/Wait", "", false);
  client.run_until([&] { return waiting_.count() == 1; });
  server_->drain(system_clock().now() + std::chrono::milliseconds(50));
  EXPECT_EQ(waiting_.cancelled, 1);
}

TEST_F(Http2ServerTest, AClientThatGoesCancelsItsCalls) {
  start();
  {
    SocketClient client(port());
    client.http2().call("/test.Echo/Wait", "", false);
    client.run_until([&] { return waiting_.count() == 1; });
  }
  EXPECT_TRUE(eventually([&] { return waiting_.cancelled == 1; }));
  EXPECT_TRUE(eventually([&] { return server_->stats().connections_now == 0; }));
}

TEST(Http2ServerOptionsTest, BadOptionsAreNamed) {
  Server threads({.io_threads = 0}, Routes{});
  EXPECT_THAT(threads.start().error().message, HasSubstr("io_threads is 0"));
  Server address({.address = "localhost"}, Routes{});
  EXPECT_THAT(address.start().error().message, HasSubstr("'localhost'"));
  ServerOptions options;
  options.limits.header_bytes_max = 1;
  Server limits(options, Routes{});
  EXPECT_THAT(limits.start().error().message, HasSubstr("header_bytes_max"));
}

}  // namespace
}  // namespace ordo::http2
