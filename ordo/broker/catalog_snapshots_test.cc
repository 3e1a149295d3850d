#include <chrono>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/broker/catalog.h"
#include "tests/support/catalog_probe.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class CatalogSnapshotsTest : public testing::Test, protected CatalogProbe {
 protected:
  CatalogSnapshotsTest() {
    add_topic("orders");
    add_subscription("one", "orders");
  }

  Result<CatalogChange> create(const std::string& id, WallTime oldest_unacked = WallTime::max()) {
    const Result<CursorPlan> plan = catalog_.plan_snapshot(snapshot(id), subscription("one"));
    if (!plan) return plan.error();
    return catalog_.create_snapshot({.name = snapshot(id)}, *plan, oldest_unacked, now_);
  }
};

TEST_F(CatalogSnapshotsTest, ASnapshotIsPlannedTakenAndThenStored) {
  const Result<CursorPlan> plan = catalog_.plan_snapshot(snapshot("now"), subscription("one"));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->topic, TopicNumber(1));
  EXPECT_EQ(plan->partition_count, 4u);
  EXPECT_EQ(plan->subscription, CursorNumber(1));
  EXPECT_EQ(plan->snapshot, CursorNumber(2));
  apply(catalog_.create_snapshot({.name = snapshot("now"), .labels = {{"a", "b"}}}, *plan,
                                 WallTime::max(), now_));
  const Result<CatalogSnapshot> stored = catalog_.get_snapshot(snapshot("now"));
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->config.topic, topic("orders"));
  EXPECT_EQ(stored->config.labels.at("a"), "b");
  EXPECT_EQ(stored->number, CursorNumber(2));
}

TEST_F(CatalogSnapshotsTest, ItLivesSevenDaysLessTheAgeOfItsOldestMessage) {
  apply(create("fresh"));
  EXPECT_EQ(catalog_.get_snapshot(snapshot("fresh"))->config.expire_time, now_ + 7 * 24h);
  apply(create("older", now_ - 5 * 24h));
  EXPECT_EQ(catalog_.get_snapshot(snapshot("older"))->config.expire_time, now_ + 2 * 24h);
  EXPECT_THAT(catalog_.expired(now_ + 2 * 24h - 1s).snapshots, SizeIs(0));
  EXPECT_THAT(catalog_.expired(now_ + 2 * 24h).snapshots, ElementsAre(snapshot("older")));
}

TEST_F(CatalogSnapshotsTest, OneThatWouldLiveLessThanAnHourIsRefused) {
  EXPECT_EQ(code_of(create("late", now_ - 7 * 24h + 1h - 1s)), ErrorCode::failed_precondition);
  EXPECT_TRUE(create("late", now_ - 7 * 24h + 1h));
}

TEST_F(CatalogSnapshotsTest, TheServicesCodesAndWords) {
  apply(create("now"));
  EXPECT_EQ(error_of(create("now")),
            "ALREADY_EXISTS Resource already exists in the project (resource=now).");
  EXPECT_EQ(code_of(catalog_.plan_snapshot(snapshot("other"), subscription("nothing"))),
            ErrorCode::not_found);
  EXPECT_EQ(code_of(catalog_.plan_snapshot("other", subscription("one"))),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(catalog_.delete_snapshot(snapshot("nothing"))), ErrorCode::not_found);
}

TEST_F(CatalogSnapshotsTest, AnUpdateChangesLabelsAndTheTimeOfItsEnd) {
  apply(create("now"));
  SnapshotConfig wanted{.name = snapshot("now"), .labels = {{"a", "b"}}};
  apply(catalog_.update_snapshot(wanted, {"labels"}, now_));
  EXPECT_EQ(catalog_.get_snapshot(snapshot("now"))->config.labels, wanted.labels);
  wanted.expire_time = now_ + 1h;
  apply(catalog_.update_snapshot(wanted, {"expire_time"}, now_));
  EXPECT_EQ(catalog_.get_snapshot(snapshot("now"))->config.expire_time, now_ + 1h);
  wanted.expire_time = now_;
  EXPECT_FALSE(catalog_.update_snapshot(wanted, {"expire_time"}, now_));
  wanted.expire_time = now_ + 7 * 24h + 1s;
  EXPECT_FALSE(catalog_.update_snapshot(wanted, {"expire_time"}, now_));
  EXPECT_THAT(error_of(catalog_.update_snapshot(wanted, {"topic"}, now_)),
              HasSubstr("UpdateSnapshotRequest: the topic field in the Snapshot is not mutable"));
  EXPECT_THAT(error_of(catalog_.update_snapshot(wanted, {"foo"}, now_)),
              HasSubstr("foo is not a known Snapshot field"));
  EXPECT_THAT(error_of(catalog_.update_snapshot(wanted, {}, now_)), HasSubstr("non-empty"));
}

