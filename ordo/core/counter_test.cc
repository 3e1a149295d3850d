#include "ordo/core/counter.h"

#include <atomic>
#include <cstdint>
#include <future>
#include <vector>

#include <gtest/gtest.h>

namespace ordo {
namespace {

TEST(CounterTest, StartsAtZeroAndAddsUp) {
  Counter counter;
  EXPECT_EQ(counter.value(), 0u);
  counter.add();
  counter.add(41);
  counter.add(0);
  EXPECT_EQ(counter.value(), 42u);
}

TEST(CounterTest, AReaderNeverSeesItGoBack) {
  Counter counter;
  std::atomic<bool> stop{false};
  auto reader = std::async(std::launch::async, [&] {
    std::uint64_t last = 0;
    while (!stop) {
      const std::uint64_t now = counter.value();
      if (now < last) return false;
      last = now;
    }
    return true;
  });
  for (int i = 0; i < 100'000; ++i) {
    counter.add();
  }
  stop = true;
  EXPECT_TRUE(reader.get());
  EXPECT_EQ(counter.value(), 100'000u);
}

TEST(SharedCounterTest, NothingThatManyThreadsAddIsLost) {
  constexpr int kThreads = 20;  // More than there are shards.
  constexpr int kAdds = 10'000;
  SharedCounter counter;
  std::vector<std::future<void>> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(std::async(std::launch::async, [&] {
      for (int add = 0; add < kAdds; ++add) {
        counter.add(2);
      }
    }));
  }
  for (auto& thread : threads) {
    thread.get();
  }
  EXPECT_EQ(counter.value(), std::uint64_t{2} * kThreads * kAdds);
}

}  // namespace
}  // namespace ordo
