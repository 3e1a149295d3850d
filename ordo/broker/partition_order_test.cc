// Promises 1 to 8 as one partition keeps them: order, one in flight, redelivery in place, newest
// delivery, look-ahead, independence, durability, numbers.
#include <chrono>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/partition_rig.h"
#include "tests/support/waiting.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;

TEST(PartitionOrderTest, MessagesOfAKeyAreDeliveredInPublishOrder) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.publish("k", {"3"});
  EXPECT_EQ(rig.texts(), "1");
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
  rig.ack("2");
  EXPECT_EQ(rig.texts(), "3");
}

TEST(PartitionOrderTest, TheNextOfAKeyWaitsForTheAckWhileOtherKeysFlow) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("a", {"a1", "a2"});
  rig.publish("b", {"b1", "b2"});
  EXPECT_EQ(rig.texts(), "a1 b1");
  rig.ack("b1");
  EXPECT_EQ(rig.texts(), "b2");
  rig.pass(9s);
  EXPECT_EQ(rig.texts(), "");
}

TEST(PartitionOrderTest, MessagesWithoutAKeyNeverWaitAndNeverBlock) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("a", {"a1", "a2"});
  rig.publish("", {"x", "y", "z"});
  EXPECT_EQ(rig.texts(), "a1 x y z");
}

TEST(PartitionOrderTest, ASubscriptionWithoutOrderDeliversKeysFreely) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.enable_message_ordering = false;
  rig.subscribe(setup);
  rig.consume();
  rig.publish("a", {"1", "2", "3"});
  EXPECT_EQ(rig.texts(), "1 2 3");
}

TEST(PartitionOrderTest, ANackedMessageComesNextForItsKey) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.nack("1");
  EXPECT_EQ(rig.texts(), "1 1");
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionOrderTest, AnExpiredMessageComesNextForItsKeyAtItsDeadlineAndNotBefore) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2"});
  EXPECT_EQ(rig.texts(), "1");
  rig.pass(10s - 1ns);
  EXPECT_EQ(rig.texts(), "");
  rig.pass(1ns);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionOrderTest, LaterMessagesWaitDuringTheRetryBackOff) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.retry_policy = RetryPolicy{2s, 5s};
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.texts();
  for (const auto wait : {2s, 4s, 5s, 5s}) {  // Doubled each time, up to the maximum.
    rig.nack("1");
    rig.pass(wait - 1ns);
    EXPECT_EQ(rig.texts(), "");
    rig.pass(1ns);
    EXPECT_EQ(rig.texts(), "1");
  }
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionOrderTest, ALateAckOfAnOlderDeliveryFreesNothing) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2"});
  const AckId first = rig.newest("1");
  rig.pass(10s);
  EXPECT_EQ(rig.texts(), "1 1");
  EXPECT_EQ(rig.ack_id(first), SettleOutcome::stale);
  EXPECT_EQ(rig.texts(), "");
  EXPECT_EQ(rig.ack("1"), SettleOutcome::done);
  EXPECT_EQ(rig.texts(), "2");
  EXPECT_EQ(rig.stats().stale_acks, 1u);
}

TEST(PartitionOrderTest, AnAckOfAnExpiredDeliveryCountsWhileNothingWasRedelivered) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber consumer = rig.consume(1, 1'000);
  rig.publish("k", {"1", "2"});
  EXPECT_EQ(rig.texts(), "1");
  rig.pass(10s);  // Expired, but the consumer has no credit.
  EXPECT_EQ(rig.texts(), "");
  EXPECT_EQ(rig.modify("1", 10s), SettleOutcome::stale);
  EXPECT_EQ(rig.ack("1"), SettleOutcome::done);
  rig.allow(consumer, 1, 1'000);
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionOrderTest, AnAckDuringTheBackOffSettlesTheMessageInPlace) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.retry_policy = RetryPolicy{};
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.pass(10s);
  EXPECT_EQ(rig.ack("1"), SettleOutcome::done);
  EXPECT_EQ(rig.texts(), "1 2");
}

