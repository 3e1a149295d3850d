#include "ordo/app/json_field.h"

#include <string>

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

std::string field(std::string_view line, std::string_view name = "k") {
  const auto found = json_field(line, name);
  if (!found) return "error: " + found.error().message;
  return *found ? **found : "(none)";
}

TEST(JsonFieldTest, AFieldAtTheTopIsFound) {
  EXPECT_EQ(field(R"({"k":"v"})"), "v");
  EXPECT_EQ(field(R"( { "a" : [1, {"k": 2}] , "k" : 17 } )"), "17");
  EXPECT_EQ(field(R"({"k":true,"a":{"k":"inner"}})"), "true");
  EXPECT_EQ(field(R"({"k":""})"), "");
  EXPECT_EQ(field(R"({"k":-1.5e3})"), "-1.5e3");
  EXPECT_EQ(field(R"({"k":1,"k":2})"), "2");
}

TEST(JsonFieldTest, AMissingOneIsNothing) {
  EXPECT_EQ(field("{}"), "(none)");
  EXPECT_EQ(field(R"({"a":{"k":1}})"), "(none)");
}

TEST(JsonFieldTest, EscapesBecomeWhatTheyMean) {
  EXPECT_EQ(field(R"({"\u006b":"a\"\\\/\n\u00e9\ud83d\ude00"})"),
            "a\"\\/\n\xC3\xA9\xF0\x9F\x98\x80");
}

TEST(JsonFieldTest, WhatIsNoObjectSaysWhere) {
  EXPECT_EQ(field("plain"), "error: no JSON object (at character 1)");
  EXPECT_EQ(field(R"({"k":1} x)"), "error: no JSON object (at character 9)");
  for (const char* wrong :
       {"", "[]", "{", R"({"k")", R"({"k":})", R"({"k":1,})", R"({"k":"a)", R"({"k":"\x"})",
        R"({"k":"\ud800"})", R"({"k":nope})", R"({"k":1 2})", R"({k:1})", R"({"k":[1,]})"}) {
    EXPECT_TRUE(field(wrong).starts_with("error: no JSON object")) << wrong;
  }
}

TEST(JsonFieldTest, AnObjectIsNoKey) {
  EXPECT_EQ(field(R"({"k":{}})"), "error: field 'k' is an object or a list, and no key");
  EXPECT_EQ(field(R"({"k":[1]})"), "error: field 'k' is an object or a list, and no key");
}

TEST(JsonFieldTest, DepthHasALimit) {
  const auto nested = [](int levels) {
    const auto count = static_cast<std::size_t>(levels);
    return R"({"a":)" + std::string(count, '[') + std::string(count, ']') + R"(,"k":1})";
  };
  EXPECT_EQ(field(nested(kJsonDepthMax - 1)), "1");
  EXPECT_TRUE(field(nested(1'000'000)).starts_with("error"));
}

}  // namespace
}  // namespace ordo::app
