#include "ordo/adapters/order_tcp/reply_encoder.h"

#include <limits>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "ordo/adapters/order_tcp/reply_decoder.h"

namespace ordo::order_tcp {
namespace {

using gateway::Refusal;

const gateway::Reply kOk{.to = {},
                         .id = "r-1",
                         .correlation_id = 42,
                         .partition = 3,
                         .refusal = Refusal::none,
                         .words = "route:XNAS",
                         .began_ns = 17,
                         .ended_ns = 18};

template <class Append>
std::string bytes_of(Append&& append) {
  BlockStore store;
  OutputBuffer output(store);
  append(output);
  return std::string(output.unsent());
}

std::string reply_bytes(Encoding encoding, const gateway::Reply& reply) {
  return bytes_of([&](OutputBuffer& output) { append_reply(output, encoding, reply); });
}

std::string rejection_line(const Rejection& rejection) {
  return bytes_of(
      [&](OutputBuffer& output) { append_rejection(output, Encoding::text, rejection); });
}

ClientReply decoded(Encoding encoding, std::string_view bytes) {
  ClientReply reply;
  EXPECT_EQ(decode_reply(encoding, bytes, reply), Decoded::reply);
  EXPECT_TRUE(bytes.empty());
  return reply;
}

TEST(TextReplies, AreLinesAsDocumented) {
  EXPECT_EQ(reply_bytes(Encoding::text, kOk), "OK r-1 42 3 route:XNAS t0=17 t1=18\n");
  gateway::Reply failed = kOk;
  failed.refusal = Refusal::error;
  failed.words = "no such\nthing";
  EXPECT_EQ(reply_bytes(Encoding::text, failed), "REJ r-1 42 3 error no such thing\n");
  EXPECT_EQ(rejection_line({}), "REJ - - - malformed\n");
  EXPECT_EQ(rejection_line({.request_id = "r",
                            .correlation_id = -1,
                            .partition = 0,
                            .refusal = Refusal::id_busy,
                            .detail = "64 wait"}),
            "REJ r -1 0 id-busy 64 wait\n");
  EXPECT_EQ(bytes_of([](OutputBuffer& output) { append_pong(output, Encoding::text); }), "PONG\n");
  EXPECT_EQ(bytes_of([](OutputBuffer& output) { append_stats(output, Encoding::text, "{}"); }),
            "STATS {}\n");
  EXPECT_EQ(bytes_of([](OutputBuffer& output) {
              append_resumed(output, Encoding::text, std::numeric_limits<std::int64_t>::min());
            }),
            "RESUMED -9223372036854775808\n");
}

// The worked example of docs/gateway-protocol.md.
TEST(BinaryReplies, AreFramesAsDocumented) {
  const unsigned char frame[] = {0x01, 0x81, 0x03, 0x00, 0x2d, 0x00, 0x00, 0x00, 0x2a, 0x00, 0x00,
                                 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00,
                                 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12,
                                 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x72, 0x2d, 0x31, 0x72,
                                 0x6f, 0x75, 0x74, 0x65, 0x3a, 0x58, 0x4e, 0x41, 0x53};
  const std::string bytes = reply_bytes(Encoding::binary, kOk);
  ASSERT_EQ(bytes.size(), sizeof(frame));
  for (std::size_t i = 0; i < sizeof(frame); ++i)
    EXPECT_EQ(static_cast<unsigned char>(bytes[i]), frame[i]) << i;
}

TEST(Replies, AreReadBackByTheClientInBothEncodings) {
  for (const Encoding encoding : {Encoding::text, Encoding::binary}) {
    const ClientReply ok = decoded(encoding, reply_bytes(encoding, kOk));
    EXPECT_EQ(ok, (ClientReply{.type = ReplyType::ok,
                               .request_id = "r-1",
                               .correlation_id = 42,
                               .partition = 3,
                               .words = "route:XNAS",
                               .began_ns = 17,
                               .ended_ns = 18}));
    const ClientReply rej = decoded(
        encoding, bytes_of([&](OutputBuffer& output) {
          append_rejection(output, encoding, {.request_id = "r", .refusal = Refusal::too_long});
        }));
    EXPECT_EQ(rej, (ClientReply{
                       .type = ReplyType::rej, .refusal = Refusal::too_long, .request_id = "r"}));
    EXPECT_EQ(
        decoded(encoding, bytes_of([&](OutputBuffer& output) { append_pong(output, encoding); }))
            .type,
        ReplyType::pong);
    EXPECT_EQ(decoded(encoding, bytes_of([&](OutputBuffer& output) {
                        append_stats(output, encoding, R"({"a":1})");
                      }))
                  .words,
              R"({"a":1})");
    EXPECT_EQ(decoded(encoding,
                      bytes_of([&](OutputBuffer& output) { append_resumed(output, encoding, -3); }))
                  .correlation_id,
              -3);
  }
}

TEST(Replies, ThatAreIncompleteAreLeftAlone) {
  for (const Encoding encoding : {Encoding::text, Encoding::binary}) {
    const std::string whole = reply_bytes(encoding, kOk);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      std::string_view bytes = std::string_view(whole).substr(0, length);
      ClientReply reply;
      EXPECT_EQ(decode_reply(encoding, bytes, reply), Decoded::incomplete);
      EXPECT_EQ(bytes.size(), length);
    }
  }
}

TEST(Replies, ThatAreNonsenseAreRecognised) {
  for (const std::string_view line :
       {"HELLO\n", "OK\n", "OK r x 3 d t0=1 t1=2\n", "OK r 1 3 d t0=1\n", "REJ r 1 - what\n",
        "RESUMED\n", "PONG 1\n", "\n"}) {
    std::string_view bytes = line;
    ClientReply reply;
    EXPECT_EQ(decode_reply(Encoding::text, bytes, reply), Decoded::nonsense) << line;
  }
}

TEST(OutputBuffer, GivesItsMemoryBackAndKeepsItsBytes) {
  BlockStore store;
  {
    OutputBuffer output(store);
    std::string expected;
    for (int i = 0; i < 20'000; ++i) {
      append_resumed(output, Encoding::text, i);
      expected += "RESUMED " + std::to_string(i) + "\n";
      if (i % 3 == 0) {
        const std::size_t count = output.size() / 2;
        EXPECT_EQ(output.unsent().substr(0, count), std::string_view(expected).substr(0, count));
        expected.erase(0, count);
        output.sent(count);
      }
    }
    EXPECT_EQ(output.unsent(), expected);
    output.sent(output.size());
    EXPECT_TRUE(output.empty());
  }
  EXPECT_GT(store.stored_bytes(), 0u);
  EXPECT_LE(store.stored_bytes(), BlockStore::kStoredBytesMax);
}

}  // namespace
}  // namespace ordo::order_tcp
