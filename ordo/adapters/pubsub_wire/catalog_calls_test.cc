#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/iam/v1/iam_policy.pb.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/empty.pb.h>
#include <grpc/health/v1/health.pb.h>
#include <grpc/reflection/v1/reflection.pb.h>
#include <gtest/gtest.h>

#include "tests/support/wire_rig.h"

namespace ordo::pubsub_wire {
namespace {

using google::protobuf::Empty;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing_support::CallLine;
using testing_support::kAborted;
using testing_support::kAlreadyExists;
using testing_support::kFailedPrecondition;
using testing_support::kInvalidArgument;
using testing_support::kNotFound;
using testing_support::kOutOfRange;
using testing_support::kUnavailable;
using testing_support::kUnimplemented;
using testing_support::WireAnswer;
using testing_support::WireRig;
namespace v1 = google::pubsub::v1;

class CatalogCallsTest : public testing::Test {
 protected:
  WireAnswer<v1::Topic> create_topic(const std::string& id) {
    v1::Topic topic;
    topic.set_name(WireRig::topic(id));
    return rig_.unary<v1::Topic>("Publisher/CreateTopic", topic);
  }
  static v1::Subscription subscription(const std::string& id = "billing") {
    v1::Subscription subscription;
    subscription.set_name(WireRig::subscription(id));
    subscription.set_topic(WireRig::topic());
    return subscription;
  }
  WireAnswer<v1::Subscription> create(const v1::Subscription& subscription) {
    return rig_.unary<v1::Subscription>("Subscriber/CreateSubscription", subscription);
  }
  WireAnswer<v1::Subscription> update(const v1::Subscription& subscription,
                                      const std::vector<std::string>& paths) {
    v1::UpdateSubscriptionRequest request;
    *request.mutable_subscription() = subscription;
    for (const std::string& path : paths)
      request.mutable_update_mask()->add_paths(path);
    return rig_.unary<v1::Subscription>("Subscriber/UpdateSubscription", request);
  }
  WireAnswer<v1::Subscription> get(const std::string& id = "billing") {
    v1::GetSubscriptionRequest request;
    request.set_subscription(WireRig::subscription(id));
    return rig_.unary<v1::Subscription>("Subscriber/GetSubscription", request);
  }

