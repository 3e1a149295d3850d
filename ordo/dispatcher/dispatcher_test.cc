// The promises of the dispatcher, elastic and striped alike: order within an entity, freedom
// between entities, nothing lost, an account that adds up.
#include "ordo/dispatcher.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/gates.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::Background;
using testing_support::eventually;
using testing_support::Gates;
using testing_support::Watchdog;
using Number = std::uint64_t;

void expect_balance(const DispatcherStats& stats) {
  EXPECT_EQ(stats.admitted, stats.processed + stats.failed + stats.dead_lettered + stats.dropped +
                                stats.undone + stats.queued);
}

// Both modes; the parameter is the number of stripes.
class DispatcherTest : public testing::TestWithParam<std::size_t> {
 protected:
  Watchdog watchdog_{"DispatcherTest"};
};

TEST_P(DispatcherTest, EventsOfAnEntityAreHandledInTheOrderTheyWereDispatched) {
  std::vector<Number> seen;
  Dispatcher<std::string, Number> d([&](const std::string&, Number& n) { seen.push_back(n); },
                                    {.threads = 4, .stripes = GetParam()});
  for (Number n = 0; n < 900; ++n)
    ASSERT_EQ(d.dispatch("cart-17", n), Dispatched::admitted);

  EXPECT_TRUE(d.shutdown(30s).empty());
  ASSERT_EQ(seen.size(), 900U);
  for (Number n = 0; n < 900; ++n)
    EXPECT_EQ(seen[n], n);
}

TEST_P(DispatcherTest, TheNextEventOfAnEntityWaitsUntilTheOneBeforeHasEnded) {
  Gates<> gates;
  Dispatcher<int, Number> d([&](int, Number& n) { gates.enter(n); },
                            {.threads = 4, .stripes = GetParam()});
  d.dispatch(1, Number{1});
  d.dispatch(1, Number{2});
  ASSERT_TRUE(gates.await(1));
  EXPECT_FALSE(gates.has_started(2));
  EXPECT_EQ(d.stats().in_flight, 1U);

  gates.open(1);
  ASSERT_TRUE(gates.await(2));
  EXPECT_EQ(gates.inside_peak(), 1U);
  gates.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
}

TEST_P(DispatcherTest, EntitiesRunSideBySideOnAllThreads) {
  Gates<> gates;
  Dispatcher<Number, Number> d([&](const Number&, Number& n) { gates.enter(n); },
                               {.threads = 4, .stripes = GetParam()});
  for (Number n = 0; n < 400; ++n)
    d.dispatch(n, Number{n});
  ASSERT_TRUE(gates.await_inside(4));
  EXPECT_EQ(d.stats().in_flight, 4U);
  gates.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(gates.inside_peak(), 4U);
}

TEST_P(DispatcherTest, AHundredThreadsToOneEntityAreHandledOnceEachAndNeverTwoAtATime) {
  constexpr Number kThreads = 100;
  constexpr Number kEach = 50;
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  std::vector<int> count(kThreads * kEach);
  std::vector<Number> next(kThreads);
  std::atomic<int> disorder = 0;
  Dispatcher<std::string, Number> d(
      [&](const std::string&, Number& n) {
        if (inside.fetch_add(1) != 0) ++overlaps;
        ++count[n];
        if (n % kEach != next[n / kEach]++) ++disorder;
        inside.fetch_sub(1);
      },
      {.threads = 8, .stripes = GetParam(), .max_queued_per_key = 100'000});
  std::vector<std::thread> threads;
  for (Number t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (Number i = 0; i < kEach; ++i)
        ASSERT_EQ(d.dispatch("one", Number{t * kEach + i}), Dispatched::admitted);
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  EXPECT_TRUE(d.shutdown(60s).empty());
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(disorder, 0);
  for (const int n : count)
    EXPECT_EQ(n, 1);
  EXPECT_EQ(d.stats().processed, kThreads * kEach);
}

TEST_P(DispatcherTest, ManyThreadsToManyEntitiesKeepOrderAndLoseNothing) {
  constexpr Number kThreads = 8;
  constexpr Number kEach = 10'000;
  constexpr Number kKeys = 97;
  struct Event {
    Number thread;
    Number number;
  };
  // Per entity and thread: the last number seen.
  std::vector<std::vector<Number>> last(kKeys, std::vector<Number>(kThreads, 0));
  std::vector<std::atomic<int>> inside(kKeys);
  std::atomic<int> wrong = 0;
  Dispatcher<Number, Event> d(
      [&](const Number& key, Event& event) {
        if (inside[key].fetch_add(1) != 0) ++wrong;
        if (event.number <= last[key][event.thread]) ++wrong;
        last[key][event.thread] = event.number;
        inside[key].fetch_sub(1);
      },
      {.threads = 4, .stripes = GetParam(), .max_queued_per_key = 1'000'000});
  std::vector<std::thread> threads;
  for (Number t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (Number i = 1; i <= kEach; ++i)
        ASSERT_EQ(d.dispatch((i * 31 + t) % kKeys, Event{t, i}), Dispatched::admitted);
    });
  }
  for (int i = 0; i < 50; ++i)
    expect_balance(d.stats());
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_TRUE(d.shutdown(60s).empty());
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(d.stats().processed, kThreads * kEach);
}

TEST_P(DispatcherTest, AHandlerMayDispatchToItsOwnEntityAndToOthers) {
  Dispatcher<int, int>* self = nullptr;
  std::mutex mutex;
  std::vector<std::pair<int, int>> seen;
  Dispatcher<int, int> d(
      [&](int key, int& left) {
        {
          std::lock_guard guard(mutex);
          seen.emplace_back(key, left);
        }
        if (left > 0) {
          EXPECT_EQ(self->dispatch(key, left - 1), Dispatched::admitted);
          EXPECT_EQ(self->dispatch(key + 1, 0), Dispatched::admitted);
        }
      },
      {.threads = 2, .stripes = GetParam()});
  self = &d;
  d.dispatch(1, 3);
  ASSERT_TRUE(eventually([&] { return d.stats().processed == 7; }));
  EXPECT_TRUE(d.shutdown(30s).empty());
  std::vector<int> of_one;
  for (const auto& [key, left] : seen) {
    if (key == 1) of_one.push_back(left);
  }
  EXPECT_EQ(of_one, (std::vector<int>{3, 2, 1, 0}));
}

TEST_P(DispatcherTest, AHandlerMayPauseResumeAndAsk) {
  Dispatcher<int, int>* self = nullptr;
  Dispatcher<int, int> d(
      [&](int, int&) {
        self->pause(99);
        EXPECT_GE(self->stats().in_flight, 1U);
        self->lanes(3);
        self->parked();
        self->resume(99);
      },
      {.threads = 2, .stripes = GetParam()});
  self = &d;
  for (int key = 0; key < 20; ++key)
    d.dispatch(key, 0);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().processed, 20U);
}

