// Messages that cannot be read any more, or are not what was published, and their keys.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/broker/cursor_rows.h"
#include "ordo/broker/filter.h"
#include "tests/support/partition_rig.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;
using Verb = OperateKey::Verb;

// Three messages of a key and one beside it; the second cannot be read, which is known.
void lose_second_of_three(PartitionRig& rig) {
  rig.consume();
  for (const char* text : {"1", "2", "3"})
    rig.publish("k", {text});
  rig.publish("other", {"other"});
  ASSERT_TRUE(rig.damage(Offset(2)));
  rig.ack("1");
  rig.ack("other");
  EXPECT_EQ(rig.texts(), "1 other");
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
}

TEST(PartitionDamageTest, AMessageThatCannotBeReadHoldsUpNobodyAndIsListed) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  rig.publish("a", {"before"});
  rig.publish("k", {"damaged"});
  rig.publish("b", {"after"});
  ASSERT_TRUE(rig.damage(Offset(2)));
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "before after");
  const std::optional<KeyFacts> blocked = rig.find_blocked("");
  ASSERT_TRUE(blocked);
  EXPECT_EQ(blocked->reason, BlockReason::data_loss);
  EXPECT_EQ(blocked->head_offset, Offset(2));
  EXPECT_EQ(blocked->last_failure, "data loss: offset 2 cannot be read");
  rig.ack("before");
  rig.ack("after");
  rig.pass(60s);
  EXPECT_EQ(rig.stats().waiting, 1u);  // It is not settled,
  rig.restart();
  rig.consume();
  EXPECT_TRUE(rig.find_blocked(""));  // nor forgotten.
  EXPECT_EQ(rig.operate("", Verb::dead_letter_head)->code, ErrorCode::failed_precondition);
  EXPECT_FALSE(rig.operate("", Verb::skip_head));
  EXPECT_FALSE(rig.find_blocked(""));
  EXPECT_EQ(rig.stats().skipped, 1u);
  EXPECT_EQ(rig.stats().acked_intervals, 0u);
}

TEST(PartitionDamageTest, AKeyThatIsKnownWaitsForItsMessageThatCannotBeReadAlsoAfterARestart) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  lose_second_of_three(rig);
  EXPECT_EQ(rig.find_blocked("k")->waiting, 1u);
  rig.restart();
  rig.consume();
  rig.publish("more", {"more"});
  EXPECT_EQ(rig.texts(), "more");
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
  EXPECT_EQ(rig.find_blocked("k")->head_offset, Offset(2));
  EXPECT_FALSE(rig.operate("k", Verb::skip_head));
  EXPECT_EQ(rig.texts(), "3");
}

TEST(PartitionDamageTest, WhatCanBeReadAgainIsDeliveredWhenItIsResumed) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  lose_second_of_three(rig);
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);  // It was tried.
  ASSERT_TRUE(rig.damage(Offset(2)));                                // The bit is back.
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionDamageTest, AKeyIsFreeAfterARestartThatCanReadItAgain) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  lose_second_of_three(rig);
  ASSERT_TRUE(rig.damage(Offset(2)));
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionDamageTest, MessagesBesideEachOtherAreListedAndSkippedTogether) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  rig.publish("k", {"1", "2", "3", "4", "5"});  // One batch: it is read as a whole, or not.
  rig.publish("other", {"other"});
  ASSERT_TRUE(rig.damage(Offset(3)));
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "other");
  const std::optional<KeyFacts> blocked = rig.find_blocked("");
  ASSERT_TRUE(blocked);
  EXPECT_EQ(blocked->waiting, 4u);
  EXPECT_EQ(blocked->last_failure, "data loss: offset 1 to 5 cannot be read");
  EXPECT_FALSE(rig.operate("", Verb::skip_head));
  EXPECT_FALSE(rig.find_blocked(""));
  EXPECT_EQ(rig.stats().skipped, 5u);
  EXPECT_EQ(rig.stats().waiting, 0u);
}

