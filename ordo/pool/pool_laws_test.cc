// The eight laws of Ordo, as the pool keeps them. One group of tests per law, by its name.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
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
using testing_support::pop_within;
using testing_support::Reports;
using testing_support::sorted;
using testing_support::Watchdog;
using Number = std::uint64_t;
using Numbers = std::vector<Number>;
using NumberPool = Pool<Number, Number>;

enum class Mode { ordered, unordered, keyed };
constexpr Mode kModes[] = {Mode::ordered, Mode::unordered, Mode::keyed};

PoolOptions<Number> options_for(Mode mode, PoolOptions<Number> options) {
  options.preserve_order = mode == Mode::ordered;
  if (mode == Mode::keyed) options.partition_key = [](Number n) { return n % 5; };
  return options;
}

class PoolLaw : public testing::Test {
 protected:
  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  ManualClock clock_;
  Reports<Number> reports_;
};

// ---- 1. Order

using Law1Order = PoolLaw;

TEST_F(Law1Order, WithinAKeyItemsStartInAdmissionOrderAndNothingOverlaps) {
  constexpr Number kKeys = 7;
  std::mutex mutex;
  std::map<Number, Numbers> started;
  std::vector<std::atomic<int>> running(kKeys);
  std::atomic<int> overlaps = 0;
  NumberPool pool(
      [&](Number n) {
        if (running[n % kKeys].fetch_add(1) != 0) ++overlaps;
        {
          std::lock_guard guard(mutex);
          started[n % kKeys].push_back(n);
        }
        if (n % 16 == 0) std::this_thread::yield();
        running[n % kKeys].fetch_sub(1);
        return n;
      },
      {.workers = 4, .order_buffer_size = 32, .partition_key = [](Number n) { return n % kKeys; }});
  Background producer([&] {
    for (Number n = 0; n < 20'000; ++n)
      EXPECT_TRUE(pool.push(n));
    pool.close();
  });
  std::map<Number, Numbers> taken;
  while (auto output = pool.pop())
    taken[*output % kKeys].push_back(*output);

  EXPECT_EQ(overlaps, 0);
  std::map<Number, Numbers> expected;
  for (Number n = 0; n < 20'000; ++n)
    expected[n % kKeys].push_back(n);
  EXPECT_EQ(started, expected);
  EXPECT_EQ(taken, expected) << "outputs of a key keep their order too";
}

TEST_F(Law1Order, ATimedOutHandlerThatStillRunsDoesNotOverlapWithItsSuccessor) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  reports_.watch({.workers = 4,
                                  .order_buffer_size = 8,
                                  .partition_key = [](Number n) { return n % 2; },
                                  .process_timeout = 1s,
                                  .clock = &clock_}));
  for (Number n = 0; n < 3; ++n)
    ASSERT_TRUE(pool.push(n));  // 2 waits behind 0.
  gates.open(1);
  ASSERT_TRUE(gates.await(0));
  EXPECT_EQ(pool.pop(), 1u);
  clock_.advance(1s);
  ASSERT_TRUE(eventually([&] { return reports_.failed() == Numbers{0}; }));
  ASSERT_TRUE(pool.push(3));  // The other key goes on.
  gates.open(3);
  EXPECT_EQ(pool.pop(), 3u);
  EXPECT_FALSE(gates.has_started(2));
  gates.open_all();
  EXPECT_EQ(pool.pop(), 2u);
}

TEST_F(Law1Order, OutputsLeaveInTheOrderOfInputsWhateverOrderTheyAreDoneIn) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  {.workers = 8, .preserve_order = true, .order_buffer_size = 8});
  std::mt19937 random(1);
  for (Number first = 0; first < 800; first += 8) {
    for (Number n = first; n < first + 8; ++n)
      ASSERT_TRUE(pool.push(n));
    Numbers order = numbers(first, first + 8);
    std::shuffle(order.begin(), order.end(), random);
    for (const Number n : order) {
      gates.open(n);
      ASSERT_TRUE(gates.await_left(n));
    }
    for (Number n = first; n < first + 8; ++n)
      ASSERT_EQ(pool.pop(), n);
  }
}

