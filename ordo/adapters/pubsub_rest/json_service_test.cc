#include "ordo/adapters/pubsub_rest/json_service.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/adapters/http2/gzip.h"
#include "tests/support/rest_rig.h"

namespace ordo::pubsub_rest {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing_support::ExchangeLine;
using testing_support::RestAnswer;
using testing_support::RestRig;
namespace v1 = google::pubsub::v1;

constexpr const char* kHi = R"({"data":"aGk=","orderingKey":"k"})";
constexpr const char* kPullNow = R"({"maxMessages":10,"returnImmediately":true})";

// The text of `name` in compact JSON.
std::string text_of(const std::string& json, const std::string& name) {
  const std::string mark = "\"" + name + "\":\"";
  const std::size_t begin = json.find(mark);
  if (begin == std::string::npos) return {};
  const std::size_t end = json.find('"', begin + mark.size());
  return json.substr(begin + mark.size(), end - begin - mark.size());
}

// ------------------------------------------------------------------------------------ resources

TEST(JsonServiceTest, ATopicIsMadeShownListedChangedAndDeleted) {
  RestRig rig;
  const std::string shown =
      R"({"name":"projects/p/topics/orders","labels":{"a":"b"},"state":"ACTIVE"})"
      "\n";
  const RestAnswer made = rig.ask("PUT", RestRig::topic(), R"({"labels":{"a":"b"}})");
  EXPECT_EQ(made.status, 200u);
  EXPECT_EQ(made.type, "application/json; charset=UTF-8");
  EXPECT_EQ(made.body, shown);
  EXPECT_EQ(rig.ask("GET", RestRig::topic()).body, shown);
  EXPECT_THAT(rig.ask("GET", "/v1/projects/p/topics").body, HasSubstr("topics/orders"));
  const RestAnswer changed =
      rig.ask("PATCH", RestRig::topic(), R"({"topic":{"labels":{}},"updateMask":"labels"})");
  EXPECT_EQ(changed.body, R"({"name":"projects/p/topics/orders","state":"ACTIVE"})"
                          "\n");
  EXPECT_EQ(rig.ask("DELETE", RestRig::topic()).body, "{}\n");
  EXPECT_EQ(rig.ask("GET", RestRig::topic()).status, 404u);
}

TEST(JsonServiceTest, ListsComeInPages) {
  RestRig rig;
  for (const char* id : {"aaa", "bbb", "ccc"})
    ASSERT_EQ(rig.ask("PUT", std::string("/v1/projects/p/topics/") + id).status, 200u);
  const std::string first =
      rig.ask("GET", "/v1/projects/p/topics?prettyPrint=false&pageSize=2").body;
  EXPECT_THAT(first, AllOf(HasSubstr("aaa"), HasSubstr("bbb"), Not(HasSubstr("ccc"))));
  const std::string token = text_of(first, "nextPageToken");
  ASSERT_NE(token, "");
  const std::string second =
      rig.ask("GET", "/v1/projects/p/topics?pageSize=2&pageToken=" + token).body;
  EXPECT_THAT(second, AllOf(HasSubstr("ccc"), Not(HasSubstr("nextPageToken"))));
  EXPECT_EQ(rig.ask("GET", "/v1/projects/other/topics").body, "{}\n");
}

TEST(JsonServiceTest, ASubscriptionShowsItsDefaults) {
  RestRig rig;
  rig.create();
  const std::string shown = rig.ask("GET", RestRig::subscription()).body;
  EXPECT_THAT(
      shown, AllOf(HasSubstr(R"("pushConfig":{})"), HasSubstr(R"("ackDeadlineSeconds":10)"),
                   HasSubstr(R"("messageRetentionDuration":"604800s")"),
                   HasSubstr(R"("enableMessageOrdering":true)"), HasSubstr(R"("state":"ACTIVE")")));
  EXPECT_THAT(rig.ask("GET", RestRig::subscription() + "?$alt=json;enum-encoding=int").body,
              HasSubstr("\"state\": 1"));
  EXPECT_EQ(rig.ask("GET", RestRig::topic() + "/subscriptions").body,
            R"({"subscriptions":["projects/p/subscriptions/billing"]})"
            "\n");
}

TEST(JsonServiceTest, PoliciesAreKept) {
  RestRig rig;
  rig.create();
  const RestAnswer set =
      rig.ask("POST", RestRig::topic() + ":setIamPolicy",
              R"({"policy":{"bindings":[{"role":"roles/viewer","members":["allUsers"]}]}})");
  EXPECT_EQ(set.status, 200u) << set.body;
  EXPECT_EQ(rig.ask("GET", RestRig::topic() + ":getIamPolicy").body, set.body);
  EXPECT_EQ(
      rig.ask("POST", RestRig::topic() + ":testIamPermissions", R"({"permissions":["a.b"]})").body,
      R"({"permissions":["a.b"]})"
      "\n");
}

TEST(JsonServiceTest, ASnapshotBringsBackWhatWasAcknowledged) {
  RestRig rig;
  rig.create();
  rig.publish(kHi);
  const std::string snapshot = "/v1/projects/p/snapshots/before";
  EXPECT_EQ(
      rig.ask("PUT", snapshot, R"({"subscription":"projects/p/subscriptions/billing"})").status,
      200u);
  const std::string ack_id =
      text_of(rig.ask("POST", RestRig::subscription() + ":pull", kPullNow).body, "ackId");
  EXPECT_EQ(rig.ask("POST", RestRig::subscription() + ":acknowledge",
                    R"({"ackIds":[")" + ack_id + R"("]})")
                .body,
            "{}\n");
  EXPECT_EQ(rig.ask("POST", RestRig::subscription() + ":seek",
                    R"({"snapshot":"projects/p/snapshots/before"})")
                .body,
            "{}\n");
  EXPECT_THAT(rig.ask("POST", RestRig::subscription() + ":pull", kPullNow).body,
              HasSubstr(R"("data":"aGk=")"));
  EXPECT_EQ(rig.ask("POST", RestRig::subscription() + ":seek", R"({"time":"2000-01-01T00:00:00Z"})")
                .status,
            200u);
}

// ------------------------------------------------------------------------------------- messages

TEST(JsonServiceTest, MessagesOfAKeyComeOneAfterTheOther) {
  RestRig rig;
  rig.create();
  const RestAnswer published =
      rig.ask("POST", RestRig::topic() + ":publish",
              R"({"messages":[{"data":"MQ==","orderingKey":"k","attributes":{"a":"<b>"}},)"
              R"({"data":"Mg==","orderingKey":"k"}]})");
  EXPECT_THAT(published.body,
              ContainsRegex("^\\{\"messageIds\":\\[\"[0-9]+\",\"[0-9]+\"\\]\\}\n$"));
  const std::string first = rig.ask("POST", RestRig::subscription() + ":pull", kPullNow).body;
  EXPECT_THAT(first, AllOf(HasSubstr(R"("data":"MQ==")"), Not(HasSubstr("Mg==")),
                           HasSubstr(R"("attributes":{"a":"\u003cb\u003e"})"),
                           HasSubstr(R"("orderingKey":"k")"), HasSubstr(R"("publishTime":")")));
  EXPECT_EQ(rig.ask("POST", RestRig::subscription() + ":pull", kPullNow).body, "{}\n");
  const RestAnswer given_back =
      rig.ask("POST", RestRig::subscription() + ":modifyAckDeadline",
              R"({"ackDeadlineSeconds":0,"ackIds":[")" + text_of(first, "ackId") + R"("]})");
  EXPECT_EQ(given_back.body, "{}\n");
  const std::string again = rig.ask("POST", RestRig::subscription() + ":pull", kPullNow).body;
  EXPECT_THAT(again, AllOf(HasSubstr("MQ=="), Not(HasSubstr("Mg=="))));
  EXPECT_EQ(rig.ask("POST", RestRig::subscription() + ":acknowledge",
                    R"({"ackIds":[")" + text_of(again, "ackId") + R"("]})")
                .status,
            200u);
  EXPECT_THAT(rig.ask("POST", RestRig::subscription() + ":pull", kPullNow).body, HasSubstr("Mg=="));
}

// Goal: bytes that a gRPC client may send, and that are stored as they came, are whole in JSON.
TEST(JsonServiceTest, AttributesThatLieApartComeTogether) {
  RestRig rig;
  rig.create();
  const auto attribute = [](char name) {
    return std::string("\x12\x06\x0a\x01") + name + "\x12\x01" + name;
  };
  const std::string message = attribute('a') + "\x0a\x02hi" + attribute('b');
  v1::PublishRequest request;
  request.set_topic("projects/p/topics/orders");
  std::string bytes = request.SerializeAsString() + "\x12";
  bytes += static_cast<char>(message.size());
  ASSERT_EQ(rig.wire().unary_bytes<v1::PublishResponse>("Publisher/Publish", bytes + message).code,
            0);
  EXPECT_THAT(rig.ask("POST", RestRig::subscription() + ":pull", kPullNow).body,
              AllOf(HasSubstr(R"("data":"aGk=")"),
                    ContainsRegex(
                        "\"attributes\":\\{(\"a\":\"a\",\"b\":\"b\"|\"b\":\"b\",\"a\":\"a\")\\}")));
}

TEST(JsonServiceTest, APullWaitsForTheFirstMessage) {
  RestRig rig;
  rig.create();
  ExchangeLine& line = rig.open("POST", RestRig::subscription() + ":pull", R"({"maxMessages":1})");
  rig.publish(kHi);
  ASSERT_TRUE(rig.wait([&] { return line.is_ended(); }));
  EXPECT_THAT(line.answer().body, HasSubstr("aGk="));
}

TEST(JsonServiceTest, APullWithoutAMessageEndsWithNoneAfterNinetySeconds) {
  RestRig rig;
  rig.create();
  ExchangeLine& line = rig.open("POST", RestRig::subscription() + ":pull", R"({"maxMessages":1})");
  // The pull begins on another thread: time passes until it has seen enough of it.
  ASSERT_TRUE(rig.wait([&] {
    rig.wire().advance(10s);
    return line.is_ended();
  }));
  EXPECT_EQ(line.answer().status, 200u);
  EXPECT_EQ(line.answer().body, "{}\n");
}

TEST(JsonServiceTest, AClientThatGoesTakesNothingWithIt) {
  RestRig rig;
  rig.create();
  for (int i = 0; i < 20; ++i) {
    ExchangeLine& gone =
        rig.open("POST", RestRig::subscription() + ":pull", R"({"maxMessages":1})");
    gone.cancel();
  }
  rig.publish(kHi);
  ASSERT_TRUE(rig.wait(
      [&] { return rig.ask("POST", RestRig::subscription() + ":pull", kPullNow).body != "{}\n"; }));
}

TEST(JsonServiceTest, AServiceThatClosesEndsItsPulls) {
  RestRig rig;
  rig.create();
  ExchangeLine& line = rig.open("POST", RestRig::subscription() + ":pull", R"({"maxMessages":1})");
  rig.wire().service().close();
  rig.json().close();
  ASSERT_TRUE(rig.wait([&] { return line.is_ended(); }));
  EXPECT_EQ(line.answer().status, 503u);
  EXPECT_THAT(line.answer().body, HasSubstr("UNAVAILABLE"));
  EXPECT_EQ(rig.ask("GET", RestRig::topic()).status, 503u);
}

// --------------------------------------------------------------------------------------- errors

TEST(JsonServiceTest, ErrorsHaveTheirCodeTheirWordsAndTheirName) {
  RestRig rig;
  const RestAnswer none = rig.ask("GET", "/v1/projects/p/topics/none");
  EXPECT_EQ(none.status, 404u);
  EXPECT_EQ(none.type, "application/json; charset=UTF-8");
  EXPECT_THAT(none.body, AllOf(StartsWith("{\n \"error\": {\n  \"code\": 404,\n  \"message\": \""),
                               HasSubstr("\"status\": \"NOT_FOUND\"\n }\n}\n")));
  rig.create();
  EXPECT_EQ(rig.ask("PUT", RestRig::topic()).status, 409u);
  EXPECT_EQ(rig.ask("PUT", "/v1/projects/p/topics/1").status, 400u);
  EXPECT_EQ(rig.ask("GET", "/v1/nothing").status, 404u);
  EXPECT_EQ(rig.ask("GET", "/v1/projects/p/schemas").status, 501u);
  EXPECT_EQ(rig.ask("POST", RestRig::topic() + ":publish", R"({"messages":[]})").status, 400u);
  EXPECT_THAT(rig.ask("POST", RestRig::topic() + ":publish",
                      R"({"messages":[{"data":"aGk=","orderingKey":""}]})")
                  .body,
              HasSubstr("Ordering key cannot be empty"));
}

TEST(JsonServiceTest, NamesOfOthersAreQuotedInErrors) {
  RestRig rig;
  const RestAnswer answer =
      rig.ask("POST", RestRig::subscription() + ":acknowledge", R"({"ackIds":["\"\n<x>"]})");
  EXPECT_EQ(answer.status, 404u);
  rig.create();
  const RestAnswer bad =
      rig.ask("POST", RestRig::subscription() + ":acknowledge", R"({"ackIds":["\"\n<x>"]})");
  EXPECT_EQ(bad.status, 400u);
  EXPECT_THAT(bad.body, HasSubstr(R"(ack_id=\"\n<x>)"));
  std::string long_id = "a";
  for (int i = 0; i < 150; ++i)
    long_id += "\xc3\xa9";
  EXPECT_THAT(rig.ask("POST", RestRig::subscription() + ":acknowledge",
                      R"({"ackIds":[")" + long_id + R"("]})")
                  .body,
              HasSubstr("Invalid ack id (ack_id=a??"));
}