TEST(PartitionOrderTest, ASecondAckOfTheDeliveryThatSettledAMessageIsDone) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1"});
  EXPECT_EQ(rig.ack("1"), SettleOutcome::done);
  EXPECT_EQ(rig.ack("1"), SettleOutcome::done);
  EXPECT_EQ(rig.modify("1", 10s), SettleOutcome::stale);
}

TEST(PartitionOrderTest, AChangedDeadlineIsCountedFromNow) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1"});
  rig.texts();
  rig.pass(9s);
  EXPECT_EQ(rig.modify("1", 20s), SettleOutcome::done);
  rig.pass(20s - 1ns);
  EXPECT_EQ(rig.texts(), "");
  rig.pass(1ns);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionOrderTest, AStreamsOwnDeadlineOverridesTheSubscriptions) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.set_ack_deadline(60s);
  rig.consume();
  rig.publish("k", {"1"});
  rig.pass(59s);
  EXPECT_EQ(rig.texts(), "1");
  rig.pass(1s);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionOrderTest, AStreamsNewDeadlineIsThatOfWhatIsDeliveredFromThenOn) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.set_ack_deadline(60s);
  const ConsumerNumber consumer = rig.consume();
  rig.publish("old", {"1"});
  rig.send(SetConsumerDeadline{consumer, 20s});
  rig.send(SetConsumerDeadline{ConsumerNumber(77), 1s});  // Nobody.
  rig.publish("new", {"2"});
  EXPECT_EQ(rig.texts(), "1 2");
  rig.pass(20s - 1ns);
  EXPECT_EQ(rig.texts(), "");
  rig.pass(1ns);
  EXPECT_EQ(rig.texts(), "2");
  rig.ack("2");
  rig.pass(40s);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionOrderTest, EverySubscriptionGetsItsOwnOrderedCopy) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.subscribe(ordered(CursorNumber(9)));
  rig.consume();
  rig.publish("k", {"1", "2"});
  EXPECT_EQ(rig.texts(), "1");
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
  rig.consume(10, 1'000, CursorNumber(9));
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionOrderTest, APublishIsAnsweredAndDeliveredOnlyAfterItsCommit) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.hold_commits(true);
  const RequestNumber request = rig.publish("k", {"1", "2"});
  EXPECT_TRUE(rig.take<PublishReply>().empty());
  EXPECT_EQ(rig.texts(), "");
  rig.hold_commits(false);
  const auto replies = rig.take<PublishReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].request, request);
  ASSERT_TRUE(replies[0].first_id);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionOrderTest, APublishThatFailedIsNeverDeliveredAndLeavesAGap) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.hold_commits(true);
  rig.publish("k", {"lost"});
  rig.publish("k", {"kept"});
  rig.commit_one(Error{ErrorCode::resource_exhausted, "no space"});
  rig.hold_commits(false);
  const auto replies = rig.take<PublishReply>();
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].first_id.error().code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(replies[1].first_id);
  EXPECT_EQ(rig.texts(), "kept");
  rig.ack("kept");
  EXPECT_EQ(rig.stats().acked_intervals, 0u);
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "");
}

TEST(PartitionOrderTest, AnUnknownOutcomeOfACommitIsUnavailableToThePublisher) {
  PartitionRig rig;
  rig.hold_commits(true);
  rig.publish("k", {"1"});
  rig.commit_one(Error{ErrorCode::internal, "I/O error"});
  EXPECT_EQ(rig.take<PublishReply>().at(0).first_id.error().code, ErrorCode::unavailable);
}

TEST(PartitionOrderTest, AnAckIsConfirmedOnlyAfterItsCommitButFreesTheKeyAtOnce) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.texts();
  rig.hold_commits(true);
  EXPECT_EQ(rig.ack("1"), std::nullopt);
  EXPECT_EQ(rig.texts(), "2");
  rig.hold_commits(false);
  EXPECT_EQ(rig.take<SettleReply>().size(), 1u);
}

