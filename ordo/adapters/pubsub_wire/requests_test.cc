#include "ordo/adapters/pubsub_wire/requests.h"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/pubsub/v1/pubsub.pb.h>
#include <gtest/gtest.h>

namespace ordo::pubsub_wire {
namespace {

using testing::ElementsAre;
namespace v1 = google::pubsub::v1;

TEST(RequestsTest, APublishIsItsTopicAndTheBytesOfItsMessages) {
  v1::PublishRequest request;
  request.set_topic("t");
  request.add_messages()->set_data("a");
  request.add_messages()->set_ordering_key("k");
  const std::string bytes = request.SerializeAsString();
  const auto read = read_publish(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->topic, "t");
  EXPECT_THAT(read->messages, ElementsAre(request.messages(0).SerializeAsString(),
                                          request.messages(1).SerializeAsString()));
}

TEST(RequestsTest, AnAcknowledgementHasItsIdsInOrder) {
  v1::AcknowledgeRequest request;
  request.set_subscription("s");
  request.add_ack_ids("1");
  request.add_ack_ids("2");
  const std::string bytes = request.SerializeAsString();
  const auto read = read_acknowledge(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->subscription, "s");
  EXPECT_THAT(read->ack_ids, ElementsAre("1", "2"));
}

TEST(RequestsTest, ANegativeDeadlineStaysNegative) {
  v1::ModifyAckDeadlineRequest request;
  request.set_subscription("s");
  request.add_ack_ids("1");
  request.set_ack_deadline_seconds(-1);
  const std::string bytes = request.SerializeAsString();
  const auto read = read_modify_ack_deadline(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ack_deadline_seconds, -1);
  EXPECT_THAT(read->ack_ids, ElementsAre("1"));
}

v1::StreamingPullRequest random_request(std::mt19937& random) {
  const auto number = [&](int most) { return std::uniform_int_distribution<>(0, most)(random); };
  v1::StreamingPullRequest request;
  if (number(1) == 0) request.set_subscription("projects/p/subscriptions/s");
  for (int i = number(3); i > 0; --i)
    request.add_ack_ids("ack-" + std::to_string(number(1'000)));
  for (int i = number(3); i > 0; --i) {
    request.add_modify_deadline_seconds(number(1'000'000) - 500'000);
    request.add_modify_deadline_ack_ids("mod-" + std::to_string(number(1'000)));
  }
  request.set_stream_ack_deadline_seconds(number(2) * 300);
  if (number(1) == 0) request.set_client_id("client");
  request.set_max_outstanding_messages(number(2) * 1'000 - 1);
  request.set_max_outstanding_bytes(std::int64_t{number(2)} << 40);
  request.set_protocol_version(number(1));
  return request;
}

// Goal: our reader sees what protobuf's sees. Method: random requests, whole and cut off.
class RequestsSeeds : public testing::TestWithParam<unsigned> {};

TEST_P(RequestsSeeds, AStreamsRequestIsReadAsProtobufReadsIt) {
  std::mt19937 random(GetParam());
  const v1::StreamingPullRequest request = random_request(random);
  const std::string bytes = request.SerializeAsString();
  const auto read = read_streaming_pull(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->subscription, request.subscription());
  EXPECT_EQ((std::vector<std::string>(read->ack_ids.begin(), read->ack_ids.end())),
            (std::vector<std::string>(request.ack_ids().begin(), request.ack_ids().end())));
  EXPECT_EQ(read->modify_deadline_seconds,
            (std::vector<std::int32_t>(request.modify_deadline_seconds().begin(),
                                       request.modify_deadline_seconds().end())));
  EXPECT_EQ(read->modify_deadline_ack_ids.size(),
            static_cast<std::size_t>(request.modify_deadline_ack_ids_size()));
  EXPECT_EQ(read->stream_ack_deadline_seconds, request.stream_ack_deadline_seconds());
  EXPECT_EQ(read->max_outstanding_messages, request.max_outstanding_messages());
  EXPECT_EQ(read->max_outstanding_bytes, request.max_outstanding_bytes());
  EXPECT_EQ(read->protocol_version, request.protocol_version());
}

TEST_P(RequestsSeeds, WhatIsCutOffIsReadAsProtobufReadsItOrNotAtAll) {
  std::mt19937 random(GetParam());
  const std::string whole = random_request(random).SerializeAsString();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string bytes = whole.substr(0, size);
    v1::StreamingPullRequest expected;
    EXPECT_EQ(read_streaming_pull(bytes).has_value(), expected.ParseFromString(bytes)) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RequestsSeeds, testing::Range(0u, 20u));

TEST(RequestsTest, NumbersMayBePackedOrNot) {
  const std::string packed("\x1a\x03\x0a\xd8\x04", 5);
  const std::string single("\x18\x0a\x18\xd8\x04", 5);
  for (const std::string& bytes : {packed, single}) {
    const auto read = read_streaming_pull(bytes);
    ASSERT_TRUE(read);
    EXPECT_THAT(read->modify_deadline_seconds, ElementsAre(10, 600));
  }
  EXPECT_FALSE(read_streaming_pull(std::string("\x1a\x02\x0a\xd8", 4))) << "cut off inside";
}

}  // namespace
}  // namespace ordo::pubsub_wire
