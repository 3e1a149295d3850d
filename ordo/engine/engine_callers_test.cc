// Who runs a partition: its own thread, or a caller of flush(); and what happens by time.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/engine.h"
#include "tests/support/engine_probe.h"
#include "tests/support/gates.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using engine_probe::Book;
using engine_probe::Item;
using engine_probe::kLong;
using engine_probe::recording;
using engine_probe::RecordingHandler;
using testing_support::eventually;
using Engine = PartitionEngine<Item, RecordingHandler>;

TEST(EngineCallersTest, AnIdlePartitionIsRunByTheCallerOfFlush) {
  Book book;
  Engine engine({.partitions = 3, .callers_run = true}, recording(book));
  std::set<std::thread::id> runners;
  testing_support::let_others_fall_asleep();
  for (int n = 0; n < 30; ++n) {
    Item item{n};
    item.before = [&] { runners.insert(std::this_thread::get_id()); };
    ASSERT_EQ(engine.submit(n + 1, std::move(item)).entry, Entry::admitted);
  }
  EXPECT_EQ(book.count(), 0u);
  engine.flush();
  EXPECT_EQ(book.count(), 30u);  // All of it, on this thread, before flush() came back.
  EXPECT_EQ(runners, (std::set<std::thread::id>{std::this_thread::get_id()}));
  EXPECT_GE(engine.stats().total().turns_of_callers, 3u);
  EXPECT_EQ(engine.stats().total().depth, 0u);
}

TEST(EngineCallersTest, WithoutTheOptionNoCallerRunsAnything) {
  Book book;
  Engine engine({}, recording(book));
  std::atomic<bool> ran_here{false};
  const std::thread::id here = std::this_thread::get_id();
  for (int n = 0; n < 200; ++n) {
    Item item{n};
    item.before = [&] { ran_here = ran_here || std::this_thread::get_id() == here; };
    ASSERT_EQ(engine.post(n + 1, std::move(item)).entry, Entry::admitted);
  }
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_FALSE(ran_here);
  EXPECT_EQ(engine.stats().total().turns_of_callers, 0u);
}

TEST(EngineCallersTest, ACallerOfWakeLeavesEverythingToTheOwnThreads) {
  for (const bool callers_run : {false, true}) {
    Book book;
    Engine engine({.partitions = 3, .callers_run = callers_run}, recording(book));
    std::atomic<bool> ran_here{false};
    const std::thread::id here = std::this_thread::get_id();
    for (int n = 0; n < 200; ++n) {
      Item item{n};
      item.before = [&] { ran_here = ran_here || std::this_thread::get_id() == here; };
      ASSERT_EQ(engine.submit(n + 1, std::move(item)).entry, Entry::admitted);
      if (n % 7 == 6) engine.wake();
    }
    engine.wake();
    EXPECT_TRUE(eventually([&] { return book.count() == 200; }));
    EXPECT_FALSE(ran_here);
    EXPECT_EQ(engine.stats().total().turns_of_callers, 0u);
  }
}

