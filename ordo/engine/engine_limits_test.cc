// What the engine refuses, and that it says so at once, exactly, whatever its handlers do.
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/engine.h"
#include "tests/support/engine_probe.h"
#include "tests/support/gates.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using engine_probe::Book;
using engine_probe::gated;
using engine_probe::Item;
using engine_probe::kLong;
using engine_probe::recording;
using engine_probe::RecordingHandler;
using testing::HasSubstr;
using testing_support::Gates;
using Engine = PartitionEngine<Item, RecordingHandler>;

std::string why_refused(const EngineOptions& options) {
  Book book;
  try {
    const Engine engine(options, recording(book));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "not refused";
}

TEST(EngineLimitsTest, OptionsThatMakeNoSenseAreNamed) {
  EXPECT_THAT(why_refused({.partitions = 0}), HasSubstr("partitions is 0; it must be between 1"));
  EXPECT_THAT(why_refused({.partitions = 257}), HasSubstr("partitions is 257"));
  EXPECT_THAT(why_refused({.budget = 0}), HasSubstr("budget is 0"));
  EXPECT_THAT(why_refused({.budget = (1u << 20) + 1}), HasSubstr("between 1 and 1048576"));
  EXPECT_THAT(why_refused({.per_id = 0}), HasSubstr("per_id is 0"));
  EXPECT_THAT(why_refused({.batch_max = 0}), HasSubstr("batch_max is 0"));
  EXPECT_EQ(why_refused({.partitions = 1, .budget = 1, .per_id = 1, .batch_max = 1}),
            "not refused");
}

TEST(EngineLimitsTest, ExactlyTheBudgetIsAdmittedWhileAHandlerIsStuck) {
  Book book;
  Gates<> gates;
  Engine engine({.partitions = 1, .budget = 64}, recording(book));
  ASSERT_EQ(engine.post(1, gated(0, gates)).entry, Entry::admitted);
  ASSERT_TRUE(gates.await(0));
  int admitted = 1;
  int busy = 0;
  for (int n = 1; n < 1'000; ++n) {
    const Submitted submitted = engine.post(1 + n % 10, Item{n});
    (submitted.entry == Entry::admitted ? admitted : busy) += 1;
    EXPECT_EQ(submitted.entry, n < 64 ? Entry::admitted : Entry::busy);
  }
  EXPECT_EQ(admitted, 64);
  EXPECT_EQ(busy, 936);
  EXPECT_EQ(engine.stats().total().depth, 64u);
  EXPECT_EQ(engine.stats().total().rejected_busy, 936u);

  gates.open_all();
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(book.count(), 64u);
  for (CorrelationId id = 1; id <= 10; ++id) {
    const std::vector<int> values = book.values_of(id);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  }
}

TEST(EngineLimitsTest, TheLimitOfAnIdIsExactWhileTheThreadIsStuck) {
  Book book;
  Gates<> gates;
  Engine engine({.partitions = 1, .budget = 64, .per_id = 3}, recording(book));
  ASSERT_EQ(engine.post(1, gated(0, gates)).entry, Entry::admitted);
  ASSERT_TRUE(gates.await(0));
  for (int n = 1; n <= 5; ++n)
    EXPECT_EQ(engine.post(1, Item{n}).entry, n < 3 ? Entry::admitted : Entry::id_busy);
  for (int n = 1; n <= 5; ++n)
    EXPECT_EQ(engine.post(2, Item{n}).entry, n <= 3 ? Entry::admitted : Entry::id_busy);
  EXPECT_EQ(engine.post(0, Item{9}).entry, Entry::admitted);
  EXPECT_EQ(engine.stats().total().rejected_id_busy, 5u);
  gates.open_all();
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(book.values_of(1), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(book.values_of(2), (std::vector<int>{1, 2, 3}));
}

TEST(EngineLimitsTest, ARefusedTaskIsWhole) {
  Book book;
  Engine engine({.partitions = 1}, recording(book));
  EXPECT_TRUE(engine.drain(kLong).complete());
  Item item{5};
  item.before = [] {};
  EXPECT_EQ(engine.post(1, std::move(item)).entry, Entry::closing);
  EXPECT_TRUE(item.before != nullptr);  // NOLINT(bugprone-use-after-move): that is the promise.
  EXPECT_EQ(engine.post(0, std::move(item)).entry, Entry::closing);
  EXPECT_TRUE(item.before != nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(engine.stats().total().rejected_closing, 2u);
}

TEST(EngineLimitsTest, AnUncorrelatedTaskGoesWhereThereIsRoom) {
  Book book;
  Gates<> gates;
  Engine engine({.partitions = 2, .budget = 2}, recording(book));
  // Fill partition 0, whose turn is next, with correlated tasks.
  CorrelationId id = 1;
  while (engine.partition_of(id) != 0)
    ++id;
  ASSERT_EQ(engine.post(id, gated(0, gates)).entry, Entry::admitted);
  ASSERT_TRUE(gates.await(0));
  ASSERT_EQ(engine.post(id, Item{1}).entry, Entry::admitted);

  EXPECT_EQ(engine.submit(0, gated(2, gates)).partition, 1u);  // Round robin said 0.
  EXPECT_EQ(engine.submit(0, gated(3, gates)).partition, 1u);
  engine.flush();
  const Submitted refused = engine.submit(0, Item{4});
  EXPECT_EQ(refused.entry, Entry::busy);
  EXPECT_EQ(engine.stats().total().rejected_busy, 1u);
  gates.open_all();
  EXPECT_TRUE(engine.drain(kLong).complete());
}

// A handler that submits again as soon as its answers are on their way.
struct Eager {
  std::function<void()>* on_batch_end;

  void handle(const int&, const TaskTurn&) {}
  void finished(int&, const TaskTurn&) noexcept {}
  void failed(int&, const TaskTurn&, std::exception_ptr) noexcept {}
  void batch_end() noexcept { (*on_batch_end)(); }
};

TEST(EngineLimitsTest, ThePlaceOfATaskIsFreeWhenItsBatchEnds) {
  std::function<void()> on_batch_end = [] {};
  PartitionEngine<int, Eager> engine({.partitions = 1, .budget = 1, .per_id = 1},
                                     [&](std::size_t) { return Eager{&on_batch_end}; });
  std::atomic<int> left{100};
  std::atomic<int> refused{0};
  on_batch_end = [&] {
    if (left.fetch_sub(1) <= 0) return;
    if (engine.post(1, 7).entry != Entry::admitted) ++refused;
  };
  ASSERT_EQ(engine.post(1, 7).entry, Entry::admitted);
  EXPECT_TRUE(testing_support::eventually([&] { return left.load() < 0; }));
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(refused.load(), 0);
  EXPECT_EQ(engine.stats().total().processed, 101u);
}

TEST(EngineLimitsTest, AStuckPartitionSaysWhatWaitsBehindWhat) {
  ManualClock clock(TimePoint(1h));
  Book book;
  Gates<> gates;
  Engine engine({.partitions = 1, .clock = &clock}, recording(book));
  ASSERT_EQ(engine.post(7, gated(0, gates)).entry, Entry::admitted);
  ASSERT_TRUE(gates.await(0));
  ASSERT_EQ(engine.post(7, Item{1}).entry, Entry::admitted);
  clock.advance(5s);
  for (int n = 0; n < 3; ++n)
    ASSERT_EQ(engine.post(8, Item{n}).entry, Entry::admitted);
  clock.advance(5s);
  ASSERT_EQ(engine.post(9, Item{0}).entry, Entry::admitted);

  const std::vector<BlockedId> blocked = engine.longest_blocked(2);
  ASSERT_EQ(blocked.size(), 2u);
  EXPECT_EQ(blocked[0].id, 7);
  EXPECT_EQ(blocked[0].since, TimePoint(1h));
  EXPECT_EQ(blocked[0].behind, 1u);
  EXPECT_TRUE(blocked[0].in_flight);
  EXPECT_EQ(blocked[1].id, 8);
  EXPECT_EQ(blocked[1].since, TimePoint(1h + 5s));
  EXPECT_EQ(blocked[1].behind, 2u);
  EXPECT_FALSE(blocked[1].in_flight);

  const PartitionStats stats = engine.stats().total();
  EXPECT_EQ(stats.depth, 6u);
  EXPECT_EQ(stats.in_flight, 1u);
  EXPECT_EQ(stats.lanes, 3u);
  EXPECT_EQ(stats.ready_lanes, 2u);
  gates.open_all();
  EXPECT_TRUE(engine.drain(std::chrono::nanoseconds::max()).complete());
  EXPECT_TRUE(engine.longest_blocked(5).empty());
}

TEST(EngineLimitsTest, WaitAndHandlerTimesAreThoseOfTheClock) {
  ManualClock clock;
  Book book;
  Gates<> gates;
  Engine engine({.partitions = 1, .clock = &clock}, recording(book));
  ASSERT_EQ(engine.post(1, gated(0, gates)).entry, Entry::admitted);
  ASSERT_TRUE(gates.await(0));
  ASSERT_EQ(engine.post(2, Item{1}).entry, Entry::admitted);
  clock.advance(64ns);
  gates.open_all();
  EXPECT_TRUE(engine.drain(std::chrono::nanoseconds::max()).complete());
  const PartitionStats stats = engine.stats().total();
  EXPECT_EQ(stats.handler_ns.count(), 2u);
  EXPECT_EQ(stats.handler_ns.max(), 64u);
  EXPECT_EQ(stats.wait_ns.max(), 64u);
  EXPECT_EQ(stats.wait_ns.min(), 0u);
}

}  // namespace
}  // namespace ordo