  WireRig rig_;
};

// -------------------------------------------------------------------------------------- topics

TEST_F(CatalogCallsTest, ATopicIsCreatedOnceFoundAndDeleted) {
  EXPECT_EQ(create_topic("orders").response.name(), WireRig::topic());
  EXPECT_EQ(create_topic("orders").code, kAlreadyExists);
  EXPECT_EQ(create_topic("x").code, kInvalidArgument);
  v1::GetTopicRequest get_request;
  get_request.set_topic(WireRig::topic());
  EXPECT_EQ(rig_.unary<v1::Topic>("Publisher/GetTopic", get_request).code, 0);
  v1::DeleteTopicRequest delete_request;
  delete_request.set_topic(WireRig::topic());
  EXPECT_EQ(rig_.unary<Empty>("Publisher/DeleteTopic", delete_request).code, 0);
  EXPECT_EQ(rig_.unary<v1::Topic>("Publisher/GetTopic", get_request).code, kNotFound);
}

TEST_F(CatalogCallsTest, TopicsAreListedInPages) {
  for (const char* id : {"one", "two", "three"})
    ASSERT_EQ(create_topic(id).code, 0);
  v1::ListTopicsRequest request;
  request.set_project("projects/p");
  request.set_page_size(2);
  const auto first = rig_.unary<v1::ListTopicsResponse>("Publisher/ListTopics", request);
  EXPECT_EQ(first.response.topics_size(), 2);
  request.set_page_token(first.response.next_page_token());
  const auto second = rig_.unary<v1::ListTopicsResponse>("Publisher/ListTopics", request);
  EXPECT_EQ(second.response.topics_size(), 1);
  EXPECT_EQ(second.response.next_page_token(), "");
}

TEST_F(CatalogCallsTest, AnUpdateOfATopicChangesWhatItsMaskNames) {
  create_topic("orders");
  v1::UpdateTopicRequest request;
  request.mutable_topic()->set_name(WireRig::topic());
  (*request.mutable_topic()->mutable_labels())["team"] = "blue";
  request.mutable_topic()->mutable_message_retention_duration()->set_seconds(3'600);
  request.mutable_update_mask()->add_paths("labels");
  const auto labelled = rig_.unary<v1::Topic>("Publisher/UpdateTopic", request);
  ASSERT_EQ(labelled.code, 0) << labelled.message;
  EXPECT_EQ(labelled.response.labels().at("team"), "blue");
  EXPECT_FALSE(labelled.response.has_message_retention_duration());
  request.clear_update_mask();
  EXPECT_EQ(rig_.unary<v1::Topic>("Publisher/UpdateTopic", request).code, kInvalidArgument);
}

TEST_F(CatalogCallsTest, WhatWeDoNotDoIsRefusedAndNotForgotten) {
  v1::Topic topic;
  topic.set_name(WireRig::topic());
  topic.set_kms_key_name("key");
  EXPECT_EQ(rig_.unary<v1::Topic>("Publisher/CreateTopic", topic).code, kUnimplemented);
  create_topic("orders");
  v1::Subscription pushed = subscription();
  pushed.mutable_push_config()->set_push_endpoint("http://127.0.0.1:1/");
  pushed.mutable_push_config()->mutable_oidc_token()->set_audience("a");
  EXPECT_EQ(create(pushed).code, kUnimplemented);
  ASSERT_EQ(create(subscription()).code, 0);
  EXPECT_EQ(update(pushed, {"push_config"}).code, kUnimplemented);
  EXPECT_EQ(update(pushed, {"ack_deadline_seconds"}).code, 0) << "the mask does not name it";
  pushed.mutable_push_config()->clear_oidc_token();
  EXPECT_EQ(update(pushed, {"push_config"}).code, 0);
  EXPECT_EQ(update(subscription(), {"push_config"}).code, 0) << "back to pull";
}

// ------------------------------------------------------------------------------- subscriptions

TEST_F(CatalogCallsTest, ANewSubscriptionIsAnsweredWithItsDefaults) {
  create_topic("orders");
  v1::Subscription asked = subscription();
  asked.mutable_retry_policy()->mutable_minimum_backoff()->set_seconds(20);
  asked.mutable_dead_letter_policy()->set_dead_letter_topic(WireRig::topic());
  const auto answer = create(asked);
  ASSERT_EQ(answer.code, 0) << answer.message;
  const v1::Subscription& made = answer.response;
  EXPECT_TRUE(made.has_push_config());
  EXPECT_EQ(made.ack_deadline_seconds(), 10);
  EXPECT_EQ(made.message_retention_duration().seconds(), 604'800);
  EXPECT_EQ(made.expiration_policy().ttl().seconds(), 31 * 86'400);
  EXPECT_EQ(made.retry_policy().minimum_backoff().seconds(), 20);
  EXPECT_EQ(made.retry_policy().maximum_backoff().seconds(), 600);
  EXPECT_EQ(made.dead_letter_policy().max_delivery_attempts(), 5);
  EXPECT_EQ(get().response.SerializeAsString(), made.SerializeAsString());
}

TEST_F(CatalogCallsTest, AnExpirationPolicyWithoutATimeMeansNever) {
  create_topic("orders");
  v1::Subscription asked = subscription();
  asked.mutable_expiration_policy();
  const auto answer = create(asked);
  EXPECT_TRUE(answer.response.has_expiration_policy());
  EXPECT_FALSE(answer.response.expiration_policy().has_ttl());
}

TEST_F(CatalogCallsTest, BadSettingsAreRefusedWithTheServicesCodes) {
  EXPECT_EQ(create(subscription()).code, kNotFound) << "no topic";
  create_topic("orders");
  v1::Subscription bad = subscription();
  bad.set_ack_deadline_seconds(601);
  EXPECT_EQ(create(bad).code, kInvalidArgument);
  bad = subscription();
  bad.set_ack_deadline_seconds(-1);
  EXPECT_EQ(create(bad).code, kInvalidArgument);
  bad = subscription();
  bad.set_filter("attributes.");
  EXPECT_EQ(create(bad).code, kInvalidArgument);
  bad = subscription();
  bad.mutable_dead_letter_policy()->set_dead_letter_topic(WireRig::topic("gone"));
  EXPECT_EQ(create(bad).code, kNotFound);
  bad.mutable_dead_letter_policy()->set_dead_letter_topic(WireRig::topic());
  bad.mutable_dead_letter_policy()->set_max_delivery_attempts(4);
  EXPECT_EQ(create(bad).code, kOutOfRange);
  bad.mutable_dead_letter_policy()->set_max_delivery_attempts(-4);
  EXPECT_EQ(create(bad).code, kOutOfRange);
  bad = subscription();
  bad.mutable_message_retention_duration()->set_seconds(1);
  EXPECT_EQ(create(bad).code, kInvalidArgument);
  bad.mutable_message_retention_duration()->set_nanos(-1);
  EXPECT_EQ(create(bad).code, kInvalidArgument);
}

TEST_F(CatalogCallsTest, AnUpdateIsRefusedForWhatCannotChangeAndForWhatIsNotThere) {
  create_topic("orders");
  ASSERT_EQ(create(subscription()).code, 0);
  EXPECT_THAT(update(subscription(), {"topic"}).message, HasSubstr("is not mutable"));
  EXPECT_THAT(update(subscription(), {"enable_message_ordering"}).message,
              HasSubstr("is not mutable"));
  EXPECT_THAT(update(subscription(), {"pushConfig"}).message, HasSubstr("is not a known"));
  EXPECT_THAT(update(subscription(), {}).message, HasSubstr("must contain a non-empty paths"));
}

TEST_F(CatalogCallsTest, AMaskWithTheFieldUnsetPutsItBackToItsDefault) {
  create_topic("orders");
  v1::Subscription asked = subscription();
  asked.set_ack_deadline_seconds(30);
  asked.mutable_retry_policy();
  ASSERT_EQ(create(asked).code, 0);
  const auto answer = update(subscription(), {"retry_policy", "ack_deadline_seconds"});
  ASSERT_EQ(answer.code, 0) << answer.message;
  EXPECT_FALSE(answer.response.has_retry_policy());
  EXPECT_EQ(answer.response.ack_deadline_seconds(), 10);
}

TEST_F(CatalogCallsTest, ASubscriptionShowsHowLongItsTopicKeepsMessages) {
  v1::Topic topic;
  topic.set_name(WireRig::topic());
  topic.mutable_message_retention_duration()->set_seconds(3'600);
  ASSERT_EQ(rig_.unary<v1::Topic>("Publisher/CreateTopic", topic).code, 0);
  EXPECT_EQ(create(subscription()).response.topic_message_retention_duration().seconds(), 3'600);
  v1::ListSubscriptionsRequest request;
  request.set_project("projects/p");
  const auto list =
      rig_.unary<v1::ListSubscriptionsResponse>("Subscriber/ListSubscriptions", request);
  ASSERT_EQ(list.response.subscriptions_size(), 1);
  EXPECT_EQ(list.response.subscriptions(0).topic_message_retention_duration().seconds(), 3'600);
}

TEST_F(CatalogCallsTest, ASubscriptionOutlivesItsTopicAndADetachedOneCannotBePulled) {
  create_topic("orders");
  ASSERT_EQ(create(subscription()).code, 0);
  ASSERT_EQ(create(subscription("other")).code, 0);
  v1::DetachSubscriptionRequest detach;
  detach.set_subscription(WireRig::subscription("other"));
  ASSERT_EQ(rig_.unary<v1::DetachSubscriptionResponse>("Publisher/DetachSubscription", detach).code,
            0);
  v1::PullRequest pull;
  pull.set_subscription(WireRig::subscription("other"));
  pull.set_max_messages(1);
  EXPECT_EQ(rig_.unary<v1::PullResponse>("Subscriber/Pull", pull).code, kFailedPrecondition);
  EXPECT_TRUE(get("other").response.detached());

  v1::ListTopicSubscriptionsRequest list;
  list.set_topic(WireRig::topic());
  const auto names =
      rig_.unary<v1::ListTopicSubscriptionsResponse>("Publisher/ListTopicSubscriptions", list);
  EXPECT_THAT(names.response.subscriptions(), ElementsAre(WireRig::subscription()));
  v1::DeleteTopicRequest request;
  request.set_topic(WireRig::topic());
  ASSERT_EQ(rig_.unary<Empty>("Publisher/DeleteTopic", request).code, 0);
  EXPECT_EQ(get().response.topic(), "_deleted-topic_");
}

TEST_F(CatalogCallsTest, ASubscriptionGoesFromPullToPushAndBack) {
  create_topic("orders");
  ASSERT_EQ(create(subscription()).code, 0);
  v1::ModifyPushConfigRequest request;
  request.set_subscription(WireRig::subscription());
  EXPECT_EQ(rig_.unary<Empty>("Subscriber/ModifyPushConfig", request).code, 0);
  v1::PushConfig& push = *request.mutable_push_config();
  push.set_push_endpoint("https://127.0.0.1:1/");
  EXPECT_EQ(rig_.unary<Empty>("Subscriber/ModifyPushConfig", request).code, kInvalidArgument);
  push.set_push_endpoint("http://127.0.0.1:1/");
  (*push.mutable_attributes())["x-goog-version"] = "v1";
  push.mutable_no_wrapper()->set_write_metadata(true);
  EXPECT_EQ(rig_.unary<Empty>("Subscriber/ModifyPushConfig", request).code, 0);
  EXPECT_EQ(get().response.push_config().SerializeAsString(), push.SerializeAsString());
  v1::PullRequest pull;
  pull.set_subscription(WireRig::subscription());
  pull.set_max_messages(1);
  const auto refused = rig_.unary<v1::PullResponse>("Subscriber/Pull", pull);
  EXPECT_EQ(refused.code, kFailedPrecondition);
  EXPECT_EQ(refused.message, "This method is not supported for push subscriptions.");
  request.clear_push_config();
  EXPECT_EQ(rig_.unary<Empty>("Subscriber/ModifyPushConfig", request).code, 0);
  EXPECT_EQ(get().response.push_config().push_endpoint(), "");
  EXPECT_TRUE(rig_.pull().empty());
  request.set_subscription(WireRig::subscription("none"));
  EXPECT_EQ(rig_.unary<Empty>("Subscriber/ModifyPushConfig", request).code, kNotFound);
}

// ---------------------------------------------------------------------- snapshots and seeking

TEST_F(CatalogCallsTest, ASnapshotBringsBackWhatWasAcknowledgedAfterIt) {
  rig_.create();
  rig_.publish("", {"a"});
  v1::CreateSnapshotRequest create_request;
  create_request.set_name("projects/p/snapshots/before");
  create_request.set_subscription(WireRig::subscription());
  const auto made = rig_.unary<v1::Snapshot>("Subscriber/CreateSnapshot", create_request);
  ASSERT_EQ(made.code, 0) << made.message;
  EXPECT_EQ(made.response.topic(), WireRig::topic());
  EXPECT_GT(made.response.expire_time().seconds(), 0);
  const auto got = rig_.pull();
  ASSERT_THAT(got, SizeIs(1));
  ASSERT_EQ(rig_.ack({got[0].ack_id()}).code, 0);

  v1::SeekRequest seek;
  seek.set_subscription(WireRig::subscription());
  EXPECT_EQ(rig_.unary<v1::SeekResponse>("Subscriber/Seek", seek).code, kInvalidArgument);
  seek.set_snapshot("projects/p/snapshots/before");
  ASSERT_EQ(rig_.unary<v1::SeekResponse>("Subscriber/Seek", seek).code, 0);
  ASSERT_TRUE(rig_.wait([&] { return rig_.pull().size() == 1; }));

  v1::DeleteSnapshotRequest delete_request;
  delete_request.set_snapshot("projects/p/snapshots/before");
  EXPECT_EQ(rig_.unary<Empty>("Subscriber/DeleteSnapshot", delete_request).code, 0);
  EXPECT_EQ(rig_.unary<v1::SeekResponse>("Subscriber/Seek", seek).code, kNotFound);
}

TEST_F(CatalogCallsTest, SeekingToTheFutureAcknowledgesEverything) {
  rig_.create();
  rig_.publish("", {"a", "b"});
  v1::SeekRequest seek;
  seek.set_subscription(WireRig::subscription());
  seek.mutable_time()->set_seconds(253'402'300'799);  // The last second of the year 9999.
  const auto answer = rig_.unary<v1::SeekResponse>("Subscriber/Seek", seek);
  ASSERT_EQ(answer.code, 0) << answer.message;
  EXPECT_TRUE(rig_.pull().empty());
}

TEST_F(CatalogCallsTest, SnapshotsAreListedUpdatedAndNamedByTheirTopic) {
  rig_.create();
  v1::CreateSnapshotRequest create_request;
  create_request.set_name("projects/p/snapshots/one");
  create_request.set_subscription(WireRig::subscription());
  ASSERT_EQ(rig_.unary<v1::Snapshot>("Subscriber/CreateSnapshot", create_request).code, 0);
  v1::UpdateSnapshotRequest update_request;
  update_request.mutable_snapshot()->set_name("projects/p/snapshots/one");
  (*update_request.mutable_snapshot()->mutable_labels())["a"] = "b";
  update_request.mutable_update_mask()->add_paths("labels");
  const auto updated = rig_.unary<v1::Snapshot>("Subscriber/UpdateSnapshot", update_request);
  EXPECT_EQ(updated.response.labels().at("a"), "b");
  v1::ListSnapshotsRequest list;
  list.set_project("projects/p");
  EXPECT_EQ(rig_.unary<v1::ListSnapshotsResponse>("Subscriber/ListSnapshots", list)
                .response.snapshots_size(),
            1);
  v1::ListTopicSnapshotsRequest of_topic;
  of_topic.set_topic(WireRig::topic());
  EXPECT_THAT(rig_.unary<v1::ListTopicSnapshotsResponse>("Publisher/ListTopicSnapshots", of_topic)
                  .response.snapshots(),
              ElementsAre("projects/p/snapshots/one"));
  v1::GetSnapshotRequest get_request;
  get_request.set_snapshot("projects/p/snapshots/none");
  EXPECT_EQ(rig_.unary<v1::Snapshot>("Subscriber/GetSnapshot", get_request).code, kNotFound);
}

// ------------------------------------------------------------------------------ around the API

TEST_F(CatalogCallsTest, APolicyIsKeptAndChangedByThoseWhoHaveReadIt) {
  create_topic("orders");
  google::iam::v1::GetIamPolicyRequest get_request;
  get_request.set_resource(WireRig::topic());
  const std::string service = "/google.iam.v1.IAMPolicy/";
  const auto read = [&] {
    return rig_.unary<google::iam::v1::Policy>(service + "GetIamPolicy", get_request);
  };
  ASSERT_EQ(read().code, 0);
  EXPECT_EQ(read().response.bindings_size(), 0);
  google::iam::v1::SetIamPolicyRequest set_request;
  set_request.set_resource(WireRig::topic());
  *set_request.mutable_policy() = read().response;
  set_request.mutable_policy()->add_bindings()->set_role("roles/viewer");
  ASSERT_EQ(rig_.unary<google::iam::v1::Policy>(service + "SetIamPolicy", set_request).code, 0);
  EXPECT_EQ(read().response.bindings(0).role(), "roles/viewer");
  EXPECT_EQ(rig_.unary<google::iam::v1::Policy>(service + "SetIamPolicy", set_request).code,
            kAborted)
      << "what was read is not what is there any more";
  get_request.set_resource(WireRig::topic("none"));
  EXPECT_EQ(read().code, kNotFound);
}

TEST_F(CatalogCallsTest, EveryPermissionIsGranted) {
  google::iam::v1::TestIamPermissionsRequest request;
  request.set_resource(WireRig::topic());
  request.add_permissions("pubsub.topics.publish");
  const auto answer = rig_.unary<google::iam::v1::TestIamPermissionsResponse>(
      "/google.iam.v1.IAMPolicy/TestIamPermissions", request);
  EXPECT_THAT(answer.response.permissions(), ElementsAre("pubsub.topics.publish"));
}

TEST_F(CatalogCallsTest, BytesThatAreNoRequestAreAnInvalidArgument) {
  EXPECT_EQ(rig_.unary_bytes<v1::Topic>("Publisher/CreateTopic", "\x0a\xff").code,
            kInvalidArgument);
}

TEST_F(CatalogCallsTest, AClosedServiceAnswersUnavailable) {
  rig_.service().close();
  EXPECT_EQ(create_topic("orders").code, kUnavailable);
}

TEST_F(CatalogCallsTest, HealthIsServingUntilTheServiceCloses) {
  using grpc::health::v1::HealthCheckRequest;
  using grpc::health::v1::HealthCheckResponse;
  const std::string check = "/grpc.health.v1.Health/Check";
  HealthCheckRequest request;
  EXPECT_EQ(rig_.unary<HealthCheckResponse>(check, request).response.status(),
            HealthCheckResponse::SERVING);
  CallLine& watch = rig_.open("/grpc.health.v1.Health/Watch");
  watch.send(request);
  watch.half_close();
  ASSERT_TRUE(rig_.wait([&] { return watch.messages().size() == 1; }));
  request.set_service("no.Such");
  EXPECT_EQ(rig_.unary<HealthCheckResponse>(check, request).code, kNotFound);

  rig_.service().close();
  request.clear_service();
  EXPECT_EQ(rig_.unary<HealthCheckResponse>(check, request).response.status(),
            HealthCheckResponse::NOT_SERVING);
  ASSERT_TRUE(rig_.wait([&] { return watch.is_ended(); }));
  EXPECT_EQ(watch.messages_as<HealthCheckResponse>().back().status(),
            HealthCheckResponse::NOT_SERVING);
}

TEST_F(CatalogCallsTest, ReflectionNamesTheServicesAndGivesTheirFiles) {
  using grpc::reflection::v1::ServerReflectionRequest;
  using grpc::reflection::v1::ServerReflectionResponse;
  CallLine& line = rig_.open("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  ServerReflectionRequest request;
  request.set_list_services("");
  line.send(request);
  request.set_file_containing_symbol("google.pubsub.v1.Subscriber");
  line.send(request);
  request.set_file_by_filename("no/such.proto");
  line.send(request);
  line.half_close();
  ASSERT_TRUE(rig_.wait([&] { return line.is_ended(); }));
  const auto answers = line.messages_as<ServerReflectionResponse>();
  ASSERT_THAT(answers, SizeIs(3));
  EXPECT_EQ(answers[0].list_services_response().service(1).name(), "google.pubsub.v1.Publisher");
  EXPECT_EQ(answers[0].list_services_response().service(5).name(), "ordo.operate.v1.Operator");
  google::protobuf::FileDescriptorProto file;
  ASSERT_TRUE(file.ParseFromString(answers[1].file_descriptor_response().file_descriptor_proto(0)));
  EXPECT_EQ(file.name(), "google/pubsub/v1/pubsub.proto");
  EXPECT_EQ(answers[2].error_response().error_code(), kNotFound);
}

}  // namespace
}  // namespace ordo::pubsub_wire
