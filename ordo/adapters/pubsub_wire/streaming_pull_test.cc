#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/wire_rig.h"

namespace ordo::pubsub_wire {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::CallLine;
using testing_support::kFailedPrecondition;
using testing_support::kInvalidArgument;
using testing_support::kNotFound;
using testing_support::kUnavailable;
using testing_support::WireRig;
namespace v1 = google::pubsub::v1;

v1::StreamingPullRequest first_request() {
  v1::StreamingPullRequest request;
  request.set_subscription(WireRig::subscription());
  request.set_stream_ack_deadline_seconds(10);
  request.set_protocol_version(1);
  return request;
}

class StreamingPullTest : public testing::Test {
 protected:
  CallLine& open(const v1::StreamingPullRequest& request = first_request()) {
    CallLine& line = rig_.open("Subscriber/StreamingPull");
    line.send(request);
    return line;
  }
  static std::vector<v1::ReceivedMessage> received(const CallLine& line) {
    std::vector<v1::ReceivedMessage> all;
    for (const auto& response : line.messages_as<v1::StreamingPullResponse>()) {
      for (const v1::ReceivedMessage& message : response.received_messages())
        all.push_back(message);
    }
    return all;
  }
  static std::vector<std::string> data_of(const CallLine& line) {
    std::vector<std::string> data;
    for (const v1::ReceivedMessage& message : received(line))
      data.push_back(message.message().data());
    return data;
  }
  bool wait_for(const CallLine& line, std::size_t count) {
    return rig_.wait([&] { return received(line).size() >= count; });
  }
  static void ack(CallLine& line, const std::string& id) {
    v1::StreamingPullRequest request;
    request.add_ack_ids(id);
    line.send(request);
  }
  static void modify(CallLine& line, const std::string& id, int seconds) {
    v1::StreamingPullRequest request;
    request.add_modify_deadline_ack_ids(id);
    request.add_modify_deadline_seconds(seconds);
    line.send(request);
  }
  // Ends with `code`, and says `text`.
  void expect_end(CallLine& line, int code, const std::string& text) {
    ASSERT_TRUE(rig_.wait([&] { return line.is_ended(); }));
    EXPECT_EQ(line.code(), code);
    EXPECT_THAT(line.message(), HasSubstr(text));
  }