TEST_F(Law1Order, WhatHasStartedIsAlwaysAPrefixOfWhatWasAdmitted) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  {.workers = 3, .preserve_order = true, .order_buffer_size = 64});
  for (Number n = 0; n < 64; ++n)
    ASSERT_TRUE(pool.push(n));
  std::mt19937 random(2);
  Numbers inside = numbers(0, 3);
  for (std::size_t started = 3; started <= 64; ++started) {
    ASSERT_TRUE(gates.await_started_count(started));
    ASSERT_EQ(sorted(gates.started()), numbers(0, started));
    const std::size_t chosen = random() % inside.size();
    gates.open(inside[chosen]);
    inside[chosen] = started;
  }
  gates.open_all();
}

// ---- 2. Conservation

using Law2Conservation = PoolLaw;

TEST_F(Law2Conservation, EveryInputEndsInExactlyOneCountWhenDrained) {
  for (const Mode mode : kModes) {
    Reports<Number> reports;
    NumberPool pool(
        [](Number n) -> Numbers {
          if (n % 7 == 3) throw static_cast<int>(n);
          return Numbers(n % 4, n);
        },
        reports.watch(options_for(mode, {.workers = 4, .buffer_size = 3, .order_buffer_size = 8})));
    Background producer([&] {
      for (Number n = 0; n < 5'000; ++n)
        EXPECT_TRUE(pool.push(n));
      pool.close();
    });
    std::map<Number, std::size_t> taken;
    std::uint64_t outputs = 0;
    while (auto output = pool.pop())
      ++taken[*output], ++outputs;
    const PoolStats stats = pool.stats();
    for (Number n = 0; n < 5'000; ++n) {
      const std::size_t expected = n % 7 == 3 ? 0 : n % 4;
      ASSERT_EQ(taken.contains(n) ? taken[n] : 0, expected) << n;
    }
    EXPECT_EQ(stats.admitted, 5'000u);
    EXPECT_EQ(stats.failed, 714u);
    EXPECT_EQ(sorted(reports.failed()).size(), 714u);
    EXPECT_EQ(stats.delivered, 5'000u - 714u);
    EXPECT_EQ(stats.outputs, outputs);
    EXPECT_EQ(stats.undone, 0u);
    EXPECT_EQ(stats.window_used, 0u);
    expect_conserved(stats);
  }
}

TEST_F(Law2Conservation, EveryInputEndsInExactlyOneCountWhenStoppedInTheMiddle) {
  for (const Mode mode : kModes) {
    for (Number takes = 0; takes < 60; takes += 7) {
      Reports<Number> reports;
      NumberPool pool(
          [](Number n) -> Number {
            if (n % 5 == 2) throw std::runtime_error("five");
            return n;
          },
          reports.watch(options_for(mode, {.workers = 3, .order_buffer_size = 8})));
      Number admitted = 0;
      Background producer([&] {
        while (pool.push(admitted))
          ++admitted;
      });
      Numbers taken;
      while (taken.size() < takes)
        taken.push_back(pool.pop().value());
      const Numbers undone = pool.stop(1s);
      ASSERT_TRUE(producer.finished());
      const PoolStats stats = pool.stats();
      EXPECT_EQ(stats.admitted, admitted);
      EXPECT_EQ(stats.delivered, taken.size());
      EXPECT_EQ(stats.undone, undone.size());
      EXPECT_EQ(stats.failed, reports.failed().size());
      expect_conserved(stats);
      expect_partition({taken, reports.failed(), undone}, admitted);
    }
  }
}

TEST_F(Law2Conservation, AnInputWithSomeOfItsOutputsTakenIsUndone) {
  NumberPool pool([](Number n) { return Numbers(3, n); },
                  {.workers = 1, .preserve_order = true, .order_buffer_size = 4});
  for (Number n = 0; n < 3; ++n)
    ASSERT_TRUE(pool.push(n));
  for (int i = 0; i < 4; ++i)
    ASSERT_EQ(pool.pop(), i < 3 ? 0u : 1u);
  EXPECT_EQ(sorted(pool.stop(10s)), (Numbers{1, 2}));
  EXPECT_EQ(pool.stats().delivered, 1u);
  EXPECT_EQ(pool.stats().outputs, 4u);
}

TEST_F(Law2Conservation, FailedLateDeliveredAndUndoneTogether) {
  Gates<int> gates;
  NumberPool pool(
      [&](Number n, std::stop_token token) -> Number {
        if (gates.enter(n, token) != 0) throw 1;
        return n;
      },
      reports_.watch({.workers = 4,
                      .preserve_order = true,
                      .order_buffer_size = 8,
                      .order_timeout = 1s,
                      .clock = &clock_}));
  for (Number n = 0; n < 8; ++n)
    ASSERT_TRUE(pool.push(n));
  gates.open(1, 0);
  gates.open(2, 1);
  gates.open(3, 0);
  ASSERT_TRUE(gates.await_left_count(3));
  ASSERT_TRUE(gates.await(0));
  clock_.advance(1s);  // 0 is late; 1 and 3 come out, 2 has failed, 4 is the head now.
  EXPECT_EQ(pool.pop(), 1u);
  EXPECT_EQ(pool.pop(), 3u);
  const Numbers undone = pool.stop(0s);
  EXPECT_EQ(sorted(undone), numbers(4, 8));
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.late, 1u);
  EXPECT_EQ(stats.failed, 1u);
  EXPECT_EQ(stats.delivered, 2u);
  EXPECT_EQ(stats.undone, 4u);
  ASSERT_TRUE(eventually([&] { return reports_.late() == Numbers{0}; }));
  expect_partition({reports_.late(), reports_.failed(), {1, 3}, undone}, 8);
  gates.open_all(0);
}

// ---- 3. No item stalls the rest

using Law3NoItemStallsTheRest = PoolLaw;

TEST_F(Law3NoItemStallsTheRest, ALaneGoesOnAfterItsHandlerThrew) {
  NumberPool pool(
      [](Number n) -> Number {
        if (n % 2 == 0) throw n;
        return n;
      },
      reports_.watch({.workers = 2, .partition_key = [](Number) { return 1; }}));
  Background producer([&] {
    for (Number n = 0; n < 100; ++n)
      EXPECT_TRUE(pool.push(n));
    pool.close();
  });
  const Numbers outputs = drain(pool);
  EXPECT_EQ(outputs.size(), 50u);
  EXPECT_TRUE(std::is_sorted(outputs.begin(), outputs.end()));
  EXPECT_EQ(reports_.failed().size(), 50u);
}

TEST_F(Law3NoItemStallsTheRest, ABlockedItemHoldsOnlyItsLane) {
  for (const Mode mode : {Mode::unordered, Mode::keyed}) {
    Gates<> gates;
    NumberPool pool(
        [&](Number n) {
          if (n == 0) gates.enter(n);
          return n;
        },
        options_for(mode, {.workers = 2, .order_buffer_size = 4}));
    ASSERT_TRUE(pool.push(0));
    for (Number n = 1; n < 1'000; ++n) {
      if (mode == Mode::keyed && n % 5 == 0) continue;
      ASSERT_TRUE(pool.push(n));
      ASSERT_EQ(pool.pop(), n);
    }
    gates.open_all();
    EXPECT_EQ(pool.pop(), 0u);
  }
}

TEST_F(Law3NoItemStallsTheRest, WorkersSurviveAnyNumberOfExceptions) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n) -> Number {
        if (n < 2'000) throw "again";
        return gates.enter(n), n;
      },
      reports_.watch({.workers = 3, .preserve_order = true, .order_buffer_size = 16}));
  for (Number n = 0; n < 2'003; ++n)
    ASSERT_TRUE(pool.push(n));
  EXPECT_TRUE(gates.await_inside(3)) << "all workers are still there";
  gates.open_all();
  pool.close();
  EXPECT_EQ(drain(pool), numbers(2'000, 2'003));
}

// ---- 4. Bounded

using Law4Bounded = PoolLaw;

TEST_F(Law4Bounded, TheWindowHoldsInEveryModeAndAtTheLimitPushWaits) {
  for (const Mode mode : kModes) {
    Gates<> gates;
    NumberPool pool([&](Number n) { return gates.enter(n), n; },
                    options_for(mode, {.workers = 2, .order_buffer_size = 6}));
    Number admitted = 0;
    while (admitted < 100 && pool.try_push(admitted))
      ++admitted;
    EXPECT_EQ(admitted, 6u);
    Background producer([&] { EXPECT_TRUE(pool.push(6)); });
    ASSERT_TRUE(gates.await_inside(2));
    gates.open_all();
    ASSERT_TRUE(gates.await_left_count(6));
    EXPECT_FALSE(producer.is_finished()) << "six are done, but none was taken";
    ASSERT_TRUE(pool.pop());
    EXPECT_TRUE(producer.finished());
    EXPECT_EQ(pool.stats().window_peak, 6u);
  }
}

TEST_F(Law4Bounded, OutputsAreCountedWithTheirInputAndNotWithoutLimit) {
  for (const Mode mode : kModes) {
    std::atomic<Number> calls = 0;
    NumberPool pool([&](Number n) { return ++calls, Numbers(10, n); },
                    options_for(mode, {.workers = 2, .buffer_size = 4, .order_buffer_size = 3}));
    Number admitted = 0;
    Background producer([&] {
      for (; admitted < 50 && pool.push(admitted); ++admitted) {
      }
      pool.close();
    });
    ASSERT_TRUE(eventually([&] { return calls == 3; }));
    EXPECT_EQ(pool.stats().admitted, 3u) << "ten outputs do not fit into a buffer of four";
    EXPECT_EQ(drain(pool).size(), 500u);
    EXPECT_LE(pool.stats().window_peak, 3u);
  }
}

// ---- 5. Stopping ends

using Law5StoppingEnds = PoolLaw;

TEST_F(Law5StoppingEnds, CloseWakesEveryBlockedCaller) {
  for (const Mode mode : kModes) {
    Gates<> gates;
    NumberPool pool([&](Number n) { return gates.enter(n), n; },
                    options_for(mode, {.workers = 1, .order_buffer_size = 1}));
    ASSERT_TRUE(pool.push(0));
    std::vector<std::unique_ptr<Background>> pushers;
    std::atomic<int> refused = 0;
    for (int i = 0; i < 4; ++i) {
      pushers.push_back(std::make_unique<Background>([&] { refused += pool.push(1) ? 0 : 1; }));
    }
    pool.close();
    for (auto& pusher : pushers)
      EXPECT_TRUE(pusher->finished());
    EXPECT_EQ(refused, 4);
    EXPECT_FALSE(pool.try_push(2));
    Background waiter([&] { pool.wait(); });
    gates.open_all();
    EXPECT_EQ(drain(pool), Numbers{0});
    EXPECT_TRUE(waiter.finished());
  }
}

TEST_F(Law5StoppingEnds, CloseOfAnEmptyPoolEndsIt) {
  int cleanups = 0;
  NumberPool pool([](Number n) { return n; }, {.on_cleanup = [&] { ++cleanups; }});
  Background popper([&] { EXPECT_FALSE(pool.pop()); });
  pool.close();
  pool.close();
  EXPECT_TRUE(popper.finished());
  pool.wait();
  EXPECT_EQ(cleanups, 1);
  EXPECT_EQ(pool.stop(1s), Numbers{});
  EXPECT_EQ(cleanups, 1);
}

TEST_F(Law5StoppingEnds, StopWakesEveryBlockedCallerBeforeItsGraceIsOver) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  {.workers = 1, .order_buffer_size = 1, .clock = &clock_});
  ASSERT_TRUE(pool.push(0));
  ASSERT_TRUE(gates.await(0));
  Background pusher([&] { EXPECT_FALSE(pool.push(1)); });
  Background popper([&] { EXPECT_FALSE(pool.pop()); });
  Numbers undone;
  Background stopper([&] { undone = pool.stop(10s); });
  EXPECT_TRUE(pusher.finished());
  EXPECT_TRUE(popper.finished());
  EXPECT_FALSE(stopper.is_finished()) << "the handler has not returned, and ten seconds remain";
  clock_.wait_for_waiters(1);
  clock_.advance(10s);
  EXPECT_TRUE(stopper.finished());
  EXPECT_EQ(undone, Numbers{0});
  gates.open_all();
}

