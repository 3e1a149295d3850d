#include "ordo/core/clock.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ordo {
namespace {

using namespace std::chrono_literals;

// One thread that waits on its own condition until `deadline`, whatever else wakes it.
struct Sleeper {
  std::mutex mutex;
  std::condition_variable condition;

  TimePoint wait(Clock& clock, TimePoint deadline) {
    std::unique_lock lock(mutex);
    while (!clock.wait_until(lock, condition, deadline)) {
    }
    return clock.now();
  }
};

TEST(SystemClockTest, TheRoughTimeLagsBehindTheTimeByATickAtMost) {
  const TimePoint before = system_clock().now();
  const TimePoint rough = system_clock().rough_now();
  EXPECT_LE(rough, system_clock().now());
  EXPECT_GE(rough, before - std::chrono::milliseconds(100));
}

TEST(ManualClockTest, TheRoughTimeIsTheTime) {
  ManualClock clock;
  clock.advance(std::chrono::nanoseconds(17));
  EXPECT_EQ(clock.rough_now(), clock.now());
}

TEST(SystemClockTest, NeverGoesBack) {
  TimePoint last = system_clock().now();
  for (int i = 0; i < 1000; ++i) {
    const TimePoint now = system_clock().now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(SystemClockTest, ADeadlineInThePastDoesNotBlock) {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  EXPECT_TRUE(system_clock().wait_until(lock, condition, system_clock().now()));
  EXPECT_TRUE(system_clock().wait_until(lock, condition, TimePoint::min()));
}

TEST(SystemClockTest, WaitsUntilTheDeadlineAndNotShorter) {
  Sleeper sleeper;
  const TimePoint deadline = system_clock().now() + 2ms;
  EXPECT_GE(sleeper.wait(system_clock(), deadline), deadline);
}

TEST(SystemClockTest, ANotificationEndsAWaitBeforeItsDeadline) {
  for (const TimePoint deadline : {TimePoint::max(), system_clock().now() + 24h}) {
    std::mutex mutex;
    std::condition_variable condition;
    bool notified = false;
    auto other = std::async(std::launch::async, [&] {
      std::lock_guard guard(mutex);
      notified = true;
      condition.notify_one();
    });
    std::unique_lock lock(mutex);
    bool expired = false;
    while (!notified) {
      expired = system_clock().wait_until(lock, condition, deadline);
    }
    EXPECT_FALSE(expired);
    lock.unlock();
    other.get();
  }
}

TEST(ManualClockTest, StandsStillUntilAdvanced) {
  ManualClock clock(TimePoint{} + 5s);
  EXPECT_EQ(clock.now(), TimePoint{} + 5s);
  EXPECT_EQ(clock.now(), TimePoint{} + 5s);
  clock.advance(0ns);
  EXPECT_EQ(clock.now(), TimePoint{} + 5s);
  clock.advance(3ms);
  EXPECT_EQ(clock.now(), TimePoint{} + 5003ms);
}

TEST(ManualClockTest, ADeadlineReachedAlreadyDoesNotBlock) {
  ManualClock clock;
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  EXPECT_TRUE(clock.wait_until(lock, condition, clock.now()));
  EXPECT_EQ(clock.waiter_count(), 0u);
}

TEST(ManualClockTest, AWaiterWakesWhenItsDeadlineIsReachedAndNotBefore) {
  ManualClock clock;
  Sleeper sleeper;
  const TimePoint deadline = clock.now() + 10s;
  auto woken = std::async(std::launch::async, [&] { return sleeper.wait(clock, deadline); });

  clock.wait_for_waiters(1);
  EXPECT_EQ(clock.next_deadline(), deadline);
  clock.advance(9'999ms);
  EXPECT_EQ(clock.waiter_count(), 1u);
  clock.advance(1ms);
  EXPECT_EQ(clock.waiter_count(), 0u);
  EXPECT_EQ(clock.next_deadline(), std::nullopt);
  EXPECT_EQ(woken.get(), deadline);
}

TEST(ManualClockTest, EveryWaiterOfOneConditionHasItsOwnDeadline) {
  ManualClock clock;
  Sleeper shared;
  std::vector<std::future<TimePoint>> woken;
  for (int i = 1; i <= 4; ++i) {
    woken.push_back(std::async(std::launch::async, [&shared, &clock, i] {
      return shared.wait(clock, TimePoint{} + i * 1s);
    }));
  }
  clock.wait_for_waiters(4);
  EXPECT_EQ(clock.next_deadline(), TimePoint{} + 1s);
  for (int i = 1; i <= 4; ++i) {
    clock.advance(1s);  // Wakes the others along, which then wait again.
    EXPECT_EQ(woken[static_cast<std::size_t>(i - 1)].get(), TimePoint{} + i * 1s);
  }
}

TEST(ManualClockTest, AWaiterWithoutDeadlineIsNotCountedAndWakesByNotification) {
  ManualClock clock;
  std::mutex mutex;
  std::condition_variable condition;
  bool waiting = false;
  bool notified = false;
  auto expired = std::async(std::launch::async, [&] {
    std::unique_lock lock(mutex);
    waiting = true;
    bool result = false;
    while (!notified) {
      result = clock.wait_until(lock, condition, TimePoint::max());
    }
    return result;
  });
  for (bool is_waiting = false; !is_waiting;) {
    std::lock_guard guard(mutex);
    is_waiting = waiting;
  }
  EXPECT_EQ(clock.waiter_count(), 0u);
  clock.advance(1000h);
  {
    std::lock_guard guard(mutex);
    notified = true;
  }
  condition.notify_one();
  EXPECT_FALSE(expired.get());
}

TEST(ManualClockTest, ANotificationEndsAWaitBeforeItsDeadline) {
  ManualClock clock;
  Sleeper sleeper;
  auto expired = std::async(std::launch::async, [&] {
    std::unique_lock lock(sleeper.mutex);
    return clock.wait_until(lock, sleeper.condition, clock.now() + 1s);
  });
  clock.wait_for_waiters(1);
  {
    std::lock_guard guard(sleeper.mutex);
    sleeper.condition.notify_one();
  }
  EXPECT_FALSE(expired.get());
  EXPECT_EQ(clock.waiter_count(), 0u);
}

TEST(ManualClockTest, AWaiterMayDestroyItsConditionAsSoonAsItIsWoken) {
  ManualClock clock;
  for (int round = 0; round < 200; ++round) {
    auto woken = std::async(std::launch::async, [&clock, deadline = clock.now() + 1s] {
      Sleeper short_lived;
      return short_lived.wait(clock, deadline);
    });
    clock.wait_for_waiters(1);
    clock.advance(1s);
    EXPECT_EQ(woken.get(), clock.now());
  }
}

TEST(ManualClockDeathTest, TimeDoesNotGoBack) {
  ManualClock clock;
  EXPECT_DEATH(clock.advance(-1ns), "check failed");
}

TEST(ManualClockDeathTest, TimeDoesNotPassItsEnd) {
  ManualClock clock;
  EXPECT_DEATH(clock.advance(std::chrono::nanoseconds::max()), "check failed");
}

TEST(ManualClockDeathTest, WaitingWithoutTheLockIsAProgrammerError) {
  ManualClock clock;
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex, std::defer_lock);
  EXPECT_DEATH(clock.wait_until(lock, condition, clock.now() + 1s), "owns_lock");
}

// Goal: no wake-up is lost, however a deadline's computing and the advancing interleave.
// Method: threads that wait again and again while another one advances without looking; a lost
// wake-up hangs the test. The seed names the failing run.
class ManualClockSchedule : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ManualClockSchedule, NoWaiterIsForgottenWhileTimeMoves) {
  constexpr int kThreads = 3;
  constexpr int kWaits = 300;
  ManualClock clock;
  Sleeper shared;
  std::atomic<int> running{kThreads};
  std::vector<std::future<void>> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(std::async(std::launch::async, [&, i] {
      std::mt19937 random(GetParam() * 100 + static_cast<std::uint32_t>(i));
      Sleeper own;
      for (int wait = 0; wait < kWaits; ++wait) {
        const TimePoint deadline = clock.now() + std::chrono::nanoseconds(random() % 50);
        Sleeper& sleeper = random() % 2 == 0 ? own : shared;
        EXPECT_GE(sleeper.wait(clock, deadline), deadline);
      }
      --running;
    }));
  }
  std::mt19937 random(GetParam());
  while (running > 0) {
    clock.advance(std::chrono::nanoseconds(random() % 20));
  }
  for (auto& thread : threads) {
    thread.get();
  }
  EXPECT_EQ(clock.waiter_count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ManualClockSchedule, testing::Range(0u, 20u));

TEST(ManualClockTest, WallTimeMovesWithTheClock) {
  ManualClock clock;
  const WallTime before = clock.wall_now();
  clock.advance(3s);
  EXPECT_EQ(clock.wall_now() - before, 3s);
}

TEST(SystemClockTest, WallTimeIsTheTimeOfDay) {
  EXPECT_GT(system_clock().wall_now(), ManualClock().wall_now());
}

}  // namespace
}  // namespace ordo
