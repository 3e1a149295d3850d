// Keys that are out of service: paused, parked, or without a dead-letter topic; and what operators
// can do about them.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/partition_rig.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;
using Verb = OperateKey::Verb;

const Error kNoSpace{ErrorCode::resource_exhausted, "no space"};
const Error kGone{ErrorCode::not_found, "gone"};

// `key` is paused and its head, which is "2", is nobody's.
void pause_behind_first(PartitionRig& rig, const std::string& key) {
  rig.publish(key, {"1", "2", "3"});
  EXPECT_FALSE(rig.operate(key, Verb::pause));
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "1");
}

void ask_for_dead_letter(PartitionRig& rig, const std::string& key) {
  rig.send(OperateKey{rig.next_request(), kSubscription, key, Verb::dead_letter_head});
}

// ------------------------------------------------------------------------------------ pauses

TEST(PartitionHoldTest, APauseOfAKeyOutlivesASeekAndARestartAfterIt) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const WallTime start = rig.now().wall;
  rig.consume();
  rig.publish("other", {"other"});
  rig.ack("other");
  rig.texts();
  pause_behind_first(rig, "k");
  rig.send(SeekToTime{rig.next_request(), kSubscription, start});
  EXPECT_EQ(rig.texts(), "other");
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::paused);
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "other");
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionHoldTest, ASeekLetsParkedKeysGo) {
  PartitionRig rig;
  rig.subscribe(parking(1));
  const WallTime start = rig.now().wall;
  rig.consume();
  rig.publish("k", {"1"});
  rig.nack("1");
  EXPECT_EQ(rig.texts(), "1");
  rig.send(SeekToTime{rig.next_request(), kSubscription, start});
  EXPECT_EQ(rig.texts(), "1");
  EXPECT_EQ(rig.stats().parked_lanes, 0u);
}

// ------------------------------------------------------------------------------------ dead letters

TEST(PartitionHoldTest, ADeadLetterThatAnOperatorAskedForIsAnsweredWhenItIsStored) {
  PartitionRig rig;
  rig.subscribe(parking(5));
  rig.consume();
  pause_behind_first(rig, "k");
  rig.pass(1s);
  rig.hold_commits(true);
  ask_for_dead_letter(rig, "k");
  EXPECT_TRUE(rig.take<VerbReply>().empty());
  rig.hold_commits(false);
  const auto replies = rig.take<VerbReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_FALSE(replies[0].error);
  EXPECT_EQ(rig.stats().dead_lettered, 1u);
}

TEST(PartitionHoldTest, APausedKeyStaysPausedWhenItsHeadIsDeadLettered) {
  PartitionRig rig;
  rig.subscribe(parking(5));
  rig.consume();
  pause_behind_first(rig, "k");
  EXPECT_FALSE(rig.operate("k", Verb::dead_letter_head));
  EXPECT_EQ(rig.texts(), "");
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::paused);
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.texts(), "3");
}

TEST(PartitionHoldTest, AParkedKeyGoesOnWhenItsHeadIsDeadLettered) {
  PartitionRig rig;
  rig.subscribe(parking(1));
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.nack("1");
  EXPECT_FALSE(rig.operate("k", Verb::dead_letter_head));
  EXPECT_EQ(rig.texts(), "1 2");
  EXPECT_EQ(rig.stats().parked_lanes, 0u);
}

TEST(PartitionHoldTest, ADeadLetterThatCannotBeStoredIsAnsweredAndChangesNothing) {
  for (const Error& error : {kNoSpace, kGone}) {
    PartitionRig rig;
    rig.subscribe(parking(5));
    rig.consume();
    pause_behind_first(rig, "k");
    rig.refuse_dead_letters(error);
    const std::optional<Error> answer = rig.operate("k", Verb::dead_letter_head);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->code, error.code == ErrorCode::not_found ? ErrorCode::failed_precondition
                                                               : ErrorCode::resource_exhausted);
    EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::paused);
    rig.pass(5s);
    EXPECT_EQ(rig.stats().dead_lettered, 0u);
    EXPECT_FALSE(rig.operate("k", Verb::resume));
    EXPECT_EQ(rig.texts(), "2");
  }
}

