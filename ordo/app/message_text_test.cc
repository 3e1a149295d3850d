#include "ordo/app/message_text.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

using Words = std::vector<std::string>;

pubsub_client::IncomingMessage sample() {
  pubsub_client::IncomingMessage message;
  message.id = "7";
  message.key = "user-1";
  message.data = "he\"llo\n";
  message.attributes = {{"content.type", "a=b"}};
  message.published_at = WallTime(std::chrono::milliseconds(1'500));
  message.attempt = 2;
  return message;
}

TEST(MessageTextTest, PeopleGetOneLine) {
  EXPECT_EQ(message_line(sample()),
            "1970-01-01T00:00:01.500Z  user-1  he\"llo\\n  content.type=a=b\n");
}

TEST(MessageTextTest, ProgramsGetJson) {
  EXPECT_EQ(message_json(sample()),
            R"({"id":"7","key":"user-1","data":"he\"llo\n","attributes":{"content.type":"a=b"},)"
            R"("publish_time":"1970-01-01T00:00:01.500Z","attempt":2})"
            "\n");
  pubsub_client::IncomingMessage bytes;
  bytes.id = "8";
  bytes.data = "\xFF";
  EXPECT_EQ(message_json(bytes), R"({"id":"8","data_base64":"/w==",)"
                                 R"("publish_time":"1970-01-01T00:00:00.000Z"})"
                                 "\n");
}

TEST(MessageTextTest, CommandsGetVariables) {
  EXPECT_EQ(
      message_variables(sample(), "projects/p/subscriptions/s"),
      (Words{"ORDO_KEY=user-1", "ORDO_MESSAGE_ID=7", "ORDO_SUBSCRIPTION=projects/p/subscriptions/s",
             "ORDO_PUBLISH_TIME=1970-01-01T00:00:01.500Z", "ORDO_ATTEMPT=2",
             "ORDO_ATTR_content_type=a=b"}));
  pubsub_client::IncomingMessage odd;
  odd.key = std::string("a\0b", 3);
  EXPECT_EQ(message_variables(odd, "s").front(), "ORDO_MESSAGE_ID=");
}

}  // namespace
}  // namespace ordo::app
