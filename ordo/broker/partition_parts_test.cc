// The parts a partition is made of, each against something simpler.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/broker/acked_intervals.h"
#include "ordo/broker/consumers.h"
#include "ordo/broker/lane_tail.h"
#include "ordo/broker/message_cache.h"

namespace ordo::broker {
namespace {

constexpr RowOwner kOwner{CursorNumber(1), {TopicNumber(1), 0}};

void store_rows(const CommitBatch& batch, std::map<RowKey, std::string>& rows) {
  for (const CommitOp& op : batch) {
    if (const auto* put = std::get_if<PutRow>(&op)) rows[put->key] = put->value;
    if (const auto* erase = std::get_if<EraseRow>(&op)) rows.erase(erase->key);
  }
}

// Goal: the rows written after each change say what is settled, whatever the order and whichever
// commits failed and were made again. Method: a set of offsets, and a map in place of a store.
TEST(AckedIntervalsTest, RowsSayWhatASetOfOffsetsSays) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    AckedIntervals acked(Offset(1));
    std::set<std::uint64_t> settled;
    std::map<RowKey, std::string> rows;
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t begin = 1 + random() % 60;
      const std::uint64_t end = begin + 1 + random() % 3;
      acked.add(Offset(begin), Offset(end));
      for (std::uint64_t at = begin; at < end; ++at)
        settled.insert(at);
      const std::vector<std::uint64_t> touched = acked.take_touched();
      if (random() % 4 == 0) {
        acked.touch(touched);  // The commit failed.
        continue;
      }
      CommitBatch batch;
      acked.append_rows(kOwner, touched, batch);
      EXPECT_LE(batch.size(), 20u);
      store_rows(batch, rows);
      const AckedIntervals again(read_cursor_rows(rows, kOwner), Offset(1));
      for (std::uint64_t at = 1; at < 70; ++at) {
        ASSERT_EQ(acked.contains(Offset(at)), settled.contains(at)) << "seed " << seed;
        ASSERT_EQ(again.contains(Offset(at)), settled.contains(at)) << "seed " << seed;
      }
      ASSERT_EQ(again.low_water(), acked.low_water());
    }
  }
}

