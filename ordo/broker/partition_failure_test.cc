// What happens to a key that cannot make progress: dead letters, parking, skipping, verbs.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/partition_rig.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;
using Verb = OperateKey::Verb;

// A subscription of the dead-letter topic, with a consumer.
void watch_dead_letters(PartitionRig& rig) {
  rig.subscribe(ordered(kDeadSubscription), kDeadPartition);
  rig.consume(std::uint64_t{1} << 62, std::uint64_t{1} << 62, kDeadSubscription, kDeadPartition);
}

// The first delivery of each message is written down before it is made, and not for many at once.
PartitionOptions exact_attempts() {
  PartitionOptions options;
  options.delivered_ahead = 1;
  return options;
}

void expect_conserved(const SubscriptionStats& stats) {
  EXPECT_EQ(stats.routed, stats.acked + stats.dead_lettered + stats.skipped + stats.expired +
                              stats.waiting + stats.leased);
}

// ------------------------------------------------------------------------------------ dead letters

TEST(PartitionDeadLetterTest, AfterTheLastAttemptTheHeadMovesAndTheKeyGoesOn) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(3));
  watch_dead_letters(rig);
  rig.consume();
  rig.publish("k", {"bad", "good"});
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    const auto received = rig.take_received();
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].text, "bad");
    EXPECT_EQ(received[0].delivery.attempt, attempt);
    rig.nack("bad");
  }
  const auto received = rig.take_received();
  ASSERT_EQ(received.size(), 2u);  // One here, one in the dead-letter topic.
  const auto& dead = received[received[0].text == "bad" ? 0 : 1];
  const auto& next = received[received[0].text == "bad" ? 1 : 0];
  EXPECT_EQ(next.text, "good");
  EXPECT_EQ(dead.text, "bad");
  EXPECT_EQ(dead.delivery.message.key(), "k");
  const std::string_view body = dead.delivery.message.body();
  EXPECT_EQ(find_attribute(body, "CloudPubSubDeadLetterSourceDeliveryCount"), "3");
  EXPECT_EQ(find_attribute(body, "CloudPubSubDeadLetterSourceSubscription"), "s");
  EXPECT_EQ(rig.stats().dead_lettered, 1u);
  expect_conserved(rig.stats());
}

TEST(PartitionDeadLetterTest, TheSettlementIsInTheSameCommitAsTheDeadLetter) {
  PartitionRig rig(exact_attempts());
  rig.subscribe(dead_lettering(1));
  watch_dead_letters(rig);
  rig.consume();
  rig.publish("k", {"bad", "good"});
  rig.hold_commits(true);
  rig.nack("bad");
  ASSERT_EQ(rig.held_commit_count(), 1u);
  EXPECT_EQ(rig.blocked_keys().at(0).reason, BlockReason::storing);
  rig.commit_one();  // The append and the settlement; a crash follows.
  rig.restart();
  rig.hold_commits(false);
  rig.consume();
  EXPECT_EQ(rig.texts(), "good");
  rig.consume(10, 1'000, kDeadSubscription, kDeadPartition);
  EXPECT_EQ(rig.texts(), "bad");
}

TEST(PartitionDeadLetterTest, ACrashBeforeTheCommitLeavesTheMessageWhereItWas) {
  PartitionRig rig(exact_attempts());
  rig.subscribe(dead_lettering(1));
  watch_dead_letters(rig);
  rig.consume();
  rig.publish("k", {"bad", "good"});
  rig.hold_commits(true);
  rig.nack("bad");
  rig.restart();
  rig.hold_commits(false);
  rig.texts();
  rig.consume();  // It was delivered once, which is all that is allowed.
  EXPECT_EQ(rig.texts(), "good");
  EXPECT_EQ(rig.stats().dead_lettered, 1u);
}

TEST(PartitionDeadLetterTest, AnAckWhileTheDeadLetterIsUnderWayIsStale) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(1));
  rig.consume();
  rig.publish("k", {"bad"});
  rig.hold_commits(true);
  rig.nack("bad");
  rig.ack("bad");
  rig.hold_commits(false);
  EXPECT_EQ(rig.take<SettleReply>().back().outcomes.at(0), SettleOutcome::stale);
  EXPECT_EQ(rig.stats().dead_lettered, 1u);
  EXPECT_EQ(rig.stats().acked, 0u);
}

TEST(PartitionDeadLetterTest, WithoutTheTopicTheKeyStaysBlockedSaysSoAndGoesOnWhenThereIsOne) {
  PartitionRig rig;
  SubscriptionSetup setup = dead_lettering(1);
  setup.dead_letter_partitions = 0;
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"bad", "good"});
  rig.texts();
  rig.nack("bad");
  EXPECT_EQ(rig.texts(), "");
  EXPECT_EQ(rig.blocked_keys().at(0).reason, BlockReason::dead_letter_gone);
  setup.dead_letter_partitions = 1;
  rig.send(Reconfigure{setup});
  EXPECT_EQ(rig.texts(), "good");
}