TEST(EngineCallersTest, ACallerDoesItsShareAndTheOwnThreadTheRest) {
  Book book;
  Engine engine(
      {.partitions = 1, .budget = 8'192, .per_id = 8'192, .batch_max = 16, .callers_run = true},
      recording(book));
  std::mutex mutex;
  std::map<std::thread::id, int> runners;
  for (int n = 0; n < 8'192; ++n) {
    Item item{n};
    item.before = [&] {
      const std::lock_guard lock(mutex);
      ++runners[std::this_thread::get_id()];
    };
    ASSERT_EQ(engine.submit(1 + n % 100, std::move(item)).entry, Entry::admitted);
  }
  engine.flush();
  EXPECT_TRUE(eventually([&] { return book.count() == 8'192; }));
  const std::lock_guard lock(mutex);
  EXPECT_LE(runners[std::this_thread::get_id()], 2 * 8 * 16);
}

TEST(EngineCallersTest, WhatAHandlerSubmitsRunsWithoutNesting) {
  Book book;
  std::atomic<int> depth_peak{0};
  Engine* to = nullptr;
  Engine engine({.partitions = 4, .callers_run = true}, recording(book));
  to = &engine;
  static thread_local int nested = 0;
  std::function<void(int)> chain = [&](int left) {
    Item item{left};
    item.before = [&, left] {
      if (++nested > 1) depth_peak = 2;
      if (left > 0) chain(left - 1);
      --nested;
    };
    ASSERT_EQ(to->post(1 + left, std::move(item)).entry, Entry::admitted);
  };
  chain(200);
  EXPECT_TRUE(eventually([&] { return book.count() == 201; }));
  EXPECT_EQ(depth_peak.load(), 0);
  EXPECT_TRUE(engine.drain(kLong).complete());
}

// The ring is consumed in parts: what comes in during a turn is behind a part already seen.
TEST(EngineCallersTest, WhatIsFlushedDuringATurnIsNotForgotten) {
  for (const bool callers_run : {false, true}) {
    Book book;
    Engine engine({.partitions = 1, .batch_max = 4, .callers_run = callers_run}, recording(book));
    Item first{0};
    first.before = [&] {
      for (int n = 6; n < 11; ++n)
        ASSERT_EQ(engine.submit(1 + n, Item{n}).entry, Entry::admitted);
      engine.flush();
    };
    ASSERT_EQ(engine.submit(1, std::move(first)).entry, Entry::admitted);
    for (int n = 1; n < 6; ++n)
      ASSERT_EQ(engine.submit(1 + n, Item{n}).entry, Entry::admitted);
    engine.flush();
    EXPECT_TRUE(eventually([&] { return book.count() == 11; }));
  }
}

TEST(EngineCallersTest, ManyCallersLoseNothingAndKeepTheOrderOfEachId) {
  constexpr int kCallers = 4;
  constexpr int kTasks = 5'000;
  Book book;
  Engine engine({.partitions = 2, .budget = 64, .callers_run = true}, recording(book));
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int n = 0; n < kTasks;) {
        const CorrelationId id = n % 10 == 9 ? 0 : 1 + caller * 10 + n % 10;
        if (engine.submit(id, Item{n}).entry == Entry::admitted) {
          ++n;
        } else {
          engine.flush();
          std::this_thread::yield();
        }
        if (n % 3 == caller % 3) engine.flush();
      }
      engine.flush();
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  // No drain here: what was flushed must be done without another push.
  EXPECT_TRUE(eventually([&] { return book.count() == kCallers * kTasks; }));
  for (CorrelationId id = 1; id <= kCallers * 10; ++id) {
    const std::vector<int> values = book.values_of(id);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end())) << "id " << id;
  }
  EXPECT_EQ(book.overlaps(), 0u);
}

TEST(EngineCallersTest, AThreadMayUseTwoEnginesInTurn) {
  Book first_book;
  Book second_book;
  Engine first({.callers_run = true}, recording(first_book));
  Engine second({.callers_run = true}, recording(second_book));
  for (int n = 0; n < 20; ++n) {
    ASSERT_EQ(first.submit(1 + n, Item{n}).entry, Entry::admitted);
    ASSERT_EQ(second.submit(1 + n, Item{n}).entry, Entry::admitted);
  }
  first.flush();
  EXPECT_TRUE(eventually([&] { return first_book.count() == 20; }));
  second.flush();
  EXPECT_TRUE(eventually([&] { return second_book.count() == 20; }));
  {
    Book third_book;
    Engine third({}, recording(third_book));
    ASSERT_EQ(third.submit(1, Item{1}).entry, Entry::admitted);  // Never flushed.
  }
  ASSERT_EQ(first.post(1, Item{20}).entry, Entry::admitted);
  EXPECT_TRUE(eventually([&] { return first_book.count() == 21; }));
}

TEST(EngineCallersTest, AnEngineInThePlaceOfAnotherKnowsNothingOfIt) {
  Book book;
  std::optional<Engine> engine;
  engine.emplace(EngineOptions{.partitions = 256, .callers_run = true}, recording(book));
  for (int n = 0; n < 500; ++n)
    ASSERT_EQ(engine->submit(1 + n, Item{n}).entry, Entry::admitted);  // And no flush().
  engine.emplace(EngineOptions{.partitions = 1, .callers_run = true}, recording(book));
  engine->flush();
  EXPECT_EQ(engine->stats().total().admitted, 0u);
  const std::size_t count_before = book.count();  // What the first one did in its end.
  ASSERT_EQ(engine->post(1, Item{0}).entry, Entry::admitted);
  EXPECT_TRUE(eventually([&] { return book.count() == count_before + 1; }));
}