TEST(PartitionDamageTest, AWindowIsNotHeldUpByALaterMessageThatCannotBeReadNorIsARestart) {
  PartitionRig rig(cold());
  SubscriptionSetup setup = ordered();
  setup.config.ordered_window = 2;
  rig.subscribe(setup);
  const ConsumerNumber consumer = rig.consume(1, 1'000);
  rig.publish("k", {"1"});
  rig.consume();
  rig.publish("k", {"damaged"});  // It waits for the consumer that holds the first.
  rig.publish("other", {"other"});
  ASSERT_TRUE(rig.damage(Offset(2)));
  rig.allow(consumer, 1, 1'000);
  EXPECT_EQ(rig.texts(), "1 other");
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
  rig.pass(1s);
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "1 other");
  rig.nack("1");
  EXPECT_EQ(rig.texts(), "1");
  rig.ack("1");
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
}

TEST(PartitionDamageTest, WhatCannotBeReadCannotBeDeadLettered) {
  PartitionRig rig(cold());
  rig.subscribe(parking(5));
  rig.consume();
  rig.publish("k", {"1"});
  rig.publish("k", {"2"});
  rig.publish("other", {"other"});
  EXPECT_FALSE(rig.operate("k", Verb::pause));
  rig.ack("1");
  ASSERT_TRUE(rig.damage(Offset(2)));
  EXPECT_EQ(rig.operate("k", Verb::dead_letter_head)->code, ErrorCode::data_loss);
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::paused);
}

TEST(PartitionDamageTest, WhatCannotBeReadExpiresLikeOthers) {
  PartitionRig rig(cold());
  SubscriptionSetup setup = ordered();
  setup.config.message_retention = 600s;
  rig.subscribe(setup);
  rig.publish("k", {"1", "2"});
  rig.publish("other", {"other"});
  ASSERT_TRUE(rig.damage(Offset(1)));
  rig.restart();
  rig.consume();
  EXPECT_TRUE(rig.find_blocked(""));
  rig.pass(700s);
  EXPECT_FALSE(rig.find_blocked(""));
  EXPECT_EQ(rig.stats().waiting + rig.stats().lanes, 0u);
}

TEST(PartitionDamageTest, ASeekBackDeliversWhatComesBeforeTheMessageThatCannotBeRead) {
  PartitionRig rig(cold());
  SubscriptionSetup setup = ordered();
  setup.config.retain_acked_messages = true;
  rig.subscribe(setup);
  rig.consume();
  for (const char* text : {"1", "2", "3"})
    rig.publish("k", {text});
  ASSERT_TRUE(rig.damage(Offset(2)));
  EXPECT_EQ(rig.texts(), "1");
  rig.ack("1");
  rig.send(SeekToTime{rig.next_request(), kSubscription, WallTime{}});
  ASSERT_EQ(rig.take<Sought>().size(), 1u);
  rig.consume();
  EXPECT_EQ(rig.texts(), "1");
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "");
  EXPECT_TRUE(rig.find_blocked("k"));
}

TEST(PartitionDamageTest, ASnapshotCanBeTakenThoughItsOldestMessageCannotBeRead) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  rig.publish("k", {"1"});
  rig.publish("other", {"other"});
  ASSERT_TRUE(rig.damage(Offset(1)));
  rig.send(TakeSnapshot{rig.next_request(), kSubscription, CursorNumber(20)});
  EXPECT_FALSE(rig.take<SnapshotTaken>().at(0).error);
}

TEST(PartitionDamageTest, AKeyIsFreeAfterARestartThatCanReadAnUnwantedMessageAgain) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  lose_second_of_three(rig);
  ASSERT_TRUE(rig.damage(Offset(2)));
  rig.setup().filter = std::make_shared<const Filter>(*Filter::parse("attributes:colour"));
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.stats().filtered, 2u);
  EXPECT_EQ(rig.stats().lanes, 0u);
}

