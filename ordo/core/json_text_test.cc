#include "ordo/core/json_text.h"

#include <gtest/gtest.h>

namespace ordo {
namespace {

TEST(JsonTextTest, ControlCharactersQuotesAndBackslashesAreEscaped) {
  EXPECT_EQ(json_string("a\"b\\c\n\t\x01\x7f"), R"("a\"b\\c\n\t\u0001\u007f")");
  EXPECT_EQ(json_string("Gr\xc3\xbc\xc3\x9f"), "\"Gr\xc3\xbc\xc3\x9f\"");
}

TEST(JsonTextTest, Base64PadsToFours) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
}

}  // namespace
}  // namespace ordo
