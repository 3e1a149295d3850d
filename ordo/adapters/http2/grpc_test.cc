// gRPC calls against a Connection, without sockets: a client by libnghttp2 on the other side.
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/adapters/http2/grpc_text.h"
#include "ordo/adapters/http2/gzip.h"
#include "tests/support/http2_rig.h"

namespace ordo::http2 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::Answer;
using testing_support::framed;
using testing_support::Http2Rig;

void add_echo(Routes& routes) {
  routes.unary("/test.Echo/Say", [](const CallPtr& call, std::string_view request) {
    call->reply(Slice::of(std::string(request)));
  });
}

// What a streaming handler was told.
struct Told {
  std::vector<std::string> messages{};
  int half_closes = 0;
  int cancels = 0;
  int writables = 0;
  std::vector<std::size_t> round_ends{};  // How many messages had come at each.
  bool asks_rounds = false;               // With every message.
  CallPtr call{};
};

class Recorder final : public CallHandler {
 public:
  explicit Recorder(Told& told) : told_(told) {}
  void on_message(std::string_view bytes) override {
    told_.messages.emplace_back(bytes);
    if (told_.asks_rounds) told_.call->ask_round_end();
  }
  void on_half_close() override { ++told_.half_closes; }
  void on_cancelled() override { ++told_.cancels; }
  void on_writable() override { ++told_.writables; }
  void on_round_end() override { told_.round_ends.push_back(told_.messages.size()); }

 private:
  Told& told_;
};

void add_recorder(Routes& routes, Told& told) {
  routes.streaming("/test.Echo/Chat", [&told](const CallPtr& call) -> std::unique_ptr<CallHandler> {
    told.call = call;
    return std::make_unique<Recorder>(told);
  });
}

TEST(GrpcTest, AUnaryCallGetsItsReplyAndOk) {
  Http2Rig rig;
  add_echo(rig.routes);
  const auto id = rig.client.call("/test.Echo/Say", framed("hello"), true);
  rig.run();

  const Answer& answer = rig.client.answer(id);
  EXPECT_EQ(answer.header(":status"), "200");
  EXPECT_EQ(answer.header("content-type"), "application/grpc");
  EXPECT_THAT(answer.messages(), ElementsAre("hello"));
  EXPECT_EQ(answer.trailer("grpc-status"), "0");
  EXPECT_TRUE(answer.is_ended);
  EXPECT_EQ(answer.closed_with, 0u);
  EXPECT_EQ(rig.connection().open_count(), 0u);
}

TEST(GrpcTest, AReplyLeavesInOneWrite) {
  Http2Rig rig;
  add_echo(rig.routes);
  rig.run();
  rig.client.call("/test.Echo/Say", framed("hello"), true);
  rig.give(rig.client.take_output());
  rig.connection().fill(rig.now);
  std::array<iovec, 8> pieces{};
  EXPECT_EQ(rig.connection().output().gather(pieces), 1u);
}

// Goal: where the bytes are cut makes no difference. Method: every size of pieces up to one that
// holds all.
TEST(GrpcTest, AnySplitOfTheInputMeansTheSame) {
  for (std::size_t piece_size = 1; piece_size <= 200; ++piece_size) {
    SCOPED_TRACE(piece_size);
    Http2Rig rig;
    add_echo(rig.routes);
    const auto first = rig.client.call("/test.Echo/Say", framed("hello"), true);
    const auto second = rig.client.call("/test.Echo/Say", framed(std::string(70, 'x')), true);
    rig.run(piece_size);
    EXPECT_THAT(rig.client.answer(first).messages(), ElementsAre("hello"));
    EXPECT_THAT(rig.client.answer(second).messages(), ElementsAre(std::string(70, 'x')));
  }
}

TEST(GrpcTest, AMessageOfTenMegabytesComesAndGoes) {
  Http2Rig rig;
  add_echo(rig.routes);
  const std::string large(10'000'000, 'm');
  const auto id = rig.client.call("/test.Echo/Say", framed(large), true);
  rig.run();
  ASSERT_EQ(rig.client.answer(id).messages().size(), 1u);
  EXPECT_EQ(rig.client.answer(id).messages().front(), large);
  EXPECT_EQ(rig.budget.used(), 0u);
}

