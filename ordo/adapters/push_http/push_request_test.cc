#include "ordo/adapters/push_http/push_request.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/broker/message_codec.h"

namespace ordo::push_http {
namespace {

using namespace std::chrono_literals;
using broker::PushForm;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// 2026-11-16T00:10:20.5Z.
const WallTime kTime = WallTime(1'794'787'820s + 500ms);

broker::Delivery delivery_of(const broker::NewMessage& message, std::uint32_t attempt = 0) {
  Result<broker::MessageBody> body = broker::encode_message(message);
  EXPECT_TRUE(body) << body.error().message;
  auto batch = broker::MessageBatch::make({*body}, broker::Offset(3), kTime);
  batch->first_id = broker::MessageId(17);
  return {.message = broker::Message(batch, 0), .ack_id = {}, .attempt = attempt};
}

PushTarget target_of(PushForm form, bool shows_attempt = false) {
  return {*broker::PushEndpoint::parse("http://shop:8080/new?x=1"), form,
          "projects/p/subscriptions/s", shows_attempt};
}

std::string body_of(const std::string& request) {
  return request.substr(request.find("\r\n\r\n") + 4);
}

TEST(PushRequestTest, AWrappedMessageHasEverythingUnderBothOfItsNames) {
  const std::string request =
      push_request(target_of(PushForm::wrapped, true),
                   delivery_of({.data = "hello\xff",
                                .attributes = {{"colour", "r\"ed"}, {"size", "9"}},
                                .ordering_key = "k\xc3\xa9y"},
                               2));
  const std::string body =
      R"({"message":{"attributes":{"colour":"r\"ed","size":"9"},"data":"aGVsbG//",)"
      R"("messageId":"17","message_id":"17","orderingKey":"ké)"
      "y\","
      R"("publishTime":"2026-11-16T00:10:20.500Z","publish_time":"2026-11-16T00:10:20.500Z"},)"
      R"("subscription":"projects/p/subscriptions/s","deliveryAttempt":2})";
  EXPECT_EQ(request,
            "POST /new?x=1 HTTP/1.1\r\nHost: shop:8080\r\nUser-Agent: ordo\r\n"
            "Accept: */*\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\nContent-Type: application/json\r\n\r\n" + body);
}

TEST(PushRequestTest, WhatIsEmptyIsLeftOut) {
  const std::string body = body_of(
      push_request(target_of(PushForm::wrapped), delivery_of({.attributes = {{"a", ""}}}, 3)));
  EXPECT_THAT(body, HasSubstr(R"("attributes":{"a":""})"));
  EXPECT_THAT(body, Not(HasSubstr("data")));
  EXPECT_THAT(body, Not(HasSubstr("orderingKey")));
  EXPECT_THAT(body, Not(HasSubstr("deliveryAttempt"))) << "nobody counts";
}

TEST(PushRequestTest, BareItIsTheDataAlone) {
  const std::string request = push_request(
      target_of(PushForm::bare),
      delivery_of({.data = "raw\r\n\r\n", .attributes = {{"a", "b"}}, .ordering_key = "k"}));
  EXPECT_EQ(body_of(request), "raw\r\n\r\n");
  EXPECT_THAT(request, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(request, Not(HasSubstr("x-goog")));
  EXPECT_THAT(request, Not(HasSubstr("a: b")));
}

TEST(PushRequestTest, WithHeadTheRestIsInHeaders) {
  const std::string request =
      push_request(target_of(PushForm::bare_with_head),
                   delivery_of({.data = "{}",
                                .attributes = {{"Content-Type", "application/json"}, {"a", "b"}},
                                .ordering_key = "k"}));
  EXPECT_THAT(request,
              HasSubstr("\r\nx-goog-pubsub-subscription-name: projects/p/subscriptions/s\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nx-goog-pubsub-message-id: 17\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nx-goog-pubsub-publish-time: 2026-11-16T00:10:20.500Z\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nx-goog-pubsub-ordering-key: k\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\na: b\r\n"));
  EXPECT_EQ(body_of(request), "{}");
}

TEST(PushRequestTest, NoAttributeCanForgeAHeaderOrTheEndOfARequest) {
  const std::string request =
      push_request(target_of(PushForm::bare_with_head),
                   delivery_of({.data = "d",
                                .attributes = {{"a", "x\r\nEvil: 1"},
                                               {"b: 1\r\nEvil", "2"},
                                               {"Content-Length", "0"},
                                               {"transfer-encoding", "chunked"},
                                               {"HOST", "elsewhere"},
                                               {"X-Goog-Pubsub-Message-Id", "forged"},
                                               {"white space", "3"}},
                                .ordering_key = "k\r\nEvil: 4"}));
  EXPECT_THAT(request, Not(HasSubstr("Evil")));
  EXPECT_THAT(request, Not(HasSubstr("chunked")));
  EXPECT_THAT(request, Not(HasSubstr("elsewhere")));
  EXPECT_THAT(request, Not(HasSubstr("forged")));
  EXPECT_THAT(request, Not(HasSubstr("white")));
  EXPECT_THAT(request, StartsWith("POST /new?x=1 HTTP/1.1\r\nHost: shop:8080\r\n"));
  EXPECT_THAT(request, EndsWith("\r\n\r\nd"));
}

TEST(PushRequestTest, TheFenceIsAnAttributeWhereItIsAskedFor) {
  broker::Delivery delivery =
      delivery_of({.data = "d", .attributes = {{"colour", "blue"}, {"ordo-fence", "forged"}}});
  delivery.ack_id.fence = broker::Fence(9);
  for (const bool is_asked : {false, true}) {
    PushTarget target = target_of(PushForm::wrapped);
    target.shows_fence = is_asked;
    EXPECT_THAT(body_of(push_request(target, delivery)),
                HasSubstr(is_asked ? R"({"colour":"blue","ordo-fence":"9"})"
                                   : R"({"colour":"blue","ordo-fence":"forged"})"));
    target.form = PushForm::bare_with_head;
    const std::string request = push_request(target, delivery);
    EXPECT_THAT(request, HasSubstr("\r\ncolour: blue\r\n"));
    EXPECT_EQ(request.find("ordo-fence: 9") != std::string::npos, is_asked);
    EXPECT_EQ(request.find("forged") != std::string::npos, !is_asked);
  }
}

TEST(PushRequestTest, TimesHaveAsManyDigitsAsTheyNeed) {
  EXPECT_EQ(time_text(WallTime()), "1970-01-01T00:00:00Z");
  EXPECT_EQ(time_text(WallTime(1ms)), "1970-01-01T00:00:00.001Z");
  EXPECT_EQ(time_text(WallTime(120us)), "1970-01-01T00:00:00.000120Z");
  EXPECT_EQ(time_text(WallTime(1ns)), "1970-01-01T00:00:00.000000001Z");
  EXPECT_EQ(time_text(WallTime(951'868'799s)), "2000-02-29T23:59:59Z");
}

}  // namespace
}  // namespace ordo::push_http
