#include "ordo/adapters/order_tcp/request_decoder.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/adapters/order_tcp/request_encoder.h"

namespace ordo::order_tcp {
namespace {

using Kind = Incoming::Kind;
using gateway::Refusal;

// An Incoming whose texts are its own.
struct Seen {
  explicit Seen(const Incoming& incoming)
      : kind(incoming.kind),
        refusal(incoming.refusal),
        request_id(incoming.request_id),
        correlation_id(incoming.correlation_id),
        words(incoming.words) {}
  friend bool operator==(const Seen&, const Seen&) = default;
  Kind kind;
  Refusal refusal;
  std::string request_id;
  std::optional<std::int64_t> correlation_id;
  std::string words;
};

// Everything that comes out when the stream is cut at the given places.
std::vector<Seen> decode(std::string_view stream, const std::vector<std::size_t>& cuts = {},
                         std::size_t max = kRequestBytesMax) {
  RequestDecoder decoder(max);
  std::vector<Seen> seen;
  std::size_t from = 0;
  const auto feed = [&](std::size_t to) {
    const std::string piece(stream.substr(from, to - from));  // Its own memory, gone afterwards.
    std::string_view bytes = piece;
    while (const auto incoming = decoder.next(bytes))
      seen.emplace_back(*incoming);
    EXPECT_TRUE(bytes.empty());
    from = to;
  };
  for (const std::size_t cut : cuts)
    feed(cut);
  feed(stream.size());
  if (const auto last = decoder.finish()) seen.emplace_back(*last);
  return seen;
}

std::vector<std::size_t> cut_everywhere(std::string_view stream) {
  std::vector<std::size_t> cuts;
  for (std::size_t at = 1; at < stream.size(); ++at)
    cuts.push_back(at);
  return cuts;
}

Seen only(const std::vector<Seen>& seen) {
  EXPECT_EQ(seen.size(), 1u);
  return seen.empty() ? Seen(Incoming{}) : seen.front();
}

void expect_task(std::string_view line, std::string_view id, std::int64_t correlation_id,
                 std::string_view payload) {
  const Seen seen = only(decode(line));
  EXPECT_EQ(seen.kind, Kind::task) << line;
  EXPECT_EQ(seen.request_id, id);
  EXPECT_EQ(seen.correlation_id, correlation_id);
  EXPECT_EQ(seen.words, payload);
}

TEST(TextRequests, HaveAnIdACorrelationIdAndAPayload) {
  expect_task("r-1 42 NEW ACME BUY 10 99.5\n", "r-1", 42, "NEW ACME BUY 10 99.5");
  expect_task("r-1 42 STATUS\r\n", "r-1", 42, "STATUS");
  expect_task("ü -1 x\n", "ü", -1, "x");
  expect_task("a 007  two spaces \n", "a", 7, " two spaces ");
  expect_task("a 9223372036854775807 x\n", "a", std::numeric_limits<std::int64_t>::max(), "x");
  expect_task("a -9223372036854775808 x\n", "a", std::numeric_limits<std::int64_t>::min(), "x");
  expect_task("PING 1 x\n", "PING", 1, "x");
  expect_task("RESUME 1 x\n", "RESUME", 1, "x");
}

TEST(TextRequests, KnowTheirCommands) {
  EXPECT_EQ(only(decode("PING\n")).kind, Kind::ping);
  EXPECT_EQ(only(decode("STATS\r\n")).kind, Kind::stats);
  const Seen resume = only(decode("RESUME 42\n"));
  EXPECT_EQ(resume.kind, Kind::resume);
  EXPECT_EQ(resume.correlation_id, 42);
}

void expect_malformed(std::string_view line, std::string_view id,
                      std::optional<std::int64_t> correlation_id) {
  const Seen seen = only(decode(line));
  EXPECT_EQ(seen.kind, Kind::rejected) << line;
  EXPECT_EQ(seen.refusal, Refusal::malformed);
  EXPECT_EQ(seen.request_id, id);
  EXPECT_EQ(seen.correlation_id, correlation_id);
  EXPECT_FALSE(seen.words.empty());
}

TEST(TextRequests, ThatAreMalformedEchoWhatCouldBeRead) {
  expect_malformed("hello\n", "hello", std::nullopt);
  expect_malformed("ping\n", "ping", std::nullopt);
  expect_malformed("RESUME x\n", "RESUME", std::nullopt);
  expect_malformed("r 1\n", "r", 1);
  expect_malformed("r 1 \n", "r", 1);
  expect_malformed("r +1 x\n", "r", std::nullopt);
  expect_malformed("r 1.5 x\n", "r", std::nullopt);
  expect_malformed("r 9223372036854775808 x\n", "r", std::nullopt);
  expect_malformed("r  1 x\n", "r", std::nullopt);
  expect_malformed(" 1 x\n", "", 1);
  expect_malformed("r 1 a\tb\n", "r", 1);
  expect_malformed("r 1 \xff\n", "r", 1);
  expect_malformed("\xff 1 x\n", "", 1);
  expect_malformed(std::string(65, 'r') + " 1 x\n", "", 1);
  expect_malformed(std::string(65, 'r') + "\n", "", std::nullopt);
  expect_malformed("\r\r\n", "", std::nullopt);
}

TEST(TextRequests, IgnoreEmptyLines) {
  const auto seen = decode("\n\r\n\nPING\n\n\r\n");
  EXPECT_EQ(only(seen).kind, Kind::ping);
}

TEST(TextRequests, MayBeAsLongAsAllowedAndNotLonger) {
  const std::string longest = "r 1 " + std::string(96, 'x');
  EXPECT_EQ(only(decode(longest + "\n", {}, 100)).kind, Kind::task);
  EXPECT_EQ(only(decode(longest + "\n", cut_everywhere(longest + "\n"), 100)).kind, Kind::task);
  for (const std::string& line : {longest + "y\nPING\n", longest + "y", longest + "yzabc"}) {
    for (const auto& cuts : {std::vector<std::size_t>(), cut_everywhere(line)}) {
      const Seen seen = only(decode(line, cuts, 100));
      EXPECT_EQ(seen.kind, Kind::broken);
      EXPECT_EQ(seen.refusal, Refusal::too_long);
    }
  }
}

TEST(TextRequests, ThatEndInTheMiddleAreBroken) {
  const auto seen = decode("PING\nr 1 x");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].kind, Kind::broken);
  EXPECT_EQ(seen[1].refusal, Refusal::malformed);
}

