// What connections hold of memory: before the first request, idle, and with output nobody takes.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/adapters/http2/idle_list.h"
#include "ordo/adapters/http2/server.h"
#include "tests/support/http2_rig.h"
#include "tests/support/raw_socket.h"
#include "tests/support/waiting.h"

namespace ordo::http2 {
namespace {

using testing::ElementsAre;
using testing_support::eventually;
using testing_support::framed;
using testing_support::Http2Rig;
using testing_support::is_served;
using testing_support::RawSocket;
using testing_support::Watchdog;

constexpr std::size_t kSmall = 4'096;
constexpr std::size_t kMebibyte = std::size_t{1} << 20;

void add_echo(Routes& routes) {
  routes.unary("/test.Echo/Say", [](const CallPtr& call, std::string_view request) {
    call->reply(Slice::of(std::string(request)));
  });
  routes.plain("/large", [](const ExchangePtr& exchange) {
    exchange->respond({.body = Slice::of(std::string(kMebibyte, 'l'))});
  });
  routes.plain("/hello", [](const ExchangePtr& exchange) {
    exchange->respond({.body = Slice::constant("hello\n")});
  });
}

// ---------------------------------------------------------------- before the first request

TEST(SleepTest, BeforeTheFirstRequestASessionTakesLittleMemory) {
  Http2Rig rig;
  add_echo(rig.routes);
  rig.run();
  EXPECT_LE(rig.connection().idle_bytes(), kSmall);

  const auto id = rig.client.call("/test.Echo/Say", framed("hello"), true);
  rig.run();
  EXPECT_THAT(rig.client.answer(id).messages(), ElementsAre("hello"));
  EXPECT_GT(rig.connection().idle_bytes(), kSmall);
}

// Goal: a client does not notice that its session was made again. Method: its settings allow ten
// bytes for each stream, and come long before the request.
TEST(SleepTest, WhatTheClientSaidBeforeIsStillInForce) {
  Http2Rig rig;
  add_echo(rig.routes);
  const nghttp2_settings_entry window{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 10};
  nghttp2_submit_settings(rig.client.session(), NGHTTP2_FLAG_NONE, &window, 1);
  rig.run();
  ASSERT_LE(rig.connection().idle_bytes(), kSmall);

  rig.client.is_reading = false;
  const auto id = rig.client.get("/large");
  rig.run();
  EXPECT_EQ(rig.client.answer(id).body.size(), 10u);
}

TEST(SleepTest, WhatWasSaidIsNotSaidAgain) {
  Http2Rig rig;
  rig.run();
  ASSERT_LE(rig.connection().idle_bytes(), kSmall);
  const std::string ping("\0\0\x08\x06\0\0\0\0\0pingping", 17);
  const std::string answer("\0\0\x08\x06\x01\0\0\0\0pingping", 17);
  rig.give(ping);
  EXPECT_EQ(rig.take(), answer);
}

TEST(SleepTest, AFrameThatCameInPiecesIsWhole) {
  Http2Rig rig;
  add_echo(rig.routes);
  rig.run(1);
  const auto id = rig.client.call("/test.Echo/Say", framed("hello"), true);
  for (const char byte : rig.client.take_output()) {
    rig.give({&byte, 1});
    rig.client.receive(rig.take());
  }
  rig.run(1);
  EXPECT_THAT(rig.client.answer(id).messages(), ElementsAre("hello"));
}

TEST(SleepTest, WhoSaysTooMuchIsNotRemembered) {
  Http2Rig rig;
  add_echo(rig.routes);
  for (int i = 0; i < 50; ++i)
    nghttp2_submit_settings(rig.client.session(), NGHTTP2_FLAG_NONE, nullptr, 0);
  rig.run();
  EXPECT_GT(rig.connection().idle_bytes(), kSmall);
  const auto id = rig.client.call("/test.Echo/Say", framed("hello"), true);
  rig.run();
  EXPECT_THAT(rig.client.answer(id).messages(), ElementsAre("hello"));
}

TEST(SleepTest, ASessionThatSleepsSaysGoodbye) {
  Http2Rig rig;
  rig.run();
  rig.connection().end_idle(rig.now);
  EXPECT_FALSE(rig.connection().is_finished());
  rig.client.receive(rig.take());
  EXPECT_EQ(rig.client.goaway(), static_cast<std::uint32_t>(NGHTTP2_NO_ERROR));
  EXPECT_TRUE(rig.connection().is_finished());
}

// ---------------------------------------------------------------- idle connections

TEST(IdleListTest, WhoNeverAskedGoesFirstThenTheLongestSilent) {
  IdleList idle;
  IdleList::Place one;
  IdleList::Place two;
  IdleList::Place three;
  idle.place(one, 1, IdleList::Rank::often, 10);
  idle.place(two, 2, IdleList::Rank::often, 20);
  idle.place(three, 3, IdleList::Rank::fresh, 30);
  EXPECT_EQ(idle.bytes(), 60u);
  EXPECT_EQ(idle.first(), 3u);
  idle.place(three, 3, IdleList::Rank::often, 40);
  EXPECT_EQ(idle.bytes(), 70u);
  EXPECT_EQ(idle.first(), 1u);
  idle.place(one, 1, IdleList::Rank::often, 10);
  EXPECT_EQ(idle.first(), 2u);
  idle.remove(two);
  idle.remove(two);
  EXPECT_EQ(idle.first(), 3u);
  idle.remove(three);
  idle.remove(one);
  EXPECT_EQ(idle.first(), std::nullopt);
  EXPECT_EQ(idle.bytes(), 0u);
}

class MemoryServerTest : public testing::Test {
 protected:
  void start(ServerOptions options) {
    Routes routes;
    add_echo(routes);
    server_ = std::make_unique<Server>(std::move(options), std::move(routes));
    ASSERT_TRUE(server_->start());
  }

