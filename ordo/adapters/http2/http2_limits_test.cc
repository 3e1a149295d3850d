// Every limit of an HTTP/2 connection, without sockets.
#include <array>
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

#include "tests/support/http2_frames.h"
#include "tests/support/http2_rig.h"

namespace ordo::http2 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing_support::frame;
using testing_support::framed;
using testing_support::Http2Rig;

constexpr std::uint32_t kCalm = NGHTTP2_ENHANCE_YOUR_CALM;

void add_echo(Routes& routes) {
  routes.unary("/test.Echo/Say", [](const CallPtr& call, std::string_view request) {
    call->reply(Slice::of(std::string(request)));
  });
}

// Keeps calls open, and what has become of them.
struct OpenCalls {
  std::vector<CallPtr> calls{};
  int cancelled = 0;

  void add_to(Routes& routes) {
    routes.streaming("/test.Echo/Stay", [this](const CallPtr& call) {
      class Stay final : public CallHandler {
       public:
        explicit Stay(int& cancelled) : cancelled_(cancelled) {}
        void on_message(std::string_view) override {}
        void on_half_close() override {}
        void on_cancelled() override { ++cancelled_; }

       private:
        int& cancelled_;
      };
      calls.push_back(call);
      return std::make_unique<Stay>(cancelled);
    });
  }
};

// The first GOAWAY among the frames that we sent: its code, and the words behind it.
struct Goaway {
  std::uint32_t code = 0;
  std::string words{};
};

std::optional<Goaway> goaway_in(std::string_view bytes) {
  while (bytes.size() >= 9) {
    std::size_t size = 0;
    for (const char byte : bytes.substr(0, 3))
      size = size << 8 | static_cast<unsigned char>(byte);
    const std::string_view payload = bytes.substr(9, size);
    if (bytes[3] == NGHTTP2_GOAWAY) {
      return Goaway{.code = static_cast<unsigned char>(payload[7]),
                    .words = std::string(payload.substr(8))};
    }
    bytes.remove_prefix(9 + size);
  }
  return std::nullopt;
}

// Gives `bytes` until they are not wanted any more, at most `times` times, and expects it to end in
// a GOAWAY that says `words`.
void expect_calmed_by(Http2Rig& rig, const std::string& bytes, int times, const char* words) {
  std::string sent;
  for (int i = 0; i < times && rig.connection().wants_input(); ++i) {
    rig.give(bytes);
    sent.append(rig.take());
  }
  const auto goaway = goaway_in(sent);
  ASSERT_TRUE(goaway);
  EXPECT_EQ(goaway->code, kCalm);
  EXPECT_EQ(goaway->words, words);
  EXPECT_TRUE(rig.connection().is_finished());
  EXPECT_TRUE(rig.connection().is_broken());
  EXPECT_EQ(rig.counters.calmed.value(), 1u);
}

TEST(Http2LimitsTest, TooManyResetsOfTheClientAreCalmed) {
  Limits limits;
  limits.resets_burst = 50;
  OpenCalls open;
  Http2Rig rig(limits);
  open.add_to(rig.routes);
  rig.run();
  for (int i = 0; i < 60 && !rig.client.goaway(); ++i) {
    const auto id = rig.client.call("/test.Echo/Stay", "", false);
    rig.run();
    rig.client.reset(id);
    rig.run();
  }
  EXPECT_EQ(rig.client.goaway(), kCalm);
  EXPECT_EQ(rig.client.goaway_words(), "too many streams were reset");
  EXPECT_TRUE(rig.connection().is_finished());
  EXPECT_EQ(open.calls.size(), 51u);
  EXPECT_EQ(open.cancelled, 50);
  rig.lose_connection();
  EXPECT_EQ(open.cancelled, 51);
}

TEST(Http2LimitsTest, ResetsAtAnHonestRateAreNotCalmed) {
  Limits limits;
  limits.resets_burst = 50;
  limits.resets_per_second = 100;
  OpenCalls open;
  Http2Rig rig(limits);
  open.add_to(rig.routes);
  rig.run();
  for (int i = 0; i < 1'000; ++i) {
    const auto id = rig.client.call("/test.Echo/Stay", "", false);
    rig.run();
    rig.client.reset(id);
    rig.run();
    rig.pass(milliseconds(20));
  }
  EXPECT_FALSE(rig.client.goaway());
}

