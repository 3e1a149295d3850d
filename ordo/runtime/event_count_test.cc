#include "ordo/runtime/event_count.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/runtime/asymmetric_fence.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;

void wait_until_asleep_or_about_to(const EventCount& event) {
  while (!event.has_waiters())
    StdAtomics::yield();
}

TEST(EventCountTest, ANotificationBetweenPrepareAndWaitIsNotLost) {
  EventCount event;
  const EventCount::Ticket ticket = event.prepare();
  event.notify_one();
  event.wait(ticket);  // Returns at once.
  EXPECT_FALSE(event.has_waiters());
}

TEST(EventCountTest, ANotificationBeforePrepareDoesNotCount) {
  EventCount event;
  event.notify_one();
  event.notify_all();
  const EventCount::Ticket ticket = event.prepare();
  EXPECT_FALSE(event.wait_for(ticket, 1us));
}

TEST(EventCountTest, ACancelledWaiterIsForgotten) {
  EventCount event;
  (void)event.prepare();
  EXPECT_TRUE(event.has_waiters());
  event.cancel();
  EXPECT_FALSE(event.has_waiters());
}

TEST(EventCountTest, AWaiterThatWasSignalledIsNotSignalledAgain) {
  EventCount event;
  const EventCount::Ticket ticket = event.prepare();
  event.notify_one();
  EXPECT_FALSE(event.has_waiters());  // Announced, but already on its way back.
  event.wait(ticket);
}

TEST(EventCountTest, AWaitThatWasNotifiedInTimeReportsNoTimeout) {
  EventCount event;
  const EventCount::Ticket ticket = event.prepare();
  event.notify_one();
  EXPECT_TRUE(event.wait_for(ticket, 0ns));
}

TEST(EventCountTest, NegativeTimeoutsEndAtOnce) {
  EventCount event;
  EXPECT_FALSE(event.wait_for(event.prepare(), -5s));
}

TEST(EventCountTest, NotifyAllWakesEverySleeper) {
  EventCount event;
  std::atomic<bool> ready{false};
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 4; ++i) {
    sleepers.emplace_back([&] {
      while (!ready.load(std::memory_order_acquire)) {
        const EventCount::Ticket ticket = event.prepare();
        if (ready.load(std::memory_order_acquire)) {
          event.cancel();
          return;
        }
        event.wait(ticket);
      }
    });
  }
  wait_until_asleep_or_about_to(event);
  ready.store(true, std::memory_order_release);
  event.notify_all();
  for (auto& sleeper : sleepers)
    sleeper.join();
  EXPECT_FALSE(event.has_waiters());
}

TEST(EventCountTest, WordsThatNotifiersReadStandApartFromTheWordSleepersSleepOn) {
  EXPECT_EQ(alignof(EventCount), kCacheLineBytes);
  EXPECT_GE(sizeof(EventCount), 2 * kCacheLineBytes);
}

// Goal: no wake-up is lost with real threads. Method: two threads hand a number back and forth,
// each sleeping whenever it is not its turn; one lost wake-up hangs the test.
TEST(EventCountTest, TwoThreadsPassATurnBackAndForthWithoutLosingIt) {
  constexpr std::uint32_t kTurnCount = 20'000;
  std::array<EventCount, 2> events;
  std::atomic<std::uint32_t> turn{0};
  auto play = [&](std::uint32_t self) {
    for (std::uint32_t mine = self; mine < kTurnCount; mine += 2) {
      while (turn.load(std::memory_order_acquire) != mine) {
        const EventCount::Ticket ticket = events[self].prepare();
        if (turn.load(std::memory_order_acquire) == mine) {
          events[self].cancel();
          break;
        }
        events[self].wait(ticket);
      }
      turn.store(mine + 1, std::memory_order_release);
      events[1 - self].notify_one();
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn.load(), kTurnCount);
}

// Goal: with several consumers, notify_one per item is enough. Method: 2 producers add to a
// counter, 3 consumers take from it and sleep at zero; everything produced is taken.
TEST(EventCountTest, OneNotificationPerItemServesSeveralConsumers) {
  constexpr int kItemsPerProducer = 20'000;
  constexpr int kItemCount = 2 * kItemsPerProducer;
  EventCount event;
  std::atomic<int> available{0};
  std::atomic<int> taken{0};
  auto take = [&] {
    int seen = available.load(std::memory_order_acquire);
    while (seen > 0 && !available.compare_exchange_weak(seen, seen - 1)) {
    }
    return seen > 0;
  };
  auto consume = [&] {
    while (taken.load() < kItemCount) {
      if (take()) {
        if (taken.fetch_add(1) + 1 == kItemCount) event.notify_all();
        continue;
      }
      const EventCount::Ticket ticket = event.prepare();
      if (available.load(std::memory_order_acquire) > 0 || taken.load() == kItemCount) {
        event.cancel();
      } else {
        event.wait(ticket);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back(consume);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int item = 0; item < kItemsPerProducer; ++item) {
        available.fetch_add(1, std::memory_order_release);
        event.notify_one();
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(taken.load(), kItemCount);
  EXPECT_EQ(available.load(), 0);
}

TEST(AsymmetricFenceTest, BothSidesCanBeCalledFromManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 200; ++round) {
        light_fence();
        heavy_fence();
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
}

// Goal: the store-buffer outcome 0/0 never happens between a light and a heavy side.
// Method: rounds of Dekker's pattern on two words, both sides released together.
TEST(AsymmetricFenceTest, OneOfTheTwoSidesSeesTheOther) {
  constexpr std::uint32_t kRoundCount = 5'000;
  std::atomic<std::uint32_t> light_word{0};
  std::atomic<std::uint32_t> heavy_word{0};
  std::atomic<std::uint32_t> light_saw{0};
  std::atomic<std::uint32_t> round{0};
  std::atomic<std::uint32_t> finished{0};
  std::thread light([&] {
    for (std::uint32_t r = 1; r <= kRoundCount; ++r) {
      while (round.load(std::memory_order_acquire) != r)
        StdAtomics::yield();
      light_word.store(r, std::memory_order_relaxed);
      light_fence();
      light_saw.store(heavy_word.load(std::memory_order_relaxed), std::memory_order_relaxed);
      finished.store(r, std::memory_order_release);
    }
  });
  for (std::uint32_t r = 1; r <= kRoundCount; ++r) {
    round.store(r, std::memory_order_release);
    heavy_word.store(r, std::memory_order_relaxed);
    heavy_fence();
    const std::uint32_t heavy_saw = light_word.load(std::memory_order_relaxed);
    while (finished.load(std::memory_order_acquire) != r)
      StdAtomics::yield();
    EXPECT_TRUE(heavy_saw == r || light_saw.load(std::memory_order_relaxed) == r) << "round " << r;
  }
  light.join();
}

}  // namespace
}  // namespace ordo
