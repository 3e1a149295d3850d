// The rules of the pool that the obvious implementation gets wrong, one group of tests per rule.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
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
using testing_support::expect_partition;
using testing_support::Gates;
using testing_support::numbers;
using testing_support::Reports;
using testing_support::sorted;
using testing_support::Watchdog;
using Number = std::uint64_t;
using NumberPool = Pool<Number, Number>;
using Numbers = std::vector<Number>;

class PoolRule : public testing::Test {
 protected:
  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  ManualClock clock_;
  Reports<Number> reports_;
};

struct Odd {};  // Not derived from anything.

// One handler for each way to throw.
const std::vector<std::pair<std::function<void()>, std::string>>& ways_to_throw() {
  static const std::vector<std::pair<std::function<void()>, std::string>> ways = {
      {[] { throw 7; }, "int 7"},
      {[] { throw "why"; }, "text why"},
      {[] { throw std::exception(); }, std::exception().what()},
      {[] { throw std::runtime_error("broken"); }, "broken"},
      {[] { throw std::string("long"); }, "string long"},
      {[] { throw Odd(); }, "something else"},
      {[] { throw nullptr; }, "text (null)"},
      {[] {
         try {
           throw 1;
         } catch (...) {
           std::throw_with_nested(std::logic_error("outer"));
         }
       },
       "outer"},
      {[] { throw std::bad_alloc(); }, std::bad_alloc().what()},
  };
  return ways;
}

using LineNeverStalls = PoolRule;

TEST_F(LineNeverStalls, OnAnExceptionOfAnyType) {
  const auto& ways = ways_to_throw();
  for (const bool with_workers : {false, true}) {
    Reports<Number> reports;
    NumberPool pool(
        [&](Number n) -> Number {
          if (n % 2 == 1) ways[n / 2].first();
          return n;
        },
        reports.watch(
            {.workers = with_workers ? 4u : 1u, .preserve_order = true, .order_buffer_size = 64}));
    const Number count = 2 * ways.size();
    for (Number n = 0; n < count; ++n)
      ASSERT_TRUE(pool.push(n));
    pool.close();

    std::map<Number, std::string> expected;
    Numbers outputs;
    for (Number n = 0; n < count; ++n) {
      if (n % 2 == 1) {
        expected[n] = ways[n / 2].second;
      } else {
        outputs.push_back(n);
      }
    }
    EXPECT_EQ(drain(pool), outputs);
    std::map<Number, std::string> reported;
    const auto failed = reports.failed();
    const auto errors = reports.errors();
    for (std::size_t i = 0; i < failed.size(); ++i) {
      EXPECT_TRUE(reported.emplace(failed[i], errors[i]).second) << failed[i] << " reported twice";
    }
    EXPECT_EQ(reported, expected);
    EXPECT_EQ(pool.stats().failed, expected.size());
    expect_conserved(pool.stats());
  }
}

