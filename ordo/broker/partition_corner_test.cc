// Corners that only a long run of random events had led into, one test for each.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/partition_rig.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;

constexpr CursorNumber kOther{9};

TEST(PartitionCornerTest, WhatIsPublishedAfterARestartBeginsWithTheFirstAttempt) {
  PartitionRig rig;  // The mark of first deliveries runs far ahead of the end of the log.
  rig.subscribe(dead_lettering(1));
  rig.consume();
  rig.publish("k", {"1"});
  rig.ack("1");
  rig.texts();
  rig.restart();
  rig.consume();
  rig.publish("k", {"2"});
  const auto received = rig.take_received();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].delivery.attempt, 1u);
}

// Reads fail while they are told to.
class FailingReads final : public StoreFaults {
 public:
  bool fails = false;
  std::optional<Error> on_read(PartitionAddress, Offset from) override {
    if (!fails || from == Offset(0)) return std::nullopt;
    return Error{ErrorCode::unavailable, "the read failed"};
  }
};

TEST(PartitionCornerTest, AReadThatFailedAndIsNotNeededAnyMoreIsNotWaitedFor) {
  FailingReads faults;
  PartitionOptions options;
  options.cache_bytes_max = 1;
  PartitionRig rig(options, &faults);
  SubscriptionSetup setup = ordered();
  setup.config.message_retention = 600s;
  rig.subscribe(setup);
  rig.publish("k", {"1"});
  rig.publish("k", {"2"});
  rig.restart();
  rig.hold_reads(true);
  rig.consume();
  rig.pass(700s);  // Both expire while they are being read.
  faults.fails = true;
  rig.hold_reads(false);
  rig.pass(60s);  // Does not end if something is due for ever.
  EXPECT_EQ(rig.texts(), "");
  rig.publish("k", {"3"});
  EXPECT_EQ(rig.texts(), "3");
}

TEST(PartitionCornerTest, AShortRetentionIsLookedAtInTimeBesideALongOne) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.publish("k", {"1"});
  rig.pass(2s);
  SubscriptionSetup brief = ordered(kOther);
  brief.config.message_retention = 16s;
  rig.subscribe(brief);
  rig.publish("k", {"2"});
  rig.pass(19s);
  EXPECT_EQ(rig.stats(kOther).unread, 0u);
  EXPECT_EQ(rig.stats().unread, 2u);
}

TEST(PartitionCornerTest, DetachingAnswersWhoWaitsForACommit) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.hold_commits(true);
  rig.ack("1");
  rig.send(OperateKey{rig.next_request(), kSubscription, "k", OperateKey::Verb::pause});
  EXPECT_TRUE(rig.take<SettleReply>().empty());
  rig.send(Detach{kSubscription, Error{ErrorCode::not_found, "deleted"}});
  EXPECT_EQ(rig.take<SettleReply>().at(0).outcomes.at(0), SettleOutcome::not_now);
  EXPECT_EQ(rig.take<VerbReply>().at(0).error->code, ErrorCode::not_found);
  rig.hold_commits(false);
}

TEST(PartitionCornerTest, DetachingAnswersASeekThatIsUnderWay) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.publish("k", {"1"});
  rig.hold_commits(true);
  rig.send(SeekToTime{rig.next_request(), kSubscription, rig.now().wall + 1s});
  EXPECT_TRUE(rig.take<Sought>().empty());
  rig.send(Detach{kSubscription, Error{ErrorCode::not_found, "deleted"}});
  EXPECT_EQ(rig.take<Sought>().at(0).error->code, ErrorCode::not_found);
  rig.hold_commits(false);
}

TEST(PartitionCornerTest, NothingIsTrimmedWhileASeekBackIsUnderWay) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const WallTime start = rig.now().wall;
  rig.consume();
  rig.publish("k", {"1"});
  rig.ack("1");
  rig.texts();
  rig.hold_commits(true);
  rig.send(SeekToTime{rig.next_request(), kSubscription, start});
  rig.pass(10s);
  EXPECT_EQ(rig.held_commit_count(), 1u);
  rig.hold_commits(false);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionCornerTest, AnAckDuringASeekIsAnsweredWithIt) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("a", {"1"});
  rig.publish("b", {"2"});
  rig.ack("1", false);  // Not written yet.
  rig.hold_commits(true);
  rig.send(SeekToTime{rig.next_request(), kSubscription, rig.now().wall + 1s});
  rig.ack("2");
  EXPECT_TRUE(rig.take<SettleReply>().empty());
  rig.hold_commits(false);
  const auto replies = rig.take<SettleReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].outcomes.at(0), SettleOutcome::stale);
}

