#include <chrono>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/broker/catalog.h"
#include "ordo/broker/catalog_codec.h"
#include "tests/support/catalog_probe.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CatalogSubscriptionsTest : public testing::Test, protected CatalogProbe {
 protected:
  CatalogSubscriptionsTest() {
    add_topic("orders");
    add_topic("letters");
  }

  // A valid one of the topic orders.
  static SubscriptionConfig config_of(const std::string& id) {
    return {.name = subscription(id), .topic = topic("orders")};
  }
  Result<CatalogChange> create(const SubscriptionConfig& config) {
    return catalog_.create_subscription(config, now_);
  }
  Result<CatalogChange> update(const SubscriptionConfig& config, const UpdateMask& mask) {
    return catalog_.update_subscription(config, mask);
  }
  SubscriptionConfig stored(const std::string& id) {
    return catalog_.get_subscription(subscription(id))->config;
  }
};

TEST_F(CatalogSubscriptionsTest, ANewOneIsAttachedBeforeItIsStored) {
  const Result<CatalogChange> change = create(config_of("one"));
  ASSERT_TRUE(change);
  ASSERT_THAT(change->before, SizeIs(1));
  const auto& attach = std::get<AttachToAll>(change->before[0]);
  EXPECT_EQ(attach.topic, TopicNumber(1));
  EXPECT_EQ(attach.partition_count, 4u);
  EXPECT_EQ(attach.setup.subscription, CursorNumber(1));
  EXPECT_EQ(attach.setup.config.name, subscription("one"));
  EXPECT_EQ(attach.setup.filter, nullptr);
  EXPECT_THAT(change->after, IsEmpty());
  EXPECT_EQ(code_of(catalog_.get_subscription(subscription("one"))), ErrorCode::not_found);
  apply(change);
  EXPECT_TRUE(catalog_.get_subscription(subscription("one")));
}

