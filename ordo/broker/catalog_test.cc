#include "ordo/broker/catalog.h"

#include <chrono>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/broker/catalog_codec.h"
#include "tests/support/catalog_probe.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CatalogTest : public testing::Test, protected CatalogProbe {};

TEST_F(CatalogTest, ATopicExistsOnceItsChangeIsApplied) {
  const Result<CatalogChange> change = catalog_.create_topic({.name = topic("orders")});
  ASSERT_TRUE(change);
  EXPECT_EQ(code_of(catalog_.get_topic(topic("orders"))), ErrorCode::not_found);
  catalog_.apply();
  const Result<CatalogTopic> found = catalog_.get_topic(topic("orders"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, TopicNumber(1));
  EXPECT_EQ(found->config.partitions, 4u);
}

TEST_F(CatalogTest, AChangeThatWasNotStoredNeverWas) {
  ASSERT_TRUE(catalog_.create_topic({.name = topic("orders")}));
  catalog_.drop();
  EXPECT_EQ(code_of(catalog_.get_topic(topic("orders"))), ErrorCode::not_found);
  ASSERT_TRUE(catalog_.create_topic({.name = topic("orders")}));
  catalog_.apply();
  EXPECT_EQ(catalog_.get_topic(topic("orders"))->number, TopicNumber(2));  // Never used twice.
}

TEST_F(CatalogTest, ANewTopicsPartitionsAreOpenedAfterItIsStored) {
  const Result<CatalogChange> change =
      catalog_.create_topic({.name = topic("orders"), .partitions = 3, .retention = 1h});
  ASSERT_TRUE(change);
  EXPECT_THAT(change->before, IsEmpty());
  ASSERT_THAT(change->after, SizeIs(1));
  const auto& open = std::get<OpenPartitions>(change->after[0]);
  EXPECT_EQ(open.partition_count, 3u);
  EXPECT_EQ(open.retention, 1h);
  EXPECT_EQ(change->name, topic("orders"));
}

TEST_F(CatalogTest, TheServicesCodesAndWords) {
  add_topic("orders");
  EXPECT_EQ(error_of(catalog_.create_topic({.name = topic("orders")})),
            "ALREADY_EXISTS Resource already exists in the project (resource=orders).");
  EXPECT_EQ(error_of(catalog_.get_topic(topic("nothing"))),
            "NOT_FOUND Resource not found (resource=nothing).");
  EXPECT_EQ(error_of(catalog_.delete_topic(topic("nothing"))),
            "NOT_FOUND Resource not found (resource=nothing).");
  EXPECT_EQ(error_of(catalog_.create_topic({.name = "orders"})),
            "INVALID_ARGUMENT Invalid resource name given (name=orders). Refer to "
            "https://cloud.google.com/pubsub/docs/admin#resource_names for more information.");
  EXPECT_EQ(code_of(catalog_.create_topic({.name = subscription("orders")})),
            ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(catalog_.get_subscription(subscription("nothing"))),
            "NOT_FOUND Resource not found (resource=nothing).");
  EXPECT_EQ(error_of(catalog_.get_snapshot(snapshot("nothing"))),
            "NOT_FOUND Resource not found (resource=nothing).");
}

TEST_F(CatalogTest, ATopicsSettingsAreChecked) {
  EXPECT_THAT(error_of(catalog_.create_topic({.name = topic("orders"), .partitions = 0})),
              HasSubstr("1 to 64"));
  EXPECT_THAT(error_of(catalog_.create_topic({.name = topic("orders"), .partitions = 65})),
              HasSubstr("1 to 64"));
  EXPECT_THAT(error_of(catalog_.create_topic({.name = topic("orders"), .retention = 9min})),
              HasSubstr("10m to 31d"));
  EXPECT_THAT(error_of(catalog_.create_topic({.name = topic("orders"), .retention = 24h * 32})),
              HasSubstr("10m to 31d"));
}

TEST_F(CatalogTest, AnUpdateChangesWhatItsMaskNames) {
  add_topic("orders");
  const TopicConfig wanted{.name = topic("orders"), .labels = {{"a", "b"}}, .retention = 1h};
  ASSERT_TRUE(catalog_.update_topic(wanted, {"labels"}));
  catalog_.apply();
  EXPECT_EQ(catalog_.get_topic(topic("orders"))->config.labels, wanted.labels);
  EXPECT_EQ(catalog_.get_topic(topic("orders"))->config.retention, std::nullopt);
  const Result<CatalogChange> change =
      catalog_.update_topic(wanted, {"message_retention_duration"});
  ASSERT_TRUE(change);
  EXPECT_EQ(std::get<RetainInAll>(change->after.at(0)).retention, 1h);
  catalog_.apply();
  EXPECT_EQ(catalog_.get_topic(topic("orders"))->config.retention, 1h);
  ASSERT_TRUE(catalog_.update_topic({.name = topic("orders")}, {"message_retention_duration"}));
  catalog_.apply();
  EXPECT_EQ(catalog_.get_topic(topic("orders"))->config.retention, std::nullopt);
}

TEST_F(CatalogTest, AnUpdateNeedsAMaskOfKnownMutableFields) {
  add_topic("orders");
  const TopicConfig wanted{.name = topic("orders")};
  EXPECT_EQ(error_of(catalog_.update_topic(wanted, {})),
            "INVALID_ARGUMENT The update_mask in the UpdateTopicRequest must be set, and must "
            "contain a non-empty paths list.");
  EXPECT_EQ(error_of(catalog_.update_topic(wanted, {"name"})),
            "INVALID_ARGUMENT Invalid update_mask provided in the UpdateTopicRequest: the name "
            "field in the Topic is not mutable.");
  EXPECT_EQ(
      error_of(catalog_.update_topic(wanted, {"labels", "foo"})),
      "INVALID_ARGUMENT Invalid update_mask provided in the UpdateTopicRequest: foo is not a "
      "known Topic field. Note that field paths must be of the form 'push_config' rather than "
      "'pushConfig'.");
  EXPECT_EQ(code_of(catalog_.update_topic({.name = topic("nothing")}, {"labels"})),
            ErrorCode::not_found);
}

TEST_F(CatalogTest, TheNumberOfPartitionsIsFixed) {
  add_topic({.name = topic("orders"), .labels = {{"ordo-partitions", "7"}}});
  EXPECT_EQ(catalog_.get_topic(topic("orders"))->config.partitions, 7u);
  EXPECT_EQ(code_of(catalog_.update_topic(
                {.name = topic("orders"), .labels = {{"ordo-partitions", "8"}}}, {"labels"})),
            ErrorCode::invalid_argument);
  ASSERT_TRUE(catalog_.update_topic({.name = topic("orders"), .labels = {}}, {"labels"}));
  catalog_.apply();
  EXPECT_EQ(catalog_.get_topic(topic("orders"))->config.partitions, 7u);
  EXPECT_EQ(catalog_.get_topic(topic("orders"))->config.labels.at("ordo-partitions"), "7");
}

TEST_F(CatalogTest, ATopicWithoutSubscriptionsGoesWithItsMessages) {
  add_topic({.name = topic("orders"), .partitions = 2});
  const Result<CatalogChange> change = catalog_.delete_topic(topic("orders"));
  ASSERT_TRUE(change);
  EXPECT_TRUE(std::holds_alternative<ClosePartitions>(change->before.at(0)));
  store(*change);
  EXPECT_EQ(erased_partitions_, 2);
  catalog_.apply();
  EXPECT_THAT(catalog_.topics(), IsEmpty());
  EXPECT_THAT(rows_, SizeIs(1));  // The counters.
}

TEST_F(CatalogTest, SubscriptionsOfADeletedTopicStayAndSaySo) {
  add_topic("orders");
  add_subscription("all-of-them", "orders");
  const Result<CatalogChange> change = catalog_.delete_topic(topic("orders"));
  ASSERT_TRUE(change);
  EXPECT_THAT(change->before, IsEmpty());
  apply(change);
  EXPECT_EQ(erased_partitions_, 0);
  const Result<CatalogSubscription> left = catalog_.get_attached(subscription("all-of-them"));
  ASSERT_TRUE(left);
  EXPECT_EQ(left->config.topic, "_deleted-topic_");
  EXPECT_EQ(left->topic, TopicNumber(1));
  EXPECT_EQ(code_of(catalog_.get_topic(topic("orders"))), ErrorCode::not_found);
  restart();
  EXPECT_EQ(catalog_.get_attached(subscription("all-of-them"))->config.topic, "_deleted-topic_");
  EXPECT_TRUE(catalog_.topics().at(TopicNumber(1)).is_deleted);
}

TEST_F(CatalogTest, ADeletedTopicsMessagesGoWithItsLastSubscription) {
  add_topic({.name = topic("orders"), .partitions = 2});
  add_subscription("one", "orders");
  add_subscription("two", "orders");
  apply(catalog_.delete_topic(topic("orders")));
  apply(catalog_.delete_subscription(subscription("one")));
  EXPECT_EQ(erased_partitions_, 0);
  const Result<CatalogChange> change = catalog_.delete_subscription(subscription("two"));
  ASSERT_TRUE(change);
  ASSERT_THAT(change->before, SizeIs(2));
  EXPECT_TRUE(std::holds_alternative<DetachFromAll>(change->before[0]));
  EXPECT_TRUE(std::holds_alternative<ClosePartitions>(change->before[1]));
  apply(change);
  EXPECT_EQ(erased_partitions_, 2);
  EXPECT_THAT(catalog_.topics(), IsEmpty());
  EXPECT_THAT(rows_, SizeIs(1));
}

TEST_F(CatalogTest, ANewTopicOfTheSameNameIsAnother) {
  add_topic("orders");
  add_subscription("old", "orders");
  apply(catalog_.delete_topic(topic("orders")));
  add_topic("orders");
  add_subscription("new", "orders");
  EXPECT_EQ(catalog_.get_topic(topic("orders"))->number, TopicNumber(2));
  EXPECT_EQ(catalog_.get_subscription(subscription("old"))->topic, TopicNumber(1));
  EXPECT_EQ(catalog_.get_subscription(subscription("new"))->topic, TopicNumber(2));
  EXPECT_THAT(catalog_.list_topic_subscriptions(topic("orders"), 0, "")->items,
              ElementsAre(subscription("new")));
  restart();
  EXPECT_EQ(catalog_.topics().size(), 2u);
  EXPECT_EQ(catalog_.get_topic(topic("orders"))->number, TopicNumber(2));
}

TEST_F(CatalogTest, ListsComeInPagesOfAProject) {
  for (const char* id : {"aaa", "bbb", "ccc", "ddd", "eee"})
    add_topic(id);
  add_topic({.name = "projects/other/topics/xxx"});
  add_topic({.name = "projects/p2/topics/xxx"});
  const auto names = [&](int size, const std::string& token, std::string* next) {
    const Result<Page<TopicConfig>> page = catalog_.list_topics("projects/p", size, token);
    EXPECT_TRUE(page);
    std::string list;
    for (const TopicConfig& config : page->items)
      list += config.name.back();
    *next = page->next_page_token;
    return list;
  };
  std::string next;
  EXPECT_EQ(names(2, "", &next), "ab");
  EXPECT_EQ(names(2, next, &next), "cd");
  EXPECT_EQ(names(2, next, &next), "e");
  EXPECT_EQ(next, "");
  EXPECT_EQ(names(5, "", &next), "abcde");
  EXPECT_EQ(next, "");
  EXPECT_EQ(names(0, "", &next), "abcde");
  EXPECT_EQ(names(-1, "", &next), "abcde");
  EXPECT_EQ(names(2, "no such token", &next), "");
  EXPECT_EQ(next, "");
  EXPECT_EQ(code_of(catalog_.list_topics("p", 0, "")), ErrorCode::invalid_argument);
}

TEST_F(CatalogTest, APageTokenOutlivesWhatItNames) {
  for (const char* id : {"aaa", "bbb", "ccc"})
    add_topic(id);
  const std::string token = catalog_.list_topics("projects/p", 2, "")->next_page_token;
  apply(catalog_.delete_topic(topic("bbb")));
  EXPECT_EQ(catalog_.list_topics("projects/p", 2, token)->items.at(0).name, topic("ccc"));
}

TEST_F(CatalogTest, ThereAreOnlySoManyOfEach) {
  catalog_ = Catalog({.topics_max = 1, .subscriptions_max = 1, .snapshots_max = 0});
  add_topic("one");
  EXPECT_EQ(code_of(catalog_.create_topic({.name = topic("two")})), ErrorCode::resource_exhausted);
  add_subscription("one", "one");
  EXPECT_EQ(code_of(catalog_.create_subscription(
                {.name = subscription("two"), .topic = topic("one")}, now_)),
            ErrorCode::resource_exhausted);
  EXPECT_EQ(code_of(catalog_.plan_snapshot(snapshot("one"), subscription("one"))),
            ErrorCode::resource_exhausted);
}

TEST_F(CatalogTest, PartitionsAreCountedOverAllTopicsAlsoDeletedOnes) {
  catalog_ = Catalog({.partitions_max = 10});
  add_topic({.name = topic("one"), .labels = {{"ordo-partitions", "6"}}});
  add_subscription("one", "one");
  EXPECT_EQ(
      code_of(catalog_.create_topic({.name = topic("two"), .labels = {{"ordo-partitions", "5"}}})),
      ErrorCode::resource_exhausted);
  apply(catalog_.delete_topic(topic("one")));
  EXPECT_EQ(code_of(catalog_.create_topic({.name = topic("two"), .partitions = 5})),
            ErrorCode::resource_exhausted);
  add_topic({.name = topic("two"), .partitions = 4});
}

TEST_F(CatalogTest, AStrictTopicTakesKeysOnlyWhileSomebodyKeepsTheirOrder) {
  add_topic({.name = topic("loose")});
  add_topic({.name = topic("strict"), .labels = {{"ordo-strict-keys", "true"}}});
  EXPECT_TRUE(catalog_.check_keys(TopicNumber(1)));
  EXPECT_EQ(catalog_.check_keys(TopicNumber(2)).error().code, ErrorCode::failed_precondition);
  add_subscription("plain", "strict");
  EXPECT_FALSE(catalog_.check_keys(TopicNumber(2)));
  add_subscription(
      {.name = subscription("ordered"), .topic = topic("strict"), .enable_message_ordering = true});
  EXPECT_TRUE(catalog_.check_keys(TopicNumber(2)));
  apply(catalog_.detach_subscription(subscription("ordered")));
  EXPECT_FALSE(catalog_.check_keys(TopicNumber(2)));
}

TEST_F(CatalogTest, EverythingIsThereAfterARestart) {
  add_topic({.name = topic("orders"), .labels = {{"a", "b"}}, .partitions = 2, .retention = 1h});
  add_topic("letters");
  add_subscription(full_subscription());
  const Result<CursorPlan> plan = catalog_.plan_snapshot(snapshot("before"), subscription("full"));
  ASSERT_TRUE(plan);
  apply(catalog_.create_snapshot({.name = snapshot("before"), .labels = {{"x", "y"}}}, *plan,
                                 WallTime::max(), now_));
  const CatalogTopic topic_before = *catalog_.get_topic(topic("orders"));
  const std::string subscription_before =
      encode_row(*catalog_.get_subscription(subscription("full")));
  const std::string snapshot_before = encode_row(*catalog_.get_snapshot(snapshot("before")));
  restart();
  EXPECT_EQ(encode_row(*catalog_.get_topic(topic("orders"))), encode_row(topic_before));
  EXPECT_EQ(encode_row(*catalog_.get_subscription(subscription("full"))), subscription_before);
  EXPECT_EQ(encode_row(*catalog_.get_snapshot(snapshot("before"))), snapshot_before);
  EXPECT_NE(catalog_.get_subscription(subscription("full"))->filter, nullptr);
  EXPECT_THAT(cleanup_, IsEmpty());
  add_topic("more");
  EXPECT_EQ(catalog_.get_topic(topic("more"))->number, TopicNumber(3));
}

TEST_F(CatalogTest, WhatACrashLeftBehindIsCleanedUp) {
  add_topic("orders");
  add_subscription("one", "orders");
  apply(catalog_.create_topic({.name = topic("gone")}));
  apply(catalog_.delete_topic(topic("gone")));
  Recovered recovered;
  recovered.catalog = rows_;
  const PartitionAddress known{TopicNumber(1), 0}, unknown{TopicNumber(2), 0};
  recovered.partitions[known];
  recovered.partitions[unknown];
  recovered.rows[{CursorNumber(1), known, 1, 5, ""}] = "kept";
  recovered.rows[{CursorNumber(9), known, 1, 5, ""}] = "of a snapshot that was never finished";
  recovered.rows[{CursorNumber(9), known, 1, 6, ""}] = "also";
  const Result<Catalog::Start> start = Catalog::recover(recovered);
  ASSERT_TRUE(start);
  ASSERT_THAT(start->cleanup, SizeIs(2));
  EXPECT_EQ(std::get<ErasePartition>(start->cleanup[0]).partition, unknown);
  EXPECT_EQ(std::get<EraseRows>(start->cleanup[1]).cursor, CursorNumber(9));
}

TEST_F(CatalogTest, NumbersAreNeverGivenTwiceNotEvenIfTheCountersWereLost) {
  add_topic("orders");
  apply(catalog_.create_topic({.name = topic("gone")}));
  apply(catalog_.delete_topic(topic("gone")));
  Recovered recovered;
  recovered.catalog = rows_;
  const auto next_number = [&] {
    Result<Catalog::Start> start = Catalog::recover(recovered);
    EXPECT_TRUE(start);
    catalog_ = std::move(start->catalog);
    apply(catalog_.create_topic({.name = topic("new")}));
    return catalog_.get_topic(topic("new"))->number;
  };
  EXPECT_EQ(next_number(), TopicNumber(3)) << "the newest one was deleted before the restart";
  std::erase_if(recovered.catalog, [](const auto& row) { return row.first.kind == kCountersKind; });
  recovered.partitions[{TopicNumber(7), 0}];
  EXPECT_EQ(next_number(), TopicNumber(8));
}

TEST_F(CatalogTest, ARowThatCannotBeReadIsNamed) {
  add_topic("orders");
  add_subscription("one", "orders");
  Recovered recovered;
  recovered.catalog = rows_;
  recovered.catalog[{kTopicKind, topic("orders")}] = "\x01garbage";
  EXPECT_THAT(error_of(Catalog::recover(recovered)), HasSubstr("topic 'projects/p/topics/orders'"));
  recovered.catalog.erase({kTopicKind, topic("orders")});
  EXPECT_THAT(error_of(Catalog::recover(recovered)), HasSubstr("subscriptions/one"));
  recovered.catalog = rows_;
  recovered.catalog[{99, "what"}] = "";
  EXPECT_THAT(error_of(Catalog::recover(recovered)), HasSubstr("kind 99"));
}

}  // namespace
}  // namespace ordo::broker
