// How items end: errors, timeouts, fail_stop, clean-up; and what the stats tell meanwhile.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
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
using testing_support::expect_partition;
using testing_support::Gates;
using testing_support::let_others_fall_asleep;
using testing_support::numbers;
using testing_support::Reports;
using testing_support::sorted;
using testing_support::Watchdog;
using Number = std::uint64_t;
using Numbers = std::vector<Number>;
using NumberPool = Pool<Number, Number>;

class PoolOutcomeTest : public testing::Test {
 protected:
  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  ManualClock clock_;
  Reports<Number> reports_;
};

Number same(Number n) {
  return n;
}

// ---- on_error

TEST_F(PoolOutcomeTest, TheErrorReportGetsTheOriginalInputEvenIfTheHandlerChangedIt) {
  std::vector<std::string> reported;
  Pool<std::string, int> pool(
      [](const std::string& text) -> int { throw std::runtime_error(text + "!"); },
      {.workers = 1, .on_error = [&](const std::string& input, std::exception_ptr error) {
         reported.push_back(input + " " + testing_support::describe(error));
       }});
  ASSERT_TRUE(pool.push("a"));
  ASSERT_TRUE(pool.push("b"));
  pool.close();
  pool.wait();
  EXPECT_EQ(reported, (std::vector<std::string>{"a a!", "b b!"}));
}

TEST_F(PoolOutcomeTest, AllReportsAreInBeforeTheEndIsVisible) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> calls = 0;
    NumberPool pool(
        [](Number) -> Number { throw 1; },
        {.workers = 3, .on_error = [&](const Number&, std::exception_ptr) { ++calls; }});
    for (Number n = 0; n < 20; ++n)
      ASSERT_TRUE(pool.push(n));
    pool.close();
    ASSERT_FALSE(pool.pop());
    ASSERT_EQ(calls, 20);
  }
}

// ---- on_cleanup

TEST_F(PoolOutcomeTest, CleanUpComesAfterTheLastOutputAndBeforeTheEndIsVisible) {
  Gates<> gates;
  NumberPool pool(same,
                  {.workers = 2, .preserve_order = true, .on_cleanup = [&] { gates.enter(1); }});
  ASSERT_TRUE(pool.push(0));
  ASSERT_TRUE(pool.push(1));
  pool.close();
  EXPECT_EQ(pool.pop(), 0u);
  EXPECT_FALSE(gates.has_started(1)) << "an output is still there";
  Background popper([&] {
    EXPECT_EQ(pool.pop(), 1u);
    EXPECT_FALSE(pool.pop());
  });
  Background waiter([&] { pool.wait(); });
  ASSERT_TRUE(gates.await(1));
  EXPECT_FALSE(waiter.is_finished()) << "the end is not visible while clean-up runs";
  EXPECT_FALSE(popper.is_finished());
  gates.open_all();
  EXPECT_TRUE(popper.finished());
  EXPECT_TRUE(waiter.finished());
}

TEST_F(PoolOutcomeTest, CleanUpComesAfterEveryHandlerAndEveryEmit) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> running = 0;
    std::atomic<int> emitted = 0;
    int seen_running = -1;
    int seen_emitted = -1;
    NumberPool pool(
        [&](Number n) {
          ++running;
          std::this_thread::yield();
          --running;
          return n;
        },
        [&](Number) { ++emitted; }, {.workers = 4, .preserve_order = true, .on_cleanup = [&] {
                                       seen_running = running;
                                       seen_emitted = emitted;
                                     }});
    for (Number n = 0; n < 40; ++n)
      ASSERT_TRUE(pool.push(n));
    pool.close();
    pool.wait();
    ASSERT_EQ(seen_running, 0);
    ASSERT_EQ(seen_emitted, 40);
  }
}

// ---- fail_stop

