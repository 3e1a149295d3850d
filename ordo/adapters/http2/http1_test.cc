// HTTP/1.1 against a Connection, without sockets.
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http2_rig.h"

namespace ordo::http2 {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::ConnectionRig;
using testing_support::Http2Rig;

void add_echo(ConnectionRig& rig) {
  rig.routes.plain([](const ExchangePtr& exchange) {
    std::string text(exchange->method());
    text.append(" ").append(exchange->path()).append(" ").append(exchange->body());
    exchange->respond({.content_type = "", .body = Slice::of(std::move(text))});
  });
}

std::string answer_to(std::string_view request, std::size_t piece_size = ~std::size_t{0}) {
  ConnectionRig rig;
  add_echo(rig);
  rig.give(request, piece_size);
  return rig.take();
}

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nhost: x\r\n\r\n";

TEST(Http1Test, ARequestGetsItsResponse) {
  EXPECT_EQ(answer_to(kGet), "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nGET /a ");
}

TEST(Http1Test, ATargetMayBeTheWholeAddress) {
  const auto answer = [](const std::string& target) {
    return answer_to("GET " + target + " HTTP/1.1\r\nHost: X:80\r\n\r\n");
  };
  EXPECT_THAT(answer("http://x:80/a?b=1"), HasSubstr("GET /a?b=1 "));
  EXPECT_THAT(answer("HTTP://X:80"), HasSubstr("GET / "));
  EXPECT_THAT(answer("*"), HasSubstr("GET * "));
}

TEST(Http1Test, AnySplitOfTheInputMeansTheSame) {
  const std::string requests = std::string(kGet) +
                               "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" +
                               "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "3\r\nabc\r\n2;name=value\r\nde\r\n0\r\nx-trailer: 1\r\n\r\n" +
                               "GET /d HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
  const std::string whole = answer_to(requests);
  EXPECT_THAT(whole, HasSubstr("POST /b hello"));
  EXPECT_THAT(whole, HasSubstr("POST /c abcde"));
  EXPECT_THAT(whole, HasSubstr("GET /d "));
  for (std::size_t piece_size = 1; piece_size < 60; ++piece_size)
    EXPECT_EQ(answer_to(requests, piece_size), whole) << piece_size;
}

TEST(Http1Test, PipelinedRequestsAreAnsweredInTurnThoughTheFirstTakesLong) {
  ConnectionRig rig;
  std::vector<ExchangePtr> exchanges;
  rig.routes.plain([&](const ExchangePtr& exchange) { exchanges.push_back(exchange); });
  rig.give("GET /1 HTTP/1.1\r\nhost: x\r\n\r\nGET /2 HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_EQ(rig.take(), "");
  ASSERT_EQ(exchanges.size(), 1u);
  exchanges[0]->respond({.body = Slice::constant("first")});
  EXPECT_THAT(rig.take(), HasSubstr("first"));
  ASSERT_EQ(exchanges.size(), 2u);
  exchanges[1]->respond({.body = Slice::constant("second")});
  EXPECT_THAT(rig.take(), HasSubstr("second"));
}

TEST(Http1Test, OfPipelinedRequestsOnlySoManyBytesAreReadAhead) {
  ConnectionRig rig;
  rig.routes.plain([](const ExchangePtr&) {});
  std::string many;
  while (many.size() < 100'000)
    many.append(kGet);
  EXPECT_FALSE(rig.give(many, 1'000));
}

TEST(Http1Test, HeadHasTheLengthAndNoBody) {
  EXPECT_EQ(answer_to("HEAD /a HTTP/1.1\r\nhost: x\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n");
}

TEST(Http1Test, AClientThatAsksToGoOnIsToldTo) {
  ConnectionRig rig;
  add_echo(rig);
  rig.give("POST /b HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
  EXPECT_EQ(rig.take(), "HTTP/1.1 100 Continue\r\n\r\n");
  rig.give("hi");
  EXPECT_THAT(rig.take(), HasSubstr("POST /b hi"));
}

TEST(Http1Test, AnOldClientIsServedAndClosed) {
  ConnectionRig rig;
  add_echo(rig);
  rig.give("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_THAT(rig.take(), HasSubstr("connection: close"));
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http1Test, ABodyOfUnknownLengthIsChunked) {
  ConnectionRig rig;
  ExchangePtr kept;
  rig.routes.plain([&](const ExchangePtr& exchange) { kept = exchange; });
  rig.give(kGet);
  kept->begin(200, {{"content-type", "text/event-stream"}});
  kept->write(Slice::constant("one"));
  EXPECT_EQ(rig.take(),
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            "transfer-encoding: chunked\r\n\r\n3\r\none\r\n");
  kept->end();
  EXPECT_EQ(rig.take(), "0\r\n\r\n");
  rig.give(kGet);
  EXPECT_TRUE(rig.connection().wants_input());
}

TEST(Http1Test, AStreamIsHeldUpByItsReaderAndToldOfRoom) {
  Limits limits;
  limits.stream_output_bytes_max = 10'000;
  limits.output_pause_bytes = 1'000;
  ConnectionRig rig(limits);
  ExchangePtr kept;
  int told = 0;
  rig.routes.plain([&](const ExchangePtr& exchange) {
    kept = exchange;
    exchange->on_writable([&] { ++told; });
  });
  rig.give(kGet);
  kept->begin(200, {});
  int count = 0;
  while (kept->write(Slice::of(std::string(1'000, 'e'))))
    ++count;
  EXPECT_GE(count, 9);
  EXPECT_LE(count, 11);
  EXPECT_EQ(told, 0);
  rig.take();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(kept->wants_more());
}

TEST(Http1Test, AClientThatGoesCancelsItsRequest) {
  ConnectionRig rig;
  int cancelled = 0;
  rig.routes.plain(
      [&](const ExchangePtr& exchange) { exchange->on_cancelled([&] { ++cancelled; }); });
  rig.give(kGet);
  rig.lose_connection();
  EXPECT_EQ(cancelled, 1);
}

TEST(Http1Test, AClientThatEndsItsSideHasGoneForWhoAsksAndIsAnsweredByOthers) {
  ConnectionRig rig;
  int cancelled = 0;
  ExchangePtr kept;
  rig.routes.plain("/wait", [&](const ExchangePtr& exchange) {
    exchange->on_cancelled([&] { ++cancelled; });
    kept = exchange;
  });
  rig.give("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  rig.connection().end_input(rig.now);
  EXPECT_EQ(rig.take(), "");
  EXPECT_EQ(cancelled, 1);
  EXPECT_TRUE(kept->is_cancelled());
  EXPECT_TRUE(rig.connection().is_finished());

  ConnectionRig other;
  other.routes.plain([&](const ExchangePtr& exchange) { kept = exchange; });
  other.give(kGet);
  other.connection().end_input(other.now);
  EXPECT_FALSE(other.connection().is_finished());
  kept->respond({.body = Slice::constant("bye")});
  EXPECT_THAT(other.take(), HasSubstr("bye"));
}

TEST(Http1Test, AHandlerThatThrowsIs500AndWithoutOneItIs404) {
  ConnectionRig rig;
  rig.routes.plain([](const ExchangePtr&) { throw std::runtime_error("no luck"); });
  rig.give(kGet);
  EXPECT_THAT(rig.take(), testing::AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("no luck")));
  ConnectionRig empty;
  empty.give(kGet);
  EXPECT_THAT(empty.take(), StartsWith("HTTP/1.1 404"));
}

TEST(Http1Test, TheLongestPrefixOfThePathDecidesWhoServes) {
  ConnectionRig rig;
  const auto say = [](const char* who) {
    return [who](const ExchangePtr& exchange) {
      exchange->respond({.body = Slice::of(std::string(who) + "\n")});
    };
  };
  rig.routes.plain("/v1/", say("first"));
  rig.routes.plain("/v1/projects/", say("projects"));
  rig.routes.plain(say("others"));
  const auto served = [&](const std::string& path) {
    rig.give("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return rig.take();
  };
  EXPECT_THAT(served("/v1/projects/p"), HasSubstr("\r\nprojects\n"));
  EXPECT_THAT(served("/v1/project"), HasSubstr("\r\nfirst\n"));
  EXPECT_THAT(served("/v1"), HasSubstr("\r\nothers\n"));
}

TEST(Http1Test, AHeaderOfAHandlerCannotEndTheHead) {
  ConnectionRig rig;
  rig.routes.plain([](const ExchangePtr& exchange) {
    exchange->respond({.headers = {{"location", "/\r\nset-cookie: stolen"}}});
  });
  rig.give(kGet);
  EXPECT_THAT(rig.take(), HasSubstr("location: /  set-cookie: stolen\r\n"));
}

struct Refusal {
  const char* name;
  std::string request;
  const char* status;
};

class Http1Refusals : public testing::TestWithParam<Refusal> {};

// Goal: nothing that two readers could understand in two ways is served, and what follows it on the
// connection is not looked at.
TEST_P(Http1Refusals, AreAnsweredAndTheConnectionEnds) {
  ConnectionRig rig;
  int served = 0;
  rig.routes.plain([&](const ExchangePtr&) { ++served; });
  rig.give(GetParam().request + std::string(kGet));
  EXPECT_THAT(rig.take(), StartsWith(std::string("HTTP/1.1 ") + GetParam().status));
  EXPECT_EQ(served, 0);
  EXPECT_TRUE(rig.connection().is_finished());
  EXPECT_TRUE(rig.connection().is_broken());
  EXPECT_EQ(rig.budget.used(), 0u);
}

std::string post(const std::string& headers, const std::string& body = "") {
  return "POST / HTTP/1.1\r\nhost: x\r\n" + headers + "\r\n" + body;
}

INSTANTIATE_TEST_SUITE_P(
    All, Http1Refusals,
    testing::Values(
        Refusal{"BothLengths", post("content-length: 3\r\ntransfer-encoding: chunked\r\n"), "400"},
        Refusal{"TwoLengths", post("content-length: 3\r\ncontent-length: 3\r\n"), "400"},
        Refusal{"LengthList", post("content-length: 3, 3\r\n"), "400"},
        Refusal{"LengthWithSign", post("content-length: +3\r\n"), "400"},
        Refusal{"LengthEmpty", post("content-length:\r\n"), "400"},
        Refusal{"LengthHuge", post("content-length: 99999999999999999999\r\n"), "400"},
        Refusal{"BodyTooLong", post("content-length: 99999999\r\n"), "413"},
        Refusal{"OtherCoding", post("transfer-encoding: gzip, chunked\r\n"), "501"},
        Refusal{"TwoCodings", post("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n"),
                "400"},
        Refusal{"CodingInOldVersion", "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n",
                "400"},
        Refusal{"ChunkSizeNotHex", post("transfer-encoding: chunked\r\n", "xyz\r\n"), "400"},
        Refusal{"ChunkSizeWithPrefix", post("transfer-encoding: chunked\r\n", "0x3\r\nabc\r\n"),
                "400"},
        Refusal{"ChunkSizeWithSpace", post("transfer-encoding: chunked\r\n", "3 \r\nabc\r\n"),
                "400"},
        Refusal{"ChunkSizeTooLong", post("transfer-encoding: chunked\r\n", "000000003\r\nabc\r\n"),
                "400"},
        Refusal{"ChunkTooLarge", post("transfer-encoding: chunked\r\n", "ffffffff\r\n"), "413"},
        Refusal{"ChunkLongerThanItSays", post("transfer-encoding: chunked\r\n", "3\r\nabcd\r\n"),
                "400"},
        Refusal{"ChunkLineWithoutCr", post("transfer-encoding: chunked\r\n", "3\nabc\r\n"), "400"},
        Refusal{"TargetWithoutASlash", "GET a HTTP/1.1\r\nhost: x\r\n\r\n", "400"},
        Refusal{"TargetOfAProxy", "CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n", "400"},
        Refusal{"TargetWithoutAHost", "GET http:///a HTTP/1.1\r\nhost: x\r\n\r\n", "400"},
        Refusal{"TargetAndHostDiffer", "GET http://y/a HTTP/1.1\r\nhost: x\r\n\r\n", "400"},
        Refusal{"FoldedLine", post("x-a: 1\r\n 2\r\n"), "400"},
        Refusal{"SpaceBeforeColon", post("x-a : 1\r\n"), "400"},
        Refusal{"NoColon", post("x-a\r\n"), "400"},
        Refusal{"ControlCharacter", post("x-a: a\x01z\r\n"), "400"},
        Refusal{"BareCr", post("x-a: a\rz\r\n"), "400"},
        Refusal{"BareLf", "GET / HTTP/1.1\nhost: x\n\n", "400"},
        Refusal{"NoHost", "GET / HTTP/1.1\r\n\r\n", "400"},
        Refusal{"TwoHosts", post("host: y\r\n"), "400"},
        Refusal{"OtherVersion", "GET / HTTP/2.0\r\nhost: x\r\n\r\n", "505"},
        Refusal{"NoVersion", "GET /\r\n\r\n", "400"},
        Refusal{"SpaceInTarget", "GET /a b HTTP/1.1\r\nhost: x\r\n\r\n", "400"},
        Refusal{"NotHttp", "\x16\x03\x01\x02\r\n\r\n", "400"},
        Refusal{"OtherExpectation", post("expect: miracles\r\n"), "417"},
        Refusal{"HeadTooLong", "GET / HTTP/1.1\r\nx: " + std::string(17'000, 'x') + "\r\n\r\n",
                "431"}),
    [](const testing::TestParamInfo<Refusal>& tested) { return tested.param.name; });

TEST(Http1LimitsTest, ABodyThatGrowsAboveTheLimitInChunksIs413) {
  Limits limits;
  limits.message_bytes_max = 1'000;
  ConnectionRig rig(limits);
  rig.give("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20 && rig.connection().wants_input(); ++i)
    rig.give("64\r\n" + std::string(100, 'b') + "\r\n");
  EXPECT_THAT(rig.take(), StartsWith("HTTP/1.1 413"));
}

TEST(Http1LimitsTest, BodiesThatTheServerHasNoRoomForAre503) {
  ConnectionRig rig({}, 1'000);
  rig.give("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n" + std::string(4'000, 'b'));
  EXPECT_THAT(rig.take(), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(rig.budget.used(), 0u);
}

TEST(Http1LimitsTest, ARequestThatDoesNotComeInTimeIs408) {
  ConnectionRig rig;
  add_echo(rig);
  rig.give(kGet);
  rig.take();
  rig.give("GET / HT");
  rig.pass(rig.limits.request_timeout);
  EXPECT_THAT(rig.take(), StartsWith("HTTP/1.1 408"));
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http1LimitsTest, AClientThatSaysNothingIsClosed) {
  ConnectionRig rig;
  rig.connection();
  rig.pass(rig.limits.handshake_timeout);
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http1LimitsTest, AFirstHeadThatStopsHalfWayIs408WithTheHandshakeTimeout) {
  ConnectionRig rig;
  rig.give("GET / HT");
  rig.pass(rig.limits.handshake_timeout - milliseconds(1));
  EXPECT_EQ(rig.take(), "");
  rig.pass(milliseconds(1));
  EXPECT_THAT(rig.take(), StartsWith("HTTP/1.1 408"));
}

TEST(Http1LimitsTest, AnIdleConnectionIsClosed) {
  ConnectionRig rig;
  add_echo(rig);
  rig.give(kGet);
  rig.take();
  rig.pass(rig.limits.idle_timeout - milliseconds(1));
  EXPECT_FALSE(rig.connection().is_finished());
  rig.pass(milliseconds(1));
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http1Test, ADrainAnswersWhatRunsAndCloses) {
  ConnectionRig rig;
  ExchangePtr kept;
  rig.routes.plain([&](const ExchangePtr& exchange) { kept = exchange; });
  rig.give(kGet);
  rig.connection().drain(rig.now);
  EXPECT_FALSE(rig.connection().is_finished());
  kept->respond({.body = Slice::constant("bye")});
  EXPECT_THAT(rig.take(), testing::AllOf(HasSubstr("connection: close"), HasSubstr("bye")));
  EXPECT_TRUE(rig.connection().is_finished());
}

// Sends a body of two pieces, the second when there is room; `fail` stands for what a handler may
// do wrong.
struct Streamed {
  ExchangePtr exchange{};
  int cancelled = 0;

  void add_to(Routes& routes, const std::function<void()>& fail) {
    routes.plain([this, fail](const ExchangePtr& given) {
      exchange = given;
      given->on_writable([fail] { fail(); });
      given->on_cancelled([this, fail] {
        ++cancelled;
        fail();
      });
      given->begin(200, {});
      given->write(Slice::of(std::string(2'000, 'b')));
      EXPECT_FALSE(given->wants_more());
    });
  }
};

Limits narrow() {
  Limits limits;
  limits.stream_output_bytes_max = 1'000;
  return limits;
}

TEST(Http1Test, AHandlerThatThrowsWhenThereIsRoomLeavesABodyThatIsCutShort) {
  ConnectionRig rig(narrow());
  Streamed streamed;
  streamed.add_to(rig.routes, [] { throw std::runtime_error("no"); });
  rig.give(std::string(kGet) + std::string(kGet));
  EXPECT_THAT(rig.take(), testing::AllOf(HasSubstr("7d0\r\nbbb"), testing::EndsWith("bbb\r\n")));
  EXPECT_EQ(streamed.cancelled, 1);
  EXPECT_TRUE(streamed.exchange->is_cancelled());
  EXPECT_TRUE(rig.connection().is_finished());
}

TEST(Http1Test, AHandlerThatThrowsWhenItsClientHasGoneIsForgiven) {
  ConnectionRig rig(narrow());
  Streamed streamed;
  streamed.add_to(rig.routes, [] { throw std::runtime_error("no"); });
  rig.give(kGet);
  rig.lose_connection();
  EXPECT_EQ(streamed.cancelled, 1);
}

// Goal: a stream without end that is asked for by HEAD does not run for nobody.
TEST(PlainTest, AStreamedBodyThatNobodyWantsIsCancelled) {
  ConnectionRig old(narrow());
  Streamed of_old;
  of_old.add_to(old.routes, [] {});
  old.give("HEAD /a HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(old.take(), testing::EndsWith("\r\n\r\n"));
  EXPECT_EQ(of_old.cancelled, 1);
  EXPECT_FALSE(of_old.exchange->write(Slice::constant("late")));
  old.give("HEAD /b HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(old.take(), StartsWith("HTTP/1.1 200"));

  Http2Rig rig(narrow());
  Streamed streamed;
  streamed.add_to(rig.routes, [] {});
  const auto id = rig.client.get("/a", "HEAD");
  rig.run();
  EXPECT_EQ(rig.client.answer(id).header(":status"), "200");
  EXPECT_TRUE(rig.client.answer(id).is_ended);
  EXPECT_EQ(streamed.cancelled, 1);
  EXPECT_FALSE(streamed.exchange->write(Slice::constant("late")));
}

TEST(PlainTest, TheSameHandlerServesHttp2) {
  Http2Rig rig;
  add_echo(rig);
  const auto get = rig.client.get("/a?b=c");
  const auto head = rig.client.get("/a", "HEAD");
  const auto post = rig.client.request({{":method", "POST"}, {":scheme", "http"}, {":path", "/p"}},
                                       std::string(100'000, 'b'), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(get).body, "GET /a?b=c ");
  EXPECT_EQ(rig.client.answer(get).header("content-length"), "11");
  EXPECT_EQ(rig.client.answer(head).body, "");
  EXPECT_EQ(rig.client.answer(head).header("content-length"), "8");
  EXPECT_EQ(rig.client.answer(post).body, "POST /p " + std::string(100'000, 'b'));
  EXPECT_EQ(rig.budget.used(), 0u);
}

TEST(PlainTest, ABodyAboveTheLimitIs413OverHttp2) {
  Limits limits;
  limits.message_bytes_max = 1'000;
  Http2Rig rig(limits);
  add_echo(rig);
  const auto post = rig.client.request({{":method", "POST"}, {":scheme", "http"}, {":path", "/p"}},
                                       std::string(1'001, 'b'), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(post).header(":status"), "413");
}

}  // namespace
}  // namespace ordo::http2
