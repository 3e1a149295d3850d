#include "ordo/app/json_text.h"

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

TEST(JsonTextTest, ControlCharactersQuotesAndBackslashesAreEscaped) {
  EXPECT_EQ(json_string("a\"b\\c\n\t\x01\x7f"), R"("a\"b\\c\n\t\u0001\u007f")");
  EXPECT_EQ(json_string("Gr\xc3\xbc\xc3\x9f"), "\"Gr\xc3\xbc\xc3\x9f\"");
}

TEST(JsonTextTest, MalformedSequencesAreNotUtf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("\xf0\x9f\x98\x80"));
  for (const char* bad : {"\xff", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\x80", "a\xf0\x9f\x98"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

TEST(JsonTextTest, Base64PadsToFours) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
}

TEST(JsonTextTest, AFieldThatIsNotTextSaysSoInItsName) {
  std::string object = "{";
  append_number_field(object, "line", 7);
  append_text_field(object, "input", "x");
  append_text_field(object, "stderr", "\xff");
  EXPECT_EQ(object + "}", R"({"line":7,"input":"x","stderr_base64":"/w=="})");
}

}  // namespace
}  // namespace ordo::app