TEST(JsonServiceTest, AnExactlyOnceAckThatCameTooLateIsExplained) {
  RestRig rig;
  rig.create(R"(,"enableExactlyOnceDelivery":true)");
  const RestAnswer answer =
      rig.ask("POST", RestRig::subscription() + ":acknowledge", R"({"ackIds":["nonsense"]})");
  EXPECT_EQ(answer.status, 400u);
  EXPECT_THAT(answer.body,
              AllOf(HasSubstr("\"details\": ["),
                    HasSubstr(R"("@type":"type.googleapis.com/google.rpc.ErrorInfo")"),
                    HasSubstr(R"("reason":"EXACTLY_ONCE_ACKID_FAILURE")"),
                    HasSubstr(R"("metadata":{"nonsense":"PERMANENT_FAILURE_INVALID_ACK_ID"})")));
}

TEST(JsonServiceTest, APublishAboveTheLimitIsAnInvalidArgument) {
  RestRig rig;
  rig.create();
  const RestAnswer answer =
      rig.ask("POST", RestRig::topic() + ":publish",
              R"({"messages":[{"data":")" + std::string(13'600'000, 'A') + R"("}]})");
  EXPECT_EQ(answer.status, 400u);
  EXPECT_THAT(answer.body, HasSubstr("the maximum value is 10000000."));
}

