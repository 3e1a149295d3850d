// Every field of PoolOptions: its default and what it means. What a process function may take and
// return. What the stats say.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
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
using testing_support::Gates;
using testing_support::numbers;
using testing_support::Reports;
using testing_support::sorted;
using testing_support::Watchdog;
using Number = std::uint64_t;
using Numbers = std::vector<Number>;
using NumberPool = Pool<Number, Number>;

class PoolOptionsTest : public testing::Test {
 protected:
  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  ManualClock clock_;
  Reports<Number> reports_;
};

Number same(Number n) {
  return n;
}

// ---- defaults

TEST_F(PoolOptionsTest, TheDefaultsAreThoseOfTheTable) {
  const PoolOptions<Number> options;
  EXPECT_EQ(options.workers, 1u);
  EXPECT_FALSE(options.autoscale);
  EXPECT_EQ(options.buffer_size, 0u);
  EXPECT_FALSE(options.preserve_order);
  EXPECT_EQ(options.order_buffer_size, 0u);
  EXPECT_FALSE(options.order_timeout);
  EXPECT_FALSE(options.partition_key);
  EXPECT_FALSE(options.process_timeout);
  EXPECT_FALSE(options.on_error);
  EXPECT_FALSE(options.on_cleanup);
  EXPECT_FALSE(options.fail_stop);

  const Autoscale autoscale;
  EXPECT_EQ(autoscale.min_workers, 1u);
  EXPECT_EQ(autoscale.max_workers, std::max(1u, std::thread::hardware_concurrency()));
  EXPECT_EQ(autoscale.scale_up_cooldown, 5s);
  EXPECT_EQ(autoscale.scale_down_cooldown, 10s);
  EXPECT_EQ(autoscale.scale_down_after, 30s);
  EXPECT_EQ(autoscale.check_interval, 1s);
  EXPECT_EQ(autoscale.step, 1u);
}

TEST_F(PoolOptionsTest, TheOptionsOfAPoolAreItsOptionsType) {
  static_assert(std::is_same_v<NumberPool::Options, PoolOptions<Number>>);
  static_assert(std::is_aggregate_v<NumberPool::Options>);
}

TEST_F(PoolOptionsTest, WithoutOptionsThereIsOneWorkerAndAWindowOfTwo) {
  NumberPool pool(same);
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.workers, 1u);
  EXPECT_EQ(stats.workers_min, 1u);
  EXPECT_EQ(stats.workers_max, 1u);
  EXPECT_EQ(stats.window, 2u);
  ASSERT_TRUE(pool.push(5));
  EXPECT_EQ(pool.pop(), 5u);
}

TEST_F(PoolOptionsTest, WorkersRunSideBySide) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; }, {.workers = 5});
  for (Number n = 0; n < 10; ++n)
    ASSERT_TRUE(pool.push(n));
  EXPECT_TRUE(gates.await_inside(5));
  EXPECT_EQ(pool.stats().running, 5u);
  EXPECT_EQ(pool.stats().window, 10u);
  gates.open_all();
  pool.close();
  EXPECT_EQ(sorted(drain(pool)), numbers(0, 10));
  EXPECT_EQ(gates.inside_peak(), 5u);
}

// ---- what the process function takes and returns

