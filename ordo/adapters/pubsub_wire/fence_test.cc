// The fence of a delivery as an attribute, where a subscription asks for it.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/wire_rig.h"

namespace ordo::pubsub_wire {
namespace {

using testing_support::CallLine;
using testing_support::kInvalidArgument;
using testing_support::WireRig;
namespace v1 = google::pubsub::v1;

const std::string kAttribute = "ordo-fence";

v1::Subscription labelled(const std::string& value) {
  v1::Subscription settings;
  (*settings.mutable_labels())["ordo-fence-attribute"] = value;
  return settings;
}

class FenceTest : public testing::Test {
 protected:
  // Of the only message there is.
  v1::PubsubMessage pull_one(std::string& ack_id) {
    const std::vector<v1::ReceivedMessage> got = rig_.pull();
    EXPECT_EQ(got.size(), 1u);
    if (got.empty()) return {};
    ack_id = got[0].ack_id();
    return got[0].message();
  }
  static unsigned long fence_of(const v1::PubsubMessage& message) {
    return std::stoul(message.attributes().at(kAttribute));
  }

  WireRig rig_;
};

TEST_F(FenceTest, RisesWithEveryDeliveryOfAKey) {
  rig_.create(labelled("true"));
  rig_.publish("k", {"1", "2"});
  std::string ack_id;
  const v1::PubsubMessage first = pull_one(ack_id);
  EXPECT_EQ(first.data(), "1");
  rig_.modify({ack_id}, 0);
  const v1::PubsubMessage again = pull_one(ack_id);
  EXPECT_EQ(again.data(), "1");
  EXPECT_GT(fence_of(again), fence_of(first));
  rig_.ack({ack_id});
  const v1::PubsubMessage second = pull_one(ack_id);
  EXPECT_EQ(second.data(), "2");
  EXPECT_GT(fence_of(second), fence_of(again));
  EXPECT_EQ(second.ordering_key(), "k");
  EXPECT_FALSE(second.message_id().empty());
}

TEST_F(FenceTest, IsOnStreamsTooAndStandsForOneThatAPublisherHasSet) {
  rig_.create(labelled("true"));
  v1::StreamingPullRequest request;
  request.set_subscription(WireRig::subscription());
  request.set_stream_ack_deadline_seconds(10);
  CallLine& line = rig_.open("Subscriber/StreamingPull");
  line.send(request);
  v1::PublishRequest publish;
  publish.set_topic(WireRig::topic());
  for (const std::size_t size : {std::size_t{1}, std::size_t{100'000}}) {  // Copied, and shared.
    v1::PubsubMessage& message = *publish.add_messages();
    message.set_data(std::string(size, 'x'));
    (*message.mutable_attributes())[kAttribute] = "forged";
    (*message.mutable_attributes())["colour"] = "blue";
  }
  ASSERT_EQ(rig_.unary<v1::PublishResponse>("Publisher/Publish", publish).code, 0);
  std::vector<v1::PubsubMessage> got;
  ASSERT_TRUE(rig_.wait([&] {
    got.clear();
    for (const auto& response : line.messages_as<v1::StreamingPullResponse>()) {
      for (const v1::ReceivedMessage& message : response.received_messages())
        got.push_back(message.message());
    }
    return got.size() == 2;
  }));
  for (const v1::PubsubMessage& message : got) {
    EXPECT_GT(fence_of(message), 0u);
    EXPECT_EQ(message.attributes().at("colour"), "blue");
    EXPECT_EQ(message.attributes().size(), 2u);
  }
}

TEST_F(FenceTest, WithoutItsLabelIsNotShown) {
  rig_.create(labelled("false"));
  rig_.publish("k", {"1"});
  std::string ack_id;
  EXPECT_TRUE(pull_one(ack_id).attributes().empty());
  v1::Subscription other = labelled("maybe");
  other.set_name(WireRig::subscription("other"));
  other.set_topic(WireRig::topic());
  EXPECT_EQ(rig_.unary<v1::Subscription>("Subscriber/CreateSubscription", other).code,
            kInvalidArgument);
}

}  // namespace
}  // namespace ordo::pubsub_wire
