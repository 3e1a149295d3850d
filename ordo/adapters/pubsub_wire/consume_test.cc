#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <gtest/gtest.h>

#include "ordo/adapters/http2/grpc_text.h"
#include "ordo/adapters/pubsub_wire/settle.h"
#include "tests/support/wire_rig.h"

namespace ordo::pubsub_wire {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;
using testing_support::CallLine;
using testing_support::kInvalidArgument;
using testing_support::kNotFound;
using testing_support::kUnavailable;
using testing_support::WireRig;
namespace v1 = google::pubsub::v1;

std::vector<std::string> data_of(const std::vector<v1::ReceivedMessage>& messages) {
  std::vector<std::string> data;
  for (const v1::ReceivedMessage& message : messages)
    data.push_back(message.message().data());
  return data;
}

v1::PullRequest pull_request(int max_messages = 10) {
  v1::PullRequest request;
  request.set_subscription(WireRig::subscription());
  request.set_max_messages(max_messages);
  return request;
}

// ---------------------------------------------------------------------------------------- pull

TEST(PullTest, TheNextOfAKeyComesWhenTheFirstIsAcknowledged) {
  WireRig rig;
  rig.create();
  rig.publish("k", {"1", "2"});
  const auto first = rig.pull();
  EXPECT_THAT(data_of(first), ElementsAre("1"));
  EXPECT_THAT(rig.pull(), IsEmpty());
  ASSERT_EQ(rig.ack({first[0].ack_id()}).code, 0);
  EXPECT_THAT(data_of(rig.pull()), ElementsAre("2"));
}

TEST(PullTest, ItWaitsForTheFirstMessage) {
  WireRig rig;
  rig.create();
  CallLine& line = rig.open("Subscriber/Pull");
  line.send(pull_request());
  line.half_close();
  rig.poll();
  EXPECT_FALSE(line.is_ended());
  rig.publish("", {"a"});
  const auto answer = rig.answer_of<v1::PullResponse>(line);
  ASSERT_EQ(answer.code, 0) << answer.message;
  ASSERT_EQ(answer.response.received_messages_size(), 1);
  EXPECT_EQ(answer.response.received_messages(0).message().data(), "a");
}

TEST(PullTest, AClientsDeadlineEndsTheWaitASecondEarlierWithAnEmptyAnswer) {
  WireRig rig;
  rig.create();
  CallLine& line = rig.open("Subscriber/Pull", rig.clock().now() + 5s);
  line.send(pull_request());
  rig.poll();
  EXPECT_FALSE(line.is_ended());
  rig.advance(4s);
  const auto answer = rig.answer_of<v1::PullResponse>(line);
  EXPECT_EQ(answer.code, 0) << answer.message;
  EXPECT_EQ(answer.response.received_messages_size(), 0);
}

TEST(PullTest, WithoutADeadlineItWaitsForNinetySeconds) {
  WireRig rig;
  rig.create();
  CallLine& line = rig.open("Subscriber/Pull");
  line.send(pull_request());
  rig.advance(89s);
  rig.poll();
  EXPECT_FALSE(line.is_ended());
  rig.advance(1s);
  EXPECT_EQ(rig.answer_of<v1::PullResponse>(line).code, 0);
}

TEST(PullTest, AClientThatGoesTakesNothingWithIt) {
  WireRig rig;
  rig.create();
  CallLine& gone = rig.open("Subscriber/Pull");
  gone.send(pull_request());
  gone.cancel();
  rig.publish("k", {"1"});
  ASSERT_TRUE(rig.wait([&] { return !rig.pull().empty(); }));
}

TEST(PullTest, ASecondRequestEndsItAndTakesNothing) {
  WireRig rig;
  rig.create();
  CallLine& line = rig.open("Subscriber/Pull");
  line.send(pull_request());
  line.send(pull_request());
  EXPECT_EQ(rig.answer_of<v1::PullResponse>(line).code, kInvalidArgument);
  rig.publish("k", {"1"});
  ASSERT_TRUE(rig.wait([&] { return !rig.pull().empty(); }));
}

// Goal: a pull that ends just as its client goes keeps nothing. Method: the connection has noticed,
// and whoever serves the call has not been told yet.
TEST(PullTest, WhatAPullGetsForAClientThatHasJustGoneIsForOthers) {
  WireRig rig;
  v1::Subscription settings;
  settings.mutable_dead_letter_policy()->set_dead_letter_topic(WireRig::topic());
  rig.create(settings);
  CallLine& gone = rig.open("Subscriber/Pull");
  gone.send(pull_request());
  gone.close();
  rig.publish("k", {"1"});
  std::vector<v1::ReceivedMessage> got;
  ASSERT_TRUE(rig.wait([&] { return !(got = rig.pull()).empty(); }));
  EXPECT_THAT(data_of(got), ElementsAre("1"));
  EXPECT_EQ(got[0].delivery_attempt(), 1) << "nobody has failed";
}

TEST(PullTest, ALargeMessageIsSharedAndNotBroken) {
  WireRig rig;
  rig.create();
  std::string large(3'000'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 1'000)
    large[i] = static_cast<char>('a' + i / 1'000 % 26);
  rig.publish("", {"small"});
  rig.publish("", {large});
  std::vector<std::string> got;
  ASSERT_TRUE(rig.wait([&] {
    for (const std::string& data : data_of(rig.pull()))
      got.push_back(data);
    return got.size() == 2;
  }));
  EXPECT_TRUE((got[0] == "small" && got[1] == large) || (got[1] == "small" && got[0] == large));
}

TEST(PullTest, WhatIsWrongWithARequestIsSaidInTheServicesWords) {
  WireRig rig;
  rig.create();
  const auto none = rig.unary<v1::PullResponse>("Subscriber/Pull", pull_request(0));
  EXPECT_EQ(none.code, kInvalidArgument);
  EXPECT_EQ(none.message, "No max_messages specified");
  v1::PullRequest request = pull_request();
  request.set_subscription(WireRig::subscription("none"));
  EXPECT_EQ(rig.unary<v1::PullResponse>("Subscriber/Pull", request).code, kNotFound);
}

TEST(PullTest, APullThatWaitsEndsWhenTheServiceCloses) {
  WireRig rig;
  rig.create();
  CallLine& line = rig.open("Subscriber/Pull");
  line.send(pull_request());
  rig.service().close();
  EXPECT_EQ(rig.answer_of<v1::PullResponse>(line).code, kUnavailable);
}

TEST(PullTest, AttemptsAreShownWhereAPolicyCountsThem) {
  WireRig rig;
  v1::Subscription settings;
  settings.mutable_dead_letter_policy()->set_dead_letter_topic(WireRig::topic());
  rig.create(settings);
  rig.publish("k", {"1"});
  const auto first = rig.pull();
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].delivery_attempt(), 1);
  ASSERT_EQ(rig.modify({first[0].ack_id()}, 0).code, 0);
  std::vector<v1::ReceivedMessage> second;
  ASSERT_TRUE(rig.wait([&] { return !(second = rig.pull()).empty(); }));
  EXPECT_EQ(second[0].delivery_attempt(), 2);
  EXPECT_NE(second[0].ack_id(), first[0].ack_id());
}

// -------------------------------------------------------------------------------------- settle

TEST(SettleTest, ANackGivesTheMessageBackInPlace) {
  WireRig rig;
  rig.create();
  rig.publish("k", {"1", "2"});
  const auto first = rig.pull();
  ASSERT_EQ(rig.modify({first.at(0).ack_id()}, 0).code, 0);
  std::vector<v1::ReceivedMessage> again;
  ASSERT_TRUE(rig.wait([&] { return !(again = rig.pull()).empty(); }));
  EXPECT_THAT(data_of(again), ElementsAre("1"));
}

TEST(SettleTest, ADeadlineThatPassedIsANackAndAModifiedOneComesLater) {
  WireRig rig;
  rig.create();
  rig.publish("k", {"1"});
  const auto first = rig.pull();
  ASSERT_EQ(rig.modify({first.at(0).ack_id()}, 30).code, 0);
  rig.advance(29s);
  EXPECT_THAT(rig.pull(), IsEmpty());
  rig.advance(1s);
  ASSERT_TRUE(rig.wait([&] { return !rig.pull().empty(); }));
}

TEST(SettleTest, ALateAckOfAnOrdinarySubscriptionIsNoErrorAndFreesNothing) {
  WireRig rig;
  rig.create();
  rig.publish("k", {"1", "2"});
  const auto first = rig.pull();
  ASSERT_EQ(rig.modify({first.at(0).ack_id()}, 0).code, 0);
  std::vector<v1::ReceivedMessage> again;
  ASSERT_TRUE(rig.wait([&] { return !(again = rig.pull()).empty(); }));
  EXPECT_EQ(rig.ack({first[0].ack_id()}).code, 0);
  EXPECT_THAT(rig.pull(), IsEmpty());
  EXPECT_EQ(rig.ack({again[0].ack_id()}).code, 0);
  EXPECT_EQ(rig.ack({again[0].ack_id()}).code, 0) << "twice is no error";
}

TEST(SettleTest, WhatIsWrongWithARequestIsSaidInTheServicesWords) {
  WireRig rig;
  rig.create();
  EXPECT_EQ(rig.ack({}).message, "No ack ids specified.");
  const auto bad = rig.ack({"nonsense"});
  EXPECT_EQ(bad.code, kInvalidArgument);
  EXPECT_EQ(bad.message, "Invalid ack id (ack_id=nonsense)");
  rig.publish("k", {"1"});
  const auto got = rig.pull();
  EXPECT_EQ(rig.modify({got.at(0).ack_id()}, 601).code, kInvalidArgument);
  EXPECT_EQ(rig.modify({got.at(0).ack_id()}, -1).code, kInvalidArgument);
}

google::rpc::ErrorInfo info_of(const std::string& details) {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  const auto bytes = http2::from_base64(details);
  EXPECT_TRUE(bytes && status.ParseFromString(*bytes));
  EXPECT_TRUE(status.details_size() == 1 && status.details(0).UnpackTo(&info));
  return info;
}

TEST(SettleTest, ExactlyOnceNamesTheIdsThatDidNotCountAndTakesTheOthers) {
  WireRig rig;
  v1::Subscription settings;
  settings.set_enable_exactly_once_delivery(true);
  rig.create(settings);
  rig.publish("a", {"a1", "a2"});
  rig.publish("b", {"b1", "b2"});
  std::vector<v1::ReceivedMessage> got;
  ASSERT_TRUE(rig.wait([&] {
    for (auto& message : rig.pull())
      got.push_back(std::move(message));
    return got.size() == 2;
  }));
  const std::string stale = got[0].ack_id();
  ASSERT_EQ(rig.modify({stale}, 0).code, 0);
  std::vector<v1::ReceivedMessage> again;
  ASSERT_TRUE(rig.wait([&] { return !(again = rig.pull()).empty(); }));

  const auto answer = rig.ack({stale, "nonsense", got[1].ack_id()});
  EXPECT_EQ(answer.code, kInvalidArgument);
  const google::rpc::ErrorInfo info = info_of(answer.details);
  EXPECT_EQ(info.reason(), "EXACTLY_ONCE_ACKID_FAILURE");
  EXPECT_EQ(info.domain(), "pubsub.googleapis.com");
  ASSERT_EQ(info.metadata_size(), 2);
  EXPECT_EQ(info.metadata().at(stale), "PERMANENT_FAILURE_INVALID_ACK_ID");
  EXPECT_EQ(info.metadata().at("nonsense"), "PERMANENT_FAILURE_INVALID_ACK_ID");
  std::vector<v1::ReceivedMessage> next;
  ASSERT_TRUE(rig.wait([&] { return !(next = rig.pull()).empty(); })) << "the other was taken";
  EXPECT_EQ(next[0].message().ordering_key(), got[1].message().ordering_key());

  const auto modified = rig.modify({stale}, 10);
  EXPECT_EQ(modified.code, kInvalidArgument);
  EXPECT_EQ(info_of(modified.details).metadata_size(), 1);
}

TEST(SettleTest, ExactlyOnceAsksForDeadlinesAgainThatCameBesideAStaleId) {
  WireRig rig;
  v1::Subscription settings;
  settings.set_enable_exactly_once_delivery(true);
  rig.create(settings);
  rig.publish("a", {"a1"});
  rig.publish("b", {"b1"});
  std::vector<v1::ReceivedMessage> got;
  ASSERT_TRUE(rig.wait([&] {
    for (auto& message : rig.pull())
      got.push_back(std::move(message));
    return got.size() == 2;
  }));
  const std::string stale = got[0].ack_id();
  const std::string good = got[1].ack_id();
  ASSERT_EQ(rig.ack({stale}).code, 0);

  const auto answer = rig.modify({stale, good}, 30);
  EXPECT_EQ(answer.code, kInvalidArgument);
  const google::rpc::ErrorInfo info = info_of(answer.details);
  ASSERT_EQ(info.metadata_size(), 2);
  EXPECT_EQ(info.metadata().at(stale), "PERMANENT_FAILURE_INVALID_ACK_ID");
  EXPECT_THAT(info.metadata().at(good), testing::StartsWith("TRANSIENT_"));
  EXPECT_EQ(rig.modify({good}, 30).code, 0);
  rig.advance(29s);
  EXPECT_THAT(rig.pull(), IsEmpty()) << "it counted";

  // To give a message back twice would not be the same as once.
  const google::rpc::ErrorInfo nacked = info_of(rig.modify({stale, good}, 0).details);
  EXPECT_EQ(nacked.metadata_size(), 1);
}

TEST(SettleTest, NoMoreIdsAreNamedThanTheClientTakes) {
  WireRig rig;
  v1::Subscription settings;
  settings.set_enable_exactly_once_delivery(true);
  rig.create(settings);
  std::vector<std::string> ids;
  for (int i = 0; i < 2'500; ++i)
    ids.push_back("this-is-none-of-ours-" + std::to_string(i));

  const auto answer = rig.ack(ids);
  EXPECT_EQ(answer.code, kInvalidArgument);
  const google::rpc::ErrorInfo info = info_of(answer.details);
  EXPECT_EQ(info.reason(), "EXACTLY_ONCE_ACKID_FAILURE");
  EXPECT_THAT(info.metadata(), SizeIs(AllOf(Ge(30u), Le(80u))));
}

TEST(SettleTest, IdsThatMayBeTriedAgainAreNamedFirst) {
  FailedIds failed;
  for (int i = 0; i < 100; ++i)
    failed.permanent.push_back("expired-" + std::to_string(i));
  failed.transient.emplace_back("again");

  google::rpc::Status status;
  const std::string details = details_of(failed, 1'000);
  EXPECT_LE(details.size(), 1'000u);
  ASSERT_TRUE(status.ParseFromString(details));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(status.details(0).UnpackTo(&info));
  EXPECT_EQ(info.metadata().count("again"), 1u);
  EXPECT_THAT(info.metadata(), SizeIs(AllOf(Ge(2u), Le(20u))));
}

}  // namespace
}  // namespace ordo::pubsub_wire
