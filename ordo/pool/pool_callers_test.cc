// Who calls the pool, from where and when: many producers and consumers, handlers that wait for
// one another, bursts, and calls that race with the end.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/pool/pool.h"
#include "tests/support/gates.h"
#include "tests/support/pool_probe.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::Background;
using testing_support::drain;
using testing_support::eventually;
using testing_support::expect_conserved;
using testing_support::Gates;
using testing_support::numbers;
using testing_support::pop_within;
using testing_support::Reports;
using testing_support::sorted;
using testing_support::Watchdog;
using Number = std::uint64_t;
using Numbers = std::vector<Number>;
using NumberPool = Pool<Number, Number>;
using Threads = std::vector<std::unique_ptr<Background>>;

class PoolCallersTest : public testing::Test {
 protected:
  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

// ---- several producers, several consumers

TEST_F(PoolCallersTest, EveryProducersInputsKeepTheirOrder) {
  constexpr Number kProducers = 4;
  constexpr Number kEach = 3'000;
  NumberPool pool([](Number n) { return n; },
                  {.workers = 3, .preserve_order = true, .order_buffer_size = 16});
  std::atomic<Number> left = kProducers;
  Threads producers;
  for (Number producer = 0; producer < kProducers; ++producer) {
    producers.push_back(std::make_unique<Background>([&, producer] {
      for (Number n = 0; n < kEach; ++n)
        EXPECT_TRUE(pool.push(n * kProducers + producer));
      if (--left == 0) pool.close();
    }));
  }
  Numbers next(kProducers, 0);
  while (auto output = pool.pop())
    ASSERT_EQ(*output / kProducers, next[*output % kProducers]++);
  EXPECT_EQ(next, Numbers(kProducers, kEach));
}

TEST_F(PoolCallersTest, ConsumersShareTheOutputsAndEachSeesThemRise) {
  NumberPool pool([](Number n) { return n; },
                  {.workers = 2, .preserve_order = true, .order_buffer_size = 8});
  std::vector<Numbers> taken(4);
  Threads consumers;
  for (Numbers& mine : taken) {
    consumers.push_back(std::make_unique<Background>([&pool, &mine] {
      while (auto output = pool.pop())
        mine.push_back(*output);
    }));
  }
  for (Number n = 0; n < 10'000; ++n)
    ASSERT_TRUE(pool.push(n));
  pool.close();
  consumers.clear();
  Numbers all;
  for (const Numbers& mine : taken) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  EXPECT_EQ(sorted(all), numbers(0, 10'000));
  EXPECT_EQ(pool.stats().delivered, 10'000u);
}

TEST_F(PoolCallersTest, EveryWaitingConsumerSeesTheEnd) {
  NumberPool pool([](Number n) { return n; });
  std::atomic<int> ended = 0;
  Threads consumers;
  for (int i = 0; i < 8; ++i) {
    consumers.push_back(std::make_unique<Background>([&] {
      while (pool.pop()) {
      }
      ++ended;
    }));
  }
  ASSERT_TRUE(pool.push(1));
  pool.close();
  consumers.clear();
  EXPECT_EQ(ended, 8);
}

TEST_F(PoolCallersTest, TryPushAndTryPopNeverWait) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  {.workers = 1, .order_buffer_size = 2});
  EXPECT_FALSE(pool.try_pop());
  EXPECT_TRUE(pool.try_push(0));
  EXPECT_TRUE(pool.try_push(1));
  EXPECT_FALSE(pool.try_push(2));
  EXPECT_FALSE(pool.try_pop());
  gates.open_all();
  std::optional<Number> output;
  EXPECT_TRUE(eventually([&] { return (output = pool.try_pop()).has_value(); }));
  EXPECT_EQ(output, 0u);
  pool.close();
  EXPECT_FALSE(pool.try_push(3));
  EXPECT_EQ(pop_within(pool, 1h), 1u);
  EXPECT_FALSE(pop_within(pool, 1h)) << "the end, not the time";
  EXPECT_FALSE(pool.try_pop());
}

TEST_F(PoolCallersTest, AHandlerMayCallThePoolItself) {
  NumberPool* self = nullptr;
  NumberPool pool(
      [&](Number n) {
        EXPECT_TRUE(n == 100 || self->push(n + 1)) << n;
        self->stats();
        if (n == 100) self->close();
        return n;
      },
      {.workers = 2, .buffer_size = 200, .preserve_order = true, .order_buffer_size = 4});
  self = &pool;
  ASSERT_TRUE(pool.push(1));
  EXPECT_EQ(drain(pool), numbers(1, 101));
}

// ---- handlers that wait for one another

TEST_F(PoolCallersTest, AnItemThatWaitsForItsSuccessorToStartDoesNotHangThePool) {
  for (int mode = 0; mode < 3; ++mode) {
    constexpr Number kCheap = 5'000;
    Gates<> gates;
    std::atomic<bool> successor_started = false;
    PoolOptions<Number> options{
        .workers = 2, .preserve_order = mode == 0, .order_buffer_size = 256};
    if (mode == 2) options.partition_key = [](Number n) { return n; };
    NumberPool pool(
        [&](Number n) {
          if (n == kCheap + 1) successor_started = true;
          const auto met = [&] { return n != kCheap || successor_started.load(); };
          EXPECT_TRUE(eventually(met)) << "the successor does not start";
          return n;
        },
        options);
    Background producer([&] {
      for (Number n = 0; n < kCheap + 500; ++n)
        EXPECT_TRUE(pool.push(n));
      pool.close();
    });
    EXPECT_EQ(sorted(drain(pool)), numbers(0, kCheap + 500)) << "mode " << mode;
  }
}

TEST_F(PoolCallersTest, PairsOfItemsMayMeetAgainAndAgain) {
  // Item 2i waits until 2i + 1 has started and the other way round, for every i.
  constexpr Number kCount = 2'000;
  std::vector<std::atomic<bool>> started(kCount);
  NumberPool pool(
      [&](Number n) {
        started[n] = true;
        EXPECT_TRUE(eventually([&] { return started[n ^ 1].load(); })) << n;
        return n;
      },
      {.workers = 2, .preserve_order = true, .order_buffer_size = 64});
  Background producer([&] {
    for (Number n = 0; n < kCount; ++n)
      EXPECT_TRUE(pool.push(n));
    pool.close();
  });
  EXPECT_EQ(drain(pool), numbers(0, kCount));
}

TEST_F(PoolCallersTest, ABlockedWorkerInTheMiddleOfCheapItemsDoesNotHoldTheOthers) {
  for (const bool ordered : {true, false}) {
    constexpr Number kBlocked = 1'000;
    constexpr Number kWindow = 512;
    Gates<> gates;
    std::atomic<Number> done = 0;
    NumberPool pool(
        [&](Number n) {
          if (n == kBlocked) gates.enter(n);
          ++done;
          return n;
        },
        {.workers = 2, .preserve_order = ordered, .order_buffer_size = kWindow});
    Number admitted = 0;
    Background producer([&] {
      for (; admitted < 2'000; ++admitted)
        EXPECT_TRUE(pool.push(admitted));
      pool.close();
    });
    if (ordered) {
      for (Number n = 0; n < kBlocked; ++n)
        ASSERT_EQ(pool.pop(), n);
      ASSERT_TRUE(eventually([&] { return done == kBlocked + kWindow - 1; }))
          << "the rest of the window runs although its head is blocked: " << done;
      gates.open_all();
      EXPECT_EQ(drain(pool), numbers(kBlocked, 2'000));
    } else {
      for (Number n = 0; n < 1'999; ++n)
        ASSERT_TRUE(pool.pop());
      gates.open_all();
      EXPECT_EQ(drain(pool), Numbers{kBlocked});
    }
  }
}

TEST_F(PoolCallersTest, ItemsBehindABlockedOneAreTakenByTheOtherWorkers) {
  // Whoever is blocked must not sit on inputs that it has not started.
  for (Number blocked = 0; blocked < 64; ++blocked) {
    Gates<> gates;
    std::atomic<Number> done = 0;
    NumberPool pool(
        [&](Number n) {
          if (n == blocked) gates.enter(n);
          ++done;
          return n;
        },
        {.workers = 2, .preserve_order = true, .order_buffer_size = 64});
    for (Number n = 0; n < 64; ++n)
      ASSERT_TRUE(pool.push(n));
    ASSERT_TRUE(gates.await(blocked));
    ASSERT_TRUE(eventually([&] { return done == 63; })) << blocked << ": " << done;
    gates.open_all();
    pool.close();
    EXPECT_EQ(drain(pool), numbers(0, 64));
  }
}

TEST_F(PoolCallersTest, ABurstAfterIdlenessWakesEveryWorkerItNeeds) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  {.workers = 6, .preserve_order = true, .order_buffer_size = 12});
  Number next = 0;
  for (Number burst = 1; burst <= 120; ++burst) {
    const Number size = burst % 12 + 1;
    for (Number n = next; n < next + size; ++n)
      ASSERT_TRUE(pool.push(n));
    ASSERT_TRUE(gates.await_inside(std::min<Number>(size, 6))) << "burst of " << size;
    for (Number n = next; n < next + size; ++n)
      gates.open(n);
    for (Number n = next; n < next + size; ++n)
      ASSERT_EQ(pool.pop(), n);
    next += size;
    ASSERT_TRUE(eventually([&] { return pool.stats().running == 0; }));
  }
}

TEST_F(PoolCallersTest, OneAtATimeThroughAnIdlePool) {
  NumberPool pool([](Number n) { return n + 1; }, {.workers = 4, .preserve_order = true});
  for (Number n = 0; n < 5'000; ++n) {
    ASSERT_TRUE(pool.push(n));
    ASSERT_EQ(pool.pop(), n + 1);
  }
}

// ---- calls that race with the end

TEST_F(PoolCallersTest, AnInputIsEitherRefusedOrAccountedForWhenCloseRaces) {
  for (int round = 0; round < 100; ++round) {
    NumberPool pool([](Number n) { return n; },
                    {.workers = 2, .preserve_order = round % 2 == 0, .order_buffer_size = 4});
    std::atomic<Number> admitted = 0;
    Threads producers;
    for (int i = 0; i < 3; ++i) {
      producers.push_back(std::make_unique<Background>([&] {
        while (pool.push(1))
          ++admitted;
      }));
    }
    for (int i = 0; i < round; ++i)
      ASSERT_TRUE(pool.pop());
    Background closer([&] { pool.close(); });
    Number taken = static_cast<Number>(round);
    while (pool.pop())
      ++taken;
    producers.clear();
    EXPECT_EQ(taken, admitted);
    EXPECT_EQ(pool.stats().admitted, admitted);
    EXPECT_EQ(pool.stats().delivered, admitted);
  }
}

TEST_F(PoolCallersTest, AnInputIsEitherRefusedOrAccountedForWhenStopRaces) {
  for (int round = 0; round < 100; ++round) {
    NumberPool pool([](Number n) { return n; },
                    {.workers = 3, .preserve_order = round % 2 == 0, .order_buffer_size = 4});
    std::atomic<Number> admitted = 0;
    std::atomic<Number> taken = 0;
    Threads callers;
    for (int i = 0; i < 2; ++i) {
      callers.push_back(std::make_unique<Background>([&] {
        while (pool.push(1))
          ++admitted;
      }));
      callers.push_back(std::make_unique<Background>([&] {
        while (pool.pop())
          ++taken;
      }));
    }
    ASSERT_TRUE(eventually([&] { return taken > 10; }));
    const Numbers undone = pool.stop(10s);
    callers.clear();
    const PoolStats stats = pool.stats();
    EXPECT_EQ(stats.admitted, admitted);
    EXPECT_EQ(stats.delivered, taken);
    EXPECT_EQ(stats.undone, undone.size());
    expect_conserved(stats);
  }
}

TEST_F(PoolCallersTest, AHandlerThatReturnsJustWhenStopGivesItUpIsCountedOnce) {
  for (int round = 0; round < 600; ++round) {
    const bool ordered = round % 2 == 0;
    const bool emits = round % 3 == 0;
    Gates<> gates;
    std::mutex mutex;
    Numbers emitted;
    const auto work = [&](Number n) {
      gates.enter(n);
      if (n == 1 && round % 5 != 0) throw 1;
      return n;
    };
    const auto emit = [&](Number n) {
      std::lock_guard guard(mutex);
      emitted.push_back(n);
    };
    Reports<Number> reports;
    const PoolOptions<Number> options =
        reports.watch({.workers = 3, .preserve_order = ordered, .order_buffer_size = 8});
    auto pool = emits ? std::make_unique<NumberPool>(work, emit, options)
                      : std::make_unique<NumberPool>(work, options);
    for (Number n = 0; n < 5; ++n)
      ASSERT_TRUE(pool->push(n));
    ASSERT_TRUE(gates.await_inside(3));
    Numbers undone;
    {
      Background stopper([&] { undone = pool->stop(0s); });
      Background opener([&] { gates.open_all(); });
    }
    const PoolStats stats = pool->stats();
    pool.reset();
    ASSERT_EQ(stats.undone, undone.size()) << "round " << round;
    ASSERT_EQ(stats.failed, reports.failed().size()) << "round " << round;
    ASSERT_EQ(stats.delivered, emitted.size()) << "round " << round;
    testing_support::expect_partition({emitted, undone, reports.failed()}, 5);
  }
}

TEST_F(PoolCallersTest, StopFromManyThreadsListsEveryUndoneInputOnce) {
  for (int round = 0; round < 50; ++round) {
    NumberPool pool([](Number n) { return n; },
                    {.workers = 2, .preserve_order = true, .order_buffer_size = 16});
    for (Number n = 0; n < 16; ++n)
      ASSERT_TRUE(pool.push(n));
    std::mutex mutex;
    Numbers all;
    Threads stoppers;
    for (int i = 0; i < 4; ++i) {
      stoppers.push_back(std::make_unique<Background>([&] {
        const Numbers mine = pool.stop(10s);
        std::lock_guard guard(mutex);
        all.insert(all.end(), mine.begin(), mine.end());
      }));
    }
    stoppers.clear();
    EXPECT_EQ(sorted(all), numbers(0, 16));
  }
}

TEST_F(PoolCallersTest, APoolMayBeDestroyedWithWorkInside) {
  for (int round = 0; round < 60; ++round) {
    std::atomic<int> inside = 0;
    std::atomic<int> cleanups = 0;
    {
      PoolOptions<Number> options{.workers = 3,
                                  .buffer_size = static_cast<std::size_t>(round % 3),
                                  .preserve_order = round % 2 == 0,
                                  .order_buffer_size = 16,
                                  .on_cleanup = [&] { ++cleanups; }};
      if (round % 3 == 0) options.partition_key = [](Number n) { return n % 2; };
      NumberPool pool(
          [&](Number n) {
            ++inside;
            std::this_thread::yield();
            --inside;
            return n;
          },
          options);
      for (Number n = 0; n < static_cast<Number>(round % 17); ++n)
        ASSERT_TRUE(pool.push(n));
      if (round % 5 == 0) pool.close();
    }
    EXPECT_EQ(inside, 0);
    EXPECT_EQ(cleanups, 1);
  }
}

TEST_F(PoolCallersTest, InputsAndOutputsAreDestroyedWithThePool) {
  const auto token = std::make_shared<int>(1);
  {
    using Shared = std::shared_ptr<int>;
    Pool<Shared, Shared> pool([](const Shared& shared) { return std::vector<Shared>(3, shared); },
                              {.workers = 2, .buffer_size = 2, .order_buffer_size = 8});
    for (int n = 0; n < 8; ++n)
      ASSERT_TRUE(pool.push(token));
    ASSERT_TRUE(pool.pop());
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST_F(PoolCallersTest, AnInputThatWasDeliveredIsNotKept) {
  const auto token = std::make_shared<int>(1);
  using Shared = std::shared_ptr<int>;
  Pool<Shared, int> pool([](const Shared& shared) { return *shared; },
                         {.workers = 1, .preserve_order = true, .order_buffer_size = 8});
  for (int n = 0; n < 20; ++n) {
    ASSERT_TRUE(pool.push(token));
    ASSERT_EQ(pool.pop(), 1);
  }
  EXPECT_TRUE(eventually([&] { return token.use_count() == 1; }))
      << token.use_count() - 1 << " inputs are still held";
}

}  // namespace
}  // namespace ordo