std::string frame_of(std::initializer_list<unsigned> bytes) {
  std::string frame;
  for (const unsigned byte : bytes)
    frame.push_back(static_cast<char>(byte));
  return frame;
}

std::string task_frame(std::string_view id, std::int64_t correlation_id, std::string_view payload) {
  std::string bytes;
  append_task(bytes, Encoding::binary, {id, correlation_id, payload});
  return bytes;
}

// The worked example of docs/gateway-protocol.md.
TEST(BinaryRequests, AreReadAsDocumented) {
  const std::string frame =
      frame_of({0x01, 0x01, 0x03, 0x00, 0x11, 0x00, 0x00, 0x00, 0x2a, 0x00, 0x00, 0x00, 0x00,
                0x00, 0x00, 0x00, 0x72, 0x2d, 0x31, 0x53, 0x54, 0x41, 0x54, 0x55, 0x53});
  EXPECT_EQ(task_frame("r-1", 42, "STATUS"), frame);
  const Seen seen = only(decode(frame));
  EXPECT_EQ(seen.kind, Kind::task);
  EXPECT_EQ(seen.request_id, "r-1");
  EXPECT_EQ(seen.correlation_id, 42);
  EXPECT_EQ(seen.words, "STATUS");
}

TEST(BinaryRequests, KnowTheirCommands) {
  std::string stream;
  append_command(stream, Encoding::binary, RequestType::ping);
  append_command(stream, Encoding::binary, RequestType::stats);
  append_command(stream, Encoding::binary, RequestType::resume, -5);
  const auto seen = decode(stream);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].kind, Kind::ping);
  EXPECT_EQ(seen[1].kind, Kind::stats);
  EXPECT_EQ(seen[2].kind, Kind::resume);
  EXPECT_EQ(seen[2].correlation_id, -5);
}

TEST(BinaryRequests, WithWrongTextAreMalformedAndTheConnectionLives) {
  const auto seen = decode(task_frame("r", 1, "a\nb") + task_frame("a b", 2, "x") +
                           task_frame("r", 3, "") + task_frame("r", 4, "x"));
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].kind, Kind::rejected);
  EXPECT_EQ(seen[0].request_id, "r");
  EXPECT_EQ(seen[1].kind, Kind::rejected);
  EXPECT_EQ(seen[1].request_id, "");
  EXPECT_EQ(seen[1].correlation_id, 2);
  EXPECT_EQ(seen[2].kind, Kind::rejected);
  EXPECT_EQ(seen[3].kind, Kind::task);
}

