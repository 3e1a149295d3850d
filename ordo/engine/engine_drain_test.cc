// How an engine ends: all that was admitted is done or listed, by the deadline, once.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
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
using engine_probe::End;
using engine_probe::gated;
using engine_probe::Item;
using engine_probe::kLong;
using engine_probe::recording;
using engine_probe::RecordingHandler;
using testing_support::Background;
using testing_support::Gates;
using Engine = PartitionEngine<Item, RecordingHandler>;

class EngineDrainTest : public testing::TestWithParam<bool> {
 protected:
  bool callers_run() const { return GetParam(); }
};

TEST_P(EngineDrainTest, WhatWasSubmittedWithoutAFlushIsDone) {
  Book book;
  Engine engine({.callers_run = callers_run()}, recording(book));
  for (int n = 0; n < 100; ++n)
    ASSERT_EQ(engine.submit(n % 9, Item{n}).entry, Entry::admitted);
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(book.count(), 100u);
  EXPECT_EQ(engine.stats().total().depth, 0u);
}

TEST_P(EngineDrainTest, AnEmptyEngineIsDrainedAtOnceAndAgain) {
  ManualClock clock;
  Book book;
  Engine engine({.callers_run = callers_run(), .clock = &clock}, recording(book));
  EXPECT_TRUE(engine.drain(std::chrono::nanoseconds::max()).complete());
  EXPECT_TRUE(engine.drain(0s).complete());
  EXPECT_EQ(engine.post(1, Item{1}).entry, Entry::closing);
}

TEST_P(EngineDrainTest, UnderLoadEveryAdmittedTaskIsAnsweredOrListedOnce) {
  Book book;
  Engine engine({.callers_run = callers_run()}, recording(book));
  constexpr int kProducers = 3;
  std::atomic<int> begun{0};
  std::vector<std::set<int>> admitted(kProducers);
  std::vector<std::thread> producers;
  for (int producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&, producer] {
      for (int n = producer;; n += kProducers) {
        const Submitted submitted = engine.submit(n % 11 == 0 ? 0 : 1 + n % 40, Item{n});
        if (submitted.entry == Entry::closing) break;
        if (submitted.entry == Entry::admitted)
          admitted[static_cast<std::size_t>(producer)].insert(n);
        if (n % 5 == 0) engine.flush();
        begun.fetch_add(1);
      }
      engine.flush();
    });
  }
  ASSERT_TRUE(testing_support::eventually([&] { return begun.load() > 5'000; }));
  const EngineDrain<Item> drained = engine.drain(kLong);
  for (std::thread& producer : producers)
    producer.join();

  std::multiset<int> ended;
  for (const End& end : book.ends())
    ended.insert(end.value);
  for (const auto& undone : drained.undone)
    ended.insert(undone.task->value);
  std::multiset<int> expected;
  for (const std::set<int>& of_one : admitted)
    expected.insert(of_one.begin(), of_one.end());
  EXPECT_EQ(ended, expected);
  const PartitionStats stats = engine.stats().total();
  EXPECT_EQ(stats.admitted, stats.processed + stats.failed + stats.undone);
  EXPECT_EQ(stats.admitted, expected.size());
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineDrainTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "CallersRun" : "OwnThreads"; });

TEST(EngineStuckTest, DrainReturnsByItsDeadlineAndListsWhatIsStuck) {
  ManualClock clock;
  Book book;
  Gates<> gates;
  Engine engine({.partitions = 1, .clock = &clock}, recording(book));
  ASSERT_EQ(engine.post(7, gated(0, gates)).entry, Entry::admitted);
  ASSERT_TRUE(gates.await(0));
  for (int n = 1; n < 200; ++n)
    ASSERT_EQ(engine.post(n % 5 == 0 ? 0 : 7 + n % 5, Item{n}).entry, Entry::admitted);

  EngineDrain<Item> drained;
  {
    Background drain([&] { drained = engine.drain(10s); });
    clock.wait_for_waiters(1);
    clock.advance(10s);
  }
  ASSERT_EQ(drained.undone.size(), 200u);
  std::map<CorrelationId, std::vector<int>> of_id;
  for (const auto& undone : drained.undone) {
    EXPECT_EQ(undone.in_flight, !undone.task.has_value());
    EXPECT_EQ(undone.partition, 0u);
    EXPECT_TRUE(!undone.in_flight || undone.id == 7);
    of_id[undone.id].push_back(undone.task ? undone.task->value : 0);
  }
  for (const auto& [id, values] : of_id)
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end())) << id;
  EXPECT_EQ(engine.stats().total().undone, 200u);
  EXPECT_EQ(engine.post(8, Item{1}).entry, Entry::closing);
  EXPECT_TRUE(engine.longest_blocked(3).empty());

  gates.open_all();  // The handler returns; its task was listed, so nobody is told.
  EXPECT_TRUE(gates.await_left(0));
  EXPECT_TRUE(engine.drain(0s).complete());
  EXPECT_EQ(book.count(), 0u);
}

