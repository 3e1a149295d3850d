// How the number of workers follows the demand: the rules of the page, and every field of
// Autoscale.
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
using testing_support::Gates;
using testing_support::let_others_fall_asleep;
using testing_support::numbers;
using testing_support::Reports;
using testing_support::sorted;
using testing_support::tick;
using testing_support::Watchdog;
using Number = std::uint64_t;
using NumberPool = Pool<Number, Number>;
using Numbers = std::vector<Number>;

// With total order and without: the pool has reason to do these two quite differently.
class PoolScaling : public testing::TestWithParam<bool> {
 protected:
  bool ordered() const { return GetParam(); }

  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  ManualClock clock_;
  Reports<Number> reports_;
};

class PoolScalingInOrder : public testing::Test {
 protected:
  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  ManualClock clock_;
};

std::string name_of_mode(const testing::TestParamInfo<bool>& info) {
  return info.param ? "Ordered" : "Unordered";
}

class RunningNeverAboveMaximum : public PoolScaling {};

constexpr Autoscale kQuick{.min_workers = 1,
                           .max_workers = 4,
                           .scale_up_cooldown = 1s,
                           .scale_down_cooldown = 1s,
                           .scale_down_after = 2s,
                           .check_interval = 1s};

// A second later, when every worker is at an item: no pool grows while one has yet to begin.
// REQUIRES: there are items for all of them, and none ends.
bool tick_at_work(NumberPool& pool, ManualClock& clock) {
  return tick(clock, 1s) && eventually([&] {
           const PoolStats stats = pool.stats();
           return stats.running == stats.workers;
         });
}

TEST_P(RunningNeverAboveMaximum, ABusyWorkerIsNotIdleHoweverLongItRuns) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; }, {.autoscale = kQuick,
                                                                .preserve_order = ordered(),
                                                                .order_buffer_size = 64,
                                                                .clock = &clock_});
  for (Number n = 0; n < 20; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(1));  // While the first worker wakes up, there is an idle one.
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(tick_at_work(pool, clock_));
  ASSERT_TRUE(gates.await_inside(4));
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(tick(clock_, 1s));
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.workers, 4u);
  EXPECT_EQ(stats.running, 4u);
  EXPECT_EQ(stats.scale_downs, 0u);
  EXPECT_EQ(gates.inside_peak(), 4u);
  gates.open_all();
  pool.close();
  EXPECT_EQ(sorted(drain(pool)), numbers(0, 20));
}

TEST_P(RunningNeverAboveMaximum, AlsoWhenThePoolShrinksWhileHandlersAreBusyAndGrowsAgain) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; }, {.autoscale = kQuick,
                                                                .buffer_size = 100,
                                                                .preserve_order = ordered(),
                                                                .order_buffer_size = 64,
                                                                .clock = &clock_});
  Number next = 0;
  for (; next < 4; ++next)
    ASSERT_TRUE(pool.push(next));
  ASSERT_TRUE(gates.await_inside(1));
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(tick_at_work(pool, clock_));
  ASSERT_TRUE(gates.await_inside(4));
  gates.open(2);  // Two become idle, two stay busy for ever.
  gates.open(3);
  ASSERT_TRUE(gates.await_inside(2));
  let_others_fall_asleep();
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(tick(clock_, 1s));
    const PoolStats stats = pool.stats();
    EXPECT_GE(stats.workers, 2u) << "a worker that still runs its handler left the count";
    EXPECT_LE(stats.running, stats.workers);
  }
  EXPECT_TRUE(eventually([&] { return pool.stats().workers == 2; })) << pool.stats().workers;
  EXPECT_GE(pool.stats().scale_downs, 1u);

  for (; next < 30; ++next)
    ASSERT_TRUE(pool.push(next));
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(tick(clock_, 1s));
    EXPECT_LE(pool.stats().workers, 4u);
  }
  ASSERT_TRUE(gates.await_inside(4));
  EXPECT_EQ(gates.inside_peak(), 4u);
  EXPECT_EQ(pool.stats().workers, 4u);
  gates.open_all();
  pool.close();
  EXPECT_EQ(sorted(drain(pool)), numbers(0, 30));
}

