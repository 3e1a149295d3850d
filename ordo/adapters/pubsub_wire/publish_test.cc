#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/wire_rig.h"

namespace ordo::pubsub_wire {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::kInvalidArgument;
using testing_support::kNotFound;
using testing_support::WireAnswer;
using testing_support::WireRig;
namespace v1 = google::pubsub::v1;

class PublishTest : public testing::Test {
 protected:
  PublishTest() { rig_.create(); }

  WireAnswer<v1::PublishResponse> publish(const v1::PublishRequest& request) {
    return rig_.unary<v1::PublishResponse>("Publisher/Publish", request);
  }
  static v1::PublishRequest request_of(const std::vector<std::string>& data) {
    v1::PublishRequest request;
    request.set_topic(WireRig::topic());
    for (const std::string& text : data)
      request.add_messages()->set_data(text);
    return request;
  }

  WireRig rig_;
};

TEST_F(PublishTest, TheIdsRiseInTheOrderOfTheRequest) {
  const auto answer = publish(request_of({"a", "b", "c"}));
  ASSERT_EQ(answer.code, 0) << answer.message;
  ASSERT_EQ(answer.response.message_ids_size(), 3);
  const auto id = [&](int index) { return std::stoull(answer.response.message_ids(index)); };
  EXPECT_EQ(id(1), id(0) + 1);
  EXPECT_EQ(id(2), id(0) + 2);
}

TEST_F(PublishTest, AMessageComesOutAsItWentInWithItsIdAndTime) {
  v1::PublishRequest request = request_of({"data"});
  v1::PubsubMessage& message = *request.mutable_messages(0);
  (*message.mutable_attributes())["colour"] = "blue";
  message.set_ordering_key("k");
  message.set_message_id("mine");
  message.mutable_publish_time()->set_seconds(7);
  const auto answer = publish(request);
  ASSERT_EQ(answer.code, 0) << answer.message;

  const auto got = rig_.pull();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].message().data(), "data");
  EXPECT_EQ(got[0].message().attributes().at("colour"), "blue");
  EXPECT_EQ(got[0].message().ordering_key(), "k");
  EXPECT_EQ(got[0].message().message_id(), answer.response.message_ids(0));
  EXPECT_GT(got[0].message().publish_time().seconds(), 1'500'000'000);
  EXPECT_EQ(got[0].delivery_attempt(), 0);
}

TEST_F(PublishTest, AnEmptyOrderingKeyIsNone) {
  rig_.publish("", {"a", "b", "c"});
  EXPECT_EQ(rig_.pull().size(), 3u);
}

TEST_F(PublishTest, TwoKeysInOneRequestAreRefusedAndNothingIsStored) {
  v1::PublishRequest request = request_of({"a", "b"});
  request.mutable_messages(0)->set_ordering_key("k");
  EXPECT_EQ(publish(request).code, kInvalidArgument);
  EXPECT_TRUE(rig_.pull().empty());
}

TEST_F(PublishTest, ARequestWithoutMessagesOrWithAnEmptyOneIsRefused) {
  EXPECT_EQ(publish(request_of({})).message, "No messages to publish");
  v1::PublishRequest request = request_of({"a", ""});
  EXPECT_EQ(publish(request).message, "Some messages are empty");
  EXPECT_EQ(publish(request).code, kInvalidArgument);
}

TEST_F(PublishTest, TooManyMessagesAreRefusedInTheWordsOfTheService) {
  const auto answer = publish(request_of(std::vector<std::string>(1'001, "a")));
  EXPECT_EQ(answer.code, kInvalidArgument);
  EXPECT_THAT(answer.message, AllOf(HasSubstr("message_count"), HasSubstr("1000")));
  EXPECT_EQ(publish(request_of(std::vector<std::string>(1'000, "a"))).code, 0);
}

TEST_F(PublishTest, ARequestAboveTenMillionBytesIsRefusedInTheWordsOfTheService) {
  const auto answer = publish(request_of({std::string(10'000'000, 'x')}));
  EXPECT_EQ(answer.code, kInvalidArgument);
  EXPECT_THAT(answer.message, AllOf(HasSubstr("request_size"), HasSubstr("10000000")));
  EXPECT_EQ(publish(request_of({std::string(9'999'900, 'x')})).code, 0);
}

TEST_F(PublishTest, ATopicThatIsNotThereIsNotFoundAndABadNameInvalid) {
  v1::PublishRequest request = request_of({"a"});
  request.set_topic("projects/p/topics/none");
  EXPECT_EQ(publish(request).code, kNotFound);
  request.set_topic("nonsense");
  EXPECT_EQ(publish(request).code, kInvalidArgument);
}

TEST_F(PublishTest, BytesThatAreNoRequestAreInvalidAndNotAnInternalError) {
  const auto answer =
      rig_.unary_bytes<v1::PublishResponse>("Publisher/Publish", "\x0a\xff\xff\xff\xff");
  EXPECT_EQ(answer.code, kInvalidArgument);
}

}  // namespace
}  // namespace ordo::pubsub_wire