TEST(PartitionOrderTest, AConfirmedAckIsNotUndoneByACrash) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2", "3"});
  rig.ack("1");
  rig.ack("2");
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "3");
}

TEST(PartitionOrderTest, UnconfirmedAcksMayReplayASuffixOfAKeyInOrder) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2", "3"});
  rig.ack("1", false);
  rig.pass(1s);  // Collected for some milliseconds, then written.
  rig.ack("2", false);
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "2");
  rig.ack("2");
  EXPECT_EQ(rig.texts(), "3");
}

TEST(PartitionOrderTest, AcksOutOfOrderSurviveACrash) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("", {"1", "2", "3", "4", "5"});
  rig.texts();
  for (const char* text : {"4", "2", "1"})
    rig.ack(text);
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "3 5");
  rig.ack("3");
  rig.ack("5");
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "");
}

TEST(PartitionOrderTest, AnAckThatFindsNoSpaceIsTriedAgainAndThenConfirmed) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.hold_commits(true);
  rig.ack("1");
  rig.commit_one(Error{ErrorCode::resource_exhausted, "no space"});
  rig.hold_commits(false);
  EXPECT_TRUE(rig.take<SettleReply>().empty());
  rig.pass(1s);
  EXPECT_EQ(rig.take<SettleReply>().at(0).outcomes.at(0), SettleOutcome::done);
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionOrderTest, IdsRiseAcrossRestartsAndFencesWithEveryDelivery) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1"});
  Fence last_fence;
  MessageId last_id;
  for (int round = 0; round < 3; ++round) {
    rig.nack("1");
    for (const PartitionRig::Received& received : rig.take_received()) {
      EXPECT_GT(received.delivery.ack_id.fence, last_fence);
      last_fence = received.delivery.ack_id.fence;
    }
    const MessageId id = rig.take<PublishReply>().at(0).first_id.value();
    EXPECT_GT(id, last_id);
    last_id = id;
    rig.restart();
    rig.consume();
    rig.publish("k", {numbered("more ", round)});
  }
}

TEST(PartitionOrderTest, ANewSubscriptionBeginsBehindTheLastCommittedMessage) {
  PartitionRig rig;
  rig.publish("k", {"before"});
  rig.hold_commits(true);
  rig.publish("k", {"under way"});
  rig.subscribe(ordered());
  rig.hold_commits(false);
  rig.consume();
  rig.publish("k", {"after"});
  EXPECT_EQ(rig.texts(), "under way");
}

TEST(PartitionOrderTest, AThousandBlockedKeysDoNotStopOthersAndTheirTailsLeaveMemory) {
  constexpr int kRounds = testing_support::kIsSanitized ? 24 : 100;  // Above a chunk.
  PartitionOptions options;
  options.tail_bytes_max = kRounds * 640;
  options.cache_bytes_max = 64 << 10;
  options.ready_bytes_max = 64 << 10;
  options.spill_chunk_offsets = 16;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  rig.consume();
  // Keys take turns, so that offsets of a key do not follow each other.
  for (int round = 0; round < kRounds; ++round) {
    for (int key = 0; key < 200; ++key)
      rig.publish(numbered("key", key), {std::to_string(key) + "/" + std::to_string(round)});
  }
  rig.texts();
  rig.publish("free", {"free"});
  EXPECT_EQ(rig.texts(), "free");
  EXPECT_GT(rig.count_of_spills(), 0u);
  EXPECT_LT(rig.partition_stats().memory_bytes, 600u << 10);
  // Every key goes on in its order.
  for (int round = 0; round + 1 < kRounds; ++round) {
    for (int key = 0; key < 200; ++key) {
      rig.ack(std::to_string(key) + "/" + std::to_string(round));
      ASSERT_EQ(rig.texts(), std::to_string(key) + "/" + std::to_string(round + 1));
    }
  }
}

}  // namespace
}  // namespace ordo::broker
