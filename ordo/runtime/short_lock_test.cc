#include "ordo/runtime/short_lock.h"

#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ordo {
namespace {

TEST(ShortLockTest, WhoHoldsItHoldsItAlone) {
  constexpr std::uint64_t kRounds = 20'000;
  ShortLock lock;
  std::uint64_t sum = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        std::lock_guard guard(lock);
        ++sum;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(sum, 4 * kRounds);
}

TEST(ShortLockTest, TryLockFailsWhileItIsHeld) {
  ShortLock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

}  // namespace
}  // namespace ordo