TEST(BinaryRequests, ThatAreBrokenEndTheStream) {
  const struct {
    std::string header;
    Refusal refusal;
  } cases[] = {
      {frame_of({2, 1, 1, 0, 10, 0, 0, 0}), Refusal::malformed},            // version
      {frame_of({1, 0, 1, 0, 10, 0, 0, 0}), Refusal::malformed},            // type
      {frame_of({1, 5, 1, 0, 10, 0, 0, 0}), Refusal::malformed},            // type
      {frame_of({1, 129, 1, 0, 10, 0, 0, 0}), Refusal::malformed},          // a reply's
      {frame_of({1, 1, 1, 1, 10, 0, 0, 0}), Refusal::malformed},            // reserved
      {frame_of({1, 1, 0, 0, 10, 0, 0, 0}), Refusal::malformed},            // no request id
      {frame_of({1, 1, 65, 0, 99, 0, 0, 0}), Refusal::malformed},           // too long an id
      {frame_of({1, 1, 3, 0, 10, 0, 0, 0}), Refusal::malformed},            // body too short
      {frame_of({1, 2, 0, 0, 1, 0, 0, 0}), Refusal::malformed},             // ping with body
      {frame_of({1, 4, 0, 0, 7, 0, 0, 0}), Refusal::malformed},             // resume
      {frame_of({1, 1, 1, 0, 0xff, 0xff, 0xff, 0xff}), Refusal::too_long},  // 4 GB
      {frame_of({1, 1, 1, 0, 1, 0, 1, 0}), Refusal::too_long},              // 64 KiB + 1
  };
  for (const auto& each : cases) {
    // Behind a good frame, so that the first byte has chosen the encoding.
    std::string stream;
    append_command(stream, Encoding::binary, RequestType::ping);
    stream += each.header + task_frame("r", 1, "never seen");
    for (const auto& cuts : {std::vector<std::size_t>(), cut_everywhere(stream)}) {
      const auto seen = decode(stream, cuts);
      ASSERT_EQ(seen.size(), 2u);
      EXPECT_EQ(seen[1].kind, Kind::broken);
      EXPECT_EQ(seen[1].refusal, each.refusal);
      EXPECT_EQ(seen[1].request_id, "");
    }
  }
}

TEST(BinaryRequests, MayBeAsLongAsAllowed) {
  const std::string frame = task_frame("r", 1, std::string(kRequestBytesMax - 9, 'x'));
  EXPECT_EQ(only(decode(frame)).kind, Kind::task);
  EXPECT_EQ(only(decode(frame, {1, 8, 100, 65'000})).kind, Kind::task);
}

TEST(BinaryRequests, KeepOnlyWhatHasCome) {
  RequestDecoder decoder(kRequestBytesMax);
  const std::string frame = task_frame("r", 1, std::string(60'000, 'x'));
  std::string_view bytes = std::string_view(frame).substr(0, 20);
  EXPECT_FALSE(decoder.next(bytes));
  EXPECT_EQ(decoder.kept_bytes(), 20u);
}

std::string random_stream(std::mt19937& random, Encoding encoding) {
  std::string stream;
  for (int request = 0; request < 12; ++request) {
    const auto length = random() % 30;
    std::string payload(length, 'p');
    if (random() % 4 == 0 && length > 0) payload[random() % length] = static_cast<char>(random());
    switch (random() % 8) {
      case 0:
        append_command(stream, encoding, RequestType::ping);
        break;
      case 1:
        append_command(stream, encoding, RequestType::resume, static_cast<int>(random()));
        break;
      case 2:
        if (encoding == Encoding::text) stream += "\r\n\n \n";
        break;
      default:
        append_task(stream, encoding,
                    {std::string(1 + random() % 70, 'i'), static_cast<int>(random()), payload});
    }
  }
  return stream;
}

TEST(Requests, ComeOutTheSameHoweverTheyAreCut) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const Encoding encoding = seed % 2 == 0 ? Encoding::text : Encoding::binary;
    const std::string stream = random_stream(random, encoding);
    const auto whole = decode(stream, {}, 120);
    EXPECT_EQ(decode(stream, cut_everywhere(stream), 120), whole) << "seed " << seed;
    std::vector<std::size_t> cuts;
    for (std::size_t at = random() % 9; at < stream.size(); at += 1 + random() % 40)
      cuts.push_back(at);
    EXPECT_EQ(decode(stream, cuts, 120), whole) << "seed " << seed;
  }
}

TEST(Requests, AreTheSameWhenCutInTwoAtEveryPlace) {
  for (const Encoding encoding : {Encoding::text, Encoding::binary}) {
    std::string stream;
    append_task(stream, encoding, {"first", 42, "NEW ACME BUY 10 99.5"});
    append_command(stream, encoding, RequestType::ping);
    append_task(stream, encoding, {"second", -7, "QUOTE ACME 5 €"});
    const auto whole = decode(stream);
    ASSERT_EQ(whole.size(), 3u);
    for (std::size_t cut = 0; cut <= stream.size(); ++cut)
      EXPECT_EQ(decode(stream, {cut}), whole) << cut;
  }
}

}  // namespace
}  // namespace ordo::order_tcp
