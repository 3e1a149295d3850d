#include "ordo/adapters/pubsub_rest/json_request.h"

#include <array>

#include <gmock/gmock.h>
#include <google/iam/v1/iam_policy.pb.h>
#include <google/pubsub/v1/pubsub.pb.h>
#include <gtest/gtest.h>

namespace ordo::pubsub_rest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace v1 = google::pubsub::v1;

Result<std::string> bytes_of(std::string_view verb, std::string_view target,
                             std::string_view body = {}) {
  const JsonReader reader;
  const Result<JsonRequest> request = JsonRequest::parse(verb, target);
  if (!request) return request.error();
  return request->bytes_of(reader, body);
}

template <class Request>
Request read(std::string_view verb, std::string_view target, std::string_view body = {}) {
  Request request;
  const Result<std::string> bytes = bytes_of(verb, target, body);
  EXPECT_TRUE(bytes) << target;
  EXPECT_TRUE(!bytes || request.ParseFromString(*bytes));
  return request;
}

Error error_of(std::string_view verb, std::string_view target, std::string_view body = {}) {
  const Result<std::string> bytes = bytes_of(verb, target, body);
  EXPECT_FALSE(bytes) << target;
  return bytes ? Error{ErrorCode::unknown, "none"} : bytes.error();
}

struct Case {
  const char* verb;
  const char* target;
  const char* method;
};

TEST(JsonRequestTest, EveryPathOfTheApiLeadsToItsMethod) {
  constexpr std::array<Case, 33> kCases = {{
      {"PUT", "/v1/projects/p/topics/t", "Publisher/CreateTopic"},
      {"PATCH", "/v1/projects/p/topics/t", "Publisher/UpdateTopic"},
      {"POST", "/v1/projects/p/topics/t:publish", "Publisher/Publish"},
      {"GET", "/v1/projects/p/topics/t", "Publisher/GetTopic"},
      {"GET", "/v1/projects/p/topics", "Publisher/ListTopics"},
      {"GET", "/v1/projects/p/topics/t/subscriptions", "Publisher/ListTopicSubscriptions"},
      {"GET", "/v1/projects/p/topics/t/snapshots", "Publisher/ListTopicSnapshots"},
      {"DELETE", "/v1/projects/p/topics/t", "Publisher/DeleteTopic"},
      {"POST", "/v1/projects/p/subscriptions/s:detach", "Publisher/DetachSubscription"},
      {"PUT", "/v1/projects/p/subscriptions/s", "Subscriber/CreateSubscription"},
      {"GET", "/v1/projects/p/subscriptions/s", "Subscriber/GetSubscription"},
      {"HEAD", "/v1/projects/p/subscriptions/s", "Subscriber/GetSubscription"},
      {"PATCH", "/v1/projects/p/subscriptions/s", "Subscriber/UpdateSubscription"},
      {"GET", "/v1/projects/p/subscriptions", "Subscriber/ListSubscriptions"},
      {"DELETE", "/v1/projects/p/subscriptions/s", "Subscriber/DeleteSubscription"},
      {"POST", "/v1/projects/p/subscriptions/s:modifyAckDeadline", "Subscriber/ModifyAckDeadline"},
      {"POST", "/v1/projects/p/subscriptions/s:acknowledge", "Subscriber/Acknowledge"},
      {"POST", "/v1/projects/p/subscriptions/s:pull", "Subscriber/Pull"},
      {"POST", "/v1/projects/p/subscriptions/s:modifyPushConfig", "Subscriber/ModifyPushConfig"},
      {"POST", "/v1/projects/p/subscriptions/s:seek", "Subscriber/Seek"},
      {"PUT", "/v1/projects/p/snapshots/n", "Subscriber/CreateSnapshot"},
      {"GET", "/v1/projects/p/snapshots/n", "Subscriber/GetSnapshot"},
      {"PATCH", "/v1/projects/p/snapshots/n", "Subscriber/UpdateSnapshot"},
      {"GET", "/v1/projects/p/snapshots", "Subscriber/ListSnapshots"},
      {"DELETE", "/v1/projects/p/snapshots/n", "Subscriber/DeleteSnapshot"},
      {"GET", "/v1/projects/p/topics/t:getIamPolicy", "IAMPolicy/GetIamPolicy"},
      {"GET", "/v1/projects/p/subscriptions/s:getIamPolicy", "IAMPolicy/GetIamPolicy"},
      {"GET", "/v1/projects/p/snapshots/n:getIamPolicy", "IAMPolicy/GetIamPolicy"},
      {"POST", "/v1/projects/p/topics/t:setIamPolicy", "IAMPolicy/SetIamPolicy"},
      {"POST", "/v1/projects/p/subscriptions/s:setIamPolicy", "IAMPolicy/SetIamPolicy"},
      {"POST", "/v1/projects/p/snapshots/n:setIamPolicy", "IAMPolicy/SetIamPolicy"},
      {"POST", "/v1/projects/p/topics/t:testIamPermissions", "IAMPolicy/TestIamPermissions"},
      {"POST", "/v1/projects/p/subscriptions/s:testIamPermissions", "IAMPolicy/TestIamPermissions"},
  }};
  for (const Case& c : kCases) {
    const Result<JsonRequest> request = JsonRequest::parse(c.verb, c.target);
    ASSERT_TRUE(request) << c.verb << " " << c.target;
    const std::string package =
        std::string_view(c.method).starts_with("IAM") ? "/google.iam.v1." : "/google.pubsub.v1.";
    EXPECT_EQ(request->method_path(), package + c.method);
    const Result<std::string> bytes = request->bytes_of(JsonReader(), "{}");
    ASSERT_TRUE(bytes) << c.target;
    EXPECT_THAT(*bytes, HasSubstr("projects/p"));
  }
}