TEST(PartitionHoldTest, AHeadThatCouldNotBeDeadLetteredWaitsForItsBackOffAsBefore) {
  PartitionRig rig;
  SubscriptionSetup setup = parking(5);
  setup.config.retry_policy = RetryPolicy{};
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"1"});
  rig.nack("1");
  rig.texts();
  rig.refuse_dead_letters(kNoSpace);
  EXPECT_EQ(rig.operate("k", Verb::dead_letter_head)->code, ErrorCode::resource_exhausted);
  rig.pass(9s);
  EXPECT_EQ(rig.texts(), "");
  rig.pass(1s);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionHoldTest, ASeekAnswersWhoWaitsForADeadLetter) {
  PartitionRig rig(cold());
  rig.subscribe(parking(5));
  rig.consume();
  pause_behind_first(rig, "k");
  rig.publish("other", {"other"});
  rig.hold_reads(true);
  ask_for_dead_letter(rig, "k");  // Its message must be read first.
  EXPECT_TRUE(rig.take<VerbReply>().empty());
  EXPECT_EQ(rig.operate("k", Verb::skip_head)->code, ErrorCode::failed_precondition);
  rig.send(SeekToTime{rig.next_request(), kSubscription, rig.now().wall + 1s});
  const auto replies = rig.take<VerbReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].error->code, ErrorCode::unavailable);
  rig.hold_reads(false);
}

TEST(PartitionHoldTest, AnAckThatComesBeforeTheDeadLetterSettlesTheHead) {
  PartitionRig rig(cold());
  SubscriptionSetup setup = parking(5);
  setup.config.retry_policy = RetryPolicy{};
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.publish("other", {"other"});
  rig.nack("1");
  rig.hold_reads(true);
  ask_for_dead_letter(rig, "k");
  EXPECT_EQ(rig.ack("1"), SettleOutcome::done);
  const auto replies = rig.take<VerbReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].error->code, ErrorCode::failed_precondition);
  rig.hold_reads(false);
  EXPECT_EQ(rig.texts(), "1 other 2");
  EXPECT_EQ(rig.stats().dead_lettered, 0u);
}

TEST(PartitionHoldTest, ResumingAKeyWhoseDeadLetterTopicWasGoneTriesAgainAtOnce) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(1));
  rig.consume();
  rig.publish("k", {"bad", "good"});
  rig.refuse_dead_letters(kGone);
  rig.nack("bad");
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::dead_letter_gone);
  EXPECT_FALSE(rig.operate("k", Verb::resume));  // It is gone still: blocked again.
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::dead_letter_gone);
  EXPECT_EQ(rig.texts(), "bad");
  rig.refuse_dead_letters(std::nullopt);
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.texts(), "good");
  EXPECT_EQ(rig.stats().dead_lettered, 1u);
}

TEST(PartitionHoldTest, ResumingAKeyWithoutADeadLetterTopicNamesTheTopic) {
  PartitionRig rig;
  SubscriptionSetup setup = dead_lettering(1);
  setup.dead_letter_partitions = 0;
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"bad"});
  rig.nack("bad");
  const std::optional<Error> answer = rig.operate("k", Verb::resume);
  ASSERT_TRUE(answer);
  EXPECT_NE(answer->message.find("projects/p/topics/dead"), std::string::npos);
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::dead_letter_gone);
}

TEST(PartitionHoldTest, APauseIsKeptWhenTheDeadLetterTopicTurnsOutToBeGone) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(1));
  rig.consume();
  rig.publish("k", {"bad"});
  rig.hold_commits(true);
  rig.nack("bad");  // The dead letter is on its way.
  rig.send(OperateKey{rig.next_request(), kSubscription, "k", Verb::pause});
  rig.commit_one(kGone);
  rig.hold_commits(false);
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::paused);
}

