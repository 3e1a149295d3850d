#include "ordo/broker/config_rules.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing::HasSubstr;

const CatalogOptions kOptions;

std::string refusal(const Labels& labels) {
  SubscriptionConfig config{.labels = labels};
  const Status settled = settle_subscription_labels(config, kOptions);
  if (settled) return "it was accepted";
  EXPECT_EQ(settled.error().code, ErrorCode::invalid_argument);
  return settled.error().message;
}

TEST(ConfigRulesTest, LabelsSetWhatTheApiHasNoFieldFor) {
  SubscriptionConfig config{.labels = {{"ordo-ordered-window", "100"},
                                       {"ordo-failure-policy", "skip_after"},
                                       {"ordo-park-attempts", "7"},
                                       {"ordo-skip-after", "1m30s"},
                                       {"team", "blue"}}};
  ASSERT_TRUE(settle_subscription_labels(config, kOptions));
  EXPECT_EQ(config.ordered_window, 100u);
  EXPECT_EQ(config.failure_policy, FailurePolicy::skip_after);
  EXPECT_EQ(config.park_attempts, 7u);
  EXPECT_EQ(config.skip_after, 90s);
}

TEST(ConfigRulesTest, PoliciesMayBeWrittenWithAHyphen) {
  SubscriptionConfig config{.labels = {{"ordo-failure-policy", "skip-after"}}};
  ASSERT_TRUE(settle_subscription_labels(config, kOptions));
  EXPECT_EQ(config.failure_policy, FailurePolicy::skip_after);
}

TEST(ConfigRulesTest, AFieldThatIsSetGetsItsLabel) {
  SubscriptionConfig config;
  config.ordered_window = 9;
  config.failure_policy = FailurePolicy::park;
  config.park_attempts = 2;
  config.skip_after = 5s;
  ASSERT_TRUE(settle_subscription_labels(config, kOptions));
  EXPECT_EQ(config.labels, (Labels{{"ordo-ordered-window", "9"},
                                   {"ordo-failure-policy", "park"},
                                   {"ordo-park-attempts", "2"},
                                   {"ordo-skip-after", "5s"}}));
  SubscriptionConfig again = config;
  ASSERT_TRUE(read_subscription_labels(again, kOptions));
  EXPECT_EQ(again.ordered_window, 9u);
  EXPECT_EQ(again.failure_policy, FailurePolicy::park);
  EXPECT_EQ(again.skip_after, 5s);
}

TEST(ConfigRulesTest, AsByDefaultThereAreNoLabels) {
  SubscriptionConfig config;
  ASSERT_TRUE(settle_subscription_labels(config, kOptions));
  EXPECT_TRUE(config.labels.empty());
}

TEST(ConfigRulesTest, TheBrokersWindowHoldsForThoseThatDoNotSay) {
  const CatalogOptions options{.ordered_window = 100};
  SubscriptionConfig config;
  ASSERT_TRUE(settle_subscription_labels(config, options));
  EXPECT_EQ(config.ordered_window, 100u);
  EXPECT_TRUE(config.labels.empty());
  config.labels = {{"ordo-ordered-window", "1"}};
  ASSERT_TRUE(settle_subscription_labels(config, options));
  EXPECT_EQ(config.ordered_window, 1u);
}

TEST(ConfigRulesTest, BadLabelsAreRefusedWithWhatIsAllowed) {
  for (const char* bad : {"", "0", "1001", "-1", "1x", "x", " 1", "99999999999999999999"}) {
    EXPECT_THAT(refusal({{"ordo-ordered-window", bad}}), HasSubstr("1 to 1000")) << bad;
  }
  EXPECT_THAT(refusal({{"ordo-failure-policy", "explode"}}),
              HasSubstr("block, dead_letter, park, skip_after"));
  for (const char* bad : {"", "0", "0s", "32d", "soon"}) {
    EXPECT_THAT(refusal({{"ordo-skip-after", bad}}), HasSubstr("1ms to 31d")) << bad;
  }
  EXPECT_THAT(refusal({{"ordo-ordred-window", "1"}}),
              HasSubstr("did you mean ordo-ordered-window"));
  EXPECT_THAT(refusal({{"ordo-partitions", "1"}}), HasSubstr("no label ordo-partitions"));
}

TEST(ConfigRulesTest, LabelsHaveTheirLimits) {
  Labels labels;
  for (int i = 0; i < 64; ++i)
    labels[std::to_string(i)] = "";
  EXPECT_TRUE(check_labels(labels));
  labels["one"] = "more";
  EXPECT_FALSE(check_labels(labels));
  std::string wide;
  for (int i = 0; i < 63; ++i)
    wide += "\xc3\xa9";
  EXPECT_TRUE(check_labels({{wide, wide}}));
  EXPECT_FALSE(check_labels({{wide + "e", ""}}));
  EXPECT_FALSE(check_labels({{"a", wide + "e"}}));
  EXPECT_FALSE(check_labels({{"", "a"}}));
  EXPECT_FALSE(check_labels({{"a", "\xff"}}));
}

TEST(ConfigRulesTest, TopicsHaveLabelsOfTheirOwn) {
  TopicConfig config{.labels = {{"ordo-partitions", "64"}, {"ordo-strict-keys", "true"}}};
  ASSERT_TRUE(settle_topic_labels(config));
  EXPECT_EQ(config.partitions, 64u);
  EXPECT_TRUE(config.strict_keys);
  for (const Labels& bad : {Labels{{"ordo-partitions", "65"}}, Labels{{"ordo-strict-keys", "yes"}},
                            Labels{{"ordo-ordered-window", "1"}}}) {
    config = {.labels = bad};
    EXPECT_FALSE(settle_topic_labels(config));
  }
}

TEST(ConfigRulesTest, DeadLetteringNeedsSomewhereToGo) {
  SubscriptionConfig config;
  config.failure_policy = FailurePolicy::dead_letter;
  ASSERT_TRUE(settle_subscription_labels(config, kOptions));
  const Status checked = check_subscription(config, kOptions);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("needs a dead_letter_policy"));
}

}  // namespace
}  // namespace ordo::broker
