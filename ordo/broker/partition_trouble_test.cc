// What a partition does when something it relies on is gone, full or slow, and when its bounds are
// reached.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/broker/cursor_rows.h"
#include "ordo/broker/lane_tail.h"
#include "ordo/broker/message_cache.h"
#include "tests/support/partition_rig.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;
using Verb = OperateKey::Verb;

const Error kNoSpace{ErrorCode::resource_exhausted, "no space"};

// ------------------------------------------------------------------------------------ parked keys

TEST(PartitionTroubleTest, AKeyThatWasParkedBeforeARestartIsTriedAgainWhenResumed) {
  PartitionOptions options;
  options.delivered_ahead = 1;
  PartitionRig rig(options);
  rig.subscribe(parking(2));
  rig.consume();
  rig.publish("k", {"1", "2"});
  rig.nack("1");
  rig.nack("1");
  EXPECT_EQ(rig.texts(), "1 1");
  rig.restart();
  // Which message it was parked for is known when there is somebody to deliver to.
  EXPECT_EQ(rig.operate("k", Verb::resume)->code, ErrorCode::not_found);
  rig.consume();
  EXPECT_EQ(rig.texts(), "");
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.texts(), "1");
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
  EXPECT_EQ(rig.stats().parked_lanes, 0u);
}

TEST(PartitionTroubleTest, TheHeadOfAPausedKeyIsBroughtBackFromTheStoreForAnOperator) {
  PartitionOptions options;
  options.tail_bytes_max = 0;
  options.spill_chunk_offsets = 1;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  rig.consume();
  for (int i = 0; i < 6; ++i) {
    rig.publish("k", {numbered("k", i)});
    rig.publish("", {numbered("other", i)});
  }
  ASSERT_GT(rig.count_of_spills(), 0u);
  rig.ack("k0");
  EXPECT_FALSE(rig.operate("k", Verb::pause));
  rig.ack("k1");
  EXPECT_EQ(rig.operate("k", Verb::skip_head)->code, ErrorCode::unavailable);
  EXPECT_FALSE(rig.operate("k", Verb::skip_head));
  rig.texts();
  EXPECT_FALSE(rig.operate("k", Verb::resume));
  EXPECT_EQ(rig.texts(), "k3");
}

TEST(PartitionTroubleTest, AnExpiredMessageLeavesNoRowThoughNobodyLookedAtItSinceTheStart) {
  PartitionOptions options;
  options.delivered_ahead = 1;
  PartitionRig rig(options);
  SubscriptionSetup setup = parking(2);
  setup.config.message_retention = 600s;
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"tried"});
  rig.nack("tried");
  rig.publish("", {"parked"});
  rig.nack("parked");
  rig.nack("parked");
  rig.pass(1s);
  rig.restart();
  rig.pass(700s);
  rig.restart();
  std::size_t count = 0;
  for (const auto& [key, value] : rig.rows_at_start()) {
    if (key.kind == static_cast<std::uint8_t>(RowKind::attempts)) ++count;
    if (key.kind == static_cast<std::uint8_t>(RowKind::held_lane)) ++count;
  }
  EXPECT_EQ(count, 0u);
}

// ------------------------------------------------------------------------------------ windows

TEST(PartitionTroubleTest, NoMessageIsGivenUpForTheFailuresOfThoseBeforeIt) {
  PartitionRig rig;
  SubscriptionSetup setup = dead_lettering(3);
  setup.config.ordered_window = 10;
  rig.subscribe(setup);
  rig.consume();
  std::vector<std::string> texts;
  for (int i = 0; i < 30; ++i)
    texts.push_back(numbered("m", i));
  rig.publish("k", texts);
  for (const std::string& text : texts) {  // Each fails once.
    rig.nack(text);
    rig.ack(text);
  }
  EXPECT_EQ(rig.stats().acked, 30u);
  EXPECT_EQ(rig.stats().dead_lettered, 0u);
}

TEST(PartitionTroubleTest, WhatMayBeDeliveredOnceOnlyIsNeverOutBehindAnother) {
  PartitionRig rig;
  SubscriptionSetup setup = parking(1);
  setup.config.ordered_window = 10;
  rig.subscribe(setup);
  rig.consume();
  rig.publish("k", {"1", "2"});
  EXPECT_EQ(rig.texts(), "1");
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
}

// ------------------------------------------------------------------------------------ a full store

TEST(PartitionTroubleTest, OffsetsThatNeverExistedCostNoMemory) {
  MessageCache cache(1 << 20, 1 << 20);
  const std::vector<MessageBody> one(1, MessageBody{"x", 0, 0});
  cache.append(MessageBatch::make(one, Offset(1), {}));
  const Offset far(std::uint64_t{1} << 26);  // So many publishes failed.
  cache.append(MessageBatch::make(one, far, {}));
  EXPECT_TRUE(cache.find(far));
  EXPECT_FALSE(
      cache.covers(Offset(far.value() - 1)));  // Somebody who is there reads on in the store.
}