// A turn takes a part of what its ring shows; what came in later is behind that part.
TEST(EngineStuckTest, DrainListsWhatCameInDuringATurn) {
  Book book;
  Gates<> gates;
  Engine engine({.partitions = 1, .batch_max = 2}, recording(book));
  for (int n = 0; n < 5; ++n)
    ASSERT_EQ(engine.submit(1 + n, gated(n, gates)).entry, Entry::admitted);
  engine.flush();
  ASSERT_TRUE(gates.await(0));
  for (int n = 5; n < 9; ++n)
    ASSERT_EQ(engine.post(1 + n, gated(n, gates)).entry, Entry::admitted);
  EXPECT_EQ(engine.drain(0s).undone.size(), 9u);
  const PartitionStats stats = engine.stats().total();
  EXPECT_EQ(stats.admitted, stats.processed + stats.failed + stats.undone);
  gates.open_all();
}

TEST(EngineStuckTest, OnlyTheStuckPartitionListsItsTasks) {
  Book book;
  Gates<> gates;
  Engine engine({.partitions = 4}, recording(book));
  ASSERT_EQ(engine.post(1, gated(0, gates)).entry, Entry::admitted);
  ASSERT_TRUE(gates.await(0));
  std::size_t stuck = 1;
  for (int n = 1; n < 100; ++n) {
    const Submitted submitted = engine.post(n + 1, Item{n});
    ASSERT_EQ(submitted.entry, Entry::admitted);
    stuck += submitted.partition == engine.partition_of(1) ? 1 : 0;
  }
  // No virtual time here: the others must have ended before the deadline.
  ASSERT_TRUE(testing_support::eventually([&] { return book.count() == 100 - stuck; }));
  ASSERT_TRUE(testing_support::eventually([&] { return engine.stats().total().depth == stuck; }));
  const EngineDrain<Item> drained = engine.drain(1ms);
  EXPECT_EQ(drained.undone.size(), stuck);
  EXPECT_EQ(book.count(), 100 - stuck);
  gates.open_all();
}

// Reads its tasks only, so that drain() can say which one is stuck.
struct ReadingHandler {
  Gates<>* gates;

  void handle(const int& task, const TaskTurn&) { gates->enter(static_cast<std::uint64_t>(task)); }
  void finished(int&, const TaskTurn&) noexcept {}
  void failed(int&, const TaskTurn&, std::exception_ptr) noexcept {}
};

TEST(EngineStuckTest, AStuckTaskThatIsOnlyReadIsListedWithItsContent) {
  Gates<> gates;
  PartitionEngine<int, ReadingHandler> engine({.partitions = 1},
                                              [&](std::size_t) { return ReadingHandler{&gates}; });
  ASSERT_EQ(engine.post(7, 41).entry, Entry::admitted);
  ASSERT_TRUE(gates.await(41));
  const EngineDrain<int> drained = engine.drain(0s);
  ASSERT_EQ(drained.undone.size(), 1u);
  EXPECT_TRUE(drained.undone[0].in_flight);
  EXPECT_EQ(drained.undone[0].task, 41);
  gates.open_all();
}

TEST(EngineStuckTest, TheDestructorWaitsForAHandlerThatHasBegun) {
  Book book;
  Gates<> gates;
  auto engine = std::make_unique<Engine>(EngineOptions{.partitions = 1}, recording(book));
  ASSERT_EQ(engine->post(7, gated(0, gates)).entry, Entry::admitted);
  ASSERT_TRUE(gates.await(0));
  Background end([&] { engine.reset(); });
  EXPECT_FALSE(end.is_finished());
  gates.open_all();
  EXPECT_TRUE(end.finished());
  EXPECT_EQ(gates.left_count(), 1u);
}

TEST(EngineStuckTest, TheDestructorDropsWhatHasNotBegun) {
  Book book;
  {
    Engine engine({.callers_run = true}, recording(book));
    for (int n = 0; n < 100; ++n)
      ASSERT_EQ(engine.submit(1 + n, Item{n}).entry, Entry::admitted);  // And no flush().
  }
  EXPECT_LE(book.count(), 100u);
}

TEST(EngineStuckTest, TwoThreadsMayDrainAndEachTaskIsListedOnce) {
  Book book;
  Gates<> gates;
  Engine engine({.partitions = 3}, recording(book));
  for (int n = 0; n < 60; ++n)
    ASSERT_EQ(engine.post(n + 1, gated(n, gates)).entry, Entry::admitted);
  EngineDrain<Item> first;
  EngineDrain<Item> second;
  {
    Background one([&] { first = engine.drain(2ms); });
    Background other([&] { second = engine.drain(2ms); });
  }
  EXPECT_EQ(first.undone.size() + second.undone.size(), 60u);
  gates.open_all();
}

}  // namespace
}  // namespace ordo