TEST_P(RunningNeverAboveMaximum, AlsoWhenHandlersIgnoreTheirTimeout) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  reports_.watch({.workers = 2,
                                  .preserve_order = ordered(),
                                  .order_buffer_size = 8,
                                  .process_timeout = 1s,
                                  .clock = &clock_}));
  for (Number n = 0; n < 6; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(2));
  clock_.advance(1s);
  ASSERT_TRUE(eventually([&] { return pool.stats().failed == 2; }));
  EXPECT_EQ(pool.stats().running, 2u) << "they are failed, and yet they run";
  EXPECT_EQ(gates.started_count(), 2u);
  gates.open_all();
  pool.close();
  EXPECT_EQ(sorted(drain(pool)), numbers(2, 6));
  EXPECT_EQ(gates.inside_peak(), 2u);
}

using NoGrowthWhileStalled = PoolScalingInOrder;

TEST_F(NoGrowthWhileStalled, OnTheHeadOfTheLine) {
  Gates<> gates;
  Autoscale scale = kQuick;
  scale.min_workers = 2;
  scale.max_workers = 8;
  NumberPool pool([&](Number n) { return gates.enter(n), n; }, {.workers = 2,
                                                                .autoscale = scale,
                                                                .preserve_order = true,
                                                                .order_buffer_size = 4,
                                                                .clock = &clock_});
  for (Number n = 1; n < 4; ++n)
    gates.open(n);
  for (Number n = 0; n < 4; ++n)
    ASSERT_TRUE(pool.push(n));
  Background producer([&] {
    for (Number n = 4; n < 8; ++n)
      EXPECT_TRUE(pool.push(n));  // Waits: the window is full.
    pool.close();
  });
  ASSERT_TRUE(gates.await_left_count(3));
  ASSERT_TRUE(gates.await(0));
  ASSERT_TRUE(eventually([&] { return pool.stats().running == 1; }));
  for (int i = 0; i < 50; ++i) {
    clock_.advance(1s);
    EXPECT_EQ(pool.stats().workers, 2u) << i;
  }
  EXPECT_EQ(pool.stats().scale_ups, 0u);
  gates.open_all();
  EXPECT_EQ(drain(pool), numbers(0, 8));
}

TEST_F(NoGrowthWhileStalled, OnAConsumerThatDoesNotTake) {
  std::atomic<int> done = 0;
  NumberPool pool(
      [&](Number n) { return ++done, n; },
      {.autoscale = kQuick, .preserve_order = true, .order_buffer_size = 8, .clock = &clock_});
  for (Number n = 0; n < 8; ++n)
    ASSERT_TRUE(pool.push(n));
  Background producer([&] { EXPECT_TRUE(pool.push(8)); });
  ASSERT_TRUE(eventually([&] {
    const PoolStats stats = pool.stats();
    return done == 8 && stats.running == 0 && stats.head_of_line &&
           stats.head_of_line->waits_for_pop;
  }));
  const std::uint64_t grown_before = pool.stats().scale_ups;
  for (int i = 0; i < 20; ++i)
    clock_.advance(1s);
  EXPECT_EQ(pool.stats().scale_ups, grown_before);
  EXPECT_EQ(pool.pop(), 0u);
  EXPECT_TRUE(producer.finished());
}

TEST_F(NoGrowthWhileStalled, ButAFullWindowOfRunnableInputIsDemand) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n) { return gates.enter(n), n; },
      {.autoscale = kQuick, .preserve_order = true, .order_buffer_size = 8, .clock = &clock_});
  for (Number n = 0; n < 8; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(1));
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(tick_at_work(pool, clock_));
  ASSERT_TRUE(gates.await_inside(4));
  EXPECT_EQ(pool.stats().workers, 4u);
  EXPECT_EQ(pool.stats().scale_ups, 3u);
  gates.open_all();
  pool.close();
  EXPECT_EQ(drain(pool), numbers(0, 8));
}