TEST(PartitionDeadLetterTest, ATopicThatVanishedIsNoticedByTheAnswer) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(1));
  rig.consume();
  rig.publish("k", {"bad", "good"});
  rig.refuse_dead_letters(Error{ErrorCode::not_found, "gone"});
  rig.texts();
  rig.nack("bad");
  EXPECT_EQ(rig.blocked_keys().at(0).reason, BlockReason::dead_letter_gone);
  rig.refuse_dead_letters(std::nullopt);
  rig.send(Reconfigure{dead_lettering(1)});
  EXPECT_EQ(rig.texts(), "good");
}

TEST(PartitionDeadLetterTest, AFullStoreIsTriedAgainUntilThereIsRoom) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(1));
  rig.consume();
  rig.publish("k", {"bad", "good"});
  rig.refuse_dead_letters(Error{ErrorCode::resource_exhausted, "no space"});
  rig.texts();
  rig.nack("bad");
  rig.pass(5s);
  EXPECT_EQ(rig.texts(), "");
  rig.refuse_dead_letters(std::nullopt);
  rig.pass(1s);
  EXPECT_EQ(rig.texts(), "good");
}

TEST(PartitionDeadLetterTest, MessagesWithoutAKeyAreDeadLetteredToo) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(2));
  watch_dead_letters(rig);
  rig.consume();
  rig.publish("", {"bad"});
  rig.nack("bad");
  rig.pass(10s);
  EXPECT_EQ(rig.stats().dead_lettered, 1u);
  EXPECT_EQ(rig.texts(), "bad bad bad");
}

TEST(PartitionAttemptsTest, NobodySeesMoreThanTheMaximumOfDeliveriesWhateverCrashes) {
  PartitionRig rig(exact_attempts());
  rig.subscribe(dead_lettering(3));
  rig.consume();
  rig.publish("k", {"bad", "good"});
  std::uint32_t last = 0;
  int deliveries = 0;
  for (int crash = 0; crash < 5; ++crash) {
    for (const auto& received : rig.take_received()) {
      if (received.text != "bad") continue;
      ++deliveries;
      EXPECT_GT(received.delivery.attempt, last);
      last = received.delivery.attempt;
    }
    rig.restart();
    rig.consume();
  }
  EXPECT_EQ(deliveries, 3);
  EXPECT_EQ(rig.texts(), "good");
}

TEST(PartitionAttemptsTest,
     AfterACrashMessagesNearTheLastDeliveredOneMayBeginWithTheSecondAttempt) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(5));
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.texts();
  rig.restart();
  rig.consume();
  rig.ack("1");
  const auto received = rig.take_received();
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].delivery.attempt, 2u);
  EXPECT_EQ(received[1].delivery.attempt, 2u);
}

TEST(PartitionAttemptsTest, ASecondAttemptWaitsUntilItIsWrittenDown) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(5));
  rig.consume();
  rig.publish("k", {"1"});
  EXPECT_EQ(rig.texts(), "1");
  rig.hold_commits(true);
  rig.nack("1");
  EXPECT_EQ(rig.texts(), "");
  EXPECT_EQ(rig.blocked_keys().at(0).reason, BlockReason::storing);
  rig.hold_commits(false);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionAttemptsTest, AnAckWhileTheAttemptIsWrittenDownSettlesTheMessage) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(5));
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.texts();
  rig.hold_commits(true);
  rig.nack("1");
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
  rig.hold_commits(false);
  EXPECT_EQ(rig.texts(), "");
  rig.ack("2");
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "");
}

TEST(PartitionAttemptsTest, AttemptsAreNotCountedWhereNoPolicyAsksForIt) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1"});
  rig.nack("1");
  for (const auto& received : rig.take_received())
    EXPECT_EQ(received.delivery.attempt, 0u);
}

// ------------------------------------------------------------------------------------ parking