TEST_F(PoolOutcomeTest, FailStopEmitsNothingAfterTheFirstFailedItemAndEnds) {
  Gates<int> gates;
  NumberPool pool(
      [&](Number n, std::stop_token token) -> Number {
        if (gates.enter(n, token) != 0) throw 1;
        return n;
      },
      reports_.watch(
          {.workers = 4, .preserve_order = true, .order_buffer_size = 8, .fail_stop = true}));
  for (Number n = 0; n < 8; ++n)
    ASSERT_TRUE(pool.push(n));
  gates.open(2, 1);  // Fails behind the head: not yet the first in release order.
  gates.open(3, 0);
  ASSERT_TRUE(gates.await(5));
  gates.open(0, 0);
  EXPECT_EQ(pool.pop(), 0u);
  EXPECT_FALSE(gates.stop_requested(1));
  gates.open(1, 0);
  EXPECT_EQ(pool.pop(), 1u);
  ASSERT_TRUE(eventually([&] { return gates.stop_requested(4); })) << "the rest is cancelled";
  EXPECT_FALSE(pool.push(8));
  gates.open_all(0);
  EXPECT_FALSE(pool.pop()) << "3 was done, but after the failed one";
  pool.wait();
  const Numbers undone = pool.stop(1s);
  const PoolStats stats = pool.stats();
  EXPECT_EQ(reports_.failed(), Numbers{2});
  EXPECT_EQ(sorted(undone), numbers(3, 8));
  EXPECT_EQ(stats.delivered, 2u);
  EXPECT_EQ(stats.failed, 1u);
  EXPECT_EQ(stats.undone, 5u);
  expect_conserved(stats);
}

TEST_F(PoolOutcomeTest, FailStopWorksInEveryModeWithPopAndWithEmit) {
  for (int mode = 0; mode < 3; ++mode) {
    for (const bool with_emit : {false, true}) {
      PoolOptions<Number> options{.workers = 3, .preserve_order = mode == 0, .fail_stop = true};
      if (mode == 2) options.partition_key = [](Number n) { return n % 4; };
      std::atomic<int> cleanups = 0;
      options.on_cleanup = [&] { ++cleanups; };
      Reports<Number> reports;
      Numbers outputs;
      const auto fail_one = [](Number n) -> Number {
        if (n == 100) throw "stop here";
        return n;
      };
      auto pool =
          with_emit ? std::make_unique<NumberPool>(
                          fail_one, [&](Number n) { outputs.push_back(n); }, reports.watch(options))
                    : std::make_unique<NumberPool>(fail_one, reports.watch(options));
      Number admitted = 0;
      Background producer([&] {
        while (pool->push(admitted))
          ++admitted;
      });
      while (auto output = pool->pop())
        outputs.push_back(*output);
      pool->wait();
      ASSERT_TRUE(producer.finished()) << "push must not block for ever";
      EXPECT_EQ(cleanups, 1);
      EXPECT_EQ(reports.failed(), Numbers{100});
      const Numbers undone = pool->stop(1s);
      EXPECT_TRUE(mode != 0 || outputs == numbers(0, 100));
      EXPECT_EQ(pool->stats().undone, undone.size());
      EXPECT_EQ(pool->stats().delivered, outputs.size());
      expect_partition({outputs, undone, {100}}, admitted);
    }
  }
}

// ---- process_timeout

TEST_F(PoolOutcomeTest, ProcessTimeoutCountsFromTheStartOfTheHandler) {
  Gates<> gates;
  NumberPool pool([&](Number n, std::stop_token token) { return gates.enter(n, token), n; },
                  reports_.watch({.workers = 1,
                                  .preserve_order = true,
                                  .order_buffer_size = 4,
                                  .process_timeout = 10s,
                                  .clock = &clock_}));
  ASSERT_TRUE(pool.push(0));
  ASSERT_TRUE(pool.push(1));
  ASSERT_TRUE(gates.await(0));
  clock_.advance(9s);
  gates.open(0);
  EXPECT_EQ(pool.pop(), 0u);
  ASSERT_TRUE(gates.await(1));
  clock_.advance(9s);  // 18 s since it was admitted, 9 s since it started.
  EXPECT_FALSE(gates.stop_requested(1));
  clock_.advance(1s);
  ASSERT_TRUE(eventually([&] { return gates.stop_requested(1); }));
  ASSERT_TRUE(eventually([&] { return pool.stats().failed == 1; }));
  EXPECT_TRUE(eventually([&] { return reports_.failed() == Numbers{1}; }));
  gates.open_all();
}