  Watchdog watchdog_{"MemoryServerTest"};
  std::unique_ptr<Server> server_;
};

TEST(IdleListTest, TheFewThatHaveJustComeAreLeftAlone) {
  IdleList idle;
  std::vector<IdleList::Place> places(9);
  for (std::uint64_t number = 1; number < 8; ++number)
    idle.place(places[number], number, IdleList::Rank::often, 10);
  idle.place(places[8], 8, IdleList::Rank::fresh, 10);
  EXPECT_EQ(idle.first(), 1u);
  idle.remove(places[1]);
  EXPECT_EQ(idle.first(), 8u);
}

// The preface, SETTINGS, and a request for /hello.
std::string request() {
  return std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\x04\0\0\0\0\0", 9) +
         std::string("\0\0\x0d\x01\x05\0\0\0\x01\x82\x86\x41\x01x\x44\x06/hello", 22);
}

TEST_F(MemoryServerTest, IdleConnectionsAreClosedWhenTheyTakeTooMuch) {
  start({.idle_bytes_max = kMebibyte});
  std::vector<RawSocket> sockets;
  for (int i = 0; i < 100; ++i) {
    sockets.emplace_back(server_->port());
    ASSERT_TRUE(sockets.back().send(request()));
    EXPECT_NE(sockets.back().read_until("hello\n"), "");
  }
  EXPECT_TRUE(eventually([&] { return server_->stats().connections_shed >= 30; }));
  EXPECT_TRUE(sockets.front().is_closed());
  EXPECT_GE(server_->stats().connections_now, 10u);
  EXPECT_TRUE(is_served(server_->port()));
}

// ---------------------------------------------------------------- calls that stay

struct OpenCalls {
  std::vector<CallPtr> calls{};