TEST_P(DispatcherTest, APausedEntityAdmitsEventsAndHandlesThemWhenResumed) {
  Gates<> gates;
  gates.open_all();
  Dispatcher<int, Number> d([&](int, Number& n) { gates.enter(n); },
                            {.threads = 2, .stripes = GetParam()});
  EXPECT_TRUE(d.pause(1));
  EXPECT_FALSE(d.pause(1));
  EXPECT_EQ(d.dispatch(1, Number{10}), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{11}), Dispatched::admitted);
  const int other = GetParam() == 0 ? 2 : 100;
  EXPECT_EQ(d.dispatch(other, Number{20}), Dispatched::admitted);
  ASSERT_TRUE(gates.await_left(20));

  EXPECT_FALSE(gates.has_started(10));
  const auto parked = d.parked();
  ASSERT_EQ(parked.size(), 1U);
  EXPECT_EQ(parked[0].key, 1);
  EXPECT_EQ(parked[0].queued, 2U);
  EXPECT_EQ(parked[0].reason, "paused");

  EXPECT_TRUE(d.resume(1));
  EXPECT_FALSE(d.resume(1));
  ASSERT_TRUE(gates.await_left(11));
  EXPECT_TRUE(d.shutdown(30s).empty());
}

TEST_P(DispatcherTest, APauseLetsTheEventInFlightEndAndHoldsTheRest) {
  Gates<> gates;
  Dispatcher<int, Number> d([&](int, Number& n) { gates.enter(n); },
                            {.threads = 2, .stripes = GetParam()});
  for (Number n = 1; n <= 5; ++n)
    d.dispatch(1, Number{n});
  ASSERT_TRUE(gates.await(1));
  EXPECT_TRUE(d.pause(1));
  gates.open_all();
  ASSERT_TRUE(eventually([&] { return d.stats().in_flight == 0; }));

  EXPECT_FALSE(gates.has_started(2));
  EXPECT_EQ(d.parked()[0].queued, 4U);
  EXPECT_TRUE(d.resume(1));
  ASSERT_TRUE(gates.await_left(5));
}

TEST_P(DispatcherTest, AHotSlowEntityWithAFullQueueDoesNotStopTheOthers) {
  Gates<> gates;
  std::atomic<int> others = 0;
  Dispatcher<Number, Number> d(
      [&](const Number& key, Number& n) {
        if (key == 0) {
          gates.enter(n);
        } else {
          ++others;
        }
      },
      {.threads = 2, .stripes = GetParam() * 16, .max_queued_per_key = 10});
  int refused = 0;
  for (Number n = 0; n < 50; ++n)
    refused += d.dispatch(0, Number{n}) == Dispatched::key_full ? 1 : 0;
  EXPECT_EQ(refused, 40);
  for (Number n = 0; n < 8; ++n) {
    for (Number key = 1; key < 100; ++key) {
      ASSERT_TRUE(eventually([&] { return d.dispatch(key, Number{n}) == Dispatched::admitted; }));
    }
  }
  EXPECT_TRUE(eventually([&] { return others == 8 * 99; }));
  gates.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
}