// Ticks the clock once a second and notes at which seconds the pool has grown or shrunk.
struct Changes {
  std::vector<int> ups;
  std::vector<int> downs;
};

Changes watch_scaling(NumberPool& pool, ManualClock& clock, int seconds, bool is_at_work = false) {
  Changes changes;
  PoolStats before = pool.stats();
  for (int second = 1; second <= seconds; ++second) {
    EXPECT_TRUE(is_at_work ? tick_at_work(pool, clock) : tick(clock, 1s));
    const PoolStats now = pool.stats();
    if (now.scale_ups != before.scale_ups) changes.ups.push_back(second);
    if (now.scale_downs != before.scale_downs) changes.downs.push_back(second);
    before = now;
  }
  return changes;
}

class ScaleTimes : public PoolScaling {};

TEST_P(ScaleTimes, GrowthsAreOneCooldownApart) {
  Gates<> gates;
  NumberPool pool([&](Number n) { return gates.enter(n), n; },
                  {.autoscale = Autoscale{.max_workers = 4, .scale_up_cooldown = 5s},
                   .preserve_order = ordered(),
                   .order_buffer_size = 32,
                   .clock = &clock_});
  for (Number n = 0; n < 32; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(1));
  const Changes changes = watch_scaling(pool, clock_, 40, true);
  ASSERT_EQ(changes.ups.size(), 3u);
  EXPECT_LE(changes.ups[0], 6) << "the first growth needs no more than a cooldown and a check";
  EXPECT_EQ(changes.ups[1] - changes.ups[0], 5);
  EXPECT_EQ(changes.ups[2] - changes.ups[1], 5);
  EXPECT_TRUE(changes.downs.empty());
  EXPECT_TRUE(gates.await_inside(4));
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.workers, 4u);
  EXPECT_EQ(stats.workers_min, 1u);
  EXPECT_EQ(stats.workers_max, 4u);
  gates.open_all();
  pool.close();
  EXPECT_EQ(sorted(drain(pool)), numbers(0, 32));
}

TEST_P(ScaleTimes, NothingHappensBetweenTwoChecks) {
  Gates<> gates;
  NumberPool pool(
      [&](Number n) { return gates.enter(n), n; },
      {.autoscale = Autoscale{.max_workers = 4, .scale_up_cooldown = 1s, .check_interval = 10s},
       .preserve_order = ordered(),
       .order_buffer_size = 32,
       .clock = &clock_});
  for (Number n = 0; n < 32; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(1));
  const Changes changes = watch_scaling(pool, clock_, 45, true);
  for (const int second : changes.ups)
    EXPECT_EQ(second % 10, 0) << second;
  EXPECT_GE(changes.ups.size(), 3u);
  gates.open_all();
}

TEST_P(ScaleTimes, GrowsByStepsAndNeverAboveTheMaximum) {
  Gates<> gates;
  Autoscale scale = kQuick;
  scale.max_workers = 6;
  scale.step = 4;
  NumberPool pool(
      [&](Number n) { return gates.enter(n), n; },
      {.autoscale = scale, .preserve_order = ordered(), .order_buffer_size = 32, .clock = &clock_});
  for (Number n = 0; n < 32; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(1));
  std::vector<std::size_t> expected = {1, 5, 6, 6};
  for (int second = 0; second < 10; ++second) {
    ASSERT_TRUE(tick(clock_, 1s));
    const std::size_t wanted = expected[std::min<std::size_t>(pool.stats().scale_ups, 3)];
    ASSERT_TRUE(eventually([&] { return pool.stats().workers == wanted; })) << wanted;
  }
  EXPECT_EQ(pool.stats().scale_ups, 2u);
  EXPECT_TRUE(gates.await_inside(6));
  gates.open_all();
}