TEST_F(LineNeverStalls, WhenEveryItemFailsAndNobodyTakesAnything) {
  NumberPool pool([](Number) -> Number { throw 1; },
                  reports_.watch({.workers = 4, .preserve_order = true}));
  for (Number n = 0; n < 1'000; ++n)
    ASSERT_TRUE(pool.push(n));
  pool.close();
  pool.wait();
  EXPECT_EQ(sorted(reports_.failed()), numbers(0, 1'000));
  EXPECT_EQ(pool.stats().failed, 1'000u);
  EXPECT_FALSE(pool.pop());
}

TEST_F(LineNeverStalls, InAnyModeWhenTheFirstTheMiddleAndTheLastFail) {
  for (int mode = 0; mode < 3; ++mode) {
    PoolOptions<Number> options{.workers = 3, .preserve_order = mode == 0};
    if (mode == 2) options.partition_key = [](Number n) { return n % 2; };
    Reports<Number> reports;
    NumberPool pool(
        [](Number n) -> Number {
          if (n == 0 || n == 50 || n == 99) throw "no";
          return n;
        },
        reports.watch(options));
    Background producer([&] {
      for (Number n = 0; n < 100; ++n)
        pool.push(n);
      pool.close();
    });
    const Numbers outputs = drain(pool);
    EXPECT_TRUE(mode != 0 || std::is_sorted(outputs.begin(), outputs.end()));
    EXPECT_EQ(sorted(reports.failed()), (Numbers{0, 50, 99})) << "mode " << mode;
    expect_partition({outputs, reports.failed()}, 100);
  }
}

TEST_F(LineNeverStalls, OnAnEmptyResult) {
  NumberPool optional(
      [](Number n) { return n % 3 == 0 ? std::optional<Number>() : std::optional<Number>(n); },
      {.workers = 2, .preserve_order = true, .order_buffer_size = 16});
  NumberPool vector([](Number n) { return Numbers(n % 3, n); },
                    {.workers = 2, .preserve_order = true, .order_buffer_size = 16});
  for (Number n = 0; n < 9; ++n) {
    ASSERT_TRUE(optional.push(n));
    ASSERT_TRUE(vector.push(n));
  }
  optional.close();
  vector.close();
  EXPECT_EQ(drain(optional), (Numbers{1, 2, 4, 5, 7, 8}));
  EXPECT_EQ(drain(vector), (Numbers{1, 2, 2, 4, 5, 5, 7, 8, 8}));
  EXPECT_EQ(optional.stats().delivered, 9u);
  EXPECT_EQ(vector.stats().delivered, 9u);
}

TEST_F(LineNeverStalls, OnNothingButEmptyResultsWithoutAConsumer) {
  NumberPool pool([](Number) { return std::optional<Number>(); },
                  {.workers = 2, .preserve_order = true, .order_buffer_size = 2});
  for (Number n = 0; n < 500; ++n)
    ASSERT_TRUE(pool.push(n));
  pool.close();
  pool.wait();
  EXPECT_EQ(pool.stats().delivered, 500u);
}

TEST_F(LineNeverStalls, OnATimedOutItemWhoseHandlerIgnoresItsToken) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n, std::stop_token token) {
        gates.enter(n, token);
        return n;
      },
      reports_.watch({.workers = 2,
                      .preserve_order = true,
                      .order_buffer_size = 8,
                      .process_timeout = 100ms,
                      .clock = &clock_}));
  ASSERT_TRUE(pool.push(0));
  ASSERT_TRUE(gates.await(0));
  clock_.advance(50ms);  // The others start later, so that their time is not over with the first's.
  for (Number n = 1; n < 4; ++n) {
    gates.open(n);
    ASSERT_TRUE(pool.push(n));
  }
  ASSERT_TRUE(gates.await_left_count(3));
  EXPECT_FALSE(gates.stop_requested(0));

  clock_.advance(50ms);
  EXPECT_EQ(pool.pop(), 1u);
  EXPECT_EQ(pool.pop(), 2u);
  EXPECT_EQ(pool.pop(), 3u);
  EXPECT_TRUE(eventually([&] { return gates.stop_requested(0); }));
  EXPECT_TRUE(eventually([&] { return reports_.failed() == Numbers{0}; }));
  EXPECT_EQ(reports_.errors(), std::vector<std::string>{"ProcessTimeout"});

  gates.open(0);  // What it returns now is dropped.
  pool.close();
  EXPECT_EQ(drain(pool), Numbers{});
  EXPECT_EQ(pool.stats().failed, 1u);
  EXPECT_EQ(pool.stats().delivered, 3u);
  EXPECT_EQ(reports_.failed().size(), 1u);
}

TEST_F(LineNeverStalls, OnATimedOutItemWhoseHandlerThrowsWhenItsTokenFires) {
  std::atomic<int> entered = 0;
  NumberPool pool(
      [&](Number n, std::stop_token token) -> Number {
        if (n == 0) {
          ++entered;
          eventually([&] { return token.stop_requested(); });
          throw std::runtime_error("gave up");
        }
        return n;
      },
      reports_.watch({.workers = 1,
                      .preserve_order = true,
                      .order_buffer_size = 4,
                      .process_timeout = 1s,
                      .clock = &clock_}));
  ASSERT_TRUE(pool.push(0));
  ASSERT_TRUE(pool.push(1));
  pool.close();
  ASSERT_TRUE(eventually([&] { return entered == 1; }));
  clock_.advance(1s);
  EXPECT_EQ(drain(pool), Numbers{1});
  EXPECT_EQ(reports_.errors(), std::vector<std::string>{"ProcessTimeout"});
}

TEST_F(LineNeverStalls, OnAHeadThatOrderTimeoutSkips) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n, std::stop_token token) {
        gates.enter(n, token);
        return n;
      },
      reports_.watch({.workers = 2,
                      .preserve_order = true,
                      .order_buffer_size = 8,
                      .order_timeout = 10ms,
                      .clock = &clock_}));
  for (Number n = 0; n < 3; ++n)
    ASSERT_TRUE(pool.push(n));
  gates.open(1);
  gates.open(2);
  ASSERT_TRUE(gates.await_left_count(2));
  ASSERT_TRUE(gates.await(0));
  clock_.advance(10ms);
  EXPECT_EQ(pool.pop(), 1u);
  EXPECT_EQ(pool.pop(), 2u);
  EXPECT_TRUE(eventually([&] { return gates.stop_requested(0); }));
  EXPECT_TRUE(eventually([&] { return reports_.late() == Numbers{0}; }));
  EXPECT_EQ(pool.stats().late, 1u);

  pool.close();
  gates.open(0);  // Late: never emitted, never failed.
  EXPECT_EQ(drain(pool), Numbers{});
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.late, 1u);
  EXPECT_EQ(stats.failed, 0u);
  EXPECT_EQ(stats.delivered, 2u);
  EXPECT_EQ(reports_.failed(), Numbers{});
}