// A client can make us reset streams instead of doing it itself.
TEST(Http2LimitsTest, TooManyResetsThatTheClientCausesAreCalmed) {
  Limits limits;
  limits.resets_burst = 50;
  OpenCalls open;
  Http2Rig rig(limits);
  open.add_to(rig.routes);
  rig.run();
  for (int i = 0; i < 100 && !rig.client.goaway(); ++i) {
    // More than it said is an error of the stream.
    rig.client.call("/test.Echo/Stay", framed("hello"), false, {{"content-length", "1"}});
    rig.run();
  }
  EXPECT_EQ(rig.client.goaway(), kCalm);
  EXPECT_LE(open.calls.size(), 52u);
}

TEST(Http2LimitsTest, TooManyPingsAreCalmed) {
  Limits limits;
  limits.controls_burst = 100;
  Http2Rig rig(limits);
  rig.run();
  expect_calmed_by(rig, frame(NGHTTP2_PING, 0, 0, "pingping"), 200, "too many control frames");
}

TEST(Http2LimitsTest, TooManySettingsAreCalmed) {
  Limits limits;
  limits.controls_burst = 100;
  Http2Rig rig(limits);
  rig.run();
  expect_calmed_by(rig, frame(NGHTTP2_SETTINGS, 0, 0, ""), 200, "too many control frames");
}

TEST(Http2LimitsTest, TooManyPrioritiesAreCalmed) {
  Limits limits;
  limits.controls_burst = 100;
  Http2Rig rig(limits);
  rig.run();
  expect_calmed_by(rig, frame(NGHTTP2_PRIORITY, 0, 7, std::string_view("\0\0\0\0\x10", 5)), 200,
                   "too many control frames");
}

TEST(Http2LimitsTest, TooManyEmptyDataFramesAreCalmed) {
  Limits limits;
  limits.controls_burst = 100;
  OpenCalls open;
  Http2Rig rig(limits);
  open.add_to(rig.routes);
  const auto id = rig.client.call("/test.Echo/Stay", "", false);
  rig.run();
  expect_calmed_by(rig, frame(NGHTTP2_DATA, 0, static_cast<std::uint32_t>(id), ""), 200,
                   "too many control frames");
}

TEST(Http2LimitsTest, PingsAtAnHonestRateAreAnswered) {
  Limits limits;
  limits.controls_burst = 100;
  limits.controls_per_second = 100;
  Http2Rig rig(limits);
  rig.run();
  for (int i = 0; i < 1'000; ++i) {
    rig.give(frame(NGHTTP2_PING, 0, 0, "pingping"));
    rig.client.receive(rig.take());
    rig.pass(milliseconds(20));
  }
  EXPECT_EQ(rig.client.ping_count(), 1'000);
  EXPECT_FALSE(rig.client.goaway());
}

TEST(Http2LimitsTest, WindowUpdatesForWhatWeSentAreFree) {
  Limits limits;
  limits.controls_burst = 20;
  limits.controls_per_second = 1;
  Http2Rig rig(limits);
  rig.routes.plain([](const ExchangePtr& exchange) {
    exchange->respond({.body = Slice::of(std::string(1'000'000, 'b'))});
  });
  for (int i = 0; i < 10; ++i) {
    const auto id = rig.client.get("/");
    rig.run();
    EXPECT_EQ(rig.client.answer(id).body.size(), 1'000'000u);
  }
  EXPECT_FALSE(rig.client.goaway());
}

TEST(Http2LimitsTest, TooManyContinuationsAreCalmed) {
  Http2Rig rig;
  rig.run();
  ASSERT_TRUE(rig.give(frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, "")));
  expect_calmed_by(rig, frame(NGHTTP2_CONTINUATION, 0, 1, "\x82"), 20,
                   "too many CONTINUATION frames");
}

TEST(Http2LimitsTest, AHeaderBlockFarTooLongIsCalmedBeforeItIsKept) {
  Http2Rig rig;
  rig.run();
  const std::string part(16'000, '\x82');
  EXPECT_TRUE(rig.give(frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, part)));
  expect_calmed_by(rig, frame(NGHTTP2_CONTINUATION, 0, 1, part), 3, "a header block is too long");
}

TEST(Http2LimitsTest, AHeaderListAboveTheLimitIsRefusedAndTheConnectionStays) {
  Http2Rig rig;
  add_echo(rig.routes);
  const std::string large(17'000, 'h');
  const auto call = rig.client.call("/test.Echo/Say", framed("x"), true, {{"x-large", large}});
  const auto plain = rig.client.request(
      {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"x-large", large}}, "", true);
  const auto after = rig.client.call("/test.Echo/Say", framed("x"), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(call).trailer("grpc-status"), "3");
  EXPECT_EQ(rig.client.answer(plain).header(":status"), "431");
  EXPECT_EQ(rig.client.answer(after).trailer("grpc-status"), "0");
}

