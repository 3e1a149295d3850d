// The operator API over the wire: keys, verbs, peek, tail, stats.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ordo/operate/v1/operator.pb.h>

#include "tests/support/wire_rig.h"

namespace ordo::pubsub_wire {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing_support::CallLine;
using testing_support::kFailedPrecondition;
using testing_support::kInvalidArgument;
using testing_support::kNotFound;
using testing_support::kUnavailable;
using testing_support::WireAnswer;
using testing_support::WireRig;
namespace operate = ordo::operate::v1;
namespace v1 = google::pubsub::v1;

const std::string kOperator = "/ordo.operate.v1.Operator/";

class OperatorTest : public testing::Test {
 protected:
  WireAnswer<operate::ListKeysResponse> list(operate::ListKeysRequest request = {}) {
    if (request.subscription().empty()) request.set_subscription(WireRig::subscription());
    return rig_.unary<operate::ListKeysResponse>(kOperator + "ListKeys", request);
  }
  WireAnswer<operate::OperateKeyResponse> act(const std::string& key,
                                              operate::OperateKeyRequest::Verb verb) {
    operate::OperateKeyRequest request;
    request.set_subscription(WireRig::subscription());
    request.set_ordering_key(key);
    request.set_verb(verb);
    return rig_.unary<operate::OperateKeyResponse>(kOperator + "OperateKey", request);
  }
  WireAnswer<operate::PeekResponse> peek(operate::PeekRequest request = {}) {
    if (request.subscription().empty()) request.set_subscription(WireRig::subscription());
    return rig_.unary<operate::PeekResponse>(kOperator + "Peek", request);
  }
  CallLine& tail(operate::TailRequest request = {}) {
    if (request.topic().empty()) request.set_topic(WireRig::topic());
    CallLine& line = rig_.open(kOperator + "Tail");
    line.send(request);
    line.half_close();
    return line;
  }
  // What a tail has got, after `count` messages.
  std::vector<std::string> followed(CallLine& line, std::size_t count) {
    std::vector<std::string> data;
    EXPECT_TRUE(rig_.wait([&] {
      rig_.clock().advance(10ms);
      data.clear();
      for (const auto& response : line.messages_as<operate::TailResponse>()) {
        for (const v1::PubsubMessage& message : response.messages())
          data.push_back(message.data());
      }
      return data.size() >= count;
    }));
    return data;
  }

  WireRig rig_;
};

TEST_F(OperatorTest, AStuckKeyIsListedWithItsReasonAndFreedBySkippingItsHead) {
  v1::Subscription settings;
  settings.mutable_retry_policy()->mutable_minimum_backoff()->set_seconds(60);
  rig_.create(settings);
  const std::vector<std::string> ids = rig_.publish("bad", {"poison", "after"});
  rig_.publish("good", {"fine"});
  for (const v1::ReceivedMessage& message : rig_.pull()) {
    if (message.message().ordering_key() == "bad") rig_.modify({message.ack_id()}, 0);
  }
  operate::ListKeysRequest stuck;
  stuck.set_stuck_only(true);
  const auto listed = list(stuck);
  ASSERT_EQ(listed.code, 0) << listed.message;
  ASSERT_EQ(listed.response.keys_size(), 1);
  const operate::Key& key = listed.response.keys(0);
  EXPECT_EQ(key.ordering_key(), "bad");
  EXPECT_EQ(key.reason(), operate::BACKOFF);
  EXPECT_TRUE(key.is_stuck());
  EXPECT_EQ(key.head_message_id(), ids[0]);
  EXPECT_EQ(key.last_failure(), "nack");
  EXPECT_EQ(key.delivery_attempts(), 1);
  EXPECT_EQ(key.waiting(), 1);
  EXPECT_GT(key.blocked_since().seconds(), 1'500'000'000);

  EXPECT_EQ(act("bad", operate::OperateKeyRequest::SKIP).code, 0);
  const auto after = rig_.pull();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].message().data(), "after");
}

