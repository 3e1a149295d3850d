// The parts a dispatcher is made of, each alone: budget, idle table, keeper, lookout.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/dispatcher/budget.h"
#include "ordo/dispatcher/idle_table.h"
#include "ordo/dispatcher/keeper.h"
#include "ordo/dispatcher/lookout.h"
#include "tests/support/waiting.h"

namespace ordo::dispatcher {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::eventually;
using testing_support::Watchdog;

TEST(BudgetTest, PlacesAreTakenByTheHandfulAndNeverMoreThanThereAre) {
  Budget budget(10'000, 8);
  EXPECT_EQ(budget.take(), Budget::kHandfulMax);
  std::uint64_t taken = Budget::kHandfulMax;
  while (const std::uint64_t places = budget.take())
    taken += places;
  EXPECT_EQ(taken, 10'000U);
}

TEST(BudgetTest, ASmallBudgetIsTakenOneByOne) {
  Budget budget(3, 64);
  EXPECT_EQ(budget.take(), 1U);
  EXPECT_EQ(budget.take(), 1U);
  EXPECT_EQ(budget.take(), 1U);
  EXPECT_EQ(budget.take(), 0U);
  budget.give(1);
  EXPECT_EQ(budget.take(), 1U);
}

TEST(BudgetTest, AShardKeepsLittleAndNothingWhilePlacesAreScarce) {
  Budget budget(1'000'000, 8);
  EXPECT_EQ(budget.settle(100), 100U);
  EXPECT_EQ(budget.settle(200), Budget::kHandfulMax);
  while (budget.take() > 0) {
  }
  EXPECT_EQ(budget.settle(5), 0U);
  EXPECT_EQ(budget.free_count(), 5U);
}

using Table = IdleTable<std::string, int>;

TEST(IdleTableTest, AnEntryIsMadeOnceAndFoundAgain) {
  Table table;
  const std::uint32_t place = table.hold(1, "a");
  table[place] = 7;
  EXPECT_EQ(table.hold(1, "a"), place);
  EXPECT_EQ(table.find(1, "b"), kNoIndex);
  EXPECT_EQ(table.key(place), "a");
  EXPECT_EQ(table.count(), 1U);
}

TEST(IdleTableTest, EntriesBecomeIdleInTheOrderOfTheirLastRelease) {
  Table table;
  const std::uint32_t a = table.hold(1, "a");
  const std::uint32_t b = table.hold(2, "b");
  EXPECT_EQ(table.oldest_idle(TimePoint(9s)), kNoIndex);
  table.release(b, TimePoint(1s));
  table.release(a, TimePoint(2s));
  EXPECT_EQ(table.oldest_idle(TimePoint(0s)), kNoIndex);
  EXPECT_EQ(table.oldest_idle(TimePoint(1s)), b);

  table.hold(b);
  EXPECT_EQ(table.oldest_idle(TimePoint(9s)), a);
  EXPECT_EQ(table.oldest_idle_since(), TimePoint(2s));
  table.release(b, TimePoint(3s));
  EXPECT_EQ(table.oldest_idle(TimePoint(9s)), a);
}

TEST(IdleTableTest, AnEntryHeldTwiceIsIdleAfterTheSecondRelease) {
  Table table;
  const std::uint32_t place = table.hold(1, "a");
  table.hold(place);
  table.release(place, TimePoint(1s));
  EXPECT_EQ(table.oldest_idle(TimePoint(9s)), kNoIndex);
  table.release(place, TimePoint(2s));
  EXPECT_EQ(table.oldest_idle(TimePoint(9s)), place);
}

TEST(IdleTableTest, AThousandEntriesCanComeAndGo) {
  Table table;
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t n = 0; n < 1'000; ++n)
      table[table.hold(n % 100, std::to_string(n))] = static_cast<int>(n);
    EXPECT_EQ(table.count(), 1'000U);
    for (std::uint32_t n = 0; n < 1'000; ++n) {
      const std::uint32_t place = table.find(n % 100, std::to_string(n));
      ASSERT_NE(place, kNoIndex);
      EXPECT_EQ(table[place], static_cast<int>(n));
      table.erase(place);
    }
    EXPECT_EQ(table.count(), 0U);
  }
}

TEST(KeeperTest, CallsWhenSomethingIsDueAndNotBefore) {
  Watchdog watchdog("KeeperTest");
  ManualClock clock;
  std::atomic<int> calls = 0;
  Keeper keeper(clock, [&](TimePoint) { return ++calls, TimePoint::max(); });
  keeper.start();
  keeper.call_by(TimePoint(5s));
  keeper.call_by(TimePoint(9s));  // Later than what is due already.
  clock.wait_for_waiters(1);
  clock.advance(4s);
  EXPECT_EQ(calls, 0);
  clock.advance(1s);
  EXPECT_TRUE(eventually([&] { return calls == 1; }));
}

TEST(KeeperTest, ComesAgainWhenTheCallSaysSo) {
  Watchdog watchdog("KeeperTest");
  ManualClock clock;
  std::atomic<int> calls = 0;
  Keeper keeper(clock, [&](TimePoint now) {
    ++calls;
    return now < TimePoint(3s) ? now + 1s : TimePoint::max();
  });
  keeper.start();
  keeper.call_by(TimePoint(1s));
  for (int expected = 1; expected <= 3; ++expected) {
    clock.wait_for_waiters(1);
    clock.advance(1s);
    ASSERT_TRUE(eventually([&] { return calls == expected; }));
  }
  keeper.stop();
  keeper.stop();
  EXPECT_EQ(calls, 3);
}

TEST(LookoutTest, AWorkerTakesOverWhatIsPublishedAndGoesThereInTurn) {
  Lookout lookout(2);
  EXPECT_EQ(lookout.next(0), Lookout::kNone);
  lookout.publish(5);
  lookout.publish(63);
  lookout.publish(0);
  EXPECT_EQ(lookout.next(0), 0U);
  EXPECT_EQ(lookout.next(0), 5U);
  EXPECT_EQ(lookout.next(0), 63U);
  EXPECT_EQ(lookout.next(0), 0U);
  lookout.drop(0, 5);
  EXPECT_EQ(lookout.next(0), 63U);
  lookout.drop(0, 63);
  lookout.drop(0, 0);
  EXPECT_FALSE(lookout.has_work());
  EXPECT_EQ(lookout.next(0), Lookout::kNone);
}

TEST(LookoutTest, WhatComesLaterIsNotForgottenBehindBusyShards) {
  Lookout lookout(1);
  lookout.publish(3);
  EXPECT_EQ(lookout.next(0), 3U);
  lookout.publish(1);
  EXPECT_EQ(lookout.next(0), 1U);
  EXPECT_EQ(lookout.next(0), 3U);
}

TEST(LookoutTest, AWorkerWithoutWorkTakesSomeFromAnother) {
  Lookout lookout(2);
  for (std::size_t shard = 0; shard < 8; ++shard)
    lookout.publish(shard);
  EXPECT_EQ(lookout.next(0), 0U);  // All eight are worker 0's now.
  EXPECT_NE(lookout.next(1), Lookout::kNone);
}

TEST(LookoutTest, ASleepingWorkerIsWokenByWork) {
  Watchdog watchdog("LookoutTest");
  for (int round = 0; round < 200; ++round) {
    Lookout lookout(1);
    std::atomic<bool> leaving = false;
    std::atomic<bool> found = false;
    std::thread worker([&] {
      while (!leaving) {
        if (lookout.next(0) != Lookout::kNone) return found.store(true);
        lookout.await_work(0, [&] { return leaving.load(); });
      }
    });
    lookout.publish(7);
    EXPECT_TRUE(eventually([&] { return found.load(); }));
    leaving = true;
    lookout.wake_all();
    worker.join();
  }
}

// Goal: no published shard is forgotten, whoever takes its bit from whom. Method: workers and
// publishers without choreography, on few shards, so that bits are taken and stolen all the time;
// a bit that is lost leaves its shard's work undone, and the watchdog says so.
TEST(LookoutStressTest, NoShardIsForgotten) {
  Watchdog watchdog("LookoutStressTest");
  constexpr std::size_t kShards = 6;
  constexpr std::size_t kWorkers = 3;
  constexpr int kPublishes = 30'000;
  struct Shard {
    std::mutex mutex;
    int ready = 0;
    bool listed = false;
  };
  std::vector<Shard> shards(kShards);
  Lookout lookout(kWorkers);
  std::atomic<bool> leaving = false;
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < kWorkers; ++me) {
    threads.emplace_back([&, me] {
      while (!leaving) {
        const std::size_t index = lookout.next(me);
        if (index == Lookout::kNone) {
          lookout.await_work(me, [&] { return leaving.load(); });
          continue;
        }
        Shard& shard = shards[index];
        std::lock_guard guard(shard.mutex);
        if (shard.ready > 0) {
          --shard.ready;
          ++done;
        }
        if (shard.ready == 0) {
          shard.listed = false;
          lookout.drop(me, index);
        }
        lookout.leave_behind(me, shard.ready > 0);
      }
    });
  }
  for (std::size_t publisher = 0; publisher < 2; ++publisher) {
    threads.emplace_back([&, publisher] {
      for (int n = 0; n < kPublishes; ++n) {
        const std::size_t index = (static_cast<std::size_t>(n) * 7 + publisher) % kShards;
        bool publishes = false;
        {
          std::lock_guard guard(shards[index].mutex);
          ++shards[index].ready;
          publishes = !std::exchange(shards[index].listed, true);
        }
        if (publishes) lookout.publish(index);
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return done == 2 * kPublishes; }));
  leaving = true;
  lookout.wake_all();
  for (std::thread& thread : threads)
    thread.join();
}

TEST(LookoutTest, AWorkerThatIsToLeaveWakesUp) {
  Watchdog watchdog("LookoutTest");
  Lookout lookout(2);
  std::atomic<bool> leaving = false;
  std::vector<std::thread> workers;
  for (std::size_t me = 0; me < 2; ++me) {
    workers.emplace_back([&, me] {
      while (!leaving)
        lookout.await_work(me, [&] { return leaving.load(); });
    });
  }
  leaving = true;
  lookout.wake_all();
  for (std::thread& worker : workers)
    worker.join();
}

}  // namespace
}  // namespace ordo::dispatcher