TEST_F(PoolOutcomeTest, ProcessTimeoutActsInEveryMode) {
  for (int mode = 0; mode < 3; ++mode) {
    ManualClock clock;
    Gates<> gates;
    Reports<Number> reports;
    PoolOptions<Number> options{.workers = 2,
                                .preserve_order = mode == 0,
                                .order_buffer_size = 8,
                                .process_timeout = 1s,
                                .clock = &clock};
    if (mode == 2) options.partition_key = same;
    NumberPool pool([&](Number n) { return gates.enter(n), n; }, reports.watch(options));
    for (Number n = 0; n < 4; ++n)
      ASSERT_TRUE(pool.push(n));
    ASSERT_TRUE(gates.await_inside(2));
    clock.advance(1s);
    ASSERT_TRUE(eventually([&] { return reports.failed().size() == 2; }));
    gates.open_all();
    pool.close();
    EXPECT_EQ(sorted(drain(pool)), (Numbers{2, 3}));
    EXPECT_EQ(reports.errors(), (std::vector<std::string>{"ProcessTimeout", "ProcessTimeout"}));
    expect_conserved(pool.stats());
  }
}

// ---- order_timeout

TEST_F(PoolOutcomeTest, OrderTimeoutCountsFromBecomingTheHead) {
  Gates<> gates;
  NumberPool pool([&](Number n, std::stop_token token) { return gates.enter(n, token), n; },
                  reports_.watch({.workers = 3,
                                  .preserve_order = true,
                                  .order_buffer_size = 8,
                                  .order_timeout = 10s,
                                  .clock = &clock_}));
  for (Number n = 0; n < 3; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(3));
  clock_.advance(9s);
  gates.open(0);
  EXPECT_EQ(pool.pop(), 0u);
  clock_.advance(9s);
  EXPECT_EQ(pool.stats().late, 0u) << "1 has been the head for nine seconds";
  clock_.advance(1s);
  ASSERT_TRUE(eventually([&] { return reports_.late() == Numbers{1}; }));
  EXPECT_TRUE(gates.stop_requested(1));
  clock_.advance(10s);
  ASSERT_TRUE(eventually([&] { return reports_.late() == (Numbers{1, 2}); }));
  gates.open_all();
  pool.close();
  EXPECT_EQ(drain(pool), Numbers{});
  expect_conserved(pool.stats());
}

TEST_F(PoolOutcomeTest, OrderTimeoutOfAnInputThatFindsTheLineEmptyCountsFromItsAdmission) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n) { return gates.enter(n), n; },
      reports_.watch(
          {.workers = 2, .preserve_order = true, .order_timeout = 10s, .clock = &clock_}));
  ASSERT_TRUE(pool.push(0));
  gates.open(0);
  EXPECT_EQ(pool.pop(), 0u);
  clock_.advance(1h);
  ASSERT_TRUE(pool.push(1));
  ASSERT_TRUE(gates.await(1));
  clock_.advance(10s - 1ns);
  EXPECT_FALSE(gates.stop_requested(1));
  EXPECT_EQ(pool.stats().late, 0u);
  clock_.advance(1ns);
  EXPECT_TRUE(eventually([&] { return reports_.late() == Numbers{1}; }));
  gates.open_all();
}