TEST_F(Law5StoppingEnds, CleanUpRunsExactlyOnceHoweverThePoolEnds) {
  for (int ending = 0; ending < 5; ++ending) {
    std::atomic<int> cleanups = 0;
    {
      NumberPool pool([](Number n) { return n; },
                      {.workers = 2, .preserve_order = true, .on_cleanup = [&] { ++cleanups; }});
      ASSERT_TRUE(pool.push(1));
      if (ending == 1 || ending == 2) pool.close();
      if (ending == 1) drain(pool);
      if (ending == 3 || ending == 4) pool.stop(1s);
      if (ending == 4) pool.stop(1s);
      EXPECT_EQ(cleanups, ending == 1 || ending >= 3 ? 1 : 0) << "ending " << ending;
    }
    EXPECT_EQ(cleanups, 1) << "ending " << ending;
  }
}

TEST_F(Law5StoppingEnds, TheDestructorWaitsForHandlersThatStillRun) {
  Gates<> gates;
  std::atomic<bool> destroyed = false;
  std::atomic<bool> returned_before = false;
  Background owner([&] {
    {
      NumberPool pool(
          [&](Number n, std::stop_token token) {
            gates.enter(n, token);
            returned_before = !destroyed;
            return n;
          },
          {.workers = 1});
      pool.push(0);
      gates.await(0);
    }
    destroyed = true;
  });
  ASSERT_TRUE(gates.await(0));
  ASSERT_TRUE(eventually([&] { return gates.stop_requested(0); }));
  EXPECT_FALSE(destroyed);
  gates.open_all();
  EXPECT_TRUE(owner.finished());
  EXPECT_TRUE(returned_before);
}

