#include "ordo/adapters/order_tcp/connection.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/adapters/order_tcp/reply_decoder.h"
#include "ordo/adapters/order_tcp/request_encoder.h"
#include "tests/support/scripted_port.h"

namespace ordo::order_tcp {
namespace {

using gateway::Refusal;
using testing_support::ScriptedPort;

// A connection, and the port behind it; replies come back directly.
class ConnectionTest : public testing::Test, public gateway::ReplyPort {
 protected:
  ConnectionTest() {
    port_.reply_to(*this);
    port_.answer_in_flush(false);
  }

  void reply(gateway::Reply&& reply) noexcept override { connection().answer(reply); }
  void flush() noexcept override {}

  Connection& connection() {
    if (!connection_) {
      connection_ = std::make_unique<Connection>(gateway::ReplyAddress{.front = 2, .connection = 9},
                                                 limits_, store_, counters_);
    }
    return *connection_;
  }
  void receive(std::string_view bytes) { connection().receive(port_, bytes); }
  // What was answered since the last call, as sent.
  std::string take_output() {
    std::string bytes(connection().output().unsent());
    connection().output().sent(bytes.size());
    return bytes;
  }
  static std::string tasks(int from, int to, std::int64_t correlation_id) {
    std::string bytes;
    for (int i = from; i < to; ++i)
      append_task(bytes, Encoding::text, {"r" + std::to_string(i), correlation_id, "x"});
    return bytes;
  }

