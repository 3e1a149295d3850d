#include "ordo/runtime/timer.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/runtime/threads.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;

TEST(TaskTest, CarriesWhatCannotBeCopiedSmallOrLarge) {
  int sum = 0;
  auto small = std::make_unique<int>(1);
  struct Large {
    std::unique_ptr<int> value;
    char padding[200] = {};
  };
  Task first([&sum, small = std::move(small)] { sum += *small; });
  Task second([&sum, large = Large{std::make_unique<int>(10)}] { sum += *large.value; });
  Task moved = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that is the promise.
  moved();
  second();
  moved = std::move(second);
  moved();
  EXPECT_EQ(sum, 21);
  moved.reset();
  EXPECT_FALSE(moved);
}

TEST(TimerQueueTest, CallsComeByTimeAndThenByTheOrderOfAdding) {
  TimerQueue queue;
  std::vector<int> order;
  const TimePoint start{};
  queue.add(start + 2s, [&] { order.push_back(3); });
  queue.add(start + 1s, [&] { order.push_back(1); });
  queue.add(start + 1s, [&] { order.push_back(2); });
  EXPECT_EQ(queue.next(), start + 1s);
  EXPECT_FALSE(queue.take_due(start + 1s - 1ns));
  while (auto due = queue.take_due(start + 5s))
    due->task();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(queue.next(), TimePoint::max());
}

TEST(TimerQueueTest, ACancelledCallIsGone) {
  TimerQueue queue;
  const TimerId id = queue.add(TimePoint{}, [] {});
  EXPECT_TRUE(queue.cancel(id));
  EXPECT_FALSE(queue.cancel(id));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(TimerTest, MakesTheCallWhenItsClockSaysSo) {
  ManualClock clock;
  Timer timer(clock);
  std::atomic<int> calls{0};
  std::latch called(1);
  timer.schedule(clock.now() + 10s, [&] {
    ++calls;
    called.count_down();
  });
  clock.wait_for_waiters(1);
  clock.advance(9s);
  EXPECT_EQ(calls, 0);
  clock.advance(1s);
  called.wait();
  EXPECT_EQ(calls, 1);
}

TEST(TimerTest, AnEarlierCallScheduledLaterGoesFirst) {
  ManualClock clock;
  Timer timer(clock);
  std::vector<int> order;
  std::latch called(2);
  timer.schedule(clock.now() + 10s, [&] {
    order.push_back(2);
    called.count_down();
  });
  clock.wait_for_waiters(1);
  timer.schedule(clock.now() + 5s, [&] {
    order.push_back(1);
    called.count_down();
  });
  clock.advance(10s);
  called.wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(TimerTest, ACallDueInThePastIsMadeAtOnce) {
  Timer timer;
  std::latch called(1);
  timer.schedule(TimePoint::min(), [&] { called.count_down(); });
  called.wait();
}

TEST(TimerTest, ACancelledCallIsNotMade) {
  ManualClock clock;
  Timer timer(clock);
  bool called = false;
  std::latch later_called(1);
  const TimerId id = timer.schedule(clock.now() + 1s, [&] { called = true; });
  timer.schedule(clock.now() + 2s, [&] { later_called.count_down(); });
  EXPECT_TRUE(timer.cancel(id));
  EXPECT_FALSE(timer.cancel(id));
  clock.advance(2s);
  later_called.wait();
  EXPECT_FALSE(called);
}

TEST(TimerTest, CancelWaitsForACallThatIsRunning) {
  Timer timer;
  std::latch started(1);
  std::latch may_end(1);
  std::atomic<bool> ended{false};
  const TimerId id = timer.schedule(TimePoint::min(), [&] {
    started.count_down();
    may_end.wait();
    ended = true;
  });
  started.wait();
  Thread canceller("ordo-test", [&](std::stop_token) {
    EXPECT_FALSE(timer.cancel(id));
    EXPECT_TRUE(ended);
  });
  may_end.count_down();
  canceller.join();
}

TEST(TimerTest, ACallMayCancelItselfAndScheduleAnother) {
  Timer timer;
  std::latch called(1);
  std::atomic<TimerId> own{TimerId::none};
  std::latch own_known(1);
  own = timer.schedule(TimePoint::min(), [&] {
    own_known.wait();
    EXPECT_FALSE(timer.cancel(own));  // Would wait for ever if it waited for itself.
    timer.schedule(TimePoint::min(), [&] { called.count_down(); });
  });
  own_known.count_down();
  called.wait();
}

TEST(TimerTest, StopDropsTheRestAndSaysHowMany) {
  ManualClock clock;
  Timer timer(clock);
  auto carried = std::make_shared<int>(1);
  timer.schedule(clock.now() + 1s, [carried] {});
  timer.schedule(clock.now() + 2s, [carried] {});
  EXPECT_EQ(timer.stop(), 2u);
  EXPECT_EQ(carried.use_count(), 1);
  EXPECT_EQ(timer.stop(), 2u);
  EXPECT_EQ(timer.schedule(clock.now(), [] {}), TimerId::none);
  EXPECT_EQ(timer.pending_count(), 0u);
}

TEST(TimerTest, MoreThanItsLimitIsRefused) {
  ManualClock clock;
  Timer timer(clock, "ordo-test", 2);
  EXPECT_NE(timer.schedule(clock.now() + 1s, [] {}), TimerId::none);
  EXPECT_NE(timer.schedule(clock.now() + 1s, [] {}), TimerId::none);
  EXPECT_EQ(timer.schedule(clock.now() + 1s, [] {}), TimerId::none);
}

// Goal: cancel is exact. Method: calls that are due at once race with their cancellation; each was
// either prevented or had run when cancel() returned.
TEST(TimerStress, ACallEitherRanOrWasPreventedWhenCancelReturns) {
  Timer timer;
  int prevented = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::atomic<bool> ran{false};
    const TimerId id = timer.schedule(TimePoint::min(), [&] { ran = true; });
    if (timer.cancel(id)) {
      ASSERT_FALSE(ran);
      ++prevented;
    } else {
      ASSERT_TRUE(ran);
    }
  }
  EXPECT_GE(prevented, 0);
}

}  // namespace
}  // namespace ordo