TEST_F(CatalogSubscriptionsTest, DefaultsAreEchoed) {
  SubscriptionConfig config = config_of("one");
  config.ack_deadline = 0s;
  config.dead_letter_policy = DeadLetterPolicy{topic("letters"), 0};
  config.retry_policy = RetryPolicy{.minimum_backoff = 1s};
  apply(create(config));
  const SubscriptionConfig got = stored("one");
  EXPECT_EQ(got.ack_deadline, 10s);
  EXPECT_EQ(got.message_retention, 604'800s);
  EXPECT_EQ(got.expiration_ttl, 31 * 24h);
  EXPECT_EQ(got.retry_policy->maximum_backoff, 600s);
  EXPECT_EQ(got.dead_letter_policy->max_delivery_attempts, 5u);
  EXPECT_EQ(got.failure_policy, FailurePolicy::dead_letter);
  EXPECT_EQ(got.ordered_window, 1u);
}

TEST_F(CatalogSubscriptionsTest, WithoutANameItIsGivenOne) {
  const Result<CatalogChange> first = create({.topic = topic("orders")});
  ASSERT_TRUE(first);
  apply(first);
  EXPECT_TRUE(catalog_.get_subscription(first->name));
  const Result<CatalogChange> second = create({.topic = topic("orders")});
  ASSERT_TRUE(second);
  EXPECT_NE(first->name, second->name);
}

TEST_F(CatalogSubscriptionsTest, TheServicesCodesAndWords) {
  apply(create(config_of("one")));
  EXPECT_EQ(error_of(create(config_of("one"))),
            "ALREADY_EXISTS Resource already exists in the project (resource=one).");
  SubscriptionConfig config = config_of("two");
  config.topic = topic("nothing");
  EXPECT_EQ(error_of(create(config)), "NOT_FOUND Resource not found (resource=nothing).");
  config.topic = "_deleted-topic_";
  EXPECT_EQ(code_of(create(config)), ErrorCode::invalid_argument);
  config = config_of("1");
  EXPECT_EQ(code_of(create(config)), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(catalog_.delete_subscription(subscription("two"))),
            "NOT_FOUND Resource not found (resource=two).");
}

TEST_F(CatalogSubscriptionsTest, AnAckDeadlineIsOneSecondToTenMinutes) {
  const auto with = [](std::chrono::nanoseconds deadline) {
    SubscriptionConfig config = config_of("one");
    config.ack_deadline = deadline;
    return config;
  };
  for (const auto bad : {-1s, 601s}) {
    EXPECT_THAT(error_of(create(with(bad))),
                HasSubstr("INVALID_ARGUMENT ack_deadline_secs out of bounds"));
  }
  EXPECT_FALSE(create(with(999ms)));
  ASSERT_TRUE(create(with(600s)));
  catalog_.drop();
  ASSERT_TRUE(create(with(1s)));
  catalog_.drop();
  catalog_ = Catalog({.ack_deadline_min = 10s});
  add_topic("orders");
  EXPECT_FALSE(create(with(9s)));
  EXPECT_TRUE(create(with(10s)));
}

TEST_F(CatalogSubscriptionsTest, RetentionAndExpirationHaveTheirBounds) {
  SubscriptionConfig config = config_of("one");
  config.message_retention = 599s;
  EXPECT_THAT(error_of(create(config)), HasSubstr("10m to 31d"));
  config.message_retention = 31 * 24h + 1s;
  EXPECT_THAT(error_of(create(config)), HasSubstr("10m to 31d"));
  config.message_retention = 31 * 24h;
  config.expiration_ttl = 24h - 1s;
  EXPECT_THAT(error_of(create(config)), HasSubstr("1d and more"));
  config.expiration_ttl = 24h;
  EXPECT_TRUE(create(config));
}

TEST_F(CatalogSubscriptionsTest, ARetryPolicyHasItsBounds) {
  SubscriptionConfig config = config_of("one");
  config.retry_policy = RetryPolicy{-1s, 600s};
  EXPECT_THAT(error_of(create(config)), HasSubstr("minimum_backoff is negative"));
  config.retry_policy = RetryPolicy{10s, 601s};
  EXPECT_THAT(error_of(create(config)), HasSubstr("maximum_backoff is 10m1s"));
  config.retry_policy = RetryPolicy{20s, 10s};
  EXPECT_THAT(error_of(create(config)), HasSubstr("more than maximum_backoff"));
  config.retry_policy = RetryPolicy{0s, 0s};
  EXPECT_TRUE(create(config));
}

TEST_F(CatalogSubscriptionsTest, ADeadLetterPolicyHasItsBoundsAndItsTopic) {
  SubscriptionConfig config = config_of("one");
  for (const std::uint32_t bad : {4u, 101u}) {
    config.dead_letter_policy = DeadLetterPolicy{topic("letters"), bad};
    EXPECT_EQ(code_of(create(config)), ErrorCode::out_of_range);
  }
  config.dead_letter_policy = DeadLetterPolicy{topic("nothing"), 5};
  EXPECT_EQ(error_of(create(config)), "NOT_FOUND Dead letter topic not found (resource=nothing).");
  config.dead_letter_policy = DeadLetterPolicy{"nonsense", 5};
  EXPECT_EQ(code_of(create(config)), ErrorCode::invalid_argument);
  config.dead_letter_policy = DeadLetterPolicy{topic("letters"), 100};
  const Result<CatalogChange> change = create(config);
  ASSERT_TRUE(change);
  const SubscriptionSetup& setup = std::get<AttachToAll>(change->before.at(0)).setup;
  EXPECT_EQ(setup.dead_letter_topic, TopicNumber(2));
  EXPECT_EQ(setup.dead_letter_partitions, 4u);
}

TEST_F(CatalogSubscriptionsTest, ABadFilterIsRefused) {
  SubscriptionConfig config = config_of("one");
  config.filter = "attributes:";
  EXPECT_THAT(error_of(create(config)), HasSubstr("INVALID_ARGUMENT Invalid filter at position"));
  config.filter = "attributes:a";
  const Result<CatalogChange> change = create(config);
  ASSERT_TRUE(change);
  EXPECT_NE(std::get<AttachToAll>(change->before.at(0)).setup.filter, nullptr);
}

TEST_F(CatalogSubscriptionsTest, AnUpdateChangesWhatItsMaskNamesAndReconfigures) {
  apply(create(config_of("one")));
  SubscriptionConfig wanted = config_of("one");
  wanted.ack_deadline = 77s;
  wanted.retain_acked_messages = true;
  wanted.message_retention = 3h;
  wanted.expiration_ttl = std::nullopt;
  wanted.retry_policy = RetryPolicy{1s, 2s};
  wanted.enable_exactly_once_delivery = true;
  const Result<CatalogChange> change = update(wanted, {"ack_deadline_seconds", "retry_policy"});
  ASSERT_TRUE(change);
  const auto& order = std::get<ReconfigureAll>(change->after.at(0));
  EXPECT_EQ(order.setup.config.ack_deadline, 77s);
  apply(change);
  EXPECT_EQ(stored("one").ack_deadline, 77s);
  EXPECT_EQ(stored("one").retry_policy->maximum_backoff, 2s);
  EXPECT_FALSE(stored("one").retain_acked_messages);
  apply(update(wanted, {"retain_acked_messages", "message_retention_duration", "expiration_policy",
                        "enable_exactly_once_delivery"}));
  EXPECT_TRUE(stored("one").retain_acked_messages);
  EXPECT_TRUE(stored("one").enable_exactly_once_delivery);
  EXPECT_EQ(stored("one").message_retention, 3h);
  EXPECT_EQ(stored("one").expiration_ttl, std::nullopt);
  apply(update(config_of("one"), {"retry_policy"}));  // Named but not set: cleared.
  EXPECT_EQ(stored("one").retry_policy, std::nullopt);
}

TEST_F(CatalogSubscriptionsTest, AnUpdateNeedsAMaskOfKnownMutableFields) {
  apply(create(config_of("one")));
  EXPECT_EQ(error_of(update(config_of("one"), {})),
            "INVALID_ARGUMENT The update_mask in the UpdateSubscriptionRequest must be set, and "
            "must contain a non-empty paths list.");
  for (const std::string field : {"name", "topic", "enable_message_ordering", "filter"}) {
    EXPECT_EQ(error_of(update(config_of("one"), {field})),
              "INVALID_ARGUMENT Invalid update_mask provided in the UpdateSubscriptionRequest: "
              "the " +
                  field + " field in the Subscription is not mutable.");
  }
  for (const std::string field : {"foo", "retry_policy.minimum_backoff", "ackDeadlineSeconds"}) {
    EXPECT_EQ(
        error_of(update(config_of("one"), {field})),
        "INVALID_ARGUMENT Invalid update_mask provided in the UpdateSubscriptionRequest: " + field +
            " is not a known Subscription field. Note that field paths must be of the form "
            "'push_config' rather than 'pushConfig'.");
  }
}

TEST_F(CatalogSubscriptionsTest, AnUpdateIsCheckedLikeANewOne) {
  apply(create(config_of("one")));
  SubscriptionConfig wanted = config_of("one");
  wanted.ack_deadline = 601s;
  EXPECT_EQ(code_of(update(wanted, {"ack_deadline_seconds"})), ErrorCode::invalid_argument);
  wanted.dead_letter_policy = DeadLetterPolicy{topic("nothing"), 5};
  EXPECT_EQ(code_of(update(wanted, {"dead_letter_policy"})), ErrorCode::not_found);
  wanted.labels = {{"ordo-ordered-window", "0"}};
  EXPECT_EQ(code_of(update(wanted, {"labels"})), ErrorCode::invalid_argument);
}

TEST_F(CatalogSubscriptionsTest, LabelsChangeTheSettingsTheyNameAndTheOthersGoBack) {
  SubscriptionConfig config = config_of("one");
  config.labels = {{"ordo-ordered-window", "50"}, {"ordo-failure-policy", "park"}};
  apply(create(config));
  EXPECT_EQ(stored("one").ordered_window, 50u);
  EXPECT_EQ(stored("one").failure_policy, FailurePolicy::park);
  SubscriptionConfig wanted = config_of("one");
  wanted.labels = {{"ordo-park-attempts", "2"}, {"team", "blue"}};
  apply(update(wanted, {"labels"}));
  EXPECT_EQ(stored("one").ordered_window, 1u);
  EXPECT_EQ(stored("one").failure_policy, FailurePolicy::block);
  EXPECT_EQ(stored("one").park_attempts, 2u);
  EXPECT_EQ(stored("one").labels, wanted.labels);
}

TEST_F(CatalogSubscriptionsTest, ADeadLetterPolicyIsTheFailurePolicyUnlessALabelSaysOtherwise) {
  SubscriptionConfig config = config_of("one");
  apply(create(config));
  EXPECT_EQ(stored("one").failure_policy, FailurePolicy::block);
  config.dead_letter_policy = DeadLetterPolicy{topic("letters"), 5};
  apply(update(config, {"dead_letter_policy"}));
  EXPECT_EQ(stored("one").failure_policy, FailurePolicy::dead_letter);
  config.labels = {{"ordo-failure-policy", "park"}};
  apply(update(config, {"labels"}));
  EXPECT_EQ(stored("one").failure_policy, FailurePolicy::park);
  config.labels = {};
  config.dead_letter_policy = std::nullopt;
  apply(update(config, {"labels", "dead_letter_policy"}));
  EXPECT_EQ(stored("one").failure_policy, FailurePolicy::block);
}

TEST_F(CatalogSubscriptionsTest, DeletingOneDropsItsBacklogAndEndsItsStreams) {
  apply(create(config_of("one")));
  const Result<CatalogChange> change = catalog_.delete_subscription(subscription("one"));
  ASSERT_TRUE(change);
  const auto& detach = std::get<DetachFromAll>(change->before.at(0));
  EXPECT_EQ(detach.subscription, CursorNumber(1));
  EXPECT_EQ(detach.reason.code, ErrorCode::not_found);
  apply(change);
  EXPECT_THAT(erased_cursors_, SizeIs(4));  // In each partition.
  EXPECT_EQ(code_of(catalog_.get_subscription(subscription("one"))), ErrorCode::not_found);
  apply(create(config_of("one")));
  EXPECT_EQ(catalog_.get_subscription(subscription("one"))->number, CursorNumber(2));
}

TEST_F(CatalogSubscriptionsTest, ADetachedOneStaysButCannotBeConsumed) {
  apply(create(config_of("one")));
  apply(create(config_of("two")));
  const Result<CatalogChange> change = catalog_.detach_subscription(subscription("one"));
  ASSERT_TRUE(change);
  EXPECT_EQ(std::get<DetachFromAll>(change->before.at(0)).reason.code,
            ErrorCode::failed_precondition);
  apply(change);
  EXPECT_TRUE(stored("one").detached);
  EXPECT_EQ(code_of(catalog_.get_attached(subscription("one"))), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of(catalog_.plan_seek(subscription("one"), "")), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of(catalog_.detach_subscription(subscription("one"))),
            ErrorCode::failed_precondition);
  EXPECT_THAT(catalog_.list_topic_subscriptions(topic("orders"), 0, "")->items,
              ElementsAre(subscription("two")));
  EXPECT_THAT(catalog_.list_subscriptions("projects/p", 0, "")->items, SizeIs(2));
  restart();
  EXPECT_TRUE(stored("one").detached);
  apply(update(config_of("one"), {"labels"}));
  apply(catalog_.delete_topic(topic("orders")));
  apply(catalog_.delete_subscription(subscription("one")));
  restart();
}

TEST_F(CatalogSubscriptionsTest, ADeletedTopicDoesNotWaitForDetachedOnes) {
  apply(create(config_of("one")));
  apply(catalog_.detach_subscription(subscription("one")));
  apply(catalog_.delete_topic(topic("orders")));
  EXPECT_EQ(erased_partitions_, 4);
  EXPECT_EQ(stored("one").topic, "_deleted-topic_");
  restart();
  apply(catalog_.delete_subscription(subscription("one")));
}

TEST_F(CatalogSubscriptionsTest, DeletingADeadLetterTopicReconfiguresItsSenders) {
  SubscriptionConfig config = config_of("one");
  config.dead_letter_policy = DeadLetterPolicy{topic("letters"), 5};
  apply(create(config));
  apply(create(config_of("two")));
  const Result<CatalogChange> gone = catalog_.delete_topic(topic("letters"));
  ASSERT_TRUE(gone);
  ASSERT_THAT(gone->after, SizeIs(1));
  EXPECT_EQ(std::get<ReconfigureAll>(gone->after[0]).setup.dead_letter_partitions, 0u);
  apply(gone);
  EXPECT_EQ(
      catalog_.setup_of(*catalog_.get_subscription(subscription("one"))).dead_letter_partitions,
      0u);
  const Result<CatalogChange> back = catalog_.create_topic({.name = topic("letters")});
  ASSERT_TRUE(back);
  ASSERT_THAT(back->after, SizeIs(2));
  EXPECT_TRUE(std::holds_alternative<OpenPartitions>(back->after[0]));  // First.
  const SubscriptionSetup& setup = std::get<ReconfigureAll>(back->after[1]).setup;
  EXPECT_EQ(setup.dead_letter_topic, TopicNumber(3));
  EXPECT_EQ(setup.dead_letter_partitions, 4u);
}

TEST_F(CatalogSubscriptionsTest, ATopicMayTakeItsOwnDeadLetters) {
  SubscriptionConfig config = config_of("one");
  config.dead_letter_policy = DeadLetterPolicy{topic("orders"), 5};
  apply(create(config));
  const Result<CatalogChange> change = catalog_.delete_topic(topic("orders"));
  ASSERT_TRUE(change);
  EXPECT_EQ(std::get<ReconfigureAll>(change->after.at(0)).setup.dead_letter_partitions, 0u);
  apply(change);
}

TEST_F(CatalogSubscriptionsTest, OneThatNobodyUsesExpires) {
  SubscriptionConfig config = config_of("one");
  config.expiration_ttl = 24h;
  apply(create(config));
  config = config_of("for-ever");
  config.expiration_ttl = std::nullopt;
  apply(create(config));
  EXPECT_THAT(catalog_.expired(now_ + 24h - 1s).subscriptions, IsEmpty());
  EXPECT_THAT(catalog_.expired(now_ + 24h).subscriptions, ElementsAre(subscription("one")));
  catalog_.touch(CursorNumber(1), now_ + 3h);
  catalog_.touch(CursorNumber(1), now_ + 2h);  // Clocks may go back.
  catalog_.touch(CursorNumber(99), now_);
  EXPECT_THAT(catalog_.expired(now_ + 27h - 1s).subscriptions, IsEmpty());
  EXPECT_THAT(catalog_.expired(now_ + 27h).subscriptions, ElementsAre(subscription("one")));
}

TEST_F(CatalogSubscriptionsTest, ItsUseIsWrittenDownOnceAnHour) {
  SubscriptionConfig config = config_of("one");
  config.expiration_ttl = 24h;
  apply(create(config));
  catalog_.touch(CursorNumber(1), now_ + 59min);
  EXPECT_THAT(catalog_.activity_rows(), IsEmpty());
  catalog_.touch(CursorNumber(1), now_ + 60min);
  CatalogChange change;
  change.rows = catalog_.activity_rows();
  EXPECT_THAT(change.rows, SizeIs(1));
  store(change);
  EXPECT_THAT(catalog_.activity_rows(), IsEmpty());
  restart();
  EXPECT_THAT(catalog_.expired(now_ + 25h - 1s).subscriptions, IsEmpty());
  EXPECT_THAT(catalog_.expired(now_ + 25h).subscriptions, ElementsAre(subscription("one")));
}

TEST_F(CatalogSubscriptionsTest, AnUpdateUnderWayDoesNotForgetItsUse) {
  SubscriptionConfig config = config_of("one");
  config.expiration_ttl = 24h;
  apply(create(config));
  const Result<CatalogChange> change = update(config, {"labels"});
  catalog_.touch(CursorNumber(1), now_ + 5h);
  apply(change);
  EXPECT_THAT(catalog_.expired(now_ + 28h).subscriptions, IsEmpty());
}

TEST_F(CatalogSubscriptionsTest, APushEndpointIsCheckedKeptAndCleared) {
  SubscriptionConfig wanted = config_of("one");
  wanted.push = PushConfig{.endpoint = "https://example.com/"};
  EXPECT_EQ(code_of(create(wanted)), ErrorCode::invalid_argument);
  wanted.push->endpoint = "http://localhost:8080/x";
  wanted.push->attributes = {{"x-goog-version", "v1beta1"}};
  EXPECT_EQ(code_of(create(wanted)), ErrorCode::invalid_argument);
  wanted.push->attributes = {{"colour", "red"}};
  EXPECT_EQ(code_of(create(wanted)), ErrorCode::invalid_argument);
  wanted.push->attributes = {{"x-goog-version", "v1"}};
  wanted.enable_exactly_once_delivery = true;
  EXPECT_EQ(code_of(create(wanted)), ErrorCode::invalid_argument);
  wanted.enable_exactly_once_delivery = false;
  apply(create(wanted));
  restart();
  EXPECT_EQ(stored("one").push, wanted.push);
  apply(update(config_of("one"), {"push_config"}));
  EXPECT_EQ(stored("one").push, std::nullopt);
  wanted.push->endpoint = "localhost";
  EXPECT_EQ(code_of(update(wanted, {"push_config"})), ErrorCode::invalid_argument);
}

// Requests side by side could overtake each other, and an endpoint that refuses at once would be
// asked again at once. What clients see is what they set.
TEST_F(CatalogSubscriptionsTest, PushesGoOneByOneWithinAKeyAndWithABackOff) {
  SubscriptionConfig wanted = config_of("one");
  wanted.push = PushConfig{.endpoint = "http://localhost/"};
  wanted.labels = {{"ordo-ordered-window", "10"}};
  const Result<CatalogChange> change = create(wanted);
  ASSERT_TRUE(change) << change.error().message;
  const SubscriptionConfig& attached = std::get<AttachToAll>(change->before.at(0)).setup.config;
  EXPECT_EQ(attached.ordered_window, 1u);
  EXPECT_EQ(attached.retry_policy->minimum_backoff, 100ms);
  EXPECT_EQ(attached.retry_policy->maximum_backoff, 60s);
  apply(change);
  EXPECT_EQ(stored("one").ordered_window, 10u);
  EXPECT_EQ(stored("one").retry_policy, std::nullopt);
  wanted.retry_policy = RetryPolicy{1s, 2s};
  const Result<CatalogChange> changed = update(wanted, {"retry_policy"});
  ASSERT_TRUE(changed);
  const SubscriptionConfig& set = std::get<ReconfigureAll>(changed->after.at(0)).setup.config;
  EXPECT_EQ(set.retry_policy->minimum_backoff, 1s);
}

}  // namespace
}  // namespace ordo::broker