TEST(PartitionDamageTest, OffsetsThatNeverCameToBeAreNotWaitedForThoughWhatFollowsCouldNotBeRead) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  rig.hold_commits(true);
  rig.publish("k", {"never", "never either"});
  rig.commit_one(Error{ErrorCode::resource_exhausted, "no space"});
  rig.hold_commits(false);
  rig.publish("k", {"damaged"});
  ASSERT_TRUE(rig.damage(Offset(3)));
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.find_blocked("")->last_failure, "data loss: offset 1 to 3 cannot be read");
  ASSERT_TRUE(rig.damage(Offset(3)));
  EXPECT_FALSE(rig.operate("", Verb::resume));
  EXPECT_EQ(rig.texts(), "damaged");
  rig.ack("damaged");
  const SubscriptionStats stats = rig.stats();
  EXPECT_EQ(stats.routed, 1u);
  EXPECT_EQ(stats.waiting + stats.lanes + stats.unread, 0u);
}

TEST(PartitionDamageTest, AKeyDoesNotWaitForWhatARepairGaveUp) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  rig.publish("k", {"1"});
  rig.hold_commits(true);
  rig.publish("k", {"given up"});
  rig.commit_one(Error{ErrorCode::resource_exhausted, "no space"});
  rig.hold_commits(false);
  rig.publish("k", {"3"});
  // As it is after a repair: a row of a message of which nothing is left, not even the damage.
  const RowOwner owner{kSubscription, kTopicPartition};
  CommitBatch row;
  const HeldLaneRow lost{"k", Offset(2), LaneHold::data_loss};
  row.emplace_back(PutRow{hold_key(owner, lost), encode_number(hold_value(lost))});
  ASSERT_TRUE(rig.store().commit(row));
  rig.restart();
  rig.consume();
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "1 3");
  rig.ack("3");
  EXPECT_EQ(rig.stats().lanes, 0u);
  rig.pass(2s);
  rig.restart();
  for (const auto& [key, value] : rig.rows_at_start())
    EXPECT_NE(key.kind, static_cast<std::uint8_t>(RowKind::held_lane));
}

// What earlier versions wrote: one row for a key, where its pause is written too.
TEST(PartitionDamageTest, APauseDoesNotMakeARestartForgetWhatAnEarlierVersionCouldNotRead) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  lose_second_of_three(rig);
  const RowOwner owner{kSubscription, kTopicPartition};
  const HeldLaneRow lost{"k", Offset(2), LaneHold::data_loss};
  CommitBatch rows;
  rows.emplace_back(EraseRow{hold_key(owner, lost)});
  rows.emplace_back(
      PutRow{row_key(owner, RowKind::held_lane, 0, "k"), encode_number(hold_value(lost))});
  ASSERT_TRUE(rig.store().commit(rows));
  rig.restart();
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
  EXPECT_FALSE(rig.operate("k", Verb::pause));
  rig.restart();
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  rig.consume();
  EXPECT_EQ(rig.texts(), "");
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
  EXPECT_FALSE(rig.operate("k", Verb::skip_head));
  EXPECT_EQ(rig.texts(), "3");
  rig.pass(1s);
  rig.restart();
  for (const auto& [key, value] : rig.rows_at_start())
    EXPECT_NE(key.kind, static_cast<std::uint8_t>(RowKind::held_lane));
}

// ------------------------------------------------------------------------------------ pauses

TEST(PartitionDamageTest, APauseDoesNotMakeARestartForgetWhatCannotBeRead) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  lose_second_of_three(rig);
  EXPECT_FALSE(rig.operate("k", Verb::pause));
  for (const bool is_looked_at : {false, true}) {
    rig.restart();
    if (is_looked_at) rig.consume();
    EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::paused);
    EXPECT_FALSE(rig.operate("k", Verb::resume));
    if (!is_looked_at) rig.consume();
    EXPECT_EQ(rig.texts(), "");
    EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
    EXPECT_EQ(rig.find_blocked("k")->head_offset, Offset(2));
    EXPECT_FALSE(rig.operate("k", Verb::pause));
  }
  EXPECT_FALSE(rig.operate("k", Verb::skip_head));
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.texts(), "3");
}