TEST(GrpcTest, AnEmptyMessageIsAMessage) {
  Http2Rig rig;
  add_echo(rig.routes);
  const auto id = rig.client.call("/test.Echo/Say", framed(""), true);
  rig.run();
  EXPECT_THAT(rig.client.answer(id).messages(), ElementsAre(""));
}

TEST(GrpcTest, AnUnknownMethodIsUnimplementedInOneBlock) {
  Http2Rig rig;
  const auto id = rig.client.call("/no.Such/Method", framed("x"), true);
  rig.run();
  const Answer& answer = rig.client.answer(id);
  EXPECT_EQ(answer.blocks, 1);
  EXPECT_EQ(answer.header("grpc-status"), "12");
  EXPECT_EQ(answer.header("grpc-message"), "unknown method /no.Such/Method");
}

TEST(GrpcTest, AMethodThatIsNotThereYetIsRefusedAsTheRoutesSay) {
  Http2Rig rig;
  rig.routes.otherwise({ErrorCode::unavailable, "starting"});
  const auto id = rig.client.call("/no.Such/Method", framed("x"), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).header("grpc-status"), "14");
  EXPECT_EQ(rig.client.answer(id).header("grpc-message"), "starting");
}

TEST(GrpcTest, AnErrorHasAnEscapedMessageAndDetails) {
  Http2Rig rig;
  rig.routes.unary("/test.Echo/Say", [](const CallPtr& call, std::string_view) {
    call->finish(3, "caf\xC3\xA9 100%", std::string_view("\x08\x03", 2), {{"retry-after", "1"}});
  });
  const auto id = rig.client.call("/test.Echo/Say", framed("x"), true);
  rig.run();
  const Answer& answer = rig.client.answer(id);
  EXPECT_EQ(answer.trailer("grpc-status"), "3");
  EXPECT_EQ(answer.trailer("grpc-message"), "caf%C3%A9 100%25");
  EXPECT_EQ(answer.trailer("grpc-status-details-bin"), "CAM");
  EXPECT_EQ(answer.trailer("retry-after"), "1");
}

TEST(GrpcTest, MetadataComesAndGoes) {
  Http2Rig rig;
  rig.routes.unary("/test.Echo/Say", [](const CallPtr& call, std::string_view) {
    call->send_headers({{"x-seen", *call->headers().find("x-user")}});
    call->reply(Slice::of(call->binary_metadata("x-trace-bin").value_or("none")));
  });
  const auto id = rig.client.call("/test.Echo/Say", framed("x"), true,
                                  {{"x-user", "ann"}, {"x-trace-bin", "AQID"}});
  rig.run();
  EXPECT_EQ(rig.client.answer(id).header("x-seen"), "ann");
  EXPECT_THAT(rig.client.answer(id).messages(), ElementsAre("\x01\x02\x03"));
}

TEST(GrpcTest, AHandlerThatThrowsIsAnInternalError) {
  Http2Rig rig;
  rig.routes.unary("/test.Echo/Say",
                   [](const CallPtr&, std::string_view) { throw std::runtime_error("no luck"); });
  const auto id = rig.client.call("/test.Echo/Say", framed("x"), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "13");
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-message"), "no luck");
}

TEST(GrpcTest, AUnaryCallWithoutAMessageOrWithTwoIsRefused) {
  Http2Rig rig;
  std::vector<CallPtr> calls;
  rig.routes.unary("/test.Echo/Say",
                   [&](const CallPtr& call, std::string_view) { calls.push_back(call); });
  const auto none = rig.client.call("/test.Echo/Say", "", true);
  const auto two = rig.client.call("/test.Echo/Say", framed("a") + framed("b"), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(none).trailer("grpc-status"), "12");
  EXPECT_EQ(rig.client.answer(two).trailer("grpc-status"), "12");
  EXPECT_EQ(calls.size(), 1u);
}