TEST_F(LineNeverStalls, OnACancelledItem) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n, std::stop_token token) {
        gates.enter(n, token);
        return n;
      },
      reports_.watch({.workers = 2, .preserve_order = true, .order_buffer_size = 4}));
  for (Number n = 0; n < 4; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(2));
  Background popper([&] { EXPECT_FALSE(pool.pop()); });
  Background waiter([&] { pool.wait(); });
  Background pusher([&] { EXPECT_FALSE(pool.push(9)); });
  const Numbers undone = pool.stop(0ms);
  EXPECT_TRUE(popper.finished());
  EXPECT_TRUE(pusher.finished());
  EXPECT_TRUE(waiter.finished());
  EXPECT_EQ(sorted(undone), numbers(0, 4));
  EXPECT_TRUE(gates.stop_requested(0));
  gates.open_all();
}

TEST_F(LineNeverStalls, WhenTheErrorReportItselfThrows) {
  std::atomic<int> calls = 0;
  NumberPool pool(
      [](Number n) -> Number {
        if (n % 2 == 0) throw 1;
        return n;
      },
      {.workers = 2, .preserve_order = true, .on_error = [&](const Number&, std::exception_ptr) {
         ++calls;
         throw std::runtime_error("in the report");
       }});
  Background producer([&] {
    for (Number n = 0; n < 10; ++n)
      pool.push(n);
    pool.close();
  });
  EXPECT_EQ(drain(pool), (Numbers{1, 3, 5, 7, 9}));
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(pool.stats().failed, 5u);
}

TEST_F(LineNeverStalls, WhenNobodyAskedForErrors) {
  NumberPool pool(
      [](Number n) -> Number {
        if (n < 50) throw Odd();
        return n;
      },
      {.workers = 2, .preserve_order = true});
  Background producer([&] {
    for (Number n = 0; n < 60; ++n)
      pool.push(n);
    pool.close();
  });
  EXPECT_EQ(drain(pool), numbers(50, 60));
}

using WindowAtAdmission = PoolRule;

TEST_F(WindowAtAdmission, ABlockedFirstItemLetsExactlyTheWindowStart) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n) {
        gates.enter(n);
        return n;
      },
      {.workers = 4, .preserve_order = true, .order_buffer_size = 8});
  for (Number n = 1; n < 100; ++n)
    gates.open(n);
  Background producer([&] {
    for (Number n = 0; n < 100; ++n)
      EXPECT_TRUE(pool.push(n));
    pool.close();
  });
  ASSERT_TRUE(gates.await_left_count(7));
  ASSERT_TRUE(gates.await(0));
  ASSERT_TRUE(eventually([&] { return pool.stats().running == 1; }));
  EXPECT_EQ(sorted(gates.started()), numbers(0, 8));
  EXPECT_EQ(gates.left_count(), 7u);
  EXPECT_EQ(pool.stats().admitted, 8u);
  EXPECT_EQ(pool.stats().window_used, 8u);
  EXPECT_FALSE(pool.try_push(100));
  EXPECT_FALSE(pool.try_pop());

  gates.open(0);
  EXPECT_EQ(drain(pool), numbers(0, 100));
  EXPECT_LE(pool.stats().window_peak, 8u);
}

