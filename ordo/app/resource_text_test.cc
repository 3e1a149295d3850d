#include "ordo/app/resource_text.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

using broker::Collection;
using std::chrono::seconds;

TEST(ResourceTextTest, LabelsAreNamesAndValues) {
  const Result<Labels> labels = parse_labels("--label", {"a=1", "b=x=y", "c="});
  ASSERT_TRUE(labels) << labels.error().message;
  EXPECT_EQ(labels_text(*labels), "a=1,b=x=y,c=");
  EXPECT_EQ(parse_labels("--label", {"a"}).error().message, "--label: 'a' is not NAME=VALUE");
  EXPECT_FALSE(parse_labels("--label", {"=a"}));
}

TEST(ResourceTextTest, ANumberAloneIsSeconds) {
  EXPECT_EQ(*parse_seconds("--ack-deadline", "30"), seconds(30));
  EXPECT_EQ(*parse_seconds("--ack-deadline", "1m"), seconds(60));
  EXPECT_FALSE(parse_seconds("--ack-deadline", "soon"));
  EXPECT_FALSE(parse_seconds("--ack-deadline", ""));
}

TEST(ResourceTextTest, AMomentIsADateOrSoMuchAgo) {
  const WallTime now(seconds(1'000'000));
  const auto read = [&](const char* text) {
    const Result<WallTime> time = parse_moment("--time", text, now);
    return time ? moment_text(*time) : time.error().message;
  };
  EXPECT_EQ(read("now"), "1970-01-12T13:46:40.000Z");
  EXPECT_EQ(read("-10m"), "1970-01-12T13:36:40.000Z");
  EXPECT_EQ(read("+1s"), "1970-01-12T13:46:41.000Z");
  EXPECT_EQ(read("2026-11-16T00:20:01.25Z"), "2026-11-16T00:20:01.250Z");
  EXPECT_EQ(read("2026-11-16 00:20:01Z"), "2026-11-16T00:20:01.000Z");
  EXPECT_EQ(read("2026-11-16T01:20:01+01:00"), "2026-11-16T00:20:01.000Z");
  EXPECT_EQ(read("2026-11-15T22:50:01-01:30"), "2026-11-16T00:20:01.000Z");
  EXPECT_EQ(read("9999-12-31T23:59:59.999999999Z"), "2261-07-15T11:33:20.000Z");
  for (const char* wrong : {"", "soon", "2026-11-16", "2026-11-16T00:20:01", "2026-13-16T00:20:01Z",
                            "2026-11-16T00:20:01.Z", "2026-11-16T00:20:01Zx", "-soon"}) {
    EXPECT_FALSE(parse_moment("--time", wrong, now)) << wrong;
  }
}

TEST(ResourceTextTest, ShortNamesBelongToTheProject) {
  EXPECT_EQ(*whole_name("shop", Collection::topics, "orders"), "projects/shop/topics/orders");
  EXPECT_EQ(*whole_name("shop", Collection::topics, "projects/p/topics/orders"),
            "projects/p/topics/orders");
  EXPECT_FALSE(whole_name("shop", Collection::topics, "projects/p/subscriptions/orders"));
  EXPECT_FALSE(whole_name("shop", Collection::topics, "x"));
  EXPECT_FALSE(whole_name("shop", Collection::topics, "google-orders"));
  EXPECT_EQ(short_name("shop", "projects/shop/topics/orders"), "orders");
  EXPECT_EQ(short_name("shop", "projects/p/topics/orders"), "projects/p/topics/orders");
  EXPECT_EQ(short_name("shop", "_deleted-topic_"), "_deleted-topic_");
}

}  // namespace
}  // namespace ordo::app