TEST(GrpcTest, ACallThatEndsInAMessageIsRefused) {
  Http2Rig rig;
  add_echo(rig.routes);
  const auto id = rig.client.call("/test.Echo/Say", framed("hello").substr(0, 7), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "3");
}

TEST(GrpcTest, AMessageAboveTheLimitIsInvalidWithBothSizes) {
  Limits limits;
  limits.message_bytes_max = 1'000;
  Http2Rig rig(limits);
  add_echo(rig.routes);
  const auto id = rig.client.call("/test.Echo/Say", framed(std::string(1'001, 'x')), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "3");
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-message"),
            "Received message larger than max (1001 vs. 1000)");
}

TEST(GrpcTest, IncompleteMessagesOfAConnectionAreBounded) {
  Limits limits;
  limits.input_bytes_max = 100'000;
  Http2Rig rig(limits);
  add_echo(rig.routes);
  std::string half = framed(std::string(80'000, 'x'));
  half.resize(60'000);
  const auto first = rig.client.call("/test.Echo/Say", half, false);
  const auto second = rig.client.call("/test.Echo/Say", half, false);
  rig.run();
  EXPECT_EQ(rig.client.answer(second).trailer("grpc-status"), "8");
  rig.client.send(first, std::string(20'005, 'x'), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(first).trailer("grpc-status"), "0");
  EXPECT_EQ(rig.budget.used(), 0u);
}

TEST(GrpcTest, IncompleteMessagesOfAllConnectionsAreBounded) {
  Http2Rig rig({}, 50'000);
  add_echo(rig.routes);
  std::string half = framed(std::string(80'000, 'x'));
  half.resize(60'000);
  const auto id = rig.client.call("/test.Echo/Say", half, false);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "8");
  EXPECT_THAT(rig.client.answer(id).trailer("grpc-message"), HasSubstr("the server holds"));
  EXPECT_EQ(rig.budget.used(), 0u);
}

TEST(GrpcTest, CompressedMessagesAreInflatedAndTheReplyIsCompressedToo) {
  Http2Rig rig;
  add_echo(rig.routes);
  const std::string text(5'000, 'z');
  const std::string small = deflated({Slice::constant(text)});
  ASSERT_LT(small.size(), 200u);
  const auto id =
      rig.client.call("/test.Echo/Say", framed(small, true), true,
                      {{"grpc-encoding", "gzip"}, {"grpc-accept-encoding", "identity,gzip"}});
  rig.run();
  const Answer& answer = rig.client.answer(id);
  EXPECT_EQ(answer.header("grpc-encoding"), "gzip");
  ASSERT_EQ(answer.messages().size(), 1u);
  EXPECT_EQ(answer.body.front(), '\x01');
  EXPECT_EQ(inflated(answer.messages().front(), 10'000).value(), text);
}

TEST(GrpcTest, AMessageThatInflatesBeyondTheLimitIsResourceExhausted) {
  Limits limits;
  limits.message_bytes_max = 100'000;
  Http2Rig rig(limits);
  add_echo(rig.routes);
  const std::string bomb = deflated({Slice::of(std::string(10'000'000, '0'))});
  ASSERT_LT(bomb.size(), 100'000u);
  const auto id =
      rig.client.call("/test.Echo/Say", framed(bomb, true), true, {{"grpc-encoding", "gzip"}});
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "3");
}

TEST(GrpcTest, ACompressionWeDoNotKnowIsUnimplementedAndSaysWhatWeKnow) {
  Http2Rig rig;
  add_echo(rig.routes);
  const auto id =
      rig.client.call("/test.Echo/Say", framed("x"), true, {{"grpc-encoding", "snappy"}});
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "12");
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-accept-encoding"), "identity,gzip");
}

TEST(GrpcTest, ACompressedMessageWithoutAnEncodingIsRefused) {
  Http2Rig rig;
  add_echo(rig.routes);
  const auto id = rig.client.call("/test.Echo/Say", framed("x", true), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "13");
}

TEST(GrpcTest, AContentTypeThatOnlyLooksLikeGrpcIs415) {
  Http2Rig rig;
  const auto id = rig.client.request({{":method", "POST"},
                                      {":scheme", "http"},
                                      {":path", "/a/b"},
                                      {"content-type", "application/grpc-web"}},
                                     "", true);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).header(":status"), "415");
}

TEST(GrpcTest, ACallByGetIs405) {
  Http2Rig rig;
  const auto id = rig.client.request({{":method", "GET"},
                                      {":scheme", "http"},
                                      {":path", "/a/b"},
                                      {"content-type", "application/grpc+proto"}},
                                     "", true);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).header(":status"), "405");
}

TEST(GrpcTest, ACallEndsAtItsDeadlineAndTheHandlerIsTold) {
  Told told;
  Http2Rig rig;
  add_recorder(rig.routes, told);
  const auto id = rig.client.call("/test.Echo/Chat", "", false, {{"grpc-timeout", "100m"}});
  rig.run();
  ASSERT_TRUE(told.call);
  EXPECT_EQ(told.call->deadline(), rig.now + milliseconds(100));

  rig.pass(milliseconds(99));
  rig.run();
  EXPECT_EQ(rig.client.answer(id).blocks, 0);
  rig.pass(milliseconds(1));
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "4");
  EXPECT_EQ(told.cancels, 1);
  EXPECT_TRUE(told.call->is_cancelled());
  EXPECT_EQ(rig.connection().open_count(), 0u);
}

TEST(GrpcTest, ATimeoutThatIsNoneIsRefused) {
  Http2Rig rig;
  add_echo(rig.routes);
  for (const char* text : {"", "10", "S", "123456789S", "1.5S", "-1S", "10x"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(parse_timeout(text));
  }
  const auto id = rig.client.call("/test.Echo/Say", framed("x"), true, {{"grpc-timeout", "soon"}});
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "3");
  EXPECT_EQ(parse_timeout("99999999H"), std::chrono::hours(24 * 365));
  EXPECT_EQ(parse_timeout("5u"), std::chrono::microseconds(5));
}

TEST(GrpcTest, AStreamOfMessagesComesInOrderAndEnds) {
  Told told;
  Http2Rig rig;
  add_recorder(rig.routes, told);
  const auto id = rig.client.call("/test.Echo/Chat", framed("one"), false);
  rig.run();
  EXPECT_THAT(told.messages, ElementsAre("one"));
  EXPECT_TRUE(told.call->send(Slice::constant("1")));
  rig.run();
  EXPECT_THAT(rig.client.answer(id).messages(), ElementsAre("1"));

  rig.client.send(id, framed("two") + framed("three"), true);
  rig.run();
  EXPECT_THAT(told.messages, ElementsAre("one", "two", "three"));
  EXPECT_EQ(told.half_closes, 1);
  told.call->send({Slice::constant("2"), Slice::constant("3")});
  told.call->finish(0);
  rig.run();
  EXPECT_THAT(rig.client.answer(id).messages(), ElementsAre("1", "23"));
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "0");
  EXPECT_EQ(told.cancels, 0);
}

TEST(GrpcTest, AHandlerThatAsksIsToldOnceWhenAllInputOfARoundWasHandedOver) {
  Told told{.asks_rounds = true};
  Http2Rig rig;
  add_recorder(rig.routes, told);
  const auto id = rig.client.call("/test.Echo/Chat", framed("one"), false);
  rig.run();
  rig.client.send(id, framed("two") + framed("three") + framed("four"), false);
  rig.run();
  told.asks_rounds = false;
  rig.client.send(id, framed("five"), false);
  rig.run();
  EXPECT_THAT(told.round_ends, ElementsAre(1u, 4u));
}

TEST(GrpcTest, AResetCancelsTheCall) {
  Told told;
  Http2Rig rig;
  add_recorder(rig.routes, told);
  const auto id = rig.client.call("/test.Echo/Chat", framed("one"), false);
  rig.run();
  rig.client.reset(id);
  rig.run();
  EXPECT_EQ(told.cancels, 1);
  EXPECT_TRUE(told.call->is_cancelled());
  EXPECT_FALSE(told.call->send(Slice::constant("late")));
  told.call->finish(0);
  rig.run();
}

TEST(GrpcTest, ALostConnectionCancelsItsCalls) {
  Told told;
  Http2Rig rig;
  add_recorder(rig.routes, told);
  rig.client.call("/test.Echo/Chat", framed("one"), false);
  rig.run();
  rig.lose_connection();
  EXPECT_EQ(told.cancels, 1);
  told.call->finish(0);  // Nobody hears it, and nothing breaks.
}

TEST(GrpcTest, ASlowReaderIsNotSentMoreThanTheBoundAndTheHandlerIsToldOfRoom) {
  Limits limits;
  limits.stream_output_bytes_max = 100'000;
  Told told;
  Http2Rig rig(limits);
  add_recorder(rig.routes, told);
  rig.client.is_reading = false;
  const auto id = rig.client.call("/test.Echo/Chat", framed("go"), false);
  rig.run();
  const Slice message = Slice::of(std::string(10'000, 'm'));
  int sent = 0;
  while (told.call->send(message)) {
    ++sent;
    rig.run();
    ASSERT_LT(sent, 100);
  }
  // A window of the client's, and the bound.
  EXPECT_GE(sent, 15);
  EXPECT_LE(sent, 18);
  EXPECT_EQ(told.writables, 0);

  nghttp2_session_consume(rig.client.session(), id, rig.client.answer(id).body.size());
  rig.client.is_reading = true;
  rig.run();
  EXPECT_EQ(told.writables, 1);
  EXPECT_TRUE(told.call->wants_more());
  told.call->finish(0);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).messages().size(), static_cast<std::size_t>(sent));
}

// Goal: many streams of one client that does not read hold no more than the connection may, but for
// one message each; and it goes on when the client does.
TEST(GrpcTest, AllStreamsOfASlowReaderTogetherAreBounded) {
  Limits limits;
  limits.output_bytes_max = 100'000;
  std::vector<Told> told(3);
  Http2Rig rig(limits);
  for (Told& one : told) {
    const std::string path = "/test.Echo/Chat" + std::to_string(&one - told.data());
    rig.routes.streaming(path, [&one](const CallPtr& call) -> std::unique_ptr<CallHandler> {
      one.call = call;
      return std::make_unique<Recorder>(one);
    });
  }
  add_echo(rig.routes);
  rig.client.is_reading = false;
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 3; ++i)
    ids.push_back(rig.client.call("/test.Echo/Chat" + std::to_string(i), framed("go"), false));
  rig.run();
  const Slice message = Slice::of(std::string(10'000, 'm'));
  int sent = 0;
  while (told[0].call->send(message)) {
    ++sent;
    rig.run();
    ASSERT_LT(sent, 100);
  }
  EXPECT_TRUE(told[1].call->send(message));
  EXPECT_FALSE(told[1].call->send(message));
  EXPECT_TRUE(told[2].call->send(message));
  EXPECT_FALSE(told[2].call->send(message));
  const auto refused = rig.client.call("/test.Echo/Say", framed("x"), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(refused).header("grpc-status"), "14");
  const auto plain = rig.client.get("/");
  rig.run();
  EXPECT_EQ(rig.client.answer(plain).header(":status"), "503");

  for (const std::int32_t id : ids)
    nghttp2_session_consume(rig.client.session(), id, rig.client.answer(id).body.size());
  rig.client.is_reading = true;
  rig.run();
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE(told[static_cast<std::size_t>(i)].writables, 1);
    EXPECT_TRUE(told[static_cast<std::size_t>(i)].call->send(message));
  }
  const auto served = rig.client.call("/test.Echo/Say", framed("x"), true);
  rig.run();
  EXPECT_THAT(rig.client.answer(served).messages(), ElementsAre("x"));
}

// Goal: what was queued for calls that are gone does not count for ever.
TEST(GrpcTest, WhatAResetCallHadQueuedIsForgotten) {
  Limits limits;
  limits.output_bytes_max = 100'000;
  Told told;
  Http2Rig rig(limits);
  add_recorder(rig.routes, told);
  add_echo(rig.routes);
  rig.client.is_reading = false;
  const auto id = rig.client.call("/test.Echo/Chat", framed("go"), false);
  rig.run();
  const Slice message = Slice::of(std::string(10'000, 'm'));
  while (told.call->send(message))
    rig.run();
  nghttp2_session_consume(rig.client.session(), id, rig.client.answer(id).body.size());
  rig.client.is_reading = true;
  rig.client.reset(id);
  rig.run();
  told.call.reset();
  const auto served = rig.client.call("/test.Echo/Say", framed("x"), true);
  rig.run();
  EXPECT_THAT(rig.client.answer(served).messages(), ElementsAre("x"));
}

TEST(GrpcTest, HeldInputIsNotHandedOverAndTheClientGetsNoRoom) {
  Limits limits;
  limits.stream_window_bytes = 65'535;
  Told told;
  Http2Rig rig(limits);
  add_recorder(rig.routes, told);
  const auto id = rig.client.call("/test.Echo/Chat", framed("one"), false);
  rig.run();
  const std::size_t of_head = rig.budget.used();
  told.call->hold_input();
  std::string many;
  for (int i = 0; i < 20; ++i)
    many.append(framed(std::string(10'000, 'm')));
  rig.client.send(id, many, true);
  rig.run();
  EXPECT_EQ(told.messages.size(), 1u);
  EXPECT_LE(rig.budget.used(), of_head + 65'535u + 10'000u);
  EXPECT_EQ(told.half_closes, 0);

  told.call->resume_input();
  rig.run();
  EXPECT_EQ(told.messages.size(), 21u);
  EXPECT_EQ(told.half_closes, 1);
  EXPECT_EQ(rig.budget.used(), of_head);
}

TEST(GrpcTest, AHandlerMayHoldItsInputAfterEachMessage) {
  Told told;
  Http2Rig rig;
  class OneByOne final : public CallHandler {
   public:
    explicit OneByOne(Told& told) : told_(told) {}
    void on_message(std::string_view bytes) override {
      told_.messages.emplace_back(bytes);
      told_.call->hold_input();
    }
    void on_half_close() override { ++told_.half_closes; }

   private:
    Told& told_;
  };
  rig.routes.streaming("/test.Echo/Chat", [&](const CallPtr& call) -> std::unique_ptr<CallHandler> {
    told.call = call;
    return std::make_unique<OneByOne>(told);
  });
  rig.client.call("/test.Echo/Chat", framed("a") + framed("b") + framed("c"), true);
  rig.run();
  for (std::size_t count = 1; count <= 3; ++count) {
    EXPECT_EQ(told.messages.size(), count);
    told.call->resume_input();
    rig.run();
  }
  EXPECT_EQ(told.half_closes, 1);
}

TEST(GrpcTest, AReplyBeforeTheClientHasEndedLetsItStop) {
  Http2Rig rig;
  add_echo(rig.routes);
  const auto id = rig.client.call("/test.Echo/Say", framed("hello"), false);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "0");
  EXPECT_EQ(rig.client.answer(id).closed_with, 0u);
  EXPECT_EQ(rig.connection().open_count(), 0u);
}

TEST(GrpcTextTest, Base64ComesBack) {
  for (std::size_t size = 0; size < 20; ++size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i)
      bytes.push_back(static_cast<char>(i * 37 + 200));
    EXPECT_EQ(from_base64(base64(bytes)), bytes);
  }
  EXPECT_EQ(from_base64("AQ=="), "\x01");
  EXPECT_FALSE(from_base64("A"));
  EXPECT_FALSE(from_base64("A*=="));
}

}  // namespace
}  // namespace ordo::http2