  ConnectionLimits limits_;
  BlockStore store_;
  ConnectionCounters counters_;
  ScriptedPort port_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, HandsOverAHundredRequestsOfOneRead) {
  receive(tasks(0, 100, 7));
  EXPECT_EQ(port_.waiting(), 100u);
  EXPECT_EQ(connection().outstanding(), 100u);
  EXPECT_EQ(port_.requests().front().from, (gateway::ReplyAddress{.front = 2, .connection = 9}));
  port_.answer_all();
  EXPECT_EQ(connection().outstanding(), 0u);
  const std::string output = take_output();
  EXPECT_TRUE(output.starts_with("OK r0 7 3 did:x t0=17 t1=18\nOK r1 7 3 ")) << output;
  EXPECT_EQ(counters_.requests.value(), 100u);
}

TEST_F(ConnectionTest, AnswersCommandsItself) {
  receive("PING\nRESUME 5\nSTATS\n");
  EXPECT_EQ(take_output(), "PONG\nRESUMED 5\nSTATS {\"scripted\":true}\n");
  EXPECT_EQ(port_.submitted(), 0u);
}

// It takes hundreds of microseconds, during which no other connection is served.
TEST_F(ConnectionTest, AnswersOneStatsAtATime) {
  receive("STATS\nSTATS\nPING\nSTATS\n");
  EXPECT_EQ(take_output(), "STATS {\"scripted\":true}\n");
  EXPECT_FALSE(connection().wants_input());
  EXPECT_TRUE(connection().continue_input(port_));
  EXPECT_EQ(take_output(), "STATS {\"scripted\":true}\n");
  EXPECT_TRUE(connection().continue_input(port_));
  EXPECT_EQ(take_output(), "PONG\nSTATS {\"scripted\":true}\n");
  EXPECT_TRUE(connection().wants_input());
  EXPECT_FALSE(connection().continue_input(port_));
}

TEST_F(ConnectionTest, AnswersGarbageAndGoesOn) {
  receive("what is this\nPING\n");
  EXPECT_EQ(take_output(),
            "REJ what - - malformed the correlation id is not a whole number of 64 bits\nPONG\n");
  EXPECT_TRUE(connection().wants_input());
  EXPECT_EQ(counters_.malformed.value(), 1u);
}

TEST_F(ConnectionTest, AnswersRefusalsAtOnceWithTheRightIds) {
  port_.admit_at_most(2);
  receive(tasks(0, 4, 7));
  EXPECT_EQ(take_output(), "REJ r2 7 3 busy\nREJ r3 7 3 busy\n");
  EXPECT_EQ(counters_.refused.value(), 2u);
}

TEST_F(ConnectionTest, StopsExactlyAtTheLimitOfOutstandingRequests) {
  limits_.outstanding_max = 10;
  receive(tasks(0, 35, 7));
  EXPECT_EQ(port_.waiting(), 10u);
  EXPECT_FALSE(connection().wants_input());
  EXPECT_FALSE(connection().continue_input(port_));
  port_.answer(4);
  EXPECT_TRUE(connection().continue_input(port_));
  EXPECT_EQ(port_.waiting(), 10u);
  for (int i = 0; i < 10; ++i) {
    port_.answer_all();
    connection().continue_input(port_);
  }
  EXPECT_EQ(port_.submitted(), 35u);
  EXPECT_TRUE(connection().wants_input());
  std::string expected;
  for (int i = 0; i < 35; ++i)
    expected += "OK r" + std::to_string(i) + " 7 3 did:x t0=17 t1=18\n";
  EXPECT_EQ(take_output(), expected);
}

TEST_F(ConnectionTest, StopsWhenTooMuchWaitsToBeSent) {
  limits_.output_pause_bytes = 50;
  std::string pings;
  for (int i = 0; i < 30; ++i)
    pings += "PING\n";
  receive(pings);
  EXPECT_EQ(connection().output().size(), 50u);
  EXPECT_FALSE(connection().wants_input());
  connection().output().sent(20);
  EXPECT_TRUE(connection().continue_input(port_));
  EXPECT_EQ(connection().output().size(), 50u);
  EXPECT_FALSE(connection().is_overflowed());
}

TEST_F(ConnectionTest, OverflowsWhenRepliesPassTheLimit) {
  limits_.output_bytes_max = 1000;
  receive(tasks(0, 100, 7));
  EXPECT_FALSE(connection().is_overflowed());
  port_.answer_all();
  EXPECT_TRUE(connection().is_overflowed());
}

TEST_F(ConnectionTest, AnswersEverythingAfterTheClientEndedThenIsFinished) {
  limits_.outstanding_max = 3;
  receive(tasks(0, 3, 7));
  port_.answer(1);
  receive(tasks(3, 8, 7));
  EXPECT_FALSE(connection().wants_input());
  port_.answer_all();
  connection().continue_input(port_);
  port_.answer_all();
  connection().continue_input(port_);
  ASSERT_TRUE(connection().wants_input());
  connection().end_input(port_);
  EXPECT_FALSE(connection().is_finished());
  port_.answer_all();
  EXPECT_FALSE(connection().is_finished());
  take_output();
  EXPECT_TRUE(connection().is_finished());
  EXPECT_FALSE(connection().is_broken());
  EXPECT_EQ(port_.submitted(), 8u);
}

TEST_F(ConnectionTest, SaysThatTheLastRequestWasNotComplete) {
  receive("PING\nr 1 unfinish");
  connection().end_input(port_);
  EXPECT_EQ(take_output(), "PONG\nREJ - - - malformed the last request is not complete\n");
  EXPECT_TRUE(connection().is_finished());
}

TEST_F(ConnectionTest, AnswersTooLongALineAndEndsAfterWhatWasAdmitted) {
  limits_.request_bytes_max = 100;
  receive(tasks(0, 1, 7) + std::string(200, 'x'));
  EXPECT_EQ(take_output(), "REJ - - - too-long the line is longer than allowed\n");
  EXPECT_TRUE(connection().is_broken());
  EXPECT_FALSE(connection().wants_input());
  EXPECT_FALSE(connection().is_finished());
  port_.answer_all();
  EXPECT_EQ(take_output(), "OK r0 7 3 did:x t0=17 t1=18\n");
  EXPECT_TRUE(connection().is_finished());
}

TEST_F(ConnectionTest, AnswersALengthOfFourGigabytesInBinary) {
  receive(std::string("\x01\x01\x01\x00\xff\xff\xff\xff", 8));
  std::string_view bytes = connection().output().unsent();
  ClientReply reply;
  ASSERT_EQ(decode_reply(Encoding::binary, bytes, reply), Decoded::reply);
  EXPECT_EQ(reply.type, ReplyType::rej);
  EXPECT_EQ(reply.refusal, Refusal::too_long);
  EXPECT_TRUE(connection().is_broken());
}

TEST_F(ConnectionTest, StrictGapsRefuseAnIdUntilItIsResumed) {
  limits_.strict_gaps = true;
  port_.decide([](const gateway::Request& request) {
    return request.id == std::string_view("r1") ? Refusal::id_busy : Refusal::none;
  });
  receive("r0 7 x\nr1 7 x\nr2 7 x\nother 8 x\nfree 0 x\nRESUME 7\nr3 7 x\n");
  EXPECT_EQ(take_output(), "REJ r1 7 3 id-busy\nREJ r2 7 - gap\nRESUMED 7\n");
  const auto admitted = port_.requests();
  ASSERT_EQ(admitted.size(), 4u);
  EXPECT_EQ(admitted[0].id.view(), "r0");
  EXPECT_EQ(admitted[3].id.view(), "r3");
}

TEST_F(ConnectionTest, StrictGapsCountAMalformedTaskOfTheId) {
  limits_.strict_gaps = true;
  receive("r0 7 a\tb\nr1 7 x\n");
  EXPECT_EQ(port_.submitted(), 0u);
  EXPECT_TRUE(take_output().ends_with("REJ r1 7 - gap\n"));
}

TEST_F(ConnectionTest, GapsAreNotKeptUnlessStrict) {
  port_.admit_at_most(0);
  receive("r0 7 x\n");
  port_.admit_at_most(1);
  receive("r1 7 x\n");
  EXPECT_EQ(port_.waiting(), 1u);
}

TEST_F(ConnectionTest, TooManyIdsWithGapsEndTheConnection) {
  limits_.strict_gaps = true;
  limits_.gap_ids_max = 2;
  port_.admit_at_most(0);
  receive("a 1 x\nb 2 x\na2 1 x\nc 3 x\nPING\n");
  EXPECT_EQ(take_output(),
            "REJ a 1 3 busy\nREJ b 2 3 busy\nREJ a2 1 - gap\nREJ c 3 3 busy\n"
            "REJ - - - gap too many correlation ids have gaps\n");
  EXPECT_TRUE(connection().is_broken());
  EXPECT_TRUE(connection().is_finished());
}

TEST_F(ConnectionTest, StoppingForgetsWhatWasNotDecoded) {
  limits_.outstanding_max = 1;
  receive(tasks(0, 5, 7));
  connection().stop_input();
  port_.answer_all();
  EXPECT_FALSE(connection().continue_input(port_));
  EXPECT_EQ(port_.submitted(), 1u);
  take_output();
  EXPECT_TRUE(connection().is_finished());
}

}  // namespace
}  // namespace ordo::order_tcp