TEST(PartitionTroubleTest, PublishesThatFailedForLongArePassedOver) {
  PartitionOptions options;
  options.cache_bytes_max = 4'096;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"before"});
  rig.hold_commits(true);
  const std::vector<std::string> texts(1'000, "never");
  for (int i = 0; i < 100; ++i) {
    rig.publish("k", texts);
    rig.commit_one(kNoSpace);
  }
  rig.hold_commits(false);
  rig.publish("k", {"after"});
  EXPECT_EQ(rig.texts(), "before");
  rig.ack("before");
  EXPECT_EQ(rig.texts(), "after");
  rig.ack("after");
  EXPECT_EQ(rig.stats().acked_intervals, 0u);
  EXPECT_EQ(rig.stats().unread, 0u);
}

TEST(PartitionTroubleTest, WhatASeekMadeVoidIsWrittenDownIfTheSeekFailsToo) {
  for (const bool both_fail : {false, true}) {
    PartitionRig rig;
    rig.subscribe(dead_lettering(5));
    const WallTime start = rig.now().wall;
    rig.publish("k", {"1"});
    rig.hold_commits(true);
    rig.consume();
    rig.send(SeekToTime{rig.next_request(), kSubscription, start});
    ASSERT_EQ(rig.held_commit_count(), 2u);
    rig.commit_one(both_fail ? std::optional(kNoSpace) : std::nullopt);
    rig.commit_one(kNoSpace);
    rig.hold_commits(false);
    EXPECT_TRUE(rig.take<Sought>().at(0).error);
    rig.pass(2s);
    EXPECT_EQ(rig.texts(), "1");
    rig.restart();
    rig.consume();
    const auto received = rig.take_received();
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].delivery.attempt, 2u) << both_fail;
  }
}