TEST_F(CatalogSnapshotsTest, DeletingOneErasesItsPlaceInEveryPartition) {
  apply(create("now"));
  const Result<CatalogChange> change = catalog_.delete_snapshot(snapshot("now"));
  ASSERT_TRUE(change);
  EXPECT_EQ(std::get<DropSnapshotOfAll>(change->before.at(0)).snapshot, CursorNumber(2));
  apply(change);
  EXPECT_THAT(erased_cursors_, SizeIs(4));
  EXPECT_FALSE(catalog_.get_snapshot(snapshot("now")));
}

TEST_F(CatalogSnapshotsTest, ASnapshotKeepsTheMessagesOfADeletedTopic) {
  apply(create("now"));
  apply(catalog_.delete_topic(topic("orders")));
  apply(catalog_.delete_subscription(subscription("one")));
  EXPECT_EQ(erased_partitions_, 0);
  EXPECT_EQ(catalog_.get_snapshot(snapshot("now"))->config.topic, "_deleted-topic_");
  restart();
  apply(catalog_.delete_snapshot(snapshot("now")));
  EXPECT_EQ(erased_partitions_, 4);
  EXPECT_THAT(rows_, SizeIs(1));  // The counters.
}

TEST_F(CatalogSnapshotsTest, ATopicThatGoesWhileASnapshotIsTakenTakesItAlong) {
  const Result<CursorPlan> plan = catalog_.plan_snapshot(snapshot("now"), subscription("one"));
  ASSERT_TRUE(plan);
  apply(catalog_.delete_topic(topic("orders")));
  EXPECT_EQ(code_of(catalog_.create_snapshot({.name = snapshot("now")}, *plan, now_, now_)),
            ErrorCode::not_found);
  EXPECT_EQ(code_of(catalog_.plan_snapshot(snapshot("now"), subscription("one"))),
            ErrorCode::failed_precondition);
}

TEST_F(CatalogSnapshotsTest, ASeekGoesToATimeOrToASnapshotOfTheSameTopic) {
  apply(create("now"));
  add_topic("other");
  add_subscription("two", "other");
  const Result<CursorPlan> to_time = catalog_.plan_seek(subscription("one"), "");
  ASSERT_TRUE(to_time);
  EXPECT_EQ(to_time->snapshot, CursorNumber());
  EXPECT_EQ(catalog_.plan_seek(subscription("one"), snapshot("now"))->snapshot, CursorNumber(2));
  EXPECT_EQ(code_of(catalog_.plan_seek(subscription("two"), snapshot("now"))),
            ErrorCode::failed_precondition);
  EXPECT_EQ(code_of(catalog_.plan_seek(subscription("one"), snapshot("nothing"))),
            ErrorCode::not_found);
}

TEST_F(CatalogSnapshotsTest, ListsNameThem) {
  apply(create("aaa"));
  apply(create("bbb"));
  const Result<Page<SnapshotConfig>> page = catalog_.list_snapshots("projects/p", 1, "");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->items.at(0).name, snapshot("aaa"));
  EXPECT_EQ(catalog_.list_snapshots("projects/p", 1, page->next_page_token)->items.at(0).name,
            snapshot("bbb"));
  EXPECT_THAT(catalog_.list_topic_snapshots(topic("orders"), 0, "")->items,
              ElementsAre(snapshot("aaa"), snapshot("bbb")));
}

}  // namespace
}  // namespace ordo::broker
