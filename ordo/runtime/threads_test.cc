#include "ordo/runtime/threads.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <pthread.h>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace ordo {
namespace {

// Blocks until asked to end.
void sleep_until_asked(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock lock(mutex);
  condition.wait(lock, stop, [] { return false; });
}

TEST(ThreadTest, CarriesItsName) {
  std::string name;
  Thread thread("ordo-a-name-that-is-too-long", [&](std::stop_token) {
    std::array<char, 16> buffer{};
    ::pthread_getname_np(::pthread_self(), buffer.data(), buffer.size());
    name = buffer.data();
  });
  thread.join();
  EXPECT_EQ(name, "ordo-a-name-tha");
}

TEST(ThreadTest, StopAsksAndWaitsAndMayBeRepeated) {
  std::atomic<bool> ended{false};
  Thread thread("ordo-test", [&](std::stop_token stop) {
    sleep_until_asked(stop);
    ended = true;
  });
  EXPECT_TRUE(thread.joinable());
  thread.stop();
  EXPECT_TRUE(ended);
  thread.stop();
  thread.join();
  EXPECT_FALSE(thread.joinable());
}

TEST(ThreadTest, ItsDestructorAndAssignmentJoin) {
  std::atomic<int> ended{0};
  const auto body = [&](std::stop_token stop) {
    sleep_until_asked(stop);
    ++ended;
  };
  {
    Thread thread("ordo-test", body);
    thread = Thread("ordo-test", body);
    EXPECT_EQ(ended, 1);
  }
  EXPECT_EQ(ended, 2);
}

TEST(WorkerSetTest, GrowsShrinksAndCountsThoseThatHaveNotEnded) {
  WorkerSet workers("ordo-test",
                    [](std::size_t, std::stop_token stop) { sleep_until_asked(stop); });
  EXPECT_EQ(workers.grow(3), 3u);
  EXPECT_EQ(workers.count(), 3u);
  EXPECT_EQ(workers.shrink(1), 1u);
  EXPECT_EQ(workers.staying_count(), 2u);
  EXPECT_EQ(workers.shrink(5), 2u);
  workers.wait_until_empty();
  EXPECT_EQ(workers.count(), 0u);
  EXPECT_EQ(workers.count_peak(), 3u);
}

TEST(WorkerSetTest, AWorkerLeavesTheCountOnlyWhenItHasEnded) {
  std::latch may_end(1);
  std::latch asked(1);
  WorkerSet workers("ordo-test", [&](std::size_t, std::stop_token stop) {
    sleep_until_asked(stop);
    asked.count_down();
    may_end.wait();
  });
  workers.grow(1);
  EXPECT_EQ(workers.shrink(1), 1u);
  asked.wait();
  EXPECT_EQ(workers.count(), 1u);  // Asked, and still in its last item.
  EXPECT_EQ(workers.staying_count(), 0u);
  may_end.count_down();
  workers.wait_until_empty();
  EXPECT_EQ(workers.count(), 0u);
}

TEST(WorkerSetTest, IndicesAreUniqueAmongTheLivingAndUsedAgain) {
  std::mutex mutex;
  std::multiset<std::size_t> living;
  bool doubled = false;
  WorkerSet workers("ordo-test", [&](std::size_t index, std::stop_token stop) {
    {
      const std::lock_guard lock(mutex);
      doubled = doubled || living.count(index) > 0;
      living.insert(index);
    }
    sleep_until_asked(stop);
    const std::lock_guard lock(mutex);
    living.erase(index);
  });
  for (int round = 0; round < 5; ++round) {
    workers.grow(3);
    workers.shrink(3);
    workers.wait_until_empty();
  }
  workers.grow(2);
  workers.stop();
  EXPECT_FALSE(doubled);
}

TEST(WorkerSetTest, AWorkerMayEndByItself) {
  WorkerSet workers("ordo-test", [](std::size_t, std::stop_token) {});
  workers.grow(4);
  workers.wait_until_empty();
  EXPECT_EQ(workers.count(), 0u);
  EXPECT_EQ(workers.shrink(1), 0u);
}

TEST(WorkerSetTest, AfterStopNoWorkerIsMade) {
  WorkerSet workers("ordo-test",
                    [](std::size_t, std::stop_token stop) { sleep_until_asked(stop); });
  workers.grow(2);
  workers.stop();
  workers.stop();
  EXPECT_EQ(workers.grow(1), 0u);
  EXPECT_EQ(workers.count(), 0u);
}

TEST(WorkerSetStress, GrowingAndShrinkingFromSeveralThreadsEndsClean) {
  WorkerSet workers("ordo-test",
                    [](std::size_t, std::stop_token stop) { sleep_until_asked(stop); });
  {
    std::array<Thread, 2> callers;
    for (auto& caller : callers) {
      caller = Thread("ordo-caller", [&](std::stop_token) {
        for (int round = 0; round < 30; ++round) {
          workers.grow(2);
          workers.shrink(1 + static_cast<std::size_t>(round) % 3);
        }
      });
    }
    for (auto& caller : callers)
      caller.join();
  }
  workers.stop();
  EXPECT_EQ(workers.count(), 0u);
}

}  // namespace
}  // namespace ordo