TEST(JsonRequestTest, OtherPathsAreNotFoundAndSchemasAreNotSupported) {
  for (const char* target :
       {"/v1/projects/p", "/v1/projects//topics", "/v1/projects/p/topics/",
        "/v1/projects/p/topics/t/u", "/v1/projects/p/topics/t:nothing",
        "/v1/projects/p/topics:publish", "/v1/x/p/topics/t", "/v1/projects/p/queues/t", "/v1",
        "/v1/projects/p/topics/t/subscriptions/s"}) {
    EXPECT_EQ(error_of("GET", target).code, ErrorCode::not_found) << target;
  }
  EXPECT_EQ(error_of("POST", "/v1/projects/p/topics/t").code, ErrorCode::not_found);
  EXPECT_EQ(error_of("GET", "/v1/projects/p/topics/t:publish").code, ErrorCode::not_found);
  EXPECT_EQ(error_of("GET", "/v1/projects/p/schemas").code, ErrorCode::unimplemented);
  EXPECT_EQ(error_of("POST", "/v1/projects/p/schemas:validate").code, ErrorCode::unimplemented);
}

TEST(JsonRequestTest, TheNameInThePathCountsMoreThanTheOneInTheBody) {
  const auto topic = read<v1::Topic>("PUT", "/v1/projects/p/topics/t",
                                     R"({"name":"projects/x/topics/y","labels":{"a":"b"}})");
  EXPECT_EQ(topic.name(), "projects/p/topics/t");
  EXPECT_EQ(topic.labels().at("a"), "b");
}

TEST(JsonRequestTest, AnUpdateHasItsResourceAndItsMaskInTheBody) {
  const auto update = read<v1::UpdateSubscriptionRequest>(
      "PATCH", "/v1/projects/p/subscriptions/s",
      R"({"subscription":{"ackDeadlineSeconds":30,"retryPolicy":{"minimumBackoff":"1.5s"}},
          "updateMask":"ackDeadlineSeconds,retryPolicy"})");
  EXPECT_EQ(update.subscription().name(), "projects/p/subscriptions/s");
  EXPECT_EQ(update.subscription().ack_deadline_seconds(), 30);
  EXPECT_EQ(update.subscription().retry_policy().minimum_backoff().nanos(), 500'000'000);
  EXPECT_THAT(update.update_mask().paths(), ElementsAre("ack_deadline_seconds", "retry_policy"));
}

TEST(JsonRequestTest, AMaskMayStandInTheQuery) {
  const auto update = read<v1::UpdateTopicRequest>("PATCH",
                                                   "/v1/projects/p/topics/t?updateMask=labels,"
                                                   "messageRetentionDuration",
                                                   R"({"topic":{"labels":{"a":"b"}}})");
  EXPECT_EQ(update.topic().name(), "projects/p/topics/t");
  EXPECT_EQ(update.topic().labels().at("a"), "b");
  EXPECT_THAT(update.update_mask().paths(), ElementsAre("labels", "message_retention_duration"));
}

TEST(JsonRequestTest, FieldsOfAQueryAreKnownByBothOfTheirNames) {
  const auto list = read<v1::ListTopicsRequest>(
      "GET", "/v1/projects/p/topics?pageSize=-1&page_size=3&pageToken=a%26b");
  EXPECT_EQ(list.project(), "projects/p");
  EXPECT_EQ(list.page_size(), 3);
  EXPECT_EQ(list.page_token(), "a&b");
  const auto policy = read<google::iam::v1::GetIamPolicyRequest>(
      "GET", "/v1/projects/p/topics/t:getIamPolicy?options.requestedPolicyVersion=3");
  EXPECT_EQ(policy.options().requested_policy_version(), 3);
  const auto pull = read<v1::PullRequest>(
      "POST", "/v1/projects/p/subscriptions/s:pull?returnImmediately=true", R"({"maxMessages":5})");
  EXPECT_TRUE(pull.return_immediately());
  EXPECT_EQ(pull.max_messages(), 5);
}