TEST_F(WindowAtAdmission, EveryWindowIsExactForEveryNumberOfWorkers) {
  for (std::size_t window = 1; window <= 9; ++window) {
    for (const std::size_t workers : {1u, 2u, 5u, 8u}) {
      Gates<> gates;
      NumberPool pool(
          [&](Number n) {
            gates.enter(n);
            return n;
          },
          {.workers = workers, .preserve_order = true, .order_buffer_size = window});
      Number next = 0;
      while (next < 100 && pool.try_push(next))
        ++next;
      ASSERT_EQ(next, window) << workers << " workers";
      ASSERT_TRUE(gates.await_inside(std::min(window, workers)));
      EXPECT_EQ(sorted(gates.started()), numbers(0, std::min(window, workers)));
      gates.open_all();
      ASSERT_TRUE(gates.await_left_count(window));
      EXPECT_FALSE(pool.try_push(99)) << "nothing was taken, so nothing has left the window";
      EXPECT_EQ(pool.pop(), 0u);
      EXPECT_TRUE(pool.try_push(next++)) << "window " << window << ", workers " << workers;
      EXPECT_FALSE(pool.try_push(99));
      pool.close();
      EXPECT_EQ(drain(pool), numbers(1, next));
      EXPECT_EQ(pool.stats().window_peak, window);
    }
  }
}

TEST_F(WindowAtAdmission, WindowOneAndWindowBelowWorkersWork) {
  for (const std::size_t window : {1u, 2u, 3u}) {
    for (int mode = 0; mode < 3; ++mode) {
      std::atomic<std::size_t> running = 0;
      std::atomic<std::size_t> peak = 0;
      PoolOptions<Number> options{
          .workers = 4, .preserve_order = mode == 0, .order_buffer_size = window};
      if (mode == 2) options.partition_key = [](Number n) { return n; };
      NumberPool pool(
          [&](Number n) {
            const std::size_t now = ++running;
            std::size_t seen = peak.load();
            while (seen < now && !peak.compare_exchange_weak(seen, now)) {
            }
            --running;
            return n;
          },
          options);
      Background producer([&] {
        for (Number n = 0; n < 2'000; ++n)
          EXPECT_TRUE(pool.push(n));
        pool.close();
      });
      const Numbers outputs = drain(pool);
      EXPECT_EQ(mode == 0 ? outputs : sorted(outputs), numbers(0, 2'000));
      EXPECT_LE(peak, window);
      EXPECT_LE(pool.stats().window_peak, window);
    }
  }
}

TEST_F(WindowAtAdmission, FailedItemsBehindABlockedHeadKeepTheirPlace) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n) -> Number {
        if (n != 0) throw 1;
        gates.enter(n);
        return n;
      },
      reports_.watch({.workers = 4, .preserve_order = true, .order_buffer_size = 4}));
  for (Number n = 0; n < 4; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await(0));
  ASSERT_TRUE(eventually([&] { return pool.stats().running == 1; }));
  EXPECT_FALSE(pool.try_push(4)) << "three failed, but they are not released before the head";
  gates.open(0);
  EXPECT_EQ(pool.pop(), 0u);
  EXPECT_TRUE(eventually([&] { return pool.stats().window_used == 0; }));
  EXPECT_EQ(pool.stats().failed, 3u);
}

using StoppedConsumer = PoolRule;

// Nobody calls pop(); the account must be exact whatever the handlers do meanwhile.
void stop_without_consumer(PoolOptions<Number> options, bool handlers_block) {
  Gates<> gates;
  Reports<Number> reports;
  if (!handlers_block) gates.open_all();
  NumberPool pool(
      [&](Number n, std::stop_token token) -> Number {
        gates.enter(n, token);
        if (n % 4 == 3) throw 3;
        return n;
      },
      reports.watch(std::move(options)));
  Number admitted = 0;
  while (admitted < 1'000 && pool.try_push(admitted))
    ++admitted;
  const Number blocked = handlers_block ? std::min<Number>(admitted, 4) : 0;
  ASSERT_TRUE(gates.await_inside(blocked) || !handlers_block);
  bool one_more = false;  // A failed item may leave room for it.
  auto producer = std::make_unique<Background>([&] { one_more = pool.push(admitted); });

  // The handlers that block do so until stop() has returned: it cannot wait for them.
  const Numbers undone = pool.stop(50ms);
  producer.reset();
  admitted += one_more ? 1 : 0;

  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.admitted, admitted);
  EXPECT_EQ(stats.delivered, 0u);
  EXPECT_EQ(stats.undone, undone.size());
  EXPECT_EQ(stats.failed, reports.failed().size());
  expect_conserved(stats);
  expect_partition({undone, reports.failed()}, admitted);
  EXPECT_FALSE(pool.pop());
  EXPECT_FALSE(pool.push(1));
  EXPECT_EQ(pool.stop(50ms), Numbers{}) << "a second stop has nothing to tell";
  gates.open_all();
}