TEST(PartitionCornerTest, WhatNobodyWasHandedComesAgainUnderTheSameAttempt) {
  PartitionRig rig;
  SubscriptionSetup setup = dead_lettering(5);
  setup.config.retry_policy = RetryPolicy{10s, 10s};
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"1"});
  const auto give_back = [&] {
    rig.send(ModifyDeadline{rig.next_request(), true, {rig.newest("1")}, 0s, 1});
  };
  const auto attempts = [&] {
    std::vector<std::uint32_t> numbers;
    for (const PartitionRig::Received& received : rig.take_received())
      numbers.push_back(received.delivery.attempt);
    return numbers;
  };
  using Attempts = std::vector<std::uint32_t>;
  give_back();
  EXPECT_EQ(attempts(), (Attempts{1, 1})) << "at once";
  rig.nack("1");
  rig.pass(10s);
  give_back();
  EXPECT_EQ(attempts(), (Attempts{2, 2}));
}

TEST(PartitionCornerTest, OfANackAndWhatGoesBackWithItTheNackAloneCounts) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(5));
  rig.consume();
  rig.publish("a", {"1"});
  rig.publish("b", {"2"});
  rig.texts();
  rig.send(ModifyDeadline{rig.next_request(), true, {rig.newest("1"), rig.newest("2")}, 0s, 1});
  for (const PartitionRig::Received& received : rig.take_received())
    EXPECT_EQ(received.delivery.attempt, received.text == "1" ? 2u : 1u) << received.text;
}

TEST(PartitionCornerTest, RetentionTakesAHeadThatWouldBeGivenUpNext) {
  PartitionRig rig;
  SubscriptionSetup setup = dead_lettering(5);
  setup.config.ordered_window = 2;
  setup.config.message_retention = 600s;
  setup.config.retry_policy = RetryPolicy{10'000s, 10'000s};
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.nack("2");
  rig.nack("1");  // Both wait, each has failed once.
  setup.config.dead_letter_policy->max_delivery_attempts = 1;
  rig.send(Reconfigure{setup});
  rig.pass(500s);
  rig.hold_commits(true);
  rig.pass(200s);  // The first expires; the second, which has failed too often, does as well.
  rig.hold_commits(false);
  rig.pass(1s);
  EXPECT_EQ(rig.stats().expired, 2u);
  EXPECT_EQ(rig.stats().dead_lettered, 0u);
}

TEST(PartitionCornerTest, RetentionTakesNothingThatWaitsBehindADeadLetterOnItsWay) {
  PartitionRig rig(cold());
  SubscriptionSetup setup = dead_lettering(2);
  setup.config.ordered_window = 2;
  setup.config.message_retention = 600s;
  rig.subscribe(setup);
  rig.publish("k", {"1", "2"});
  rig.pass(590s);
  rig.set_ack_deadline(600s);
  rig.consume();
  EXPECT_EQ(rig.texts(), "1 2");
  rig.nack("1");  // Both come back, and the second waits.
  EXPECT_EQ(rig.texts(), "1");
  rig.pass(1s);
  rig.hold_commits(true);
  rig.nack("1");   // Its dead letter is on its way.
  rig.pass(200s);  // Both are too old.
  EXPECT_EQ(rig.stats().expired, 0u);
  rig.hold_commits(false);
  EXPECT_EQ(rig.stats().dead_lettered, 1u);
  rig.pass(200s);
  EXPECT_EQ(rig.stats().expired, 1u);
  EXPECT_EQ(rig.stats().waiting + rig.stats().leased + rig.stats().lanes, 0u);
}

}  // namespace
}  // namespace ordo::broker