TEST_F(PoolOptionsTest, TheFunctionOfThePageWorksAsWritten) {
  ordo::Pool<int, std::string> pool(
      [](int n, std::stop_token) { return std::vector<std::string>{std::to_string(n)}; },
      {.workers = 8, .preserve_order = true});
  ASSERT_TRUE(pool.push(1));
  ASSERT_TRUE(pool.try_push(2));
  pool.close();
  EXPECT_EQ(drain(pool), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(pool.stop(50ms), std::vector<int>{});
}

TEST_F(PoolOptionsTest, OutputsOfOneInputStayTogether) {
  for (const bool ordered : {true, false}) {
    NumberPool pool([](Number n) { return Numbers(1 + n % 5, n); },
                    {.workers = 4, .buffer_size = 2, .preserve_order = ordered});
    Background producer([&] {
      for (Number n = 0; n < 2'000; ++n)
        pool.push(n);
      pool.close();
    });
    const Numbers outputs = drain(pool);
    std::size_t position = 0;
    Numbers seen;
    while (position < outputs.size()) {
      const Number n = outputs[position];
      ASSERT_LE(position + 1 + n % 5, outputs.size());
      for (Number i = 0; i <= n % 5; ++i)
        ASSERT_EQ(outputs[position++], n);
      seen.push_back(n);
    }
    EXPECT_EQ(ordered ? seen : sorted(seen), numbers(0, 2'000));
  }
}

TEST_F(PoolOptionsTest, AFunctionThatReturnsNothingHasNoOutputs) {
  std::atomic<Number> sum = 0;
  NumberPool pool([&](Number n) { sum += n; }, {.workers = 2, .preserve_order = true});
  for (Number n = 0; n < 100; ++n)
    ASSERT_TRUE(pool.push(n));
  pool.close();
  EXPECT_FALSE(pool.pop());
  EXPECT_EQ(sum, 4'950u);
  EXPECT_EQ(pool.stats().delivered, 100u);
  EXPECT_EQ(pool.stats().outputs, 0u);
}

TEST_F(PoolOptionsTest, InputsAndOutputsMayBeMoveOnly) {
  using Box = std::unique_ptr<int>;
  const auto check = [](auto function) {
    Pool<Box, Box> pool(function, {.workers = 2, .preserve_order = true, .order_buffer_size = 8});
    for (int n = 0; n < 5; ++n)
      ASSERT_TRUE(pool.push(std::make_unique<int>(n)));
    pool.close();
    for (int n = 0; n < 5; ++n)
      EXPECT_EQ(*pool.pop().value(), n);
    EXPECT_FALSE(pool.pop());
  };
  check([](const Box& box) { return std::make_unique<int>(*box); });
  check([](Box& box) { return std::move(box); });
  check([](Box&& box) { return std::move(box); });
  check([](Box box) { return box; });
  check([](Box& box, std::stop_token) { return std::optional<Box>(std::move(box)); });
  check([](Box box, std::stop_token) {
    std::vector<Box> boxes;
    boxes.push_back(std::move(box));
    return boxes;
  });
}

TEST_F(PoolOptionsTest, AMoveOnlyInputThatWasNotStartedIsGivenBack) {
  using Box = std::unique_ptr<int>;
  Gates<> gates;
  Pool<Box, int> pool([&](const Box& box) { return gates.enter(0), *box; },
                      {.workers = 1, .order_buffer_size = 3});
  for (int n = 0; n < 3; ++n)
    ASSERT_TRUE(pool.push(std::make_unique<int>(n)));
  ASSERT_TRUE(gates.await(0));
  std::vector<Box> undone = pool.stop(0s);
  ASSERT_EQ(undone.size(), 2u) << "the running one cannot be copied: counted, not listed";
  EXPECT_EQ(*undone[0] + *undone[1], 3);
  EXPECT_EQ(pool.stats().undone, 3u);
  expect_conserved(pool.stats());
  gates.open_all();
}

TEST_F(PoolOptionsTest, TheFunctionMayBeMoveOnlyAndKeepState) {
  NumberPool pool([counter = std::make_unique<Number>(0)](Number n) { return n + ++*counter; });
  ASSERT_TRUE(pool.push(10));
  EXPECT_EQ(pool.pop(), 11u);
  ASSERT_TRUE(pool.push(10));
  EXPECT_EQ(pool.pop(), 12u);
}

// ---- emit

TEST_F(PoolOptionsTest, EmitIsCalledInOrderAndNeverConcurrently) {
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  Numbers emitted;
  const auto alone = [&] { return inside.fetch_add(1) == 0; };
  {
    NumberPool pool(
        [](Number n) -> Numbers {
          if (n % 10 == 0) throw 1;
          return Numbers(n % 3, n);
        },
        [&](Number n) {
          overlaps += alone() ? 0 : 1;
          emitted.push_back(n);
          inside.fetch_sub(1);
        },
        {.workers = 4, .preserve_order = true, .on_error = [&](const Number&, std::exception_ptr) {
           overlaps += alone() ? 0 : 1;
           inside.fetch_sub(1);
         }});
    for (Number n = 0; n < 5'000; ++n)
      ASSERT_TRUE(pool.push(n));
    pool.close();
    pool.wait();
    EXPECT_FALSE(pool.pop());
    EXPECT_EQ(pool.stats().failed, 500u);
    EXPECT_EQ(pool.stats().delivered, 4'500u);
    EXPECT_EQ(pool.stats().outputs, emitted.size());
  }
  Numbers expected;
  for (Number n = 0; n < 5'000; ++n) {
    if (n % 10 != 0) expected.insert(expected.end(), n % 3, n);
  }
  EXPECT_EQ(emitted, expected);
  EXPECT_EQ(overlaps, 0) << "emit, on_error and on_late never overlap";
}

TEST_F(PoolOptionsTest, AnInputWhoseEmitThrowsHasFailed) {
  Numbers emitted;
  NumberPool pool(
      same,
      [&](Number n) {
        if (n == 2) throw std::runtime_error("cannot write");
        emitted.push_back(n);
      },
      reports_.watch({.workers = 2, .preserve_order = true}));
  for (Number n = 0; n < 5; ++n)
    ASSERT_TRUE(pool.push(n));
  pool.close();
  pool.wait();
  EXPECT_EQ(emitted, (Numbers{0, 1, 3, 4}));
  EXPECT_EQ(reports_.failed(), Numbers{2});
  EXPECT_EQ(reports_.errors(), std::vector<std::string>{"cannot write"});
  EXPECT_EQ(pool.stats().failed, 1u);
  EXPECT_EQ(pool.stats().delivered, 4u);
}

TEST_F(PoolOptionsTest, ASlowEmitHoldsTheWindow) {
  Gates<> gates;
  NumberPool pool(same, [&](Number n) { gates.enter(n); },
                  {.workers = 2, .preserve_order = true, .order_buffer_size = 4});
  Number admitted = 0;
  ASSERT_TRUE(pool.push(admitted++));
  ASSERT_TRUE(gates.await(0));
  while (admitted < 100 && pool.try_push(admitted))
    ++admitted;
  EXPECT_EQ(admitted, 4u);
  gates.open_all();
  pool.close();
  pool.wait();
  EXPECT_EQ(gates.started(), numbers(0, 4));
}

// ---- map_ordered

TEST_F(PoolOptionsTest, MapOrderedGivesTheOutputsInInputOrder) {
  const std::vector<int> inputs = {5, 1, 4};
  const auto twice = [](int n) { return 2 * n; };
  EXPECT_EQ(map_ordered(inputs, twice, {.workers = 3}), (std::vector<int>{10, 2, 8}));
  EXPECT_EQ(map_ordered(std::list<int>{1, 2}, twice), (std::vector<int>{2, 4}));
  EXPECT_EQ(map_ordered(std::vector<int>(), twice, {.workers = 2}), std::vector<int>());
  const auto repeat = [](Number n) { return std::vector<std::string>(n, std::to_string(n)); };
  EXPECT_EQ(map_ordered(Numbers{2, 0, 1}, repeat, {.workers = 2}),
            (std::vector<std::string>{"2", "2", "1"}));
  EXPECT_EQ(map_ordered(numbers(0, 3'000), same, {.workers = 4}), numbers(0, 3'000));
}

TEST_F(PoolOptionsTest, MapOrderedThrowsTheFirstFailureInInputOrder) {
  const auto fail_some = [](Number n) -> Number {
    if (n >= 10) throw std::runtime_error(std::to_string(n));
    return n;
  };
  for (int round = 0; round < 20; ++round) {
    try {
      map_ordered(numbers(0, 40), fail_some, {.workers = 4});
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "10");
    }
  }
  EXPECT_EQ(map_ordered(numbers(0, 40), fail_some, reports_.watch({.workers = 4})), numbers(0, 10));
  EXPECT_EQ(sorted(reports_.failed()), numbers(10, 40));
}

TEST_F(PoolOptionsTest, MapOrderedRefusesAKey) {
  PoolOptions<Number> options{.partition_key = same};
  EXPECT_THROW(map_ordered(Numbers{1}, same, options), std::invalid_argument);
}

// ---- partition_key

TEST_F(PoolOptionsTest, KeysMayBeNumbersOrStrings) {
  struct Event {
    std::string user;
    int number;
  };
  std::mutex mutex;
  std::map<std::string, std::vector<int>> started;
  Pool<Event, int> pool(
      [&](const Event& event) {
        std::lock_guard guard(mutex);
        started[event.user].push_back(event.number);
        return event.number;
      },
      {.workers = 3, .partition_key = [](const Event& event) { return event.user; }});
  Background producer([&] {
    for (int n = 0; n < 300; ++n)
      pool.push({"user-" + std::to_string(n % 7), n});
    pool.close();
  });
  EXPECT_EQ(drain(pool).size(), 300u);
  EXPECT_EQ(started.size(), 7u);
  for (const auto& [user, order] : started) {
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << user;
  }
}

TEST_F(PoolOptionsTest, DifferentKeysRunSideBySideAndOneKeyAlone) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n) { return gates.enter(n), n; },
      {.workers = 4, .order_buffer_size = 16, .partition_key = [](Number n) { return n % 3; }});
  for (Number n = 0; n < 9; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(3)) << "three keys, three in flight, although four may";
  EXPECT_EQ(sorted(gates.started()), (Numbers{0, 1, 2}));
  gates.open(1);
  ASSERT_TRUE(gates.await(4)) << "the next of its key";
  EXPECT_EQ(pool.pop(), 1u);
  EXPECT_EQ(sorted(gates.started()), (Numbers{0, 1, 2, 4}));
  gates.open_all();
  pool.close();
  EXPECT_EQ(drain(pool).size(), 8u);
}

TEST_F(PoolOptionsTest, AKeyTakesPrecedenceOverTotalOrder) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  {.workers = 2, .preserve_order = true, .partition_key = same});
  ASSERT_TRUE(pool.push(0));
  ASSERT_TRUE(pool.push(1));
  gates.open(1);
  EXPECT_EQ(pool.pop(), 1u) << "of another key, so it need not wait for 0";
  gates.open_all();
  EXPECT_EQ(pool.pop(), 0u);
}

// ---- buffer_size

TEST_F(PoolOptionsTest, BufferSizeIsExact) {
  for (const bool ordered : {true, false}) {
    for (const std::size_t buffer_size : {0u, 1u, 3u, 20u}) {
      NumberPool pool(same, {.workers = 2,
                             .buffer_size = buffer_size,
                             .preserve_order = ordered,
                             .order_buffer_size = 4});
      const Number room = 4 + buffer_size;
      for (Number n = 0; n < room; ++n)
        ASSERT_TRUE(pool.push(n)) << "there is room";
      ASSERT_TRUE(eventually([&] { return pool.stats().window_used == 4; }));
      EXPECT_FALSE(pool.try_push(99)) << "buffer " << buffer_size;
      EXPECT_EQ(pool.stats().delivered, 0u) << "nobody took anything";
      ASSERT_TRUE(pool.pop());
      EXPECT_TRUE(pool.push(room));
      pool.close();
      EXPECT_EQ(drain(pool).size(), room);
    }
  }
}

}  // namespace
}  // namespace ordo