TEST_F(StoppedConsumer, StopReturnsInTimeAndAccountsForEveryInput) {
  for (const bool handlers_block : {false, true}) {
    for (const std::size_t buffer_size : {0u, 5u}) {
      PoolOptions<Number> options{
          .workers = 4, .buffer_size = buffer_size, .order_buffer_size = 16};
      stop_without_consumer(options, handlers_block);
      options.preserve_order = true;
      stop_without_consumer(options, handlers_block);
      options.partition_key = [](Number n) { return n; };
      stop_without_consumer(options, handlers_block);
    }
  }
}

TEST_F(StoppedConsumer, WhatWasTakenBeforeIsNotUndone) {
  NumberPool pool([](Number n) { return n; },
                  {.workers = 2, .preserve_order = true, .order_buffer_size = 10});
  for (Number n = 0; n < 10; ++n)
    ASSERT_TRUE(pool.push(n));
  for (Number n = 0; n < 4; ++n)
    ASSERT_EQ(pool.pop(), n);
  EXPECT_EQ(sorted(pool.stop(50ms)), numbers(4, 10));
  EXPECT_EQ(pool.stats().delivered, 4u);
  EXPECT_EQ(pool.stats().undone, 6u);
}

// What the constructor says about these options; empty when it accepts them.
std::string refusal(PoolOptions<Number> options) {
  try {
    NumberPool pool([](Number n) { return n; }, std::move(options));
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

PoolOptions<Number> scaled(Autoscale autoscale) {
  return {.autoscale = autoscale};
}

using BadOptions = PoolRule;

TEST_F(BadOptions, AreRefusedWithTheNameOfTheField) {
  const auto key = [](Number n) { return n; };
  const std::vector<std::pair<std::string, PoolOptions<Number>>> cases = {
      {"workers", {.workers = 0}},
      {"min_workers", scaled({.min_workers = 0, .max_workers = 2})},
      {"max_workers", scaled({.min_workers = 3, .max_workers = 2})},
      {"max_workers", scaled({.min_workers = 1, .max_workers = 0})},
      {"max_workers", {.workers = 5, .autoscale = Autoscale{.max_workers = 4}}},
      {"step", scaled({.max_workers = 2, .step = 0})},
      {"scale_up_cooldown", scaled({.max_workers = 2, .scale_up_cooldown = -1s})},
      {"scale_down_cooldown", scaled({.max_workers = 2, .scale_down_cooldown = -1s})},
      {"scale_down_after", scaled({.max_workers = 2, .scale_down_after = -1s})},
      {"check_interval", scaled({.max_workers = 2, .check_interval = 0s})},
      {"check_interval", scaled({.max_workers = 2, .check_interval = -1s})},
      {"order_timeout", {.preserve_order = true, .order_timeout = 0s}},
      {"order_timeout", {.preserve_order = true, .order_timeout = -1ns}},
      {"order_timeout", {.preserve_order = false, .order_timeout = 1s}},
      {"order_timeout", {.preserve_order = true, .order_timeout = 1s, .partition_key = key}},
      {"process_timeout", {.process_timeout = 0s}},
      {"process_timeout", {.process_timeout = -5ms}},
  };
  for (const auto& [field, options] : cases) {
    EXPECT_NE(refusal(options).find(field), std::string::npos)
        << "expected " << field << " in: '" << refusal(options) << "'";
  }
}

TEST_F(BadOptions, AreRefusedByTheConstructorWithEmitToo) {
  EXPECT_THROW(NumberPool([](Number n) { return n; }, [](Number) {}, {.workers = 0}),
               std::invalid_argument);
}

TEST_F(BadOptions, WindowZeroWithOrderOnIsTheDocumentedDefault) {
  NumberPool fixed([](Number n) { return n; }, {.workers = 3, .preserve_order = true});
  EXPECT_EQ(fixed.stats().window, 6u);
  NumberPool elastic([](Number n) { return n; },
                     {.autoscale = Autoscale{.max_workers = 5}, .preserve_order = true});
  EXPECT_EQ(elastic.stats().window, 10u);
}

TEST_F(BadOptions, ARefusedPoolLeavesNothingBehind) {
  bool cleaned = false;
  PoolOptions<Number> options{.workers = 0};
  options.on_cleanup = [&] { cleaned = true; };
  EXPECT_NE(refusal(options), "");
  EXPECT_FALSE(cleaned) << "there was no pool to clean up after";
}

}  // namespace
}  // namespace ordo
