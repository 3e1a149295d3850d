#include "ordo/runtime/loop.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ordo {
namespace {

using namespace std::chrono_literals;

// Runs `task` on the loop and waits for it.
template <class Function>
void run_on(Loop& loop, Function task) {
  std::latch done(1);
  ASSERT_TRUE(loop.post([&] {
    task();
    done.count_down();
  }));
  done.wait();
}

TEST(LoopTest, RunsTasksOnItsOwnThreadInTheOrderOfPosting) {
  Loop loop;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(loop.post([&order, i] { order.push_back(i); }));
  run_on(loop, [&] { EXPECT_TRUE(loop.on_loop_thread()); });
  EXPECT_FALSE(loop.on_loop_thread());
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(LoopTest, ATaskMayPostToItsOwnLoop) {
  Loop loop;
  std::latch done(1);
  loop.post([&] { EXPECT_TRUE(loop.post([&] { done.count_down(); })); });
  done.wait();
}

TEST(LoopTest, AFullLoopRefusesItsOwnTasksInsteadOfWaitingForItself) {
  Loop loop({.tasks_max = 2});
  run_on(loop, [&] {
    while (loop.post([] {})) {
    }
    EXPECT_FALSE(loop.try_post([] {}));
  });
}

TEST(LoopTest, TimersRunByDeadlineOfTheLoopsClock) {
  ManualClock clock;
  Loop loop({.clock = &clock});
  std::vector<int> order;
  std::latch called(2);
  run_on(loop, [&] {
    loop.run_at(clock.now() + 2s, [&] {
      order.push_back(2);
      called.count_down();
    });
    loop.run_at(clock.now() + 1s, [&] {
      order.push_back(1);
      called.count_down();
    });
    const TimerId cancelled = loop.run_at(clock.now() + 1s, [&] { order.push_back(9); });
    EXPECT_TRUE(loop.cancel(cancelled));
    EXPECT_FALSE(loop.cancel(cancelled));
  });
  clock.wait_for_waiters(1);
  clock.advance(2s);
  called.wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(LoopTest, ATaskWakesALoopThatSleepsUntilATimer) {
  ManualClock clock;
  Loop loop({.clock = &clock});
  run_on(loop, [&] { loop.run_at(clock.now() + 1h, [] {}); });
  clock.wait_for_waiters(1);
  run_on(loop, [] {});
}

TEST(LoopTest, ABusyLoopStillLooksAtItsTimers) {
  Loop loop({.batch_max = 4});
  std::atomic<bool> timer_ran{false};
  std::latch done(1);
  struct Flood {  // Keeps the loop busy until the timer ran.
    Loop& loop;
    std::atomic<bool>& timer_ran;
    std::latch& done;
    void operator()() const {
      if (timer_ran) {
        done.count_down();
      } else {
        EXPECT_TRUE(loop.post(Flood{loop, timer_ran, done}));
      }
    }
  };
  run_on(loop, [&] { loop.run_at(loop.now() + 1ms, [&] { timer_ran = true; }); });
  loop.post(Flood{loop, timer_ran, done});
  done.wait();
}

TEST(LoopTest, StopDrainsWhatWaits) {
  Loop loop;
  std::atomic<int> ran{0};
  for (int i = 0; i < 50; ++i)
    loop.post([&] { ++ran; });
  const LoopRemains left = loop.stop(TimePoint::max());
  EXPECT_EQ(ran, 50);
  EXPECT_EQ(left.tasks, 0u);
  EXPECT_FALSE(loop.post([] {}));
  EXPECT_FALSE(loop.try_post([] {}));
}

TEST(LoopTest, StopSaysWhatWasNotRunByItsDeadline) {
  ManualClock clock;
  Loop loop({.clock = &clock});
  std::latch started(1);
  std::latch may_end(1);
  auto carried = std::make_shared<int>(1);
  run_on(loop, [&] { loop.run_at(clock.now() + 1h, [carried] {}); });
  loop.post([&] {
    started.count_down();
    may_end.wait();
  });
  loop.post([carried] {});
  loop.post([carried] {});
  started.wait();
  LoopRemains left;
  const TimePoint deadline = clock.now() + 1s;
  std::thread stopper([&] { left = loop.stop(deadline); });
  clock.advance(1s);
  while (loop.post([] {})) {  // Until stop() has closed the loop; these are dropped as well.
  }
  may_end.count_down();
  stopper.join();
  EXPECT_GE(left.tasks, 2u);
  EXPECT_EQ(left.timers, 1u);
  EXPECT_EQ(carried.use_count(), 1);
  EXPECT_EQ(loop.stop(TimePoint::max()).timers, 1u);
}

TEST(LoopTest, StopReleasesAPosterThatWaitsForRoom) {
  Loop loop({.tasks_max = 1});
  std::latch started(1);
  std::latch may_end(1);
  loop.post([&] {
    started.count_down();
    may_end.wait();
  });
  started.wait();
  std::thread poster([&] {
    while (loop.post([] {})) {
    }
  });
  std::thread stopper([&] { loop.stop(TimePoint::min()); });
  poster.join();
  may_end.count_down();
  stopper.join();
}

// Goal: tasks of each poster run once, in order, never two at a time. Method: three posters.
TEST(LoopStress, TasksOfEveryPosterRunInItsOrderAndNeverOverlap) {
  constexpr int kTaskCount = 5'000;
  Loop loop({.tasks_max = 16});
  std::vector<int> next(3);
  bool inside = false;  // Not atomic: the thread sanitizer sees an overlap.
  std::vector<std::thread> posters;
  for (std::size_t self = 0; self < next.size(); ++self) {
    posters.emplace_back([&, self] {
      for (int i = 0; i < kTaskCount; ++i) {
        ASSERT_TRUE(loop.post([&, self, i] {
          ASSERT_FALSE(inside);
          inside = true;
          ASSERT_EQ(next[self]++, i);
          inside = false;
        }));
      }
    });
  }
  for (auto& poster : posters)
    poster.join();
  EXPECT_EQ(loop.stop(TimePoint::max()).tasks, 0u);
  for (const int count : next)
    EXPECT_EQ(count, kTaskCount);
}

}  // namespace
}  // namespace ordo