TEST(JsonServiceTest, PagesOfOtherSitesAreRefused) {
  RestRig rig;
  const auto status = [&](const std::string& host, const std::string& origin) {
    http2::HeaderList headers{{"host", host}};
    if (!origin.empty()) headers.add("origin", origin);
    return rig.ask("GET", "/v1/projects/p/topics", {}, std::move(headers)).status;
  };
  EXPECT_EQ(status("127.0.0.1:8085", ""), 200u);
  EXPECT_EQ(status("localhost:8085", "http://localhost:8085"), 200u);
  EXPECT_EQ(status("localhost:8085", "http://evil.example"), 403u);
  EXPECT_EQ(status("localhost:8085", "null"), 403u);
  EXPECT_EQ(status("evil.example", ""), 403u);
}

TEST(JsonServiceTest, ABodyMayComeAsGzip) {
  RestRig rig;
  const std::string body = http2::deflated({http2::Slice::constant(R"({"labels":{"a":"gzip"}})")});
  const auto ask = [&](const std::string& bytes, const char* coding) {
    return rig.ask("PUT", RestRig::topic(), bytes, {{"content-encoding", coding}});
  };
  EXPECT_EQ(ask("{}", "gzip").status, 400u);
  EXPECT_EQ(ask(body, "br").status, 400u);
  EXPECT_THAT(ask(body, "gzip").body, HasSubstr(R"("a":"gzip")"));
}