// Node's clients say last what it is.
TEST(Http2LimitsTest, ACallWithTooMuchMetadataIsRefusedAsACallWhereverItsTypeStands) {
  Http2Rig rig;
  add_echo(rig.routes);
  HeaderList headers = {{":method", "POST"}, {":scheme", "http"}, {":path", "/test.Echo/Say"}};
  headers.add("x-long", std::string(10'000, 'h'));
  headers.add("x-longer", std::string(10'000, 'h'));
  headers.add("content-type", "application/grpc+proto");
  const auto id = rig.client.request(headers, framed("hello"), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).header(":status"), "200");
  EXPECT_EQ(rig.client.answer(id).header("grpc-status"), "3");
  EXPECT_FALSE(rig.client.goaway());
}

TEST(Http2LimitsTest, StreamsAboveTheLimitAreRefusedAndTheOthersStay) {
  Limits limits;
  limits.streams_max = 10;
  OpenCalls open;
  Http2Rig rig(limits);
  open.add_to(rig.routes);
  // Before our SETTINGS have come: the client does not know yet.
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 15; ++i)
    ids.push_back(rig.client.call("/test.Echo/Stay", "", false));
  rig.give(rig.client.take_output());
  rig.client.receive(rig.take());
  // The client acknowledges, and counts from then on.
  rig.run();
  EXPECT_EQ(open.calls.size() - static_cast<std::size_t>(open.cancelled),
            rig.connection().open_count());
  for (int i = 0; i < 15; ++i)
    rig.client.call("/test.Echo/Stay", "", false);
  rig.run();
  EXPECT_LE(rig.connection().open_count(), 15u);
}

TEST(Http2LimitsTest, AClientThatNeverBeginsIsClosed) {
  Http2Rig rig;
  rig.give("PRI * HT");
  rig.pass(rig.limits.handshake_timeout - milliseconds(1));
  EXPECT_FALSE(rig.connection().is_finished());
  rig.pass(milliseconds(1));
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http2LimitsTest, AClientThatStopsBehindThePrefaceIsClosed) {
  Http2Rig rig;
  rig.give("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  rig.take();
  rig.pass(rig.limits.handshake_timeout);
  rig.take();
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http2LimitsTest, AHeaderBlockThatIsNotFinishedInTimeClosesTheConnection) {
  Http2Rig rig;
  rig.run();
  rig.give(frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, "\x82"));
  rig.pass(rig.limits.request_timeout - milliseconds(1));
  EXPECT_FALSE(rig.connection().is_finished());
  rig.pass(milliseconds(1));
  rig.take();
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http2LimitsTest, AnIdleConnectionIsClosedWithGoaway) {
  Http2Rig rig;
  add_echo(rig.routes);
  rig.client.call("/test.Echo/Say", framed("x"), true);
  rig.run();
  rig.pass(rig.limits.idle_timeout - milliseconds(1));
  rig.run();
  EXPECT_FALSE(rig.client.goaway());
  rig.pass(milliseconds(1));
  rig.run();
  EXPECT_EQ(rig.client.goaway(), static_cast<std::uint32_t>(NGHTTP2_NO_ERROR));
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http2LimitsTest, ASilentClientWithACallIsPingedAndThenGivenUp) {
  OpenCalls open;
  Http2Rig rig;
  open.add_to(rig.routes);
  rig.client.call("/test.Echo/Stay", "", false);
  rig.run();
  rig.pass(rig.limits.keepalive_interval);
  rig.run();  // The client answers.
  EXPECT_EQ(rig.client.ping_count(), 1);
  rig.pass(rig.limits.keepalive_timeout);
  EXPECT_FALSE(rig.connection().is_finished());

  rig.pass(rig.limits.keepalive_interval);
  rig.take();  // Nobody answers.
  rig.pass(rig.limits.keepalive_timeout);
  EXPECT_TRUE(rig.connection().is_finished());
  rig.lose_connection();
  EXPECT_EQ(open.cancelled, 1);
}

TEST(Http2LimitsTest, AUnaryRequestThatDoesNotComeInTimeIsEnded) {
  Http2Rig rig;
  add_echo(rig.routes);
  const auto id = rig.client.call("/test.Echo/Say", framed("hello").substr(0, 6), false);
  rig.run();
  for (int i = 0; i < 4; ++i) {
    rig.pass(rig.limits.request_timeout / 4);
    rig.run();
  }
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "4");
  EXPECT_EQ(rig.connection().open_count(), 0u);
}

TEST(Http2LimitsTest, OutputThatNobodyTakesClosesTheConnection) {
  Http2Rig rig;
  add_echo(rig.routes);
  rig.client.call("/test.Echo/Say", framed("x"), true);
  rig.give(rig.client.take_output());
  rig.connection().fill(rig.now);
  rig.pass(rig.limits.write_timeout - milliseconds(1));
  EXPECT_FALSE(rig.connection().is_finished());
  rig.pass(milliseconds(1));
  EXPECT_TRUE(rig.connection().is_finished());
  EXPECT_EQ(rig.counters.timed_out.value(), 1u);
}

TEST(Http2LimitsTest, AResponseThatTheClientGivesNoWindowForIsReset) {
  Http2Rig rig;
  rig.routes.plain([](const ExchangePtr& exchange) {
    exchange->respond({.body = Slice::of(std::string(1'000'000, 'b'))});
  });
  rig.client.is_reading = false;
  const auto id = rig.client.get("/");
  rig.run();
  EXPECT_EQ(rig.client.answer(id).body.size(), 65'535u);
  for (int i = 0; i < 4; ++i) {
    rig.pass(rig.limits.write_timeout / 4);
    rig.run();
  }
  EXPECT_EQ(rig.client.answer(id).closed_with, static_cast<std::uint32_t>(NGHTTP2_CANCEL));
  EXPECT_EQ(rig.connection().open_count(), 0u);
}

TEST(Http2LimitsTest, NoInputIsTakenWhileOutputWaits) {
  Limits limits;
  limits.output_pause_bytes = 20'000;
  Http2Rig rig(limits);
  rig.routes.plain([](const ExchangePtr& exchange) {
    exchange->respond({.body = Slice::of(std::string(60'000, 'b'))});
  });
  rig.client.get("/");
  rig.give(rig.client.take_output());
  rig.connection().fill(rig.now);
  EXPECT_FALSE(rig.connection().wants_input());
  EXPECT_LE(rig.connection().output().size(), 20'000u + 16'384u + 9u);
  rig.take();
  EXPECT_TRUE(rig.connection().wants_input());
}

TEST(Http2LimitsTest, ADrainFinishesWhatRunsAndServesWhatWasOnItsWay) {
  OpenCalls open;
  Http2Rig rig;
  open.add_to(rig.routes);
  add_echo(rig.routes);
  const auto running = rig.client.call("/test.Echo/Stay", "", false);
  rig.run();
  const auto on_its_way = rig.client.call("/test.Echo/Say", framed("x"), true);
  const std::string sent = rig.client.take_output();
  rig.connection().drain(rig.now);
  rig.give(sent);
  rig.run();
  EXPECT_EQ(rig.client.goaway(), static_cast<std::uint32_t>(NGHTTP2_NO_ERROR));
  EXPECT_EQ(rig.client.goaway_count(), 2);
  EXPECT_EQ(rig.client.answer(on_its_way).trailer("grpc-status"), "0");
  EXPECT_FALSE(rig.connection().is_finished());

  open.calls.front()->finish(14, "the server is going away");
  rig.run();
  EXPECT_EQ(rig.client.answer(running).trailer("grpc-status"), "14");
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http2LimitsTest, ADrainDoesNotWaitForAClientThatAnswersNoPing) {
  Http2Rig rig;
  rig.run();
  rig.connection().drain(rig.now);
  rig.client.receive(rig.take());
  rig.client.take_output();  // Lost.
  rig.pass(seconds(1));
  rig.take();
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http2LimitsTest, AProtocolErrorIsAnsweredWithGoaway) {
  Http2Rig rig;
  rig.run();
  rig.give(frame(NGHTTP2_DATA, 0, 1, "data of no stream"));
  rig.client.receive(rig.take());
  EXPECT_EQ(rig.client.goaway(), static_cast<std::uint32_t>(NGHTTP2_PROTOCOL_ERROR));
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(LimitsTest, AFieldOutOfItsRangeIsNamed) {
  EXPECT_TRUE(check(Limits{}));
  Limits limits;
  limits.streams_max = 0;
  EXPECT_EQ(check(limits).error().message, "streams_max is 0; allowed is 1 to 100000");
  limits = {};
  limits.idle_timeout = milliseconds(-1);
  EXPECT_THAT(check(limits).error().message, HasSubstr("idle_timeout"));
}

}  // namespace
}  // namespace ordo::http2