TEST(PartitionTroubleTest, ATailThatWasNotKeptIsFoundAgainInTheLog) {
  PartitionOptions options;
  options.tail_bytes_max = 0;
  options.spill_chunk_offsets = 2;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  rig.consume();
  constexpr int kCount = 40;
  for (int i = 0; i < kCount; ++i) {
    rig.publish("k", {numbered("k", i)});
    rig.publish("", {numbered("other", i)});
    rig.ack(numbered("other", i));
  }
  ASSERT_GT(rig.count_of_spills(), 0u);
  for (std::uint64_t lane = 0; lane < 2 * kCount; ++lane)
    (void)rig.store().erase_spill({kSubscription, kTopicPartition, lane, 0}, 1'000);
  rig.texts();
  for (int i = 0; i < kCount; ++i) {
    rig.ack(numbered("k", i));
    const std::string next = rig.texts();
    ASSERT_EQ(next, i + 1 < kCount ? numbered("k", i + 1) : "");
  }
  EXPECT_EQ(rig.stats().lanes, 0u);
}

// Chunks of tails from the second of a lane on cannot be had as they were written.
class LosingChunks final : public StoreFaults {
 public:
  std::optional<Error> on_spill(const SpillKey& key) override {
    if (!loses || key.chunk == 0) return std::nullopt;
    return Error{code, "the chunk is lost"};
  }
  bool loses = false;
  ErrorCode code = ErrorCode::not_found;
};

TEST(PartitionTroubleTest, ATailOfWhichAChunkIsLostOrDamagedIsFoundAgainInTheLog) {
  for (const ErrorCode code : {ErrorCode::not_found, ErrorCode::data_loss}) {
    LosingChunks faults;
    faults.code = code;
    PartitionOptions options;
    options.tail_bytes_max = 0;
    options.spill_chunk_offsets = 2;
    PartitionRig rig(options, &faults);
    rig.subscribe(ordered());
    rig.consume();
    constexpr int kCount = 30;
    for (int i = 0; i < kCount; ++i) {
      for (const char* key : {"a", "b", "c"})  // So that a run of offsets is one message.
        rig.publish(key, {numbered(key, i)});
    }
    ASSERT_GT(rig.count_of_spills(), 6u);
    EXPECT_EQ(rig.texts(), "a0 b0 c0");
    faults.loses = true;
    for (int i = 0; i < kCount; ++i) {
      for (const char* key : {"b", "a", "c"}) {
        ASSERT_EQ(rig.ack(numbered(key, i)), SettleOutcome::done);
        rig.pass(2s);
        ASSERT_EQ(rig.texts(), i + 1 < kCount ? numbered(key, i + 1) : "");
      }
    }
    EXPECT_EQ(rig.stats().routed, 3u * kCount);
    EXPECT_EQ(rig.stats().acked, 3u * kCount);
    EXPECT_EQ(rig.stats().lanes, 0u);
  }
}

// ------------------------------------------------------------------------------------ bounds

TEST(PartitionTroubleTest, TailsOfManyKeysStayWithinTheirBytes) {
  constexpr std::size_t kBytesMax = 64 << 10;
  constexpr std::size_t kTails = 2'000;
  TailPool pool(kBytesMax, 512);
  std::vector<LaneTail> tails(kTails);
  std::uint64_t offset = 0;
  for (int round = 0; round < 400; ++round) {
    for (LaneTail& tail : tails) {
      pool.push(tail, Offset(++offset));
      if (pool.wants_to_spill(tail)) (void)pool.spill(tail);
    }
  }
  EXPECT_LE(pool.in_memory_bytes(), 2 * kBytesMax + kTails * 192);
}

TEST(PartitionTroubleTest, CreditIsReturnedWhileTheLeasesAreAtTheirBound) {
  PartitionOptions options;
  options.leases_max = 1;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  rig.consume(5, 1'000'000);
  rig.publish("", {"1", "2"});
  EXPECT_EQ(rig.texts(), "1");
  EXPECT_EQ(rig.take<ReturnCredit>().size(), 1u);  // Other partitions may have something for it.
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionTroubleTest, CreditIsReturnedWhileTheLanesAreAtTheirBound) {
  PartitionOptions options;
  options.lanes_max = 1;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  rig.consume(5, 1'000'000);
  rig.publish("", {"1", "2"});
  EXPECT_EQ(rig.texts(), "1");
  EXPECT_EQ(rig.take<ReturnCredit>().size(), 1u);
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionTroubleTest, CreditIsReturnedWhileTheLogCannotBeRead) {
  class Unreadable final : public StoreFaults {
   public:
    std::optional<Error> on_read(PartitionAddress, Offset) override {
      if (!fails) return std::nullopt;
      return Error{ErrorCode::unavailable, "the read failed"};
    }
    bool fails = false;
  } faults;
  PartitionRig rig({}, &faults);
  rig.subscribe(ordered());
  rig.publish("", {"1"});
  rig.restart();
  faults.fails = true;
  rig.consume(5, 1'000'000);
  EXPECT_EQ(rig.take<ReturnCredit>().size(), 1u);
  rig.pass(3s);
  EXPECT_EQ(rig.take<ReturnCredit>().size(), 3u);
  faults.fails = false;
  rig.pass(1s);
  EXPECT_EQ(rig.texts(), "1");
}

// ------------------------------------------------------------------------------------ cold keys

TEST(PartitionTroubleTest, KeysThatComeBackAllAtOnceAreNotReadAgainAndAgain) {
  PartitionOptions options;
  options.cache_bytes_max = 1;
  options.ready_bytes_max = 20'000;
  options.read_messages_max = 100;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  const ConsumerNumber first = rig.consume();
  constexpr int kKeys = 3'000;
  for (int i = 0; i < kKeys; ++i)
    rig.publish(numbered("k", i), {numbered("m", i)});
  ASSERT_EQ(rig.take_received().size(), kKeys);
  rig.send(CloseConsumer{first, CloseConsumer::How::release});
  const std::uint64_t reads_before = rig.count_of_reads();
  const ConsumerNumber second = rig.consume(10, 1'000'000);
  std::size_t count = 0;
  for (int round = 0; round < kKeys && count < kKeys; ++round) {
    for (const PartitionRig::Received& received : rig.take_received()) {
      rig.ack(received.text);
      ++count;
    }
    rig.allow(second, 10, 1'000'000);
  }
  EXPECT_EQ(count, kKeys);
  EXPECT_LT(rig.count_of_reads() - reads_before, kKeys / 4u);
}

// ------------------------------------------------------------------------------------ seeks

TEST(PartitionTroubleTest, ASeekIsNotKeptWaitingByDeadLettersThatFollowOneAnother) {
  PartitionRig rig;
  rig.subscribe(dead_lettering(1));
  const WallTime start = rig.now().wall;
  rig.consume();
  constexpr int kKeys = 10;
  for (int i = 0; i < kKeys; ++i)
    rig.publish(numbered("k", i), {numbered("m", i)});
  rig.hold_commits(true);
  rig.nack("m0");  // Its dead letter is under way.
  rig.send(SeekToTime{rig.next_request(), kSubscription, start});
  for (int i = 1; i < kKeys; ++i) {
    rig.nack(numbered("m", i));
    rig.commit_one();
  }
  EXPECT_EQ(rig.take<Sought>().size(), 1u);
  rig.hold_commits(false);
}

}  // namespace
}  // namespace ordo::broker