TEST_P(DispatcherTest, TellsTheDeepestLanesAndWhatTheyWaitFor) {
  ManualClock clock(TimePoint(5s));
  Gates<> gates;
  Dispatcher<int, Number> d([&](int, Number& n) { gates.enter(n); },
                            {.threads = 2, .stripes = GetParam(), .clock = &clock});
  for (Number n = 0; n < 5; ++n)
    d.dispatch(1, Number{n});
  ASSERT_TRUE(gates.await(0));
  const auto lanes = d.lanes(10);
  ASSERT_EQ(lanes.size(), 1U);
  EXPECT_EQ(lanes[0].key, 1);
  EXPECT_EQ(lanes[0].queued, 5U);
  EXPECT_EQ(lanes[0].state, LaneState::in_flight);
  EXPECT_EQ(lanes[0].since, TimePoint(5s));
  EXPECT_TRUE(d.lanes(0).empty());
  gates.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
}

TEST_P(DispatcherTest, OnlyAsManyLanesAreListedAsAskedForAndTheDeepestComesFirst) {
  Gates<> gates;
  Dispatcher<int, Number> d([&](int, Number& n) { gates.enter(n); },
                            {.threads = 1, .stripes = GetParam() * 64});
  for (int key = 1; key <= 20; ++key) {
    for (int n = 0; n < key; ++n)
      d.dispatch(key, Number{0});
  }
  ASSERT_TRUE(gates.await(0));
  const auto lanes = d.lanes(3);
  ASSERT_EQ(lanes.size(), 3U);
  EXPECT_EQ(lanes[0].queued, 20U);
  EXPECT_EQ(lanes[1].queued, 19U);
  EXPECT_EQ(lanes[2].queued, 18U);
  gates.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
}

TEST_P(DispatcherTest, MoveOnlyEventsAndStringKeysOfAnyLengthTravel) {
  std::atomic<int> sum = 0;
  Dispatcher<std::string, std::unique_ptr<int>> d(
      [&](const std::string& key, std::unique_ptr<int>& event) {
        EXPECT_EQ(key, std::string(100, 'k'));
        sum += *event;
      },
      {.threads = 2, .stripes = GetParam()});
  for (int n = 1; n <= 10; ++n)
    EXPECT_EQ(d.dispatch(std::string(100, 'k'), std::make_unique<int>(n)), Dispatched::admitted);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(sum, 55);
}

TEST_P(DispatcherTest, ADispatcherCanBeMovedWhileItWorks) {
  std::atomic<int> count = 0;
  Dispatcher<int, int> first([&](int, int&) { ++count; }, {.threads = 2, .stripes = GetParam()});
  first.dispatch(1, 1);
  Dispatcher<int, int> second = std::move(first);
  second.dispatch(1, 2);
  EXPECT_TRUE(second.shutdown(30s).empty());
  EXPECT_EQ(count, 2);
}

INSTANTIATE_TEST_SUITE_P(Modes, DispatcherTest, testing::Values(0U, 64U),
                         [](const auto& mode) { return mode.param == 0 ? "Elastic" : "Striped"; });

TEST(DispatcherElasticTest, NoTwoEntitiesShareALaneHoweverManyThereAre) {
  Watchdog watchdog("DispatcherElasticTest");
  Gates<> gates;
  // One entity is held up; every one of the others, whatever it hashes to, gets through.
  std::atomic<Number> others = 0;
  Dispatcher<Number, Number> d(
      [&](const Number& key, Number& n) { key == 0 ? void(gates.enter(n)) : void(++others); },
      {.threads = 2});
  d.dispatch(0, Number{0});
  ASSERT_TRUE(gates.await(0));
  for (Number key = 1; key <= 20'000; ++key)
    ASSERT_EQ(d.dispatch(key, Number{key}), Dispatched::admitted);
  EXPECT_TRUE(eventually([&] { return others == 20'000; }));
  EXPECT_TRUE(eventually([&] { return d.stats().active_lanes == 1; }));
  gates.open_all();
}

TEST(DispatcherStripedTest, EntitiesOfOneStripeRunOneAfterTheOther) {
  Watchdog watchdog("DispatcherStripedTest");
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  Dispatcher<int, int> d(
      [&](int, int&) {
        if (inside.fetch_add(1) != 0) ++overlaps;
        inside.fetch_sub(1);
      },
      {.threads = 4, .stripes = 1});
  for (int key = 0; key < 900; ++key)
    ASSERT_EQ(d.dispatch(key, key), Dispatched::admitted);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(overlaps, 0);
}

TEST(DispatcherStripedTest, TheLimitPerKeyIsThatOfTheStripe) {
  Watchdog watchdog("DispatcherStripedTest");
  Gates<> gates;
  Dispatcher<int, int> d([&](int, int& n) { gates.enter(static_cast<Number>(n)); },
                         {.threads = 1, .stripes = 1, .max_queued_per_key = 2});
  EXPECT_EQ(d.dispatch(1, 1), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(2, 2), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(3, 3), Dispatched::key_full);
  gates.open_all();
}

}  // namespace
}  // namespace ordo