TEST(PartitionDamageTest, NothingIsLeftOnDiskOfWhatWasSkippedWhilePaused) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  lose_second_of_three(rig);
  EXPECT_FALSE(rig.operate("k", Verb::pause));
  EXPECT_FALSE(rig.operate("k", Verb::skip_head));
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  rig.pass(1s);
  rig.restart();
  for (const auto& [key, value] : rig.rows_at_start())
    EXPECT_NE(key.kind, static_cast<std::uint8_t>(RowKind::held_lane));
}

// ------------------------------------------------------------------------------------ many

// The third of four messages of a key cannot be read, and then the second, which comes first again.
void lose_third_then_second(PartitionRig& rig) {
  SubscriptionSetup setup = ordered();
  setup.config.retain_acked_messages = true;
  rig.subscribe(setup);
  rig.consume();
  for (const char* text : {"1", "2", "3", "4"})
    rig.publish("k", {text});
  rig.publish("other", {"other"});
  ASSERT_TRUE(rig.damage(Offset(3)));
  rig.ack("1");
  rig.ack("2");
  EXPECT_EQ(rig.texts(), "1 other 2");
  EXPECT_EQ(rig.find_blocked("k")->head_offset, Offset(3));
  rig.send(SeekToTime{rig.next_request(), kSubscription, WallTime{}});
  EXPECT_EQ(rig.texts(), "1 other");
  ASSERT_TRUE(rig.damage(Offset(2)));
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "");
}

// Skips them one by one; then the key goes on.
void skip_both(PartitionRig& rig) {
  for (const std::uint64_t offset : {2u, 3u}) {
    EXPECT_EQ(rig.find_blocked("k")->head_offset, Offset(offset));
    EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
    EXPECT_FALSE(rig.operate("k", Verb::skip_head));
  }
  EXPECT_EQ(rig.texts(), "4");
}

TEST(PartitionDamageTest, AKeyThatWaitsForAMessageAlsoWaitsForAnotherBeforeIt) {
  PartitionRig rig(cold());
  lose_third_then_second(rig);
  skip_both(rig);
}

TEST(PartitionDamageTest, ARestartKnowsAllMessagesOfAKeyThatCouldNotBeRead) {
  PartitionRig rig(cold());
  lose_third_then_second(rig);
  rig.pass(1s);
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "other");
  skip_both(rig);
}

// ------------------------------------------------------------------------------------ delivery

TEST(PartitionDamageTest, WhatIsFoundDamagedAtDeliveryUsesNoCreditAndHoldsUpItsKeyAlone) {
  for (const std::uint32_t window : {1u, 2u}) {
    PartitionRig rig(cold());
    SubscriptionSetup setup = ordered();
    setup.config.ordered_window = window;
    rig.subscribe(setup);
    rig.publish("k", {"damaged", "behind"});
    rig.publish("other", {"other"});
    rig.restart();
    rig.garble("damaged");
    const ConsumerNumber consumer = rig.consume(1, 1'000);
    EXPECT_EQ(rig.texts(), "other");
    const auto kept_back = rig.take<KeptBack>();
    ASSERT_EQ(kept_back.size(), 1u);
    EXPECT_EQ(kept_back[0].consumer, consumer);
    EXPECT_EQ(kept_back[0].offset, Offset(1));
    EXPECT_EQ(kept_back[0].key, "k");
    const std::optional<KeyFacts> blocked = rig.find_blocked("k");
    ASSERT_TRUE(blocked);
    EXPECT_EQ(blocked->reason, BlockReason::data_loss);
    EXPECT_EQ(blocked->head_offset, Offset(1));
    EXPECT_EQ(blocked->waiting, 1u);
    EXPECT_FALSE(rig.operate("k", Verb::skip_head));
    rig.ack("other");
    rig.allow(consumer, 1, 1'000);
    EXPECT_EQ(rig.texts(), "behind");
  }
}

TEST(PartitionDamageTest, WhatIsFoundDamagedAtDeliveryIsReadAgainWhenItIsResumed) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  rig.publish("k", {"damaged"});
  rig.publish("other", {"other"});
  rig.restart();
  rig.garble("damaged");
  rig.consume();
  EXPECT_EQ(rig.texts(), "other");
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
  EXPECT_EQ(rig.take<KeptBack>().size(), 2u);
  rig.garble("");
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.texts(), "damaged");
}