  WireRig rig_;
};

TEST_F(StreamingPullTest, TheHeadersComeBeforeAnyMessage) {
  rig_.create();
  CallLine& line = open();
  ASSERT_TRUE(rig_.wait([&] { return line.has_headers(); }));
  EXPECT_THAT(line.messages(), IsEmpty());
}

TEST_F(StreamingPullTest, AKeyGoesOnWhenItsMessageIsAcknowledgedOnTheStream) {
  rig_.create();
  CallLine& line = open();
  rig_.publish("k", {"1", "2", "3"});
  ASSERT_TRUE(wait_for(line, 1));
  EXPECT_THAT(data_of(line), ElementsAre("1"));
  ack(line, received(line)[0].ack_id());
  ASSERT_TRUE(wait_for(line, 2));
  ack(line, received(line)[1].ack_id());
  ASSERT_TRUE(wait_for(line, 3));
  EXPECT_THAT(data_of(line), ElementsAre("1", "2", "3"));
}

TEST_F(StreamingPullTest, NothingIsSentUntilAllAcksThatCameTogetherAreSettled) {
  rig_.create();
  CallLine& line = open();
  for (const char* key : {"a", "b", "c"})
    rig_.publish(key, {"1", "2"});
  ASSERT_TRUE(wait_for(line, 3));
  for (const v1::ReceivedMessage& message : received(line)) {
    v1::StreamingPullRequest request;
    request.add_ack_ids(message.ack_id());
    line.send_with_more(request);
    int looks = 0;
    ASSERT_TRUE(rig_.wait([&] { return ++looks > 3; }));
    EXPECT_THAT(received(line), SizeIs(3));
  }
  line.end_round();
  ASSERT_TRUE(wait_for(line, 6));
}

TEST_F(StreamingPullTest, AnAckByTheOtherWayCountsAsWell) {
  rig_.create();
  CallLine& line = open();
  rig_.publish("k", {"1", "2"});
  ASSERT_TRUE(wait_for(line, 1));
  ASSERT_EQ(rig_.ack({received(line)[0].ack_id()}).code, 0);
  ASSERT_TRUE(wait_for(line, 2));
}

TEST_F(StreamingPullTest, ANackOnTheStreamBringsTheSameMessageAgain) {
  rig_.create();
  CallLine& line = open();
  rig_.publish("k", {"1", "2"});
  ASSERT_TRUE(wait_for(line, 1));
  modify(line, received(line)[0].ack_id(), 0);
  ASSERT_TRUE(wait_for(line, 2));
  EXPECT_THAT(data_of(line), ElementsAre("1", "1"));
}

TEST_F(StreamingPullTest, EveryResponseSaysWhetherTheSubscriptionKeepsOrder) {
  rig_.create();
  CallLine& line = open();
  rig_.publish("", {"a"});
  ASSERT_TRUE(wait_for(line, 1));
  line.send(v1::StreamingPullRequest());
  ASSERT_TRUE(rig_.wait([&] { return line.messages().size() == 2; }));
  for (const auto& response : line.messages_as<v1::StreamingPullResponse>()) {
    EXPECT_TRUE(response.has_subscription_properties());
    EXPECT_TRUE(response.subscription_properties().message_ordering_enabled());
    EXPECT_FALSE(response.subscription_properties().exactly_once_delivery_enabled());
  }
}

TEST_F(StreamingPullTest, AChangeOfTheSubscriptionShowsInTheNextResponse) {
  rig_.create();
  CallLine& line = open();
  v1::UpdateSubscriptionRequest update;
  update.mutable_subscription()->set_name(WireRig::subscription());
  update.mutable_subscription()->set_enable_exactly_once_delivery(true);
  update.mutable_update_mask()->add_paths("enable_exactly_once_delivery");
  ASSERT_EQ(rig_.unary<v1::Subscription>("Subscriber/UpdateSubscription", update).code, 0);
  line.send(v1::StreamingPullRequest());
  ASSERT_TRUE(rig_.wait([&] { return line.messages().size() == 1; }));
  EXPECT_TRUE(line.messages_as<v1::StreamingPullResponse>()[0]
                  .subscription_properties()
                  .exactly_once_delivery_enabled());
}

TEST_F(StreamingPullTest, EachEmptyRequestIsAnsweredIfTheClientKnowsOfIt) {
  rig_.create();
  CallLine& line = open();
  for (int i = 0; i < 3; ++i)
    line.send(v1::StreamingPullRequest());
  ASSERT_TRUE(rig_.wait([&] { return line.messages().size() == 3; }));

  v1::StreamingPullRequest old = first_request();
  old.clear_protocol_version();
  CallLine& silent = open(old);
  silent.send(v1::StreamingPullRequest());
  rig_.publish("", {"a", "b"});
  ASSERT_TRUE(rig_.wait([&] { return received(silent).size() + received(line).size() == 2; }));
  for (const auto& response : silent.messages_as<v1::StreamingPullResponse>())
    EXPECT_GT(response.received_messages_size(), 0) << "nobody asked for this";
}

// --------------------------------------------------------------------------------- its rules

TEST_F(StreamingPullTest, TheFirstRequestSaysWhatItMustSay) {
  rig_.create();
  v1::StreamingPullRequest request = first_request();
  request.clear_subscription();
  expect_end(open(request), kInvalidArgument, "first message must set subscription");
  request = first_request();
  request.clear_stream_ack_deadline_seconds();
  expect_end(open(request), kInvalidArgument, "must set stream_ack_deadline_seconds");
  for (const int seconds : {9, 601, -1}) {
    request.set_stream_ack_deadline_seconds(seconds);
    expect_end(open(request), kInvalidArgument, "must be between 10 and 600 seconds");
  }
  request = first_request();
  request.set_subscription(WireRig::subscription("none"));
  expect_end(open(request), kNotFound, "Resource not found");
  CallLine& empty = rig_.open("Subscriber/StreamingPull");
  empty.half_close();
  expect_end(empty, kInvalidArgument, "first message must set subscription");
}

TEST_F(StreamingPullTest, ALaterRequestSaysNothingOfTheStreamAnyMore) {
  rig_.create();
  const auto after_first = [&](const v1::StreamingPullRequest& request, const std::string& text) {
    CallLine& line = open();
    line.send(request);
    expect_end(line, kInvalidArgument, text);
  };
  v1::StreamingPullRequest request;
  request.set_subscription(WireRig::subscription());
  after_first(request, "subscription may only be set in first message");
  request.Clear();
  request.set_max_outstanding_messages(5);
  after_first(request, "max_outstanding");
  request.Clear();
  request.set_protocol_version(1);
  after_first(request, "protocol_version");
  request.Clear();
  request.add_modify_deadline_ack_ids("id");
  after_first(request, "ack IDs and deadlines must have the same size");
  request.Clear();
  request.add_ack_ids("nonsense");
  after_first(request, "Invalid ack id");
}

TEST_F(StreamingPullTest, ALaterDeadlineIsThatOfWhatIsDeliveredFromThenOn) {
  rig_.create();
  CallLine& line = open();
  v1::StreamingPullRequest request;
  request.set_stream_ack_deadline_seconds(60);
  request.set_client_id("me");  // Tolerated.
  line.send(request);
  ASSERT_TRUE(rig_.wait([&] { return line.messages().size() == 1; })) << "it is a ping too";
  rig_.publish("k", {"1"});
  ASSERT_TRUE(wait_for(line, 1));
  rig_.advance(59s);
  rig_.poll();
  EXPECT_THAT(received(line), SizeIs(1));
  rig_.advance(1s);
  ASSERT_TRUE(wait_for(line, 2));

  request.set_stream_ack_deadline_seconds(10);
  line.send(request);
  ack(line, received(line)[1].ack_id());
  rig_.publish("k", {"2"});
  ASSERT_TRUE(wait_for(line, 3));
  rig_.advance(10s);
  ASSERT_TRUE(wait_for(line, 4));
  EXPECT_THAT(data_of(line), ElementsAre("1", "1", "2", "2"));
  for (const int seconds : {9, 601}) {
    request.set_stream_ack_deadline_seconds(seconds);
    CallLine& other = open();
    other.send(request);
    expect_end(other, kInvalidArgument, "must be between 10 and 600 seconds");
  }
}

// ------------------------------------------------------------------------------ flow control

TEST_F(StreamingPullTest, NoMoreMessagesAreOutstandingThanTheClientWants) {
  rig_.create();
  v1::StreamingPullRequest request = first_request();
  request.set_max_outstanding_messages(2);
  CallLine& line = open(request);
  rig_.publish("", {"a", "b", "c", "d", "e"});
  ASSERT_TRUE(wait_for(line, 2));
  rig_.advance(1s);
  rig_.poll();
  EXPECT_THAT(received(line), SizeIs(2));
  ack(line, received(line)[0].ack_id());
  ASSERT_TRUE(wait_for(line, 3));
  rig_.advance(1s);
  rig_.poll();
  EXPECT_THAT(received(line), SizeIs(3));
}

TEST_F(StreamingPullTest, AClientThatDoesNotReadGetsTheRestWhenItDoes) {
  rig_.create();
  CallLine& line = open();
  line.set_reading(false);
  const std::string large(400'000, 'x');
  for (int i = 0; i < 20; ++i)
    rig_.publish("", {large});
  rig_.advance(1s);
  rig_.poll();
  const std::size_t taken = received(line).size();
  EXPECT_LT(taken, 10u) << "a call takes a megabyte, and one response above it";
  EXPECT_GE(taken, 2u);
  line.set_reading(true);
  ASSERT_TRUE(wait_for(line, 20));
}

TEST_F(StreamingPullTest, WhatWaitedLongerThanItsLeaseIsNotSent) {
  rig_.create();
  CallLine& slow = open();
  slow.set_reading(false);
  const std::string large(1'200'000, 'x');
  for (int i = 0; i < 10; ++i)
    rig_.publish("", {large});
  rig_.advance(1s);
  rig_.poll();
  const std::size_t before = received(slow).size();
  ASSERT_LT(before, 10u);
  rig_.advance(10s);  // All leases have ended; the messages were delivered again, and wait.
  rig_.advance(9s);
  slow.set_reading(true);
  ASSERT_TRUE(wait_for(slow, before + 10));
  rig_.advance(100ms);
  rig_.poll();
  EXPECT_THAT(received(slow), SizeIs(before + 10)) << "each of them once";
}

TEST_F(StreamingPullTest, AResponseHasAThousandMessagesOrAMegabyteAtMost) {
  rig_.create();
  rig_.publish("", std::vector<std::string>(1'000, "small"));
  rig_.publish("", std::vector<std::string>(1'000, "small"));
  rig_.publish("", std::vector<std::string>(20, std::string(300'000, 'x')));
  CallLine& line = open();
  ASSERT_TRUE(wait_for(line, 2'020));
  for (const auto& response : line.messages_as<v1::StreamingPullResponse>()) {
    EXPECT_LE(response.received_messages_size(), 1'000);
    EXPECT_LE(response.ByteSizeLong(), (1u << 20) + 200'000u);
  }
}

// -------------------------------------------------------------------------------- exactly once

class ExactlyOnceStreamTest : public StreamingPullTest {
 protected:
  ExactlyOnceStreamTest() {
    v1::Subscription settings;
    settings.set_enable_exactly_once_delivery(true);
    rig_.create(settings);
  }
  struct Confirmed {
    std::vector<std::string> acked, invalid, modified, modify_invalid;
  };
  static Confirmed confirmed(const CallLine& line) {
    Confirmed all;
    const auto add = [](std::vector<std::string>& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    for (const auto& response : line.messages_as<v1::StreamingPullResponse>()) {
      add(all.acked, response.acknowledge_confirmation().ack_ids());
      add(all.invalid, response.acknowledge_confirmation().invalid_ack_ids());
      add(all.modified, response.modify_ack_deadline_confirmation().ack_ids());
      add(all.modify_invalid, response.modify_ack_deadline_confirmation().invalid_ack_ids());
    }
    return all;
  }
};

TEST_F(ExactlyOnceStreamTest, AcksAndDeadlinesAreConfirmed) {
  CallLine& line = open();
  rig_.publish("k", {"1"});
  ASSERT_TRUE(wait_for(line, 1));
  const std::string id = received(line)[0].ack_id();
  modify(line, id, 60);
  ASSERT_TRUE(rig_.wait([&] { return !confirmed(line).modified.empty(); }));
  ack(line, id);
  ASSERT_TRUE(rig_.wait([&] { return !confirmed(line).acked.empty(); }));
  EXPECT_THAT(confirmed(line).acked, ElementsAre(id));
  EXPECT_THAT(confirmed(line).modified, ElementsAre(id));
  EXPECT_THAT(confirmed(line).invalid, IsEmpty());
}

TEST_F(ExactlyOnceStreamTest, WhatDoesNotCountIsNamedAndTheStreamGoesOn) {
  CallLine& line = open();
  rig_.publish("k", {"1"});
  ASSERT_TRUE(wait_for(line, 1));
  const std::string stale = received(line)[0].ack_id();
  modify(line, stale, 0);
  ASSERT_TRUE(wait_for(line, 2));
  ack(line, stale);
  ack(line, "nonsense");
  modify(line, stale, 10);
  ASSERT_TRUE(rig_.wait([&] {
    return confirmed(line).invalid.size() == 2 && !confirmed(line).modify_invalid.empty();
  }));
  EXPECT_EQ((std::set<std::string>{confirmed(line).invalid[0], confirmed(line).invalid[1]}),
            (std::set<std::string>{stale, "nonsense"}));
  EXPECT_FALSE(line.is_ended());
}

TEST_F(ExactlyOnceStreamTest, AClientThatDoesNotReadItsConfirmationsIsNotReadEither) {
  CallLine& line = open();
  line.set_reading(false);
  const std::string padding(40, 'x');
  std::size_t sent = 0;
  for (int i = 0; i < 100 && !line.is_input_held(); ++i) {
    v1::StreamingPullRequest request;
    for (int id = 0; id < 1'000; ++id)
      request.add_ack_ids("none-of-ours-" + padding + std::to_string(++sent));
    line.send(request);
  }
  EXPECT_TRUE(line.is_input_held());
  EXPECT_LT(sent, 60'000u) << "a megabyte of the call, and 20,000 ids that wait";
  line.set_reading(true);
  ASSERT_TRUE(rig_.wait([&] { return confirmed(line).invalid.size() == sent; }));
  ASSERT_TRUE(rig_.wait([&] { return !line.is_input_held(); }));
}

TEST_F(ExactlyOnceStreamTest, IdsOfAnyLengthDoNotPileUp) {
  CallLine& line = open();
  line.set_reading(false);
  int sent = 0;
  while (sent < 20 && !line.is_input_held()) {
    ack(line, std::string(1'000'000, 'x'));
    ++sent;
  }
  EXPECT_TRUE(line.is_input_held());
  EXPECT_LT(sent, 10);
  line.set_reading(true);
  ASSERT_TRUE(rig_.wait([&] { return confirmed(line).invalid.size() == std::size_t(sent); }));
  ASSERT_TRUE(rig_.wait([&] { return !line.is_input_held(); }));
}

TEST_F(ExactlyOnceStreamTest, WhatAClientNeverGotIsNotHeldForIt) {
  CallLine& gone = open();
  gone.set_reading(false);
  const std::string large(1'200'000, 'x');
  for (int i = 0; i < 6; ++i)
    rig_.publish("", {large});
  rig_.advance(1s);
  rig_.poll();
  const std::size_t taken = received(gone).size();
  ASSERT_LT(taken, 5u);
  gone.cancel();
  CallLine& next = open();
  ASSERT_TRUE(wait_for(next, 6 - taken)) << "without a deadline that has passed";
}

// --------------------------------------------------------------------------------- its end

TEST_F(StreamingPullTest, AClientThatHalfClosesIsAnsweredOk) {
  rig_.create();
  CallLine& line = open();
  line.half_close();
  expect_end(line, 0, "");
}

TEST_F(StreamingPullTest, ADeletedSubscriptionEndsItsStreams) {
  rig_.create();
  CallLine& line = open();
  v1::DeleteSubscriptionRequest request;
  request.set_subscription(WireRig::subscription());
  ASSERT_EQ(rig_.unary<google::protobuf::Empty>("Subscriber/DeleteSubscription", request).code, 0);
  expect_end(line, kNotFound, "Resource not found");
}

TEST_F(StreamingPullTest, ADetachedSubscriptionEndsItsStreams) {
  rig_.create();
  CallLine& line = open();
  v1::DetachSubscriptionRequest request;
  request.set_subscription(WireRig::subscription());
  ASSERT_EQ(
      rig_.unary<v1::DetachSubscriptionResponse>("Publisher/DetachSubscription", request).code, 0);
  expect_end(line, kFailedPrecondition, "detached");
}

TEST_F(StreamingPullTest, AServiceThatClosesEndsStreamsAndTakesNoNewOnes) {
  rig_.create();
  CallLine& line = open();
  rig_.service().close();
  expect_end(line, kUnavailable, "shutting down");
  expect_end(open(), kUnavailable, "shutting down");
}

TEST_F(StreamingPullTest, WhatADeadStreamNeverTouchedComesBackAfterASecond) {
  rig_.create();
  CallLine& dead = open();
  rig_.publish("k", {"1", "2"});
  ASSERT_TRUE(wait_for(dead, 1));
  dead.cancel();
  rig_.advance(2s);
  CallLine& next = open();
  ASSERT_TRUE(wait_for(next, 1));
  EXPECT_THAT(data_of(next), ElementsAre("1"));
}

TEST_F(StreamingPullTest, WhatADeadStreamHadReceivedStaysLeased) {
  rig_.create();
  CallLine& dead = open();
  rig_.publish("k", {"1"});
  ASSERT_TRUE(wait_for(dead, 1));
  modify(dead, received(dead)[0].ack_id(), 20);  // The receipt that all official clients send.
  dead.cancel();
  rig_.advance(2s);
  CallLine& next = open();
  rig_.publish("", {"other"});
  ASSERT_TRUE(wait_for(next, 1));
  EXPECT_THAT(data_of(next), ElementsAre("other"));
  rig_.advance(18s);
  ASSERT_TRUE(wait_for(next, 2));
}

TEST_F(StreamingPullTest, AnAckIdOutlivesItsStream) {
  rig_.create();
  CallLine& dead = open();
  rig_.publish("k", {"1", "2"});
  ASSERT_TRUE(wait_for(dead, 1));
  const std::string id = received(dead)[0].ack_id();
  dead.cancel();
  ASSERT_EQ(rig_.ack({id}).code, 0);
  CallLine& next = open();
  ASSERT_TRUE(wait_for(next, 1));
  EXPECT_THAT(data_of(next), ElementsAre("2"));
}

}  // namespace
}  // namespace ordo::pubsub_wire
