#include "ordo/adapters/pubsub_rest/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ordo::pubsub_rest {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

Target parsed(std::string_view text) {
  Result<Target> target = Target::parse(text);
  EXPECT_TRUE(target) << text;
  return target ? *target : Target();
}

TEST(TargetTest, APathIsItsSegmentsAndTheActionBehindTheLastColon) {
  const Target target = parsed("/v1/projects/p/topics/t:publish");
  EXPECT_THAT(target.segments, ElementsAre("v1", "projects", "p", "topics", "t"));
  EXPECT_EQ(target.action, "publish");
  EXPECT_THAT(target.query, IsEmpty());
}

TEST(TargetTest, AColonBeforeTheLastSegmentIsNoAction) {
  const Target target = parsed("/v1/projects/example.com:p/topics");
  EXPECT_THAT(target.segments, ElementsAre("v1", "projects", "example.com:p", "topics"));
  EXPECT_EQ(target.action, "");
}

TEST(TargetTest, EmptySegmentsAreKept) {
  EXPECT_THAT(parsed("/v1//topics/").segments, ElementsAre("v1", "", "topics", ""));
  EXPECT_THAT(parsed("").segments, ElementsAre(""));
}

TEST(TargetTest, EscapesAreUndoneButForSlashes) {
  EXPECT_THAT(parsed("/a%2Bb/%c3%a9/x%2fy/z%25+").segments,
              ElementsAre("a+b", "\xc3\xa9", "x%2fy", "z%+"));
}

TEST(TargetTest, AnEscapedColonIsPartOfTheName) {
  const Target target = parsed("/t%3Apublish");
  EXPECT_THAT(target.segments, ElementsAre("t:publish"));
  EXPECT_EQ(target.action, "");
}

TEST(TargetTest, AQueryIsNamesAndValues) {
  EXPECT_THAT(parsed("/a?pageSize=3&&pageToken=a%2Fb+c%26&flag").query,
              ElementsAre(Pair("pageSize", "3"), Pair("pageToken", "a/b c&"), Pair("flag", "")));
  EXPECT_THAT(parsed("/a?x=1=2?3").query, ElementsAre(Pair("x", "1=2?3")));
}

TEST(TargetTest, WhatCannotBeReadIsRefused) {
  for (const char* text : {"/%", "/%4", "/%zz", "/%+1", "/a?b=%", "/a?%=b", "/%ff", "/a?x=%c3"}) {
    const Result<Target> target = Target::parse(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code, ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace ordo::pubsub_rest
