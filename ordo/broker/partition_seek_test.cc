// Seek to a time and to a snapshot, retention, trimming, and what is left when all is settled.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/partition_rig.h"
#include "tests/support/waiting.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;

constexpr CursorNumber kSnapshot{30};

SubscriptionSetup retaining() {
  SubscriptionSetup setup = ordered();
  setup.config.retain_acked_messages = true;
  return setup;
}

TEST(PartitionSeekTest, SeekToAnEarlierTimeDeliversAckedMessagesAgainInOrder) {
  PartitionRig rig;
  rig.subscribe(retaining());
  rig.consume();
  rig.publish("k", {"1"});
  rig.pass(1s);
  const WallTime time = rig.now().wall;
  rig.publish("k", {"2", "3"});
  for (const char* text : {"1", "2", "3"})
    rig.ack(text);
  rig.pass(2s);
  rig.texts();
  rig.send(SeekToTime{rig.next_request(), kSubscription, time});
  EXPECT_FALSE(rig.take<Sought>().at(0).error);
  EXPECT_EQ(rig.texts(), "2");
  rig.ack("2");
  EXPECT_EQ(rig.texts(), "3");
}

TEST(PartitionSeekTest, SeekToTheFutureSettlesEverything) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.texts();
  rig.send(SeekToTime{rig.next_request(), kSubscription, rig.now().wall + 1h});
  EXPECT_EQ(rig.ack("1"), SettleOutcome::stale);
  rig.publish("k", {"3"});
  EXPECT_EQ(rig.texts(), "3");
  EXPECT_EQ(rig.stats().routed, 1u);
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "3");
}

TEST(PartitionSeekTest, LeasesAreVoidAndNothingIsDeliveredBeforeTheSeekIsDurable) {
  PartitionRig rig;
  rig.subscribe(retaining());
  const WallTime start = rig.now().wall;
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.texts();
  const AckId lease = rig.newest("1");
  rig.hold_commits(true);
  rig.send(SeekToTime{rig.next_request(), kSubscription, start});
  EXPECT_TRUE(rig.take<Sought>().empty());
  EXPECT_EQ(rig.ack_id(lease), SettleOutcome::stale);
  EXPECT_EQ(rig.texts(), "");
  rig.hold_commits(false);
  EXPECT_EQ(rig.take<Sought>().size(), 1u);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionSeekTest, ASeekThatCouldNotBeStoredLeavesThePositionAsItWas) {
  PartitionRig rig;
  rig.subscribe(retaining());
  const WallTime start = rig.now().wall;
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.ack("1");
  rig.texts();
  rig.hold_commits(true);
  rig.send(SeekToTime{rig.next_request(), kSubscription, start});
  rig.commit_one(Error{ErrorCode::resource_exhausted, "no space"});
  rig.hold_commits(false);
  EXPECT_TRUE(rig.take<Sought>().at(0).error);
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionSeekTest, ASeekWaitsForDeadLettersThatAreUnderWay) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(1));
  const WallTime start = rig.now().wall;
  rig.consume();
  rig.publish("k", {"bad", "good"});
  rig.hold_commits(true);
  rig.nack("bad");
  rig.send(SeekToTime{rig.next_request(), kSubscription, start});
  EXPECT_EQ(rig.held_commit_count(), 1u);
  rig.hold_commits(false);
  EXPECT_FALSE(rig.take<Sought>().at(0).error);
}

TEST(PartitionSnapshotTest, SeekToASnapshotRestoresWhatWasAckedThen) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("", {"1", "2", "3"});
  rig.ack("2");
  rig.send(TakeSnapshot{rig.next_request(), kSubscription, kSnapshot});
  const auto taken = rig.take<SnapshotTaken>();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_FALSE(taken[0].error);
  EXPECT_EQ(taken[0].oldest_unacked, rig.now().wall);
  rig.ack("1");
  rig.ack("3");
  rig.publish("", {"4"});
  rig.ack("4");
  rig.pass(5s);  // Trimming leaves what the snapshot needs.
  rig.texts();
  rig.set_snapshots({kSnapshot});
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "");
  rig.send(SeekToSnapshot{rig.next_request(), kSubscription, kSnapshot});
  EXPECT_FALSE(rig.take<Sought>().at(0).error);
  EXPECT_EQ(rig.texts(), "1 3 4");
}