TEST(PartitionParkTest, AfterItsAttemptsAKeyIsOutOfTheWayUntilResumed) {
  PartitionRig rig;
  rig.subscribe(parking(2));
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.publish("x", {"x"});
  rig.nack("1");
  rig.nack("1");
  EXPECT_EQ(rig.texts(), "1 x 1");
  rig.ack("x");
  rig.pass(60s);
  EXPECT_EQ(rig.blocked_keys().at(0).reason, BlockReason::parked);
  EXPECT_EQ(rig.stats().parked_lanes, 1u);
  rig.texts();
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  const auto received = rig.take_received();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].text, "1");
  EXPECT_EQ(received[0].delivery.attempt, 1u);  // Anew.
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionParkTest, AParkedKeyStaysParkedAcrossARestart) {
  PartitionRig rig(exact_attempts());
  rig.subscribe(parking(1));
  rig.consume();
  rig.publish("", {"alone"});
  rig.nack("alone");
  rig.publish("k", {"1", "2"});
  rig.nack("1");
  rig.texts();
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "");
  EXPECT_EQ(rig.stats().parked_lanes, 2u);
  EXPECT_FALSE(rig.operate("k", Verb::skip_head));
  EXPECT_EQ(rig.texts(), "2");
  EXPECT_FALSE(rig.operate("", Verb::resume));
  EXPECT_EQ(rig.texts(), "alone");
}

TEST(PartitionParkTest, AHeadThatIsAckedLateLeavesThePark) {
  PartitionRig rig;
  rig.subscribe(parking(1));
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.nack("1");
  rig.texts();
  EXPECT_EQ(rig.ack("1"), SettleOutcome::done);
  EXPECT_EQ(rig.texts(), "2");
  EXPECT_EQ(rig.stats().parked_lanes, 0u);
}

TEST(PartitionSkipTest, AHeadThatHasFailedLongerThanAllowedIsSkippedAtItsNextFailure) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.failure_policy = FailurePolicy::skip_after;
  setup.config.skip_after = 25s;
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.texts();
  rig.pass(30s);  // Failed at 10, 20 and 30 seconds.
  EXPECT_EQ(rig.texts(), "1 1 1");
  rig.pass(10s);
  EXPECT_EQ(rig.texts(), "2");
  EXPECT_EQ(rig.stats().skipped, 1u);
  expect_conserved(rig.stats());
}

// ------------------------------------------------------------------------------------ verbs

TEST(PartitionVerbTest, APausedKeyKeepsItsLeaseAndStopsAfterItDurably) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.texts();
  EXPECT_FALSE(rig.operate("k", Verb::pause));
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "");
  EXPECT_EQ(rig.blocked_keys().at(0).reason, BlockReason::paused);
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "");
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionVerbTest, TheHeadOfAPausedKeyCanBeSkippedOrDeadLettered) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.dead_letter_topic = TopicNumber(2);
  setup.dead_letter_partitions = 1;
  rig.subscribe(setup);
  watch_dead_letters(rig);
  rig.consume();
  rig.publish("k", {"1", "2", "3", "4"});
  rig.operate("k", Verb::pause);
  rig.ack("1");
  rig.texts();
  EXPECT_FALSE(rig.operate("k", Verb::skip_head));
  EXPECT_EQ(rig.texts(), "");
  EXPECT_FALSE(rig.operate("k", Verb::dead_letter_head));
  EXPECT_EQ(rig.stats().skipped, 1u);
  EXPECT_EQ(rig.stats().dead_lettered, 1u);
  EXPECT_EQ(rig.texts(), "3");  // As a dead letter; the key is paused still.
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.texts(), "4");
}

TEST(PartitionVerbTest, VerbsThatMakeNoSenseSayWhy) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  EXPECT_EQ(rig.operate("k", Verb::pause)->code, ErrorCode::not_found);
  rig.publish("k", {"1"});
  EXPECT_EQ(rig.operate("k", Verb::resume)->code, ErrorCode::failed_precondition);
  EXPECT_EQ(rig.operate("k", Verb::skip_head)->code, ErrorCode::failed_precondition);
  EXPECT_EQ(rig.operate("k", Verb::dead_letter_head)->code, ErrorCode::failed_precondition);
}

TEST(PartitionVerbTest, BlockedKeysNameHeadReasonHolderAndHowManyWait) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.retry_policy = RetryPolicy{};
  rig.subscribe(setup);
  const ConsumerNumber consumer = rig.consume();
  rig.publish("first", {"1", "2", "3"});
  rig.pass(1s);
  rig.publish("second", {"a"});
  auto keys = rig.blocked_keys();
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].key, "first");
  EXPECT_EQ(keys[0].head_offset, Offset(1));
  EXPECT_NE(keys[0].head_id, MessageId());
  EXPECT_EQ(keys[0].reason, BlockReason::in_flight);
  EXPECT_EQ(keys[0].holder, consumer);
  EXPECT_EQ(keys[0].waiting, 2u);
  EXPECT_EQ(keys[1].key, "second");
  rig.nack("1");
  keys = rig.blocked_keys();
  EXPECT_EQ(keys[0].reason, BlockReason::backoff);
  EXPECT_EQ(keys[0].last_failure, "nack");
  EXPECT_EQ(keys[0].attempts, 1u);
}

}  // namespace
}  // namespace ordo::broker