TEST_P(ScaleTimes, ShrinksAfterIdlenessOneCooldownApartDownToTheMinimum) {
  Gates<> gates;
  NumberPool pool([&](Number n) { gates.enter(n); },
                  {.workers = 2,
                   .autoscale = Autoscale{.max_workers = 5,
                                          .scale_up_cooldown = 1s,
                                          .scale_down_cooldown = 10s,
                                          .scale_down_after = 30s},
                   .preserve_order = ordered(),
                   .order_buffer_size = 32,
                   .clock = &clock_});
  for (Number n = 0; n < 5; ++n)
    ASSERT_TRUE(pool.push(n));
  ASSERT_TRUE(gates.await_inside(2));
  watch_scaling(pool, clock_, 10, true);
  ASSERT_TRUE(gates.await_inside(5));
  gates.open_all();
  ASSERT_TRUE(eventually([&] { return pool.stats().delivered == 5; }));
  ASSERT_TRUE(eventually([&] { return pool.stats().running == 0; }));
  let_others_fall_asleep();
  const Changes changes = watch_scaling(pool, clock_, 120);
  ASSERT_EQ(changes.downs.size(), 3u);
  EXPECT_GE(changes.downs[0], 30) << "idle this long first";
  EXPECT_LE(changes.downs[0], 41) << "and no longer than idleness, a check and a cooldown";
  EXPECT_EQ(changes.downs[1] - changes.downs[0], 10);
  EXPECT_EQ(changes.downs[2] - changes.downs[1], 10);
  EXPECT_TRUE(changes.ups.empty());
  EXPECT_TRUE(eventually([&] { return pool.stats().workers == 2; }));
  EXPECT_EQ(pool.stats().workers_min, 2u);
}

TEST_P(ScaleTimes, WorkersIsTheMinimumFromTheStart) {
  NumberPool pool([](Number n) { return n; }, {.workers = 3,
                                               .autoscale = Autoscale{.max_workers = 5},
                                               .preserve_order = ordered(),
                                               .clock = &clock_});
  EXPECT_EQ(pool.stats().workers, 3u);
  EXPECT_EQ(pool.stats().workers_min, 3u);
  EXPECT_EQ(pool.stats().workers_max, 5u);
}

TEST_P(ScaleTimes, AShrunkPoolWorksAtOnceAndGrowsAgain) {
  Gates<> gates;
  NumberPool pool([&](Number n) { gates.enter(n); }, {.autoscale = kQuick,
                                                      .preserve_order = ordered(),
                                                      .order_buffer_size = 64,
                                                      .clock = &clock_});
  Number next = 0;
  for (int round = 0; round < 3; ++round) {
    const Number first = next;
    for (; next < first + 8; ++next)
      ASSERT_TRUE(pool.push(next));
    ASSERT_TRUE(gates.await(first)) << "an idle pool takes work without waiting for a check";
    watch_scaling(pool, clock_, 8, true);
    ASSERT_TRUE(gates.await_inside(4));
    for (Number n = first; n < next; ++n)
      gates.open(n);
    ASSERT_TRUE(eventually([&] { return pool.stats().delivered == next; }));
    let_others_fall_asleep();
    watch_scaling(pool, clock_, 20);
    EXPECT_TRUE(eventually([&] { return pool.stats().workers == 1; }));
  }
  EXPECT_EQ(pool.stats().scale_ups, 9u);
  EXPECT_EQ(pool.stats().scale_downs, 9u);
}

TEST_P(ScaleTimes, StopAndDestructionEndAPoolThatIsScaling) {
  for (int seconds = 0; seconds < 6; ++seconds) {
    ManualClock clock;
    Gates<> gates;
    NumberPool pool([&](Number n) { return gates.enter(n), n; }, {.autoscale = kQuick,
                                                                  .preserve_order = ordered(),
                                                                  .order_buffer_size = 16,
                                                                  .clock = &clock});
    for (Number n = 0; n < 16; ++n)
      ASSERT_TRUE(pool.push(n));
    for (int i = 0; i < seconds; ++i)
      clock.advance(1s);
    EXPECT_EQ(sorted(pool.stop(0s)), numbers(0, 16));
    gates.open_all();
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, RunningNeverAboveMaximum, testing::Bool(), name_of_mode);
INSTANTIATE_TEST_SUITE_P(Modes, ScaleTimes, testing::Bool(), name_of_mode);

}  // namespace
}  // namespace ordo