TEST(PartitionDamageTest, WhatIsFoundDamagedWithoutAKeyIsListedAndCanBeSkipped) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  rig.publish("", {"damaged"});
  rig.publish("", {"free"});
  rig.restart();
  rig.garble("damaged");
  rig.consume(1, 1'000);
  EXPECT_EQ(rig.texts(), "free");
  EXPECT_EQ(rig.find_blocked("")->reason, BlockReason::data_loss);
  EXPECT_FALSE(rig.operate("", Verb::skip_head));
  EXPECT_FALSE(rig.find_blocked(""));
  EXPECT_EQ(rig.stats().skipped, 1u);
}

TEST(PartitionDamageTest, WhatIsFoundDamagedIsNotDeadLettered) {
  PartitionRig rig(cold());
  rig.subscribe(dead_lettering(1));
  rig.consume();
  rig.publish("k", {"damaged", "behind"});
  rig.publish("other", {"other"});
  rig.garble("damaged");
  rig.nack("damaged");
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
  EXPECT_EQ(rig.take<KeptBack>().size(), 1u);
  EXPECT_EQ(rig.stats().dead_lettered, 0u);
  EXPECT_EQ(rig.texts(), "damaged other");
  rig.garble("");
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.stats().dead_lettered, 1u);
  EXPECT_EQ(rig.texts(), "behind");
}

TEST(PartitionDamageTest, WhatAFilterRejectsIsNotDeadLetteredThoughItCouldNotBeReadAtFirst) {
  PartitionRig rig(cold());
  SubscriptionSetup setup = dead_lettering(1);
  setup.filter = std::make_shared<const Filter>(*Filter::parse("NOT attributes:colour"));
  rig.subscribe(setup);
  rig.publish("k", {"unwanted"});
  rig.publish("k", {"unwanted too"});
  ASSERT_TRUE(rig.damage(Offset(1)));
  rig.consume();
  rig.setup().filter = std::make_shared<const Filter>(*Filter::parse("attributes:colour"));
  rig.pass(1s);
  rig.restart();  // It counts as delivered, though nobody knows.
  rig.consume();
  rig.texts();
  EXPECT_TRUE(rig.find_blocked(""));
  ASSERT_TRUE(rig.damage(Offset(1)));
  EXPECT_FALSE(rig.operate("", Verb::resume));
  EXPECT_EQ(rig.stats().dead_lettered, 0u);
  EXPECT_EQ(rig.stats().filtered, 2u);
  EXPECT_EQ(rig.stats().waiting + rig.stats().lanes, 0u);
}

TEST(PartitionDamageTest, AFilterDoesNotSettleWhatIsNotAsItWasPublished) {
  PartitionRig rig(cold());
  SubscriptionSetup setup = ordered();
  setup.filter = std::make_shared<const Filter>(*Filter::parse("attributes:colour"));
  rig.subscribe(setup);
  rig.publish("k", {"damaged"});
  rig.publish("other", {"other"});
  rig.restart();
  rig.garble("damaged");
  rig.consume();
  EXPECT_EQ(rig.stats().filtered, 1u);
  EXPECT_EQ(rig.find_blocked("k")->reason, BlockReason::data_loss);
  rig.garble("");
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.stats().filtered, 2u);  // It can be judged again,
  EXPECT_EQ(rig.texts(), "");           // and is not wanted.
  EXPECT_EQ(rig.stats().waiting + rig.stats().lanes, 0u);
}

}  // namespace
}  // namespace ordo::broker
