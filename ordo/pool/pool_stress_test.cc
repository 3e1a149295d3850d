// Free-running threads, for the sanitizers: nothing is choreographed, only promises are checked.
// Every test ends by itself after a fixed number of items, well below three seconds.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/pool/pool.h"
#include "tests/support/pool_probe.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::Background;
using testing_support::expect_conserved;
using testing_support::Watchdog;
using Number = std::uint64_t;
using Numbers = std::vector<Number>;
using NumberPool = Pool<Number, Number>;
using Threads = std::vector<std::unique_ptr<Background>>;

class PoolStressTest : public testing::Test {
 protected:
  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

// A little work of uneven size, so that items overtake one another.
Number churn(Number n) {
  Number value = n * 0x9e3779b97f4a7c15u;
  for (Number i = 0; i < value % 64; ++i)
    value ^= value << 13, value ^= value >> 7;
  if (n % 97 == 0) std::this_thread::yield();
  return value;
}

// `producers` push `count` inputs in all, `consumers` take them; returns how many came out.
Number run_free(NumberPool& pool, int producers, int consumers, Number count) {
  std::atomic<Number> next = 0;
  std::atomic<int> left = producers;
  std::atomic<Number> taken = 0;
  Threads threads;
  for (int i = 0; i < producers; ++i) {
    threads.push_back(std::make_unique<Background>([&] {
      for (Number n = next++; n < count && pool.push(n); n = next++) {
      }
      if (--left == 0) pool.close();
    }));
  }
  for (int i = 0; i < consumers; ++i) {
    threads.push_back(std::make_unique<Background>([&] {
      while (pool.pop())
        ++taken;
    }));
  }
  threads.clear();
  return taken;
}

TEST_F(PoolStressTest, ManyProducersAndConsumersInEveryMode) {
  for (int mode = 0; mode < 3; ++mode) {
    PoolOptions<Number> options{
        .workers = 4, .buffer_size = 5, .preserve_order = mode == 0, .order_buffer_size = 32};
    if (mode == 2) options.partition_key = [](Number n) { return n % 11; };
    NumberPool pool([](Number n) { return churn(n); }, options);
    EXPECT_EQ(run_free(pool, 4, 3, 8'000), 8'000u);
    EXPECT_EQ(pool.stats().delivered, 8'000u);
    expect_conserved(pool.stats());
  }
}

TEST_F(PoolStressTest, TinyWindowsWithFewAndManyWorkers) {
  for (const std::size_t workers : {2u, 8u, 32u}) {
    for (const std::size_t window : {1u, 2u, 3u, 7u}) {
      NumberPool pool([](Number n) { return churn(n); },
                      {.workers = workers, .preserve_order = true, .order_buffer_size = window});
      EXPECT_EQ(run_free(pool, 2, 2, 1'000), 1'000u);
      EXPECT_LE(pool.stats().window_peak, window);
    }
  }
}

TEST_F(PoolStressTest, OutputsAreInOrderUnderFullLoad) {
  for (const std::size_t workers : {2u, 5u, 16u, 32u}) {
    NumberPool pool([](Number n) { return churn(n), n; },
                    {.workers = workers, .preserve_order = true, .order_buffer_size = 64});
    Background producer([&] {
      for (Number n = 0; n < 10'000; ++n)
        pool.push(n);
      pool.close();
    });
    Number expected = 0;
    while (auto output = pool.pop())
      ASSERT_EQ(*output, expected++);
    EXPECT_EQ(expected, 10'000u);
  }
}

TEST_F(PoolStressTest, FailuresEmptyResultsAndManyOutputsUnderFullLoad) {
  for (int mode = 0; mode < 3; ++mode) {
    std::atomic<Number> reported = 0;
    std::atomic<Number> emitted = 0;
    PoolOptions<Number> options{.workers = 4,
                                .preserve_order = mode == 0,
                                .order_buffer_size = 16,
                                .on_error = [&](const Number&, std::exception_ptr) { ++reported; }};
    if (mode == 2) options.partition_key = [](Number n) { return n % 5; };
    const auto work = [](Number n) -> Numbers {
      if (n % 10 == 0) throw std::runtime_error("ten");
      if (n % 10 == 1) throw 1;
      return Numbers(n % 4, churn(n));
    };
    NumberPool popped(work, options);
    const Number taken = run_free(popped, 2, 2, 4'000);
    EXPECT_EQ(reported, 800u);
    EXPECT_EQ(popped.stats().outputs, taken);
    expect_conserved(popped.stats());

    NumberPool pushed(
        work, [&](Number) { ++emitted; }, options);
    EXPECT_EQ(run_free(pushed, 3, 1, 4'000), 0u);
    EXPECT_EQ(emitted, taken);
    EXPECT_EQ(reported, 1'600u);
    expect_conserved(pushed.stats());
  }
}

TEST_F(PoolStressTest, StoppedInTheMiddle) {
  for (int round = 0; round < 40; ++round) {
    PoolOptions<Number> options{.workers = 2 + static_cast<std::size_t>(round % 5),
                                .buffer_size = static_cast<std::size_t>(round % 4),
                                .preserve_order = round % 3 == 0,
                                .order_buffer_size = 1 + static_cast<std::size_t>(round % 20)};
    if (round % 3 == 2) options.partition_key = [](Number n) { return n % 7; };
    std::atomic<Number> failed = 0;
    options.on_error = [&](const Number&, std::exception_ptr) { ++failed; };
    NumberPool pool(
        [](Number n, std::stop_token) -> Number {
          if (n % 13 == 5) throw "no";
          return churn(n);
        },
        options);
    std::atomic<Number> taken = 0;
    std::atomic<Number> admitted = 0;
    Threads callers;
    for (int i = 0; i < 3; ++i) {
      callers.push_back(std::make_unique<Background>([&] {
        while (pool.push(admitted))
          ++admitted;
      }));
      callers.push_back(std::make_unique<Background>([&] {
        while (pool.pop())
          ++taken;
      }));
    }
    std::atomic<bool> stopped = false;
    callers.push_back(std::make_unique<Background>([&] {
      while (!stopped)
        EXPECT_LE(pool.stats().window_used, pool.stats().window);
    }));
    while (taken < static_cast<Number>(round) * 20)
      std::this_thread::yield();
    const Numbers undone = pool.stop(10s);
    const PoolStats stats = pool.stats();
    stopped = true;
    callers.clear();
    EXPECT_EQ(stats.undone, undone.size());
    EXPECT_EQ(stats.admitted, admitted);
    EXPECT_EQ(stats.failed, failed);
    EXPECT_EQ(stats.delivered, taken);
    expect_conserved(stats);
  }
}

// Looks at the counters all the time: they never go back, and never show more than there can be.
void expect_plausible_counters(const NumberPool& pool, const std::atomic<bool>& enough) {
  PoolStats before;
  while (!enough) {
    const PoolStats stats = pool.stats();
    ASSERT_LE(stats.window_used, stats.window);
    ASSERT_LE(stats.delivered + stats.failed, stats.admitted);
    ASSERT_GE(stats.admitted, before.admitted);
    ASSERT_GE(stats.delivered, before.delivered);
    ASSERT_GE(stats.failed, before.failed);
    ASSERT_LE(stats.running, stats.workers_max);
    before = stats;
  }
}

TEST_F(PoolStressTest, CountersArePlausibleWhileItemsFailAndFlow) {
  for (const std::size_t window : {1u, 3u, 16u}) {
    for (const bool ordered : {true, false}) {
      NumberPool pool([](Number n) -> Number { return n % 3 == 0 ? throw 3 : churn(n); },
                      {.workers = 3,
                       .preserve_order = ordered,
                       .order_buffer_size = window,
                       .on_error = [](const Number&, std::exception_ptr) {}});
      std::atomic<bool> enough = false;
      Background onlooker([&] { expect_plausible_counters(pool, enough); });
      EXPECT_EQ(run_free(pool, 2, 2, 1'200), 800u);
      enough = true;
      expect_conserved(pool.stats());
    }
  }
}

TEST_F(PoolStressTest, DestroyedInTheMiddle) {
  for (int round = 0; round < 60; ++round) {
    std::atomic<int> running = 0;
    {
      PoolOptions<Number> options{.workers = 2 + static_cast<std::size_t>(round % 7),
                                  .preserve_order = round % 2 == 0,
                                  .order_buffer_size = 32};
      const auto work = [&](Number n) {
        ++running;
        const Number value = churn(n);
        --running;
        return value;
      };
      std::atomic<Number> emitted = 0;
      NumberPool pool(
          work, [&](Number) { ++emitted; }, options);
      for (Number n = 0; n < static_cast<Number>(round) * 9; ++n)
        ASSERT_TRUE(pool.push(n));
    }
    EXPECT_EQ(running, 0);
  }
}

TEST_F(PoolStressTest, GrowingAndShrinkingAllTheTime) {
  std::atomic<int> running = 0;
  std::atomic<int> peak = 0;
  PoolOptions<Number> options{.workers = 1,
                              .autoscale = Autoscale{.min_workers = 1,
                                                     .max_workers = 6,
                                                     .scale_up_cooldown = 50us,
                                                     .scale_down_cooldown = 50us,
                                                     .scale_down_after = 100us,
                                                     .check_interval = 50us,
                                                     .step = 2},
                              .preserve_order = true,
                              .order_buffer_size = 24};
  NumberPool pool(
      [&](Number n) {
        const int now = ++running;
        int seen = peak.load();
        while (seen < now && !peak.compare_exchange_weak(seen, now)) {
        }
        churn(n);
        --running;
        return n;
      },
      options);
  Background producer([&] {
    for (Number n = 0; n < 20'000; ++n) {
      pool.push(n);
      // Idle now and then, until the pool is back at its minimum or has had time to try.
      for (int i = 0; n % 2'000 == 0 && i < 2'000 && pool.stats().workers > 1; ++i) {
        std::this_thread::yield();
      }
    }
    pool.close();
  });
  Number expected = 0;
  while (auto output = pool.pop())
    ASSERT_EQ(*output, expected++);
  EXPECT_EQ(expected, 20'000u);
  EXPECT_LE(peak, 6);
  EXPECT_EQ(pool.stats().workers_max, 6u);
  expect_conserved(pool.stats());
}

TEST_F(PoolStressTest, TimeoutsThatRaceWithResults) {
  std::atomic<Number> failed = 0;
  std::atomic<Number> late = 0;
  PoolOptions<Number> options{
      .workers = 4,
      .preserve_order = true,
      .order_buffer_size = 16,
      .order_timeout = 60us,
      .process_timeout = 40us,
      .on_error = [&](const Number&, std::exception_ptr) { ++failed; },
  };
  options.on_late = [&](const Number&) { ++late; };
  NumberPool pool(
      [](Number n, std::stop_token token) {
        const TimePoint until = system_clock().now() + std::chrono::microseconds(n % 80);
        while (system_clock().now() < until && !token.stop_requested())
          std::this_thread::yield();
        return n;
      },
      options);
  Background producer([&] {
    for (Number n = 0; n < 3'000; ++n)
      pool.push(n);
    pool.close();
  });
  Number last = 0;
  Number taken = 0;
  while (auto output = pool.pop()) {
    ASSERT_TRUE(taken == 0 || *output > last) << *output << " after " << last;
    last = *output;
    ++taken;
  }
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.delivered, taken);
  EXPECT_EQ(stats.failed, failed);
  EXPECT_EQ(stats.late, late);
  expect_conserved(stats);
}

}  // namespace
}  // namespace ordo
