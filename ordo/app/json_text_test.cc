#include "ordo/app/json_text.h"

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

TEST(JsonTextTest, AFieldThatIsNotTextSaysSoInItsName) {
  std::string object = "{";
  append_number_field(object, "line", 7);
  append_text_field(object, "input", "x");
  append_text_field(object, "stderr", "\xff");
  EXPECT_EQ(object + "}", R"({"line":7,"input":"x","stderr_base64":"/w=="})");
}

// Attributes are named by clients.
TEST(JsonTextTest, ANameIsTextLikeAnyOther) {
  std::string object = "{";
  append_text_field(object, "a\":{\n\\", "x");
  EXPECT_EQ(object + "}", R"({"a\":{\n\\":"x"})");
}

}  // namespace
}  // namespace ordo::app