TEST(AckedIntervalsTest, ABatchOfContiguousAcksIsOneRow) {
  AckedIntervals acked(Offset(1));
  for (std::uint64_t at = 1; at <= 1'000; ++at)
    acked.add(Offset(at), Offset(at + 1));
  EXPECT_EQ(acked.take_touched().size(), 1u);
  EXPECT_EQ(acked.low_water(), Offset(1'001));
}

TEST(AckedIntervalsTest, TheFirstOpenOffsetSkipsWhatIsSettled) {
  AckedIntervals acked(Offset(3));
  acked.add(Offset(5), Offset(8));
  EXPECT_EQ(acked.first_open(Offset(1)), Offset(3));
  EXPECT_EQ(acked.first_open(Offset(4)), Offset(4));
  EXPECT_EQ(acked.first_open(Offset(6)), Offset(8));
}

// Goal: a tail gives back what was pushed, in order, whatever was spilled between.
TEST(LaneTailTest, GivesBackWhatAQueueWouldWhateverIsSpilled) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    TailPool pool(random() % 400, 1 + random() % 5);
    LaneTail tail;
    std::deque<std::uint64_t> queue;
    std::map<std::uint64_t, std::string> spilled;
    std::uint64_t next = 1;
    for (int i = 0; i < 500; ++i) {
      if (random() % 5 < 3) {
        next += random() % 3 == 0 ? 2 : 1;
        pool.push(tail, Offset(next));
        queue.push_back(next);
        if (pool.wants_to_spill(tail)) {
          std::uint64_t chunk = tail.spilled_first + tail.spilled_chunks;
          for (std::string& bytes : pool.spill(tail))
            spilled[chunk++] = std::move(bytes);
        }
      } else if (!queue.empty()) {
        if (pool.front_is_spilled(tail)) {
          const std::uint64_t chunk = tail.spilled_first;
          ASSERT_TRUE(pool.refill(tail, spilled.at(chunk)));
          spilled.erase(chunk);
        }
        ASSERT_EQ(pool.front(tail), Offset(queue.front())) << "seed " << seed;
        ASSERT_EQ(pool.pop(tail), Offset(queue.front()));
        queue.pop_front();
      }
      ASSERT_EQ(tail.count, queue.size());
    }
    pool.clear(tail);
    EXPECT_EQ(pool.in_memory_bytes(), 0u);
  }
}

TEST(LaneTailTest, OffsetsThatFollowEachOtherAreOneRun) {
  TailPool pool(1 << 20, 512);
  LaneTail tail;
  for (std::uint64_t at = 1; at <= 100'000; ++at)
    pool.push(tail, Offset(at));
  EXPECT_LE(pool.in_memory_bytes(), 64u);
  for (std::uint64_t at = 1; at <= 100'000; ++at)
    ASSERT_EQ(pool.pop(tail), Offset(at));
}

TEST(LaneTailTest, BytesThatAreNoChunkAreRefused) {
  TailPool pool(0, 1);
  LaneTail tail;
  pool.push(tail, Offset(1));
  pool.push(tail, Offset(3));
  ASSERT_TRUE(pool.wants_to_spill(tail));
  pool.spill(tail);
  pool.pop(tail);
  EXPECT_FALSE(pool.refill(tail, "short"));
  EXPECT_FALSE(pool.refill(tail, ""));
}

std::shared_ptr<MessageBatch> batch_at(std::uint64_t first, std::size_t count) {
  return MessageBatch::make(std::vector<MessageBody>(count, MessageBody{"body", 0, 0}),
                            Offset(first), WallTime());
}

TEST(MessageCacheTest, TheNewestAreFoundAndGapsDoNotExist) {
  MessageCache cache(1 << 20, 1 << 20);
  cache.append(batch_at(5, 3));
  cache.append(batch_at(10, 200));
  EXPECT_FALSE(cache.covers(Offset(4)));
  EXPECT_EQ(cache.find(Offset(7)).offset(), Offset(7));
  EXPECT_TRUE(cache.covers(Offset(8)));
  EXPECT_FALSE(cache.find(Offset(8)));
  EXPECT_EQ(cache.find(Offset(209)).offset(), Offset(209));
  EXPECT_FALSE(cache.find(Offset(210)));
}

TEST(MessageCacheTest, TheOldestGoWhenTheBytesAreUsedUp) {
  MessageCache cache(2'000, 2'000);
  for (std::uint64_t at = 1; at <= 100; ++at)
    cache.append(batch_at(at, 1));
  EXPECT_FALSE(cache.find(Offset(1)));
  EXPECT_TRUE(cache.find(Offset(100)));
  for (std::uint64_t at = 1; at <= 50; ++at)
    cache.keep(batch_at(at, 1));
  EXPECT_FALSE(cache.find(Offset(1)));
  EXPECT_TRUE(cache.find(Offset(50)));
  EXPECT_LE(cache.bytes(), 4'000u);
  cache.forget_below(Offset(101));
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(ConsumersTest, CreditEndsWhenEitherPartIsUsedUp) {
  Consumers consumers;
  const std::uint32_t one = consumers.open({ConsumerNumber(1), CursorNumber(1), std::nullopt});
  consumers.grant(one, 10, 100, {});
  consumers.use(one, 60, {});
  EXPECT_TRUE(consumers.is_available(one));
  consumers.use(one, 60, {});
  EXPECT_FALSE(consumers.is_available(one));
  EXPECT_EQ(consumers[one].messages, 0);
  EXPECT_FALSE(consumers.any_limited());
}

TEST(ConsumersTest, AvailableConsumersTakeTurns) {
  Consumers consumers;
  for (std::uint64_t number = 1; number <= 3; ++number)
    consumers.grant(consumers.open({ConsumerNumber(number), CursorNumber(1), std::nullopt}), 10,
                    100, {});
  std::vector<std::uint64_t> turns;
  for (int i = 0; i < 6; ++i)
    turns.push_back(consumers[consumers.next()].number.value());
  EXPECT_EQ(turns, (std::vector<std::uint64_t>{1, 2, 3, 1, 2, 3}));
}

}  // namespace
}  // namespace ordo::broker
