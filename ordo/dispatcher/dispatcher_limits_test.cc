// Limits and what happens there: per entity and over all, reject, block, drop_oldest; positions.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/dispatcher.h"
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
using D = Dispatcher<int, Number>;

class DispatcherLimitsTest : public testing::TestWithParam<std::size_t> {
 protected:
  auto handler() {
    return [this](int, Number& n) { gates_.enter(n); };
  }
  ~DispatcherLimitsTest() override { gates_.open_all(); }

  Watchdog watchdog_{"DispatcherLimitsTest"};
  Gates<> gates_;
};

TEST_P(DispatcherLimitsTest, AnEntityHoldsAsManyEventsAsItMayTheOneInFlightIncluded) {
  D d(handler(), {.threads = 1, .stripes = GetParam(), .max_queued_per_key = 3});
  for (Number n = 0; n < 3; ++n)
    EXPECT_EQ(d.dispatch(1, Number{n}), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{3}), Dispatched::key_full);
  gates_.open(0);
  ASSERT_TRUE(gates_.await(1));
  EXPECT_EQ(d.dispatch(1, Number{3}), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{4}), Dispatched::key_full);
  EXPECT_EQ(d.stats().rejected, 2U);
  gates_.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().processed, 4U);
}

TEST_P(DispatcherLimitsTest, AfterManyQuickEventsTheLimitIsStillExact) {
  D d(handler(), {.threads = 1, .stripes = GetParam(), .max_queued_per_key = 100});
  for (Number n = 0; n < 1'000; ++n) {  // Quick ones, so that the worker takes them in batches.
    gates_.open(n);
    ASSERT_TRUE(eventually([&] { return d.dispatch(1, Number{n}) == Dispatched::admitted; }));
  }
  gates_.open(1'000);
  gates_.open(1'001);
  for (Number n = 1'000; n < 1'010; ++n)
    ASSERT_TRUE(eventually([&] { return d.dispatch(1, Number{n}) == Dispatched::admitted; }));
  ASSERT_TRUE(gates_.await(1'002));  // 8 are left, whatever batch they are in.
  ASSERT_TRUE(eventually([&] { return d.stats().queued == 8; }));
  for (Number n = 0; n < 92; ++n)
    EXPECT_EQ(d.dispatch(1, Number{2'000 + n}), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{3'000}), Dispatched::key_full);
  gates_.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
}

TEST_P(DispatcherLimitsTest, ARefusedEventIsStillWhole) {
  Dispatcher<int, std::string> d([&](int, std::string&) { gates_.enter(0); },
                                 {.threads = 1, .stripes = GetParam(), .max_queued_per_key = 1});
  EXPECT_EQ(d.dispatch(1, "first"), Dispatched::admitted);
  std::string event = "a text long enough to live on the heap";
  EXPECT_EQ(d.dispatch(1, std::move(event)), Dispatched::key_full);
  EXPECT_EQ(event, "a text long enough to live on the heap");
  gates_.open_all();
}

TEST_P(DispatcherLimitsTest, TheLimitOverAllEntitiesIsExactHoweverTheyAreSpread) {
  D d(handler(), {.threads = 1, .stripes = GetParam(), .max_queued = 1'000});
  int admitted = 0;
  for (int key = 0; key < 1'500; ++key)
    admitted += d.dispatch(key, Number{0}) == Dispatched::admitted ? 1 : 0;
  EXPECT_EQ(admitted, 1'000);
  EXPECT_EQ(d.stats().queued, 1'000U);
  EXPECT_EQ(d.dispatch(1, Number{0}), Dispatched::full);
  EXPECT_EQ(d.stats().rejected, 501U);
  gates_.open_all();
  ASSERT_TRUE(eventually([&] { return d.stats().queued == 0; }));
  for (int key = 0; key < 1'000; ++key)
    EXPECT_EQ(d.dispatch(key, Number{0}), Dispatched::admitted);
  EXPECT_TRUE(d.shutdown(30s).empty());
}

TEST_P(DispatcherLimitsTest, BlockWaitsUntilTheEntityHasRoom) {
  D d(handler(),
      {.threads = 1, .stripes = GetParam(), .max_queued_per_key = 2, .overflow = Overflow::block});
  d.dispatch(1, Number{0});
  d.dispatch(1, Number{1});
  Background caller([&] { EXPECT_EQ(d.dispatch(1, Number{2}), Dispatched::admitted); });
  ASSERT_TRUE(gates_.await(0));
  EXPECT_FALSE(caller.is_finished());
  gates_.open(0);
  EXPECT_TRUE(caller.finished());
  gates_.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().processed, 3U);
  EXPECT_EQ(d.stats().rejected, 0U);
}

TEST_P(DispatcherLimitsTest, BlockWaitsForTheLimitOverAllToo) {
  D d(handler(),
      {.threads = 1, .stripes = GetParam(), .max_queued = 2, .overflow = Overflow::block});
  d.dispatch(1, Number{0});
  d.dispatch(2, Number{1});
  Background caller([&] { EXPECT_EQ(d.dispatch(3, Number{2}), Dispatched::admitted); });
  gates_.open_all();
  EXPECT_TRUE(caller.finished());
  EXPECT_TRUE(d.shutdown(30s).empty());
}

TEST_P(DispatcherLimitsTest, ShutdownWakesABlockedCaller) {
  D d(handler(),
      {.threads = 1, .stripes = GetParam(), .max_queued_per_key = 1, .overflow = Overflow::block});
  d.dispatch(1, Number{0});
  ASSERT_TRUE(gates_.await(0));
  Background caller([&] { EXPECT_EQ(d.dispatch(1, Number{1}), Dispatched::closed); });
  d.shutdown(0s);
  EXPECT_TRUE(caller.finished());
  gates_.open_all();
}

TEST_P(DispatcherLimitsTest, InAHandlerBlockRejectsAsItWouldWaitForItself) {
  D* self = nullptr;
  std::atomic<int> refused = 0;
  D d(
      [&](int key, Number& n) {
        if (n == 0 && self->dispatch(key, Number{1}) == Dispatched::key_full) ++refused;
      },
      {.threads = 1, .stripes = GetParam(), .max_queued_per_key = 1, .overflow = Overflow::block});
  self = &d;
  d.dispatch(1, Number{0});
  ASSERT_TRUE(eventually([&] { return d.stats().processed == 1; }));
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(refused, 1);
}

TEST_P(DispatcherLimitsTest, ManyBlockedCallersAllGetThrough) {
  gates_.open_all();
  D d(handler(), {.threads = 2,
                  .stripes = GetParam(),
                  .max_queued_per_key = 3,
                  .max_queued = 5,
                  .overflow = Overflow::block});
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (Number n = 0; n < 500; ++n)
        ASSERT_EQ(d.dispatch(t % 3, Number{n}), Dispatched::admitted);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_TRUE(d.shutdown(60s).empty());
  EXPECT_EQ(d.stats().processed, 3'000U);
}

TEST_P(DispatcherLimitsTest, DropOldestNeverDropsTheOneInFlightAndTellsWhatItDropped) {
  std::vector<Number> dropped;
  D d(handler(), {.threads = 1,
                  .stripes = GetParam(),
                  .max_queued_per_key = 3,
                  .overflow = Overflow::drop_oldest,
                  .on_drop = [&](const int&, const Number& n) { dropped.push_back(n); }});
  d.dispatch(1, Number{0});
  ASSERT_TRUE(gates_.await(0));
  for (Number n = 1; n <= 5; ++n)
    EXPECT_EQ(d.dispatch(1, Number{n}), Dispatched::admitted);
  EXPECT_EQ(dropped, (std::vector<Number>{1, 2, 3}));
  gates_.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(gates_.started(), (std::vector<Number>{0, 4, 5}));
  EXPECT_EQ(d.stats().dropped, 3U);
  EXPECT_EQ(d.stats().processed, 3U);
}

TEST_P(DispatcherLimitsTest, DropOldestWithNothingToDropRefuses) {
  D d(handler(), {.threads = 1,
                  .stripes = GetParam(),
                  .max_queued_per_key = 1,
                  .overflow = Overflow::drop_oldest});
  d.dispatch(1, Number{0});
  ASSERT_TRUE(gates_.await(0));
  EXPECT_EQ(d.dispatch(1, Number{1}), Dispatched::key_full);
  gates_.open_all();
}

// ---- positions

TEST_P(DispatcherLimitsTest, APositionSeenBeforeIsADuplicate) {
  gates_.open_all();
  D d(handler(), {.threads = 1, .stripes = GetParam()});
  EXPECT_EQ(d.dispatch(1, Number{0}, 7), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{1}, 8), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{2}, 8), Dispatched::duplicate);
  EXPECT_EQ(d.dispatch(1, Number{3}, 3), Dispatched::duplicate);
  EXPECT_EQ(d.dispatch(2, Number{4}, 3), Dispatched::admitted);  // Another entity.
  EXPECT_EQ(d.dispatch(1, Number{5}), Dispatched::admitted);     // Without a position.
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().duplicates, 2U);
  EXPECT_EQ(d.stats().processed, 4U);
}

TEST_P(DispatcherLimitsTest, APositionIsNotUsedUpByAnEventThatWasRefused) {
  D d(handler(), {.threads = 1, .stripes = GetParam(), .max_queued_per_key = 1});
  EXPECT_EQ(d.dispatch(1, Number{0}, 0), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{1}, 1), Dispatched::key_full);
  gates_.open_all();
  ASSERT_TRUE(eventually([&] { return d.stats().queued == 0; }));
  EXPECT_EQ(d.dispatch(1, Number{1}, 1), Dispatched::admitted);
  EXPECT_TRUE(d.shutdown(30s).empty());
}

using Gap = std::tuple<int, Number, Number>;

TEST_P(DispatcherLimitsTest, GapsAreAcceptedAndCountedAndReportedIfWanted) {
  for (const GapPolicy policy : {GapPolicy::accept, GapPolicy::report}) {
    gates_.open_all();
    std::vector<Gap> gaps;
    D d(handler(), {.threads = 1,
                    .stripes = GetParam(),
                    .gaps = policy,
                    .on_gap = [&](const int& key, Number expected, Number given) {
                      gaps.emplace_back(key, expected, given);
                    }});
    EXPECT_EQ(d.dispatch(1, Number{1}, 1), Dispatched::admitted);
    EXPECT_EQ(d.dispatch(1, Number{4}, 4), Dispatched::admitted);
    EXPECT_EQ(d.dispatch(1, Number{5}, 5), Dispatched::admitted);
    EXPECT_EQ(d.dispatch(1, Number{2}, 2), Dispatched::duplicate);
    EXPECT_TRUE(d.shutdown(30s).empty());
    EXPECT_EQ(d.stats().gaps, 1U);
    EXPECT_EQ(d.stats().processed, 3U);
    const std::vector<Gap> expected =
        policy == GapPolicy::report ? std::vector<Gap>{{1, 2, 4}} : std::vector<Gap>{};
    EXPECT_EQ(gaps, expected);
  }
}

TEST_P(DispatcherLimitsTest, EventsBehindAGapWaitForTheMissingOnesAndComeInOrder) {
  gates_.open_all();
  D d(handler(), {.threads = 1, .stripes = GetParam(), .gaps = GapPolicy::wait});
  EXPECT_EQ(d.dispatch(1, Number{1}, 1), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{4}, 4), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{3}, 3), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{3}, 3), Dispatched::duplicate);
  ASSERT_TRUE(gates_.await_left(1));
  ASSERT_TRUE(eventually([&] { return d.stats().active_lanes == 0; }));
  EXPECT_EQ(d.stats().processed, 1U);
  EXPECT_EQ(d.stats().held, 2U);
  EXPECT_EQ(d.stats().queued, 2U);
  const auto lanes = d.lanes(5);
  ASSERT_EQ(lanes.size(), 1U);
  EXPECT_EQ(lanes[0].held, 2U);
  EXPECT_EQ(lanes[0].state, LaneState::none);

  EXPECT_EQ(d.dispatch(1, Number{2}, 2), Dispatched::admitted);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(gates_.started(), (std::vector<Number>{1, 2, 3, 4}));
  EXPECT_EQ(d.stats().gaps, 2U);
}

TEST_P(DispatcherLimitsTest, ResumeAcceptsAGapThatWillNotBeFilled) {
  gates_.open_all();
  D d(handler(), {.threads = 1, .stripes = GetParam(), .gaps = GapPolicy::wait});
  d.dispatch(1, Number{1}, 1);
  d.dispatch(1, Number{5}, 5);
  d.dispatch(1, Number{6}, 6);
  d.dispatch(1, Number{9}, 9);
  EXPECT_TRUE(d.resume(1));
  ASSERT_TRUE(eventually([&] { return d.stats().processed == 3; }));
  EXPECT_FALSE(gates_.has_started(9));
  EXPECT_EQ(d.dispatch(1, Number{2}, 2), Dispatched::duplicate);
  const auto undone = d.shutdown(0s);
  EXPECT_EQ(undone.at(1), (std::vector<Number>{9}));
  EXPECT_EQ(d.stats().undone, 1U);
}

TEST_P(DispatcherLimitsTest, EventsHeldBackCountTowardsTheLimitOfTheirEntity) {
  gates_.open_all();
  D d(handler(),
      {.threads = 1, .stripes = GetParam(), .max_queued_per_key = 3, .gaps = GapPolicy::wait});
  d.dispatch(1, Number{1}, 1);
  ASSERT_TRUE(eventually([&] { return d.stats().processed == 1; }));
  EXPECT_EQ(d.dispatch(1, Number{3}, 3), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{4}, 4), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{5}, 5), Dispatched::key_full);  // Or there were no place for 2.
  EXPECT_EQ(d.dispatch(1, Number{2}, 2), Dispatched::admitted);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().processed, 4U);
}

INSTANTIATE_TEST_SUITE_P(Modes, DispatcherLimitsTest, testing::Values(0U, 64U),
                         [](const auto& mode) { return mode.param == 0 ? "Elastic" : "Striped"; });

}  // namespace
}  // namespace ordo