TEST_F(PoolOutcomeTest, OrderTimeoutCountsFromTheMomentTheOutputsBeforeItWereAllTaken) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n) {
        gates.enter(n);
        return Numbers(n == 0 ? 3 : 0, n);
      },
      reports_.watch({.workers = 3,
                      .preserve_order = true,
                      .order_buffer_size = 8,
                      .order_timeout = 10s,
                      .clock = &clock_}));
  for (Number n = 0; n < 3; ++n)
    ASSERT_TRUE(pool.push(n));
  gates.open(0);
  gates.open(1);
  EXPECT_EQ(pool.pop(), 0u);
  ASSERT_TRUE(gates.await_left(1) && gates.await(2));
  ASSERT_TRUE(eventually([&] { return pool.stats().running == 1; }));
  clock_.advance(9s);
  EXPECT_EQ(pool.pop(), 0u);
  EXPECT_EQ(pool.pop(), 0u);
  clock_.advance(10s - 1ns);
  EXPECT_FALSE(gates.stop_requested(2));
  EXPECT_EQ(pool.stats().late, 0u);
  clock_.advance(1ns);
  EXPECT_TRUE(eventually([&] { return reports_.late() == Numbers{2}; }));
  gates.open_all();
}

TEST_F(PoolOutcomeTest, AHeadThatWaitsForPopIsNotLate) {
  std::atomic<int> ended{0};
  NumberPool pool([&](Number n) { return ++ended, n; }, reports_.watch({.workers = 1,
                                                                        .preserve_order = true,
                                                                        .order_buffer_size = 4,
                                                                        .order_timeout = 1s,
                                                                        .clock = &clock_}));
  ASSERT_TRUE(pool.push(0));
  ASSERT_TRUE(pool.push(1));
  ASSERT_TRUE(eventually([&] {
    const PoolStats stats = pool.stats();
    return ended == 2 && stats.running == 0 && stats.head_of_line &&
           stats.head_of_line->waits_for_pop;
  }));
  clock_.advance(1h);
  EXPECT_EQ(pool.pop(), 0u);
  EXPECT_EQ(pool.pop(), 1u);
  EXPECT_EQ(pool.stats().late, 0u);
}

TEST_F(PoolOutcomeTest, AHeadThatHasNotEvenStartedIsSkippedToo) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  reports_.watch({.workers = 1,
                                  .preserve_order = true,
                                  .order_buffer_size = 8,
                                  .order_timeout = 1s,
                                  .clock = &clock_}));
  for (Number n = 0; n < 3; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await(0));
  for (Number n = 0; n < 3; ++n) {
    clock_.advance(1s);
    ASSERT_TRUE(eventually([&] { return pool.stats().late == n + 1; }));
  }
  EXPECT_TRUE(eventually([&] { return reports_.late() == numbers(0, 3); }));
  EXPECT_TRUE(eventually([&] { return pool.stats().window_used == 0; }));
  ASSERT_TRUE(pool.push(3));
  gates.open_all();
  pool.close();
  EXPECT_EQ(drain(pool), Numbers{3});
  EXPECT_FALSE(gates.has_started(1)) << "its result could not be used any more";
}

// ---- stop

TEST_F(PoolOutcomeTest, HandlersThatReturnWithinTheGraceMakeStopReturnAtOnce) {
  Gates<> gates;
  NumberPool pool([&](Number n, std::stop_token token) { return gates.enter(n, token), n; },
                  {.workers = 2, .preserve_order = true, .clock = &clock_});
  ASSERT_TRUE(pool.push(0));
  ASSERT_TRUE(pool.push(1));
  ASSERT_TRUE(gates.await_inside(2));
  Numbers undone;
  Background stopper([&] { undone = pool.stop(1h); });
  ASSERT_TRUE(eventually([&] { return gates.stop_requested(0) && gates.stop_requested(1); }));
  gates.open_all();
  EXPECT_TRUE(stopper.finished()) << "no virtual time has passed";
  EXPECT_EQ(sorted(undone), (Numbers{0, 1})) << "their outputs were not taken";
}