// ---- 6. Bad settings are errors

using Law6BadSettingsAreErrors = PoolLaw;

TEST_F(Law6BadSettingsAreErrors, TheMessageNamesTheFieldAndNothingHangs) {
  try {
    NumberPool pool([](Number n) { return n; }, {.workers = 0});
    FAIL() << "a pool without workers";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("workers"), std::string::npos) << error.what();
  }
}

// ---- 7. Time is injected

using Law7TimeIsInjected = PoolLaw;

TEST_F(Law7TimeIsInjected, DeadlinesAreReachedToTheNanosecondInVirtualTime) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  reports_.watch({.workers = 2,
                                  .preserve_order = true,
                                  .order_buffer_size = 4,
                                  .order_timeout = 3s,
                                  .process_timeout = 2s,
                                  .clock = &clock_}));
  ASSERT_TRUE(pool.push(0));
  ASSERT_TRUE(gates.await(0));
  clock_.advance(2s - 1ns);
  EXPECT_EQ(pool.stats().failed, 0u);
  EXPECT_EQ(reports_.failed(), Numbers{});
  clock_.advance(1ns);
  EXPECT_TRUE(eventually([&] { return pool.stats().failed == 1; }));
  EXPECT_TRUE(eventually([&] { return reports_.errors().size() == 1; }));
  EXPECT_EQ(reports_.errors(), std::vector<std::string>{"ProcessTimeout"});
  gates.open_all();
}