TEST(PartitionSnapshotTest, ADroppedSnapshotKeepsNothing) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("", {"1"});
  rig.send(TakeSnapshot{rig.next_request(), kSubscription, kSnapshot});
  rig.ack("1");
  rig.pass(5s);
  EXPECT_EQ(rig.partition_stats().first, Offset(1));
  rig.send(DropSnapshot{kSnapshot});
  rig.pass(5s);
  EXPECT_EQ(rig.partition_stats().first, Offset(2));
  rig.send(SeekToSnapshot{rig.next_request(), kSubscription, kSnapshot});
  EXPECT_EQ(rig.take<Sought>().at(0).error->code, ErrorCode::not_found);
}

TEST(PartitionRetentionTest, UnackedMessagesThatAreTooOldExpireLeasedOrWaiting) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.message_retention = 60s;
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.publish("", {"alone"});
  rig.pass(50s);
  rig.publish("k", {"young"});
  rig.texts();
  rig.pass(20s);
  EXPECT_EQ(rig.texts(), "1 alone young");
  const SubscriptionStats stats = rig.stats();
  EXPECT_EQ(stats.expired, 3u);
  EXPECT_EQ(stats.routed, stats.expired + stats.leased);
}

TEST(PartitionRetentionTest, MessagesNobodyLookedAtExpireToo) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.message_retention = 60s;
  rig.subscribe(setup);
  rig.publish("k", {"old"});
  rig.pass(70s);
  rig.publish("k", {"young"});
  rig.consume();
  EXPECT_EQ(rig.texts(), "young");
}

TEST(PartitionRetentionTest, TheLogIsTrimmedWhenNobodyNeedsItAndKeptAsTheTopicSays) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.ack("1");
  rig.pass(5s);
  EXPECT_EQ(rig.partition_stats().first, Offset(2));
  rig.set_topic_retention(1h);
  rig.restart();
  rig.consume();
  rig.ack("2");
  rig.pass(50min);
  EXPECT_EQ(rig.partition_stats().first, Offset(2));
  rig.pass(20min);
  EXPECT_EQ(rig.partition_stats().first, Offset(3));
}

TEST(PartitionRetentionTest, ATopicsRetentionMayChange) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.send(RetainTopic{1h});
  rig.publish("k", {"1"});
  rig.ack("1");
  rig.pass(10min);
  EXPECT_EQ(rig.partition_stats().first, Offset(1));
  rig.send(RetainTopic{std::nullopt});
  rig.pass(2s);
  EXPECT_EQ(rig.partition_stats().first, Offset(2));
}

TEST(PartitionStateTest, AHundredThousandKeysLeaveNothingBehind) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  constexpr int kKeys = testing_support::kIsSanitized ? 20'000 : 100'000;
  const std::uint64_t before = rig.partition_stats().memory_bytes;
  for (int round = 0; round < 3; ++round) {
    for (int key = 0; key < kKeys; key += 100) {
      for (int i = key; i < key + 100; ++i)
        rig.publish(numbered("key", i), {"x"});
      Acknowledge acknowledge{rig.next_request(), true, {}};
      for (const auto& received : rig.take_received())
        acknowledge.ids.push_back(received.delivery.ack_id);
      ASSERT_EQ(acknowledge.ids.size(), 100u);
      rig.send(std::move(acknowledge));
    }
    rig.take<SettleReply>();
    rig.take<PublishReply>();
  }
  rig.pass(5s);
  EXPECT_EQ(rig.stats().acked, std::uint64_t{3 * kKeys});
  EXPECT_EQ(rig.stats().lanes, 0u);
  EXPECT_EQ(rig.stats().acked_intervals, 0u);
  EXPECT_EQ(rig.partition_stats().memory_bytes, before);
}

TEST(PartitionStateTest, AMillionDistinctKeysOverTimeLeaveNothingBehind) {
  const char* const given = std::getenv("ORDO_DISTINCT_KEYS");
  const int keys = given != nullptr                ? std::atoi(given)
                   : testing_support::kIsSanitized ? 100'000
                                                   : 1'000'000;
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  const std::uint64_t before = rig.partition_stats().memory_bytes;
  for (int key = 0; key < keys; key += 1'000) {
    for (int i = key; i < key + 1'000; ++i)
      rig.publish(numbered("key", i), {"x"});
    Acknowledge acknowledge{rig.next_request(), true, {}};
    for (const auto& received : rig.take_received())
      acknowledge.ids.push_back(received.delivery.ack_id);
    rig.send(std::move(acknowledge));
    rig.take<PublishReply>();
    ASSERT_LT(rig.partition_stats().memory_bytes, 2u << 20);
  }
  rig.pass(5s);
  EXPECT_EQ(rig.stats().acked, static_cast<std::uint64_t>(keys));
  EXPECT_EQ(rig.stats().lanes, 0u);
  EXPECT_EQ(rig.partition_stats().memory_bytes, before);
}

}  // namespace
}  // namespace ordo::broker