TEST_F(OperatorTest, KeysInFlightNameTheirStreamAndTheDeepestComeFirst) {
  rig_.create();
  rig_.publish("one", {"1"});
  rig_.publish("three", {"1", "2", "3"});
  ASSERT_EQ(rig_.pull().size(), 2u);
  operate::ListKeysRequest deepest;
  deepest.set_order(operate::ListKeysRequest::DEEPEST);
  deepest.set_max_keys(1);
  const auto listed = list(deepest);
  ASSERT_EQ(listed.response.keys_size(), 1);
  EXPECT_EQ(listed.response.keys(0).ordering_key(), "three");
  EXPECT_EQ(listed.response.keys(0).reason(), operate::IN_FLIGHT);
  EXPECT_GT(listed.response.keys(0).stream(), 0);
  EXPECT_FALSE(listed.response.keys(0).is_stuck());
}

TEST_F(OperatorTest, VerbsThatCannotBeDoneSayWhy) {
  rig_.create();
  rig_.publish("k", {"1"});
  EXPECT_EQ(act("k", operate::OperateKeyRequest::VERB_UNSPECIFIED).code, kInvalidArgument);
  EXPECT_EQ(act("nobody", operate::OperateKeyRequest::SKIP).code, kNotFound);
  ASSERT_EQ(rig_.pull().size(), 1u);
  EXPECT_EQ(act("k", operate::OperateKeyRequest::SKIP).code, kFailedPrecondition);
  EXPECT_EQ(act("k", operate::OperateKeyRequest::RESUME).code, kFailedPrecondition);
  EXPECT_EQ(act("k", operate::OperateKeyRequest::DEAD_LETTER).code, kFailedPrecondition);
}