TEST_F(PoolOutcomeTest, WithEmitWhatCompletesInOrderDuringTheGraceIsStillEmitted) {
  Gates<> gates;
  Numbers emitted;
  NumberPool pool([&](Number n, std::stop_token token) { return gates.enter(n, token), n; },
                  [&](Number n) { emitted.push_back(n); },
                  {.workers = 3, .preserve_order = true, .clock = &clock_});
  for (Number n = 0; n < 5; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(3));
  Numbers undone;
  Background stopper([&] { undone = pool.stop(1h); });
  ASSERT_TRUE(eventually([&] { return gates.stop_requested(2); }));
  gates.open_all();
  EXPECT_TRUE(stopper.finished());
  EXPECT_EQ(emitted, numbers(0, 3));
  EXPECT_EQ(sorted(undone), (Numbers{3, 4}));
  EXPECT_EQ(pool.stats().delivered, 3u);
}

// ---- stats

TEST_F(PoolOutcomeTest, TheHistogramHoldsOneEntryPerStall) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  {.workers = 2, .preserve_order = true, .order_buffer_size = 4, .clock = &clock_});
  const auto hold_up = [&](Number n, std::chrono::nanoseconds time) {
    ASSERT_TRUE(pool.push(n));
    ASSERT_TRUE(pool.push(n + 1));
    gates.open(n + 1);
    ASSERT_TRUE(gates.await_left(n + 1));
    ASSERT_TRUE(eventually([&] { return pool.stats().running == 1; }));
    let_others_fall_asleep();  // Who has run n + 1 notes then that the line stands still.
    clock_.advance(time);
    gates.open(n);
    EXPECT_EQ(pool.pop(), n);
    EXPECT_EQ(pool.pop(), n + 1);
  };
  hold_up(0, 300ms);
  hold_up(2, 100ms);
  const Histogram stalls = pool.stats().stalls;
  const auto in_ms = [](std::uint64_t value) { return static_cast<double>(value) / 1e6; };
  EXPECT_NEAR(in_ms(stalls.max()), 300.0, 10.0);
  EXPECT_NEAR(in_ms(stalls.sum()), 400.0, 13.0) << "two stalls, each counted once";
}

TEST_F(PoolOutcomeTest, TheHeadOfTheLineSaysWhenItOnlyWaitsForPop) {
  NumberPool pool(same,
                  {.workers = 1, .preserve_order = true, .order_buffer_size = 4, .clock = &clock_});
  for (Number n = 0; n < 3; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(eventually([&] {
    const auto head = pool.stats().head_of_line;
    return head && head->waits_for_pop;
  }));
  EXPECT_EQ(pool.stats().head_of_line->sequence, 0u);
  EXPECT_EQ(pool.pop(), 0u);
  ASSERT_TRUE(eventually([&] {
    const auto head = pool.stats().head_of_line;
    return head && head->waits_for_pop && head->sequence == 1;
  }));
}

TEST_F(PoolOutcomeTest, WindowPeakRemembersAndWindowUsedDoesNot) {
  NumberPool pool(same, {.workers = 1, .preserve_order = true, .order_buffer_size = 16});
  for (Number n = 0; n < 9; ++n)
    ASSERT_TRUE(pool.push(n));
  EXPECT_EQ(pool.stats().window_used, 9u);
  for (Number n = 0; n < 9; ++n)
    ASSERT_EQ(pool.pop(), n);
  EXPECT_EQ(pool.stats().window_used, 0u);
  EXPECT_EQ(pool.stats().window_peak, 9u);
  EXPECT_EQ(pool.stats().window, 16u);
  EXPECT_EQ(pool.stats().delivered, 9u);
  EXPECT_EQ(pool.stats().outputs, 9u);
  EXPECT_EQ(pool.stats().running, 0u);
}

}  // namespace
}  // namespace ordo