// Calls two engines in turn when its thread ends, after what they remember for it was there.
struct AtThreadEnd {
  Engine* first = nullptr;
  Engine* second = nullptr;

  ~AtThreadEnd() {
    if (first == nullptr) return;
    for (int n = 0; n < 3; ++n) {
      EXPECT_EQ(first->submit(5 + n, Item{n}).entry, Entry::admitted);
      EXPECT_EQ(second->submit(5 + n, Item{n}).entry, Entry::admitted);
    }
    first->flush();
    second->flush();
  }
};

TEST(EngineCallersTest, AThreadThatEndsMayCallEnginesToTheLast) {
  Book first_book;
  Book second_book;
  Engine first({}, recording(first_book));
  Engine second({.callers_run = true}, recording(second_book));
  for (int n = 0; n < 3; ++n) {
    std::thread([&] {
      static thread_local AtThreadEnd at_end;
      at_end.first = &first;
      at_end.second = &second;
      EXPECT_EQ(first.submit(1, Item{0}).entry, Entry::admitted);
      EXPECT_EQ(second.submit(1, Item{0}).entry, Entry::admitted);
    }).join();
  }
  EXPECT_TRUE(eventually([&] { return first_book.count() == 12; }));
  EXPECT_TRUE(eventually([&] { return second_book.count() == 12; }));
}

TEST(EngineCallersTest, WhoIsRefusedSetsGoingWhatNobodyFlushed) {
  for (const bool callers_run : {false, true}) {
    Book book;
    Engine engine({.partitions = 2, .budget = 4, .per_id = 4, .callers_run = callers_run},
                  recording(book));
    std::thread([&] {  // Fills its partition and ends without a flush.
      for (int n = 0; n < 4; ++n)
        EXPECT_EQ(engine.submit(1, Item{n}).entry, Entry::admitted);
    })
        .join();
    EXPECT_EQ(engine.submit(1, Item{4}).entry, Entry::busy);
    engine.flush();
    EXPECT_TRUE(eventually([&] { return engine.post(1, Item{5}).entry == Entry::admitted; }));
    EXPECT_TRUE(eventually([&] { return book.count() == 5; }));
  }
}

// Has a timer that each task sets to `after` from its begin; it may throw, or never be content.
class TimedHandler {
 public:
  struct Log {
    std::atomic<int> runs{0};
    std::atomic<int> batches{0};
    bool throws = false;
    bool is_never_content = false;
  };
  explicit TimedHandler(Log& log) : log_(log) {}

  void handle(const std::chrono::nanoseconds& after, const TaskTurn& turn) {
    due_ = turn.began + after;
  }
  void finished(std::chrono::nanoseconds&, const TaskTurn&) noexcept {}
  void failed(std::chrono::nanoseconds&, const TaskTurn&, std::exception_ptr) noexcept {}
  void batch_end() noexcept { ++log_.batches; }
  std::optional<TimePoint> next_due() const { return due_; }
  void run_due(TimePoint) {
    ++log_.runs;
    if (log_.throws) throw std::runtime_error("timer");
    if (!log_.is_never_content) due_.reset();
  }

 private:
  Log& log_;
  std::optional<TimePoint> due_;
};

class EngineTimerTest : public testing::TestWithParam<bool> {
 protected:
  EngineOptions options() { return {.partitions = 1, .callers_run = GetParam(), .clock = &clock_}; }
  auto making() {
    return [this](std::size_t) { return TimedHandler(log_); };
  }
  // The own thread sleeps until `deadline`.
  bool sleeps_until(TimePoint deadline) {
    return eventually([&] { return clock_.next_deadline() == deadline; });
  }

  ManualClock clock_{TimePoint(1h)};
  TimedHandler::Log log_;
};

TEST_P(EngineTimerTest, ATimerSetByATaskRunsWhenItIsDue) {
  PartitionEngine<std::chrono::nanoseconds, TimedHandler> engine(options(), making());
  ASSERT_EQ(engine.post(1, 10s).entry, Entry::admitted);
  ASSERT_TRUE(sleeps_until(TimePoint(1h + 10s)));
  EXPECT_EQ(log_.runs, 0);
  clock_.advance(10s);
  EXPECT_TRUE(eventually([&] { return log_.runs == 1; }));
  EXPECT_TRUE(eventually([&] { return log_.batches == 2; }));
}