TEST(JsonServiceTest, AGzipBodyIsInflatedOnlyUpToALimit) {
  JsonServiceOptions options;
  options.inflated_bytes_max = 1'000;
  RestRig rig(options);
  const std::string text = "{}" + std::string(100'000, ' ');
  EXPECT_EQ(rig.ask("PUT", RestRig::topic(), http2::deflated({http2::Slice::constant(text)}),
                    {{"content-encoding", "gzip"}})
                .status,
            400u);
}

TEST(JsonServiceTest, AMethodMayStandInAHeader) {
  RestRig rig;
  rig.create();
  EXPECT_THAT(
      rig.ask("POST", RestRig::topic(), R"({"topic":{"labels":{"a":"b"}},"updateMask":"labels"})",
              {{"x-http-method-override", "PATCH"}})
          .body,
      HasSubstr(R"("labels":{"a":"b"})"));
}

// Goal: bodies that wait for an answer are bounded. Method: one that waits, and another beside it.
TEST(JsonServiceTest, BodiesBeyondTheBoundAreRefusedUntilOthersAreAnswered) {
  JsonServiceOptions options;
  options.body_bytes_max = 1'500;  // One large body and small ones: an answered one may linger.
  RestRig rig(options);
  rig.create();
  const std::string large = R"({"maxMessages":1})" + std::string(900, ' ');
  ExchangeLine& first = rig.open("POST", RestRig::subscription() + ":pull", large);
  const RestAnswer second = rig.ask("POST", RestRig::subscription() + ":pull", large);
  EXPECT_EQ(second.status, 503u);
  rig.publish(kHi);
  ASSERT_TRUE(rig.wait([&] { return first.is_ended(); }));
  ASSERT_TRUE(rig.wait([&] {
    return rig.ask("POST", RestRig::topic() + ":publish",
                   R"({"messages":[{"data":"aGk="}]})" + std::string(900, ' '))
               .status == 200u;
  }));
}

}  // namespace
}  // namespace ordo::pubsub_rest