TEST_F(OperatorTest, PeekShowsWhatIsThereInPagesAndConsumesNothing) {
  rig_.create();
  rig_.publish("k", {"a", "b", "c"});
  std::vector<std::string> seen;
  operate::PeekRequest request;
  request.set_max_messages(2);
  do {
    const auto page = peek(request);
    ASSERT_EQ(page.code, 0) << page.message;
    for (const operate::PeekedMessage& message : page.response.messages())
      seen.push_back(message.message().data());
    request.set_page_token(page.response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(seen, ElementsAre("a", "b", "c"));
  EXPECT_EQ(rig_.pull().size(), 1u);
  const auto after = peek();
  ASSERT_EQ(after.response.messages_size(), 3);
  EXPECT_EQ(after.response.messages(0).state(), operate::PeekedMessage::IN_FLIGHT);
  EXPECT_EQ(after.response.messages(1).state(), operate::PeekedMessage::WAITING);
  EXPECT_EQ(after.response.messages(0).message().ordering_key(), "k");
  EXPECT_FALSE(after.response.messages(0).message().message_id().empty());
}

TEST_F(OperatorTest, WhatMakesNoSenseIsRefused) {
  rig_.create();
  operate::PeekRequest request;
  request.set_max_messages(-1);
  EXPECT_EQ(peek(request).code, kInvalidArgument);
  request.set_max_messages(1'001);
  EXPECT_EQ(peek(request).code, kInvalidArgument);
  request.Clear();
  request.set_page_token("nonsense");
  EXPECT_EQ(peek(request).code, kInvalidArgument);
  request.Clear();
  request.set_subscription(WireRig::subscription("none"));
  EXPECT_EQ(peek(request).code, kNotFound);
  operate::ListKeysRequest keys;
  keys.set_max_keys(-3);
  EXPECT_EQ(list(keys).code, kInvalidArgument);
  EXPECT_EQ(rig_.unary_bytes<operate::PeekResponse>(kOperator + "Peek", "\xff").code,
            kInvalidArgument);
}

TEST_F(OperatorTest, ATailGetsWhatIsStoredFromNowOnAndConsumesNothing) {
  rig_.create();
  rig_.publish("k", {"before"});
  CallLine& line = tail();
  ASSERT_TRUE(rig_.wait([&] { return line.has_headers(); }));
  rig_.publish("k", {"one", "two"});
  rig_.publish("other", {"three"});
  EXPECT_THAT(followed(line, 3), ElementsAre("one", "two", "three"));
  EXPECT_FALSE(line.is_ended());
  EXPECT_EQ(peek().response.messages_size(), 4);
}

TEST_F(OperatorTest, ATailShowsOneKeyOrWhatAFilterLetsThrough) {
  rig_.create();
  operate::TailRequest of_key;
  of_key.set_ordering_key("k");
  CallLine& line = tail(of_key);
  operate::TailRequest of_filter;
  of_filter.set_filter("attributes:colour");
  CallLine& filtered = tail(of_filter);
  ASSERT_TRUE(rig_.wait([&] { return line.has_headers() && filtered.has_headers(); }));
  rig_.publish("other", {"no"});
  rig_.publish("k", {"yes"});
  v1::PublishRequest request;
  request.set_topic(WireRig::topic());
  request.add_messages()->set_data("blue");
  (*request.mutable_messages(0)->mutable_attributes())["colour"] = "blue";
  ASSERT_EQ(rig_.unary<v1::PublishResponse>("Publisher/Publish", request).code, 0);
  EXPECT_THAT(followed(line, 1), ElementsAre("yes"));
  EXPECT_THAT(followed(filtered, 1), ElementsAre("blue"));
}

TEST_F(OperatorTest, ATailEndsWithItsTopicAndWithTheService) {
  rig_.create();
  operate::TailRequest nobody;
  nobody.set_topic(WireRig::topic("none"));
  EXPECT_EQ(rig_.answer_of<operate::TailResponse>(tail(nobody)).code, kNotFound);
  operate::TailRequest unclear;
  unclear.set_filter("((");
  EXPECT_EQ(rig_.answer_of<operate::TailResponse>(tail(unclear)).code, kInvalidArgument);

  CallLine& line = tail();
  ASSERT_TRUE(rig_.wait([&] { return line.has_headers(); }));
  v1::DeleteTopicRequest gone;
  gone.set_topic(WireRig::topic());
  ASSERT_EQ(rig_.unary<google::protobuf::Empty>("Publisher/DeleteTopic", gone).code, 0);
  EXPECT_TRUE(rig_.wait([&] {
    rig_.clock().advance(10ms);
    return line.is_ended();
  }));
  EXPECT_EQ(line.code(), kNotFound);

  v1::Topic made;
  made.set_name(WireRig::topic());
  ASSERT_EQ(rig_.unary<v1::Topic>("Publisher/CreateTopic", made).code, 0);
  CallLine& another = tail();
  ASSERT_TRUE(rig_.wait([&] { return another.has_headers(); }));
  rig_.service().close();
  EXPECT_TRUE(rig_.wait([&] { return another.is_ended(); }));
  EXPECT_EQ(another.code(), kUnavailable);
}

TEST_F(OperatorTest, ATailEndsAlsoWhenItsTopicWasMadeAnewBeforeItLooked) {
  rig_.create();
  CallLine& line = tail();
  ASSERT_TRUE(rig_.wait([&] { return line.has_headers(); }));
  v1::DeleteTopicRequest gone;
  gone.set_topic(WireRig::topic());
  ASSERT_EQ(rig_.unary<google::protobuf::Empty>("Publisher/DeleteTopic", gone).code, 0);
  v1::Topic made;
  made.set_name(WireRig::topic());
  ASSERT_EQ(rig_.unary<v1::Topic>("Publisher/CreateTopic", made).code, 0);
  EXPECT_TRUE(rig_.wait([&] {
    rig_.clock().advance(10ms);
    return line.is_ended();
  }));
  EXPECT_EQ(line.code(), kNotFound);
}

TEST_F(OperatorTest, StatsTellWhatSubscriptionsHaveLeftToDo) {
  rig_.create();
  rig_.publish("k", {"a", "b"});
  ASSERT_EQ(rig_.pull().size(), 1u);
  const auto stats = rig_.unary<operate::Stats>(kOperator + "GetStats", operate::GetStatsRequest());
  ASSERT_EQ(stats.code, 0) << stats.message;
  EXPECT_EQ(stats.response.topics(), 1);
  EXPECT_EQ(stats.response.messages_published(), 2);
  ASSERT_EQ(stats.response.subscriptions_size(), 1);
  EXPECT_EQ(stats.response.subscriptions(0).backlog(), 2);
  EXPECT_EQ(stats.response.subscriptions(0).in_flight(), 1);
  operate::GetStatsRequest none;
  none.set_subscription(WireRig::subscription("none"));
  EXPECT_EQ(rig_.unary<operate::Stats>(kOperator + "GetStats", none).code, kNotFound);
}

}  // namespace
}  // namespace ordo::pubsub_wire