TEST_F(Law7TimeIsInjected, TakingWithALimitWaitsInVirtualTime) {
  NumberPool pool([](Number n) { return n; }, {.clock = &clock_});
  ASSERT_TRUE(testing_support::kHasPopFor<NumberPool>);
  std::optional<Number> taken = 9;
  Background popper([&] { taken = pop_within(pool, 1h); });
  clock_.wait_for_waiters(1);
  clock_.advance(1h - 1ns);
  EXPECT_FALSE(popper.is_finished());
  clock_.advance(1ns);
  EXPECT_TRUE(popper.finished());
  EXPECT_FALSE(taken);
  ASSERT_TRUE(pool.push(1));
  EXPECT_EQ(pop_within(pool, 1h), 1u);
}

// ---- 8. Visible

using Law8Visible = PoolLaw;

TEST_F(Law8Visible, WhatHoldsTheLineIsNamedWithItsTimeAndWhatWaitsBehindIt) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  {.workers = 4, .preserve_order = true, .order_buffer_size = 8, .clock = &clock_});
  EXPECT_FALSE(pool.stats().head_of_line) << "nothing waits";
  for (const Number n : {1u, 2u, 4u, 5u, 6u, 7u})
    gates.open(n);
  for (Number n = 0; n < 8; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await(0) && gates.await(3) && gates.await_left_count(6));
  ASSERT_TRUE(eventually([&] { return pool.stats().running == 2; }));
  clock_.advance(250ms);
  PoolStats stats = pool.stats();
  ASSERT_TRUE(stats.head_of_line);
  EXPECT_EQ(stats.head_of_line->sequence, 0u);
  EXPECT_EQ(stats.head_of_line->blocked_for, 250ms);
  EXPECT_FALSE(stats.head_of_line->waits_for_pop);
  EXPECT_EQ(stats.window_used, 8u);

  gates.open(0);
  for (Number n = 0; n < 3; ++n)
    ASSERT_EQ(pool.pop(), n);
  clock_.advance(50ms);
  stats = pool.stats();
  ASSERT_TRUE(stats.head_of_line);
  EXPECT_EQ(stats.head_of_line->sequence, 3u);
  EXPECT_EQ(stats.head_of_line->blocked_for, 50ms);
  EXPECT_EQ(stats.window_used, 5u);
  gates.open_all();
  pool.close();
  EXPECT_EQ(drain(pool), numbers(3, 8));
  EXPECT_FALSE(pool.stats().head_of_line);
}

}  // namespace
}  // namespace ordo
