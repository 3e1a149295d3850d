// BiasedLock: its owner and the others are never inside together, in any schedule.
#include "ordo/runtime/biased_lock.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/expect_schedules.h"

namespace ordo {
namespace {

using test::explored_checkpoint;
using test::ExploredAtomic;
using test::ExploredAtomics;
using test::ExploreOptions;

// kThreadCount threads go inside kRounds times each; the first becomes the owner.
template <int kThreadCount, int kRounds>
struct Visits {
  BasicBiasedLock<ExploredAtomics> lock;
  ExploredAtomic<int> inside{0};
  ExploredAtomic<int> overlaps{0};

  void visit(std::uintptr_t me, unsigned round) {
    explored_checkpoint(2 * round + 1);
    lock.lock_as(me);
    explored_checkpoint(2 * round + 2);
    if (inside.exchange(1) != 0) overlaps.store(1);
    inside.store(0, std::memory_order_release);
    lock.unlock();
  }
  std::vector<std::function<void()>> threads() {
    std::vector<std::function<void()>> all;
    for (int thread = 1; thread <= kThreadCount; ++thread) {
      all.emplace_back([this, thread] {
        for (unsigned round = 0; round < kRounds; ++round) {
          visit(static_cast<std::uintptr_t>(2 * thread), round);
        }
      });
    }
    return all;
  }
  std::string check() { return overlaps.load() == 0 ? "" : "two were inside"; }
};

using TwoThreads = Visits<2, 2>;

TEST(BiasedLock, TwoThreadsAreNeverInsideTogether) {
  ORDO_EXPECT_RIGHT(TwoThreads, {});
  ORDO_EXPECT_RIGHT(TwoThreads, {.store_buffers = true});
}

// Two take the bias away from an owner that has it already.
struct OwnerAndTwo : Visits<3, 1> {
  OwnerAndTwo() {
    lock.lock_as(2);
    lock.unlock();
  }
};

TEST(BiasedLock, TheOwnerAndTwoOthersAreNeverInsideTogether) {
  ORDO_EXPECT_RIGHT(OwnerAndTwo, {});
  ORDO_EXPECT_RIGHT(OwnerAndTwo, {.store_buffers = true});
}

TEST(BiasedLock, WithoutTheHeavyFenceAStoreBufferLetsTwoIn) {
  ORDO_EXPECT_WRONG(TwoThreads, (ExploreOptions{.store_buffers = true, .membarrier = false}),
                    "two were inside");
}

TEST(BiasedLock, CountsRightWhenManyThreadsComeAfterTheOwner) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  BiasedLock lock;
  std::int64_t count = 0;
  const auto add = [&] {
    for (int round = 0; round < kRounds; ++round) {
      std::lock_guard guard(lock);
      ++count;
    }
  };
  add();  // The owner is this thread.
  std::vector<std::thread> others;
  for (int thread = 0; thread < kThreads; ++thread)
    others.emplace_back(add);
  add();
  for (std::thread& other : others)
    other.join();
  EXPECT_EQ(count, (kThreads + 2) * kRounds);
}

TEST(BiasedLock, ANewThreadAtTheAddressOfAnOldOwnerIsTheOwner) {
  BiasedLock lock;
  std::int64_t count = 0;
  for (int thread = 0; thread < 100; ++thread) {
    std::thread([&] {
      std::lock_guard guard(lock);
      ++count;
    }).join();
  }
  EXPECT_EQ(count, 100);
}

}  // namespace
}  // namespace ordo