  void add_to(Routes& routes) {
    routes.streaming("/test.Echo/Stay", [this](const CallPtr& call) {
      class Stay final : public CallHandler {
       public:
        void on_message(std::string_view) override {}
        void on_half_close() override {}
      };
      calls.push_back(call);
      return std::make_unique<Stay>();
    });
  }
};

// Goal: heads that a client needs few bytes for, and keeps, take no more than the server allows.
// Method: heads of 10 kB, and room for about 20 of them beside what each connection may have.
TEST(HeadBudgetTest, HeadsOfCallsThatStayAreBounded) {
  Http2Rig rig({}, 200'000);
  OpenCalls open;
  open.add_to(rig.routes);
  const HeaderList head = {{"x-long", std::string(10'000, 'h')}};
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 40; ++i) {
    ids.push_back(rig.client.call("/test.Echo/Stay", "", false, head));
    rig.run();
  }
  EXPECT_GE(open.calls.size(), 10u);
  EXPECT_LE(open.calls.size(), 20u);
  EXPECT_LE(rig.budget.used(), 200'000u);
  EXPECT_EQ(rig.client.answer(ids.back()).trailer("grpc-status"), "8");
  const auto plain = rig.client.get("/hello");
  rig.run();
  EXPECT_EQ(rig.client.answer(plain).header(":status"), "404");

  rig.client.reset(ids.front());
  rig.run();
  const std::size_t before = open.calls.size();
  rig.client.call("/test.Echo/Stay", "", false, head);
  rig.run();
  EXPECT_EQ(open.calls.size(), before + 1);
  rig.lose_connection();
  EXPECT_EQ(rig.budget.used(), 0u);
}

TEST(HeadBudgetTest, WhoWantsLittleIsServedThoughOthersHaveTakenAll) {
  Http2Rig rig({}, 200'000);
  add_echo(rig.routes);
  rig.budget.add(200'000);
  const auto call = rig.client.call("/test.Echo/Say", framed("hello"), true);
  const auto plain = rig.client.get("/hello");
  rig.run();
  EXPECT_THAT(rig.client.answer(call).messages(), ElementsAre("hello"));
  EXPECT_EQ(rig.client.answer(plain).body, "hello\n");
  EXPECT_EQ(rig.budget.used(), 200'000u);
}

// ---------------------------------------------------------------- output nobody takes

TEST(OutputBudgetTest, WhileItIsFullACallMaySendOnlyWhenItHasNothingQueued) {
  Http2Rig rig;
  rig.output = std::make_shared<OutputBudget>(100'000);
  OpenCalls open;
  open.add_to(rig.routes);
  rig.client.call("/test.Echo/Stay", "", false);
  rig.client.call("/test.Echo/Stay", "", false);
  rig.run();
  ASSERT_EQ(open.calls.size(), 2u);
  const Slice message = Slice::of(std::string(60'000, 'm'));

  EXPECT_TRUE(open.calls[0]->send(message));
  EXPECT_TRUE(open.calls[0]->send(message));
  EXPECT_TRUE(rig.output->is_full());
  EXPECT_FALSE(open.calls[0]->send(message));
  EXPECT_FALSE(open.calls[0]->wants_more());
  EXPECT_TRUE(open.calls[1]->send(message));
  EXPECT_FALSE(open.calls[1]->send(message));

  rig.run();
  EXPECT_EQ(rig.output->used(), 0u);
  EXPECT_TRUE(open.calls[0]->send(message));
  EXPECT_EQ(rig.client.answer(1).messages().size(), 2u);
}

TEST(OutputBudgetTest, AFullBudgetDoesNotRefuseTheCallsOfOthers) {
  Http2Rig rig;
  rig.output = std::make_shared<OutputBudget>(100'000);
  rig.output->add(100'000);
  add_echo(rig.routes);
  const auto id = rig.client.call("/test.Echo/Say", framed("hello"), true);
  rig.run();
  EXPECT_THAT(rig.client.answer(id).messages(), ElementsAre("hello"));
}

TEST(OutputBudgetTest, WhatTheSocketDoesNotTakeCountsUntilItIsTakenOrGone) {
  Http2Rig rig;
  add_echo(rig.routes);
  rig.run();
  rig.client.get("/large");
  rig.give(rig.client.take_output());
  rig.connection().fill(rig.now);
  const std::size_t waiting = rig.connection().output().size();
  ASSERT_GT(waiting, 10'000u);
  rig.connection().sent(0, rig.now);
  EXPECT_EQ(rig.output->used(), rig.connection().queued_bytes());
  rig.connection().sent(10'000, rig.now);
  EXPECT_EQ(rig.output->used(), rig.connection().queued_bytes());
  rig.lose_connection();
  EXPECT_EQ(rig.output->used(), 0u);
}

// Goal: whoever asks and does not read is reset before the server holds much more than it may, and
// whoever reads is served.
TEST_F(MemoryServerTest, WhoTakesNothingIsCutOffWhenTheServerHoldsTooMuch) {
  start({.io_threads = 2, .output_bytes_max = 8 * kMebibyte, .send_buffer_bytes = 16'384});
  std::vector<RawSocket> slow;
  for (int i = 0; i < 40; ++i) {
    slow.emplace_back(server_->port(), 4'096);
    ASSERT_TRUE(slow.back().send("GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n"));
  }
  EXPECT_TRUE(eventually([&] {
    const ServerStats stats = server_->stats();
    return stats.requests == 40 && stats.output_bytes_now < 8 * kMebibyte;
  }));
  EXPECT_GE(server_->stats().connections_cut_off, 30u);
  EXPECT_TRUE(is_served(server_->port()));
  RawSocket honest(server_->port());
  ASSERT_TRUE(honest.send("GET /large HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"));
  EXPECT_GE(honest.read_until("nothing of the kind").size(), kMebibyte);
}

}  // namespace
}  // namespace ordo::http2
