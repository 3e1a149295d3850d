#include "ordo/app/message_format.h"

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

pubsub_client::IncomingMessage message() {
  pubsub_client::IncomingMessage message;
  message.id = "7";
  message.key = "k\n1";
  message.data = "hello";
  message.attributes = {{"colour", "blue"}};
  return message;
}

TEST(MessageFormatTest, AFormatTakesItsPartsFromTheMessage) {
  const auto text = [](const char* format, bool is_escaped) {
    return MessageFormat::parse("-f", format)->text(message(), is_escaped);
  };
  EXPECT_EQ(text("%i: %d", true), "7: hello\n");
  EXPECT_EQ(text("%k", true), "k\\n1\n");
  EXPECT_EQ(text("%k", false), "k\n1\n");
  EXPECT_EQ(text("100%%\\t%a", true), "100%\t{\"colour\":\"blue\"}\n");
  EXPECT_EQ(text("", true), "\n");
}

TEST(MessageFormatTest, AFormatThatIsNotUnderstoodIsRefused) {
  for (const char* format : {"%x", "%", "a %"})
    EXPECT_FALSE(MessageFormat::parse("-f", format)) << format;
}

TEST(MessageFormatTest, LongTextIsCutBetweenCharactersAndBytesAreCounted) {
  EXPECT_EQ(one_line("short", 10), "short");
  EXPECT_EQ(one_line("a\x1b[0m", 10), "a\\x1b[0m");
  EXPECT_EQ(one_line("\xc3\xa9\xc3\xa9\xc3\xa9", 3), "\xc3\xa9...");
  EXPECT_EQ(one_line("\xff\xfe", 10), "(2 bytes)");
}

TEST(MessageFormatTest, TimesAreRough) {
  EXPECT_EQ(rough_time(std::chrono::seconds(-5)), "0 s");
  EXPECT_EQ(rough_time(std::chrono::minutes(5)), "5 min");
  EXPECT_EQ(rough_time(std::chrono::hours(3)), "3 h");
  EXPECT_EQ(rough_time(std::chrono::hours(72)), "3 d");
}

}  // namespace
}  // namespace ordo::app
