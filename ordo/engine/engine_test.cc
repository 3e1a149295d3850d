// The rules of the partition engine as a caller meets them, with handlers that end at once.
#include "ordo/engine.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/engine_probe.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using engine_probe::Book;
using engine_probe::End;
using engine_probe::Item;
using engine_probe::kLong;
using engine_probe::recording;
using engine_probe::RecordingHandler;
using Engine = PartitionEngine<Item, RecordingHandler>;

TEST(EngineTest, TenThousandTasksOfAHundredIdsKeepOrderOneInFlightAndOnePartition) {
  Book book;
  Engine engine({.budget = 16'384, .per_id = 1'000}, recording(book));
  for (int n = 0; n < 10'000; ++n) {
    const CorrelationId id = 1 + n % 100;
    const Submitted submitted = engine.submit(id, Item{n});
    ASSERT_EQ(submitted.entry, Entry::admitted);
    EXPECT_EQ(submitted.partition, engine.partition_of(id));
    if (n % 64 == 0) engine.flush();
  }
  EXPECT_TRUE(engine.drain(kLong).complete());

  std::map<CorrelationId, int> next;
  std::map<CorrelationId, TimePoint> free_from;
  ASSERT_EQ(book.ends().size(), 10'000u);
  for (const End& end : book.ends()) {
    const CorrelationId id = end.turn.id;
    EXPECT_EQ(end.value, next[id] * 100 + id - 1) << "id " << id;
    ++next[id];
    EXPECT_EQ(end.turn.partition, engine.partition_of(id));
    EXPECT_LE(free_from[id], end.turn.began) << "two tasks of id " << id << " at once";
    EXPECT_LE(end.turn.entered, end.turn.began);
    EXPECT_LE(end.turn.began, end.turn.ended);
    free_from[id] = end.turn.ended;
  }
  EXPECT_EQ(book.overlaps(), 0u);
}

TEST(EngineTest, IdsInStepsOfFourSpreadOverFourPartitions) {
  Book book;
  const Engine engine({}, recording(book));
  std::vector<int> counts(4);
  for (CorrelationId id = 4; id <= 4'000; id += 4)
    ++counts.at(engine.partition_of(id));
  for (const int count : counts) {
    EXPECT_GE(count, 150);
    EXPECT_LE(count, 350);
  }
}

TEST(EngineTest, IdsUpToZeroAreUncorrelatedAndGoRound) {
  Book book;
  Engine engine({}, recording(book));
  std::vector<std::uint32_t> partitions;
  for (const CorrelationId id : {std::numeric_limits<CorrelationId>::min(), CorrelationId{-1},
                                 CorrelationId{0}, CorrelationId{-1}, CorrelationId{0}}) {
    const Submitted submitted = engine.post(id, Item{0});
    EXPECT_EQ(submitted.entry, Entry::admitted);
    partitions.push_back(submitted.partition);
  }
  EXPECT_EQ(partitions, (std::vector<std::uint32_t>{0, 1, 2, 3, 0}));
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(book.ends().size(), 5u);
}

TEST(EngineTest, AWrappingRoundRobinStaysWithinThePartitions) {
  for (const std::size_t partitions : {1u, 3u, 4u, 5u, 7u}) {
    Book book;
    Engine engine(
        {.partitions = partitions, .round_first = std::numeric_limits<std::uint64_t>::max() - 3},
        recording(book));
    std::vector<int> counts(partitions);
    for (int n = 0; n < 32; ++n)
      ++counts.at(engine.post(0, Item{n}).partition);
    EXPECT_TRUE(engine.drain(kLong).complete());
    for (const int count : counts)
      EXPECT_GE(count, 32 / static_cast<int>(partitions) - 1);
  }
}

TEST(EngineTest, ATaskThatThrowsFailsAloneAndItsSuccessorsRun) {
  Book book;
  Engine engine({}, recording(book));
  for (int n = 1; n <= 4; ++n) {
    Item item{n};
    if (n == 2) item.before = [] { throw std::runtime_error("second"); };
    ASSERT_EQ(engine.submit(7, std::move(item)).entry, Entry::admitted);
    ASSERT_EQ(engine.submit(8, Item{10 + n}).entry, Entry::admitted);
  }
  engine.flush();
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(book.values_of(7), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(book.values_of(8), (std::vector<int>{11, 12, 13, 14}));
  EXPECT_EQ(book.errors_of(7), (std::vector<std::string>{"", "second", "", ""}));
  EXPECT_EQ(engine.stats().total().failed, 1u);
  EXPECT_EQ(engine.stats().total().processed, 7u);
}

// One partition that always has more of one kind than a turn takes: the other kind gets through.
TEST(EngineTest, NeitherKindStarvesBesideAFloodOfTheOther) {
  for (const CorrelationId flood : {CorrelationId{0}, CorrelationId{1}}) {
    Book book;
    std::atomic<int> rare_done{0};
    Engine engine({.partitions = 1, .budget = 512, .per_id = 512, .batch_max = 4}, recording(book));
    // Every task of the flood submits another one, until the rare ones are done.
    std::function<Item()> more = [&] {
      Item item{0};
      item.before = [&] {
        if (rare_done.load() < 20) (void)engine.post(flood, more());
      };
      return item;
    };
    for (int n = 0; n < 100; ++n)
      ASSERT_EQ(engine.post(flood, more()).entry, Entry::admitted);
    for (int n = 0; n < 20; ++n) {
      Item rare{1};
      rare.before = [&] { ++rare_done; };
      ASSERT_EQ(engine.post(flood > 0 ? 0 : 1, std::move(rare)).entry, Entry::admitted);
    }
    EXPECT_TRUE(testing_support::eventually([&] { return rare_done.load() == 20; }));
    EXPECT_TRUE(engine.drain(kLong).complete());
  }
}

TEST(EngineTest, WhatIsThrownNeedNotBeAnException) {
  Book book;
  Engine engine({}, recording(book));
  Item item{1};
  item.before = [] { throw 42; };
  ASSERT_EQ(engine.post(7, std::move(item)).entry, Entry::admitted);
  ASSERT_EQ(engine.post(7, Item{2}).entry, Entry::admitted);
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(book.errors_of(7), (std::vector<std::string>{"unknown", ""}));
}

}  // namespace
}  // namespace ordo
