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

}  // namespace
}  // namespace ordo::app