TEST_P(EngineTimerTest, AnEarlierTimerIsNoticedWhileTheThreadSleeps) {
  PartitionEngine<std::chrono::nanoseconds, TimedHandler> engine(options(), making());
  ASSERT_EQ(engine.post(1, 1h).entry, Entry::admitted);
  ASSERT_TRUE(sleeps_until(TimePoint(2h)));
  ASSERT_EQ(engine.post(1, 5s).entry, Entry::admitted);
  ASSERT_TRUE(sleeps_until(TimePoint(1h + 5s)));
  clock_.advance(5s);
  EXPECT_TRUE(eventually([&] { return log_.runs == 1; }));
}

TEST_P(EngineTimerTest, ATimerThatThrowsIsCountedAndTriedAgainLater) {
  log_.throws = true;
  PartitionEngine<std::chrono::nanoseconds, TimedHandler> engine(options(), making());
  ASSERT_EQ(engine.post(1, 5s).entry, Entry::admitted);
  ASSERT_TRUE(sleeps_until(TimePoint(1h + 5s)));
  clock_.advance(5s);
  ASSERT_TRUE(sleeps_until(TimePoint(1h + 5s + 1ms)));
  EXPECT_EQ(log_.runs, 1);
  EXPECT_EQ(engine.stats().total().timers_threw, 1u);
}

TEST_P(EngineTimerTest, ATimerThatIsNeverContentDoesNotKeepTheThreadBusy) {
  log_.is_never_content = true;
  PartitionEngine<std::chrono::nanoseconds, TimedHandler> engine(options(), making());
  ASSERT_EQ(engine.post(1, 0s).entry, Entry::admitted);
  ASSERT_TRUE(sleeps_until(TimePoint(1h + 1ms)));
  EXPECT_EQ(log_.runs, 1);
  ASSERT_EQ(engine.post(1, 0s).entry, Entry::admitted);
  EXPECT_TRUE(eventually([&] { return engine.stats().total().processed == 2; }));
  EXPECT_EQ(log_.runs, 1);
}

// Has always a timer that is due by the next turn.
struct RestlessHandler {
  TimePoint due;

  void handle(const int&, const TaskTurn&) {}
  void finished(int&, const TaskTurn&) noexcept {}
  void failed(int&, const TaskTurn&, std::exception_ptr) noexcept {}
  std::optional<TimePoint> next_due() const { return due; }
  void run_due(TimePoint now) { due = now + 1ns; }
};

TEST_P(EngineTimerTest, ATimerThatIsAlwaysDueDoesNotKeepTheEngineFromItsEnd) {
  const testing_support::Watchdog watchdog("an engine with a timer that is always due");
  PartitionEngine<int, RestlessHandler> engine({.partitions = 1, .callers_run = GetParam()},
                                               [](std::size_t) { return RestlessHandler{}; });
  for (int n = 0; n < 100; ++n)
    ASSERT_EQ(engine.post(1 + n, int{n}).entry, Entry::admitted);
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(engine.stats().total().processed, 100u);
}

// Cannot say when its timer is due, once it had a task.
struct ConfusedHandler {
  bool is_confused = false;

  void handle(const int&, const TaskTurn&) { is_confused = true; }
  void finished(int&, const TaskTurn&) noexcept {}
  void failed(int&, const TaskTurn&, std::exception_ptr) noexcept {}
  std::optional<TimePoint> next_due() const {
    if (is_confused) throw std::runtime_error("when?");
    return std::nullopt;
  }
  void run_due(TimePoint) {}
};

TEST_P(EngineTimerTest, AHandlerThatThrowsWhenAskedForItsTimerStallsNothing) {
  PartitionEngine<int, ConfusedHandler> engine(options(),
                                               [](std::size_t) { return ConfusedHandler{}; });
  for (int n = 0; n < 10; ++n)
    ASSERT_EQ(engine.post(1, int{n}).entry, Entry::admitted);
  EXPECT_TRUE(engine.drain(std::chrono::nanoseconds::max()).complete());
  EXPECT_EQ(engine.stats().total().processed, 10u);
  EXPECT_GE(engine.stats().total().timers_threw, 1u);
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineTimerTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "CallersRun" : "OwnThreads"; });

}  // namespace
}  // namespace ordo