TEST(JsonRequestTest, WhatAllMethodsHaveIsReadOrLetBe) {
  const auto parsed = [](const std::string& query) {
    Result<JsonRequest> request = JsonRequest::parse("GET", "/v1/projects/p/topics?" + query);
    EXPECT_TRUE(request) << query;
    return request->style();
  };
  EXPECT_TRUE(parsed("alt=json&key=x&access_token=y&fields=topics&quotaUser=z").is_pretty);
  EXPECT_FALSE(parsed("prettyPrint=false").is_pretty);
  EXPECT_TRUE(parsed("%24alt=json%3Benum-encoding%3Dint").has_numbers_for_enums);
  EXPECT_FALSE(parsed("$alt=json").has_numbers_for_enums);
}

TEST(JsonRequestTest, QueriesThatCannotBeReadAreRefused) {
  for (const char* query : {"nothing=1", "pageSize=x", "pageSize=", "pageSize=99999999999",
                            "pageSize=1%20", "project.name=x", "alt=media", "pageToken.x=1"}) {
    const Error error = error_of("GET", std::string("/v1/projects/p/topics?") + query);
    EXPECT_EQ(error.code, ErrorCode::invalid_argument) << query;
  }
  EXPECT_EQ(error_of("GET", "/v1/projects/p/topics?color=red").message,
            "Invalid JSON payload received. Unknown name \"color\": Cannot bind query parameter. "
            "Field 'color' could not be found in request message.");
  EXPECT_EQ(error_of("POST", "/v1/projects/p/subscriptions/s:pull?returnImmediately=yes").code,
            ErrorCode::invalid_argument);
}

TEST(JsonRequestTest, BodiesThatCannotBeReadAreRefusedWithTheReason) {
  const auto reason = [](const std::string& body) {
    const Error error = error_of("POST", "/v1/projects/p/topics/t:publish", body);
    EXPECT_EQ(error.code, ErrorCode::invalid_argument) << body;
    return error.message;
  };
  EXPECT_THAT(reason(R"({"messages":[{"dta":"aGk="}]})"), HasSubstr("dta"));
  EXPECT_THAT(reason(R"({"messages":[{"data":"?"}]})"), HasSubstr("data"));
  EXPECT_THAT(reason("{"), HasSubstr("Invalid JSON payload received."));
  reason("[]");
  reason("null");
  reason("\xff");
  reason("{} {}");
  EXPECT_THAT(reason(R"({"messages":)" + std::string(100, '[')), HasSubstr("64"));
  EXPECT_THAT(reason(std::string(1'000'000, '[')), HasSubstr("64"));
}

TEST(JsonRequestTest, BracketsInTextsAreNoDepth) {
  const auto request = read<v1::PublishRequest>(
      "POST", "/v1/projects/p/topics/t:publish",
      R"({"messages":[{"data":"aGk=","attributes":{"a":"\")" + std::string(100, '[') + "\"}}]}");
  EXPECT_EQ(request.messages(0).attributes().at("a"), "\"" + std::string(100, '['));
}

TEST(JsonRequestTest, AnEmptyOrderingKeyThatIsGivenIsAnError) {
  const std::string target = "/v1/projects/p/topics/t:publish";
  for (const char* body : {R"({"messages":[{"data":"aGk=","orderingKey":""}]})",
                           R"({"messages":[{"data":"aGk="},{"data":"aGk=","ordering_key":""}]})"}) {
    const Error error = error_of("POST", target, body);
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    EXPECT_EQ(error.message, "Ordering key cannot be empty");
  }
  const auto none = read<v1::PublishRequest>(
      "POST", target, R"({"messages":[{"data":"aGk=","orderingKey":null},{"data":"-_8="}]})");
  EXPECT_EQ(none.messages_size(), 2);
  EXPECT_EQ(none.messages(1).data(), "\xfb\xff");
}

TEST(JsonRequestTest, WhatNeedsNoBodyDoesNotLookAtIt) {
  EXPECT_EQ(read<v1::DetachSubscriptionRequest>("POST", "/v1/projects/p/subscriptions/s:detach",
                                                "what is this")
                .subscription(),
            "projects/p/subscriptions/s");
  EXPECT_EQ(read<v1::Topic>("PUT", "/v1/projects/p/topics/t", " \r\n").name(),
            "projects/p/topics/t");
}

}  // namespace
}  // namespace ordo::pubsub_rest