// ------------------------------------------------------------------------------------ attempts

TEST(PartitionHoldTest, ALostStreamIsNoAttempt) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(2));
  rig.publish("k", {"1", "2"});
  for (int i = 0; i < 5; ++i) {
    const ConsumerNumber consumer = rig.consume();
    const auto received = rig.take_received();
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].delivery.attempt, 1u);
    rig.send(CloseConsumer{consumer,
                           i % 2 == 0 ? CloseConsumer::How::release : CloseConsumer::How::died});
    rig.pass(1s);
  }
  ConsumerNumber consumer = rig.consume();
  rig.nack("1");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.take_received().back().delivery.attempt, 2u);
    rig.send(CloseConsumer{consumer, CloseConsumer::How::release});
    consumer = rig.consume();
  }
  EXPECT_EQ(rig.stats().dead_lettered, 0u);
  rig.texts();
  rig.nack("1");
  EXPECT_EQ(rig.texts(), "2");
  EXPECT_EQ(rig.stats().dead_lettered, 1u);
}

TEST(PartitionHoldTest, WhatCameBackWithAnotherHasNotFailed) {
  PartitionRig rig;
  SubscriptionSetup setup = dead_lettering(3);
  setup.config.ordered_window = 3;
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.nack("1");
  rig.texts();
  rig.ack("1");
  const auto received = rig.take_received();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].delivery.attempt, 1u);
}

// ------------------------------------------------------------------------------------ parks

TEST(PartitionHoldTest, AParkedKeyIsFreeWhenWhatItWasParkedForHasExpired) {
  for (const bool is_looked_at : {false, true}) {
    PartitionRig rig(cold());
    SubscriptionSetup setup = parking(2);
    setup.config.message_retention = 600s;
    rig.subscribe(setup);
    rig.consume();
    rig.publish("k", {"bad"});
    rig.nack("bad");
    rig.nack("bad");
    rig.pass(1s);
    rig.restart();
    if (is_looked_at) rig.consume();
    EXPECT_EQ(rig.stats().parked_lanes, 1u);
    rig.pass(700s);
    EXPECT_EQ(rig.stats().parked_lanes, 0u);
    rig.publish("k", {"new"});
    if (!is_looked_at) rig.consume();
    EXPECT_EQ(rig.texts(), "new") << is_looked_at;
    rig.restart();
    rig.consume();
    EXPECT_EQ(rig.texts(), "new") << is_looked_at;
  }
}

TEST(PartitionHoldTest, AParkedHeadThatWasDeadLetteredBeforeACrashHoldsNothing) {
  PartitionRig rig(cold());
  rig.subscribe(parking(1));
  rig.consume();
  rig.publish("k", {"bad", "good"});
  rig.nack("bad");
  rig.pass(1s);
  rig.hold_commits(true);
  ask_for_dead_letter(rig, "k");
  rig.commit_one();  // The dead letter and its settlement; the end of the park is not written.
  rig.restart();
  rig.hold_commits(false);
  rig.consume();
  EXPECT_EQ(rig.texts(), "good");
  EXPECT_EQ(rig.stats().parked_lanes, 0u);
}

// ------------------------------------------------------------------------------------ counters

TEST(PartitionHoldTest, TheOldestMessageIsKnownThoughItIsNotInMemory) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  const WallTime oldest = rig.now().wall;
  rig.publish("k", {"1"});
  rig.pass(5s);
  rig.publish("k", {"2"});
  EXPECT_FALSE(rig.stats().oldest_unacked);  // Nobody has looked.
  for (int i = 0; i < 3; ++i) {
    rig.send(AskStats{rig.next_request(), true});
    const auto replies = rig.take<StatsReply>();
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(replies[0].stats.subscriptions.at(0).oldest_unacked, oldest);
  }
  EXPECT_EQ(rig.count_of_reads(), 1u);
}

}  // namespace
}  // namespace ordo::broker
