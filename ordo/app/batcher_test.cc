#include "ordo/app/batcher.h"

#include <map>

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

Job job(std::uint64_t number) {
  Job job;
  job.number = number;
  return job;
}

TEST(BatcherTest, ABatchIsReadyWhenItIsFullAndTheRestAtAFlush) {
  Batcher batcher;
  std::deque<Batch> ready;
  batcher.set_size(2);
  for (std::uint64_t i = 1; i <= 5; ++i)
    batcher.add(job(i), 0, ready);
  EXPECT_EQ(ready.size(), 2u);
  batcher.flush(ready);
  ASSERT_EQ(ready.size(), 3u);
  EXPECT_EQ(ready[2].jobs[0].number, 5u);
}

TEST(BatcherTest, ABatchHoldsOneKeyInOrder) {
  Batcher batcher;
  std::deque<Batch> ready;
  batcher.set_size(3);
  for (std::uint64_t i = 0; i < 100; ++i)
    batcher.add(job(i), i % 7, ready);
  batcher.flush(ready);
  std::map<std::uint64_t, std::vector<std::uint64_t>> numbers;
  for (const Batch& batch : ready) {
    EXPECT_LE(batch.jobs.size(), 3u);
    for (const Job& job : batch.jobs) {
      EXPECT_EQ(job.number % 7, batch.lane);
      numbers[batch.lane].push_back(job.number);
    }
  }
  for (const auto& [lane, list] : numbers) {
    EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
    EXPECT_EQ(list.size(), lane < 2 ? 15u : 14u);
  }
}

TEST(BatcherTest, SlowLinesGoOneByOneAndCheapOnesTogether) {
  EXPECT_EQ(Batcher::size_for(0, 1024, 2), 1u);
  EXPECT_EQ(Batcher::size_for(10'000'000, 1024, 2), 1u);
  EXPECT_EQ(Batcher::size_for(5'000, 1024, 2), 100u);
  EXPECT_EQ(Batcher::size_for(1, 1024, 2), 256u);
  EXPECT_EQ(Batcher::size_for(1, 2, 8), 1u);
}

}  // namespace
}  // namespace ordo::app
