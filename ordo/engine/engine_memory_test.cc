// Memory and processor time: nothing is allocated per task once warm, a million ids leave nothing
// behind, refusals cost no memory, and an idle engine does nothing. A program of its own, because
// it counts every operator new there is.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <mutex>

#include <gtest/gtest.h>

#include "bench/support/allocations.h"
#include "ordo/engine.h"
#include "tests/support/gates.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::eventually;
using testing_support::Gates;
using testing_support::Watchdog;
using Number = std::uint64_t;

// Sanitizers make a task ten times as slow, and add nothing to what is counted here.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr Number kManyIds = 100'000;
#else
constexpr Number kManyIds = 1'000'000;
#endif

struct CountingHandler {
  void handle(const Number&, const TaskTurn&) {}
  void finished(Number&, const TaskTurn&) noexcept {}
  void failed(Number&, const TaskTurn&, std::exception_ptr) noexcept {}
};

// Ends every task by its token, at once.
struct TokenUser {
  void handle(const Number&, const TaskTurn&, const TaskToken& token) { token.done(); }
  void finished(Number&, const TaskTurn&) noexcept {}
  void failed(Number&, const TaskTurn&, std::exception_ptr) noexcept {}
};

class EngineMemoryTest : public testing::TestWithParam<bool> {
 protected:
  EngineOptions options() const { return {.callers_run = GetParam()}; }

  // Submits `count` tasks of the ids `first`, `first` + 1, ..., and waits until they are done.
  template <class Engine>
  void feed(Engine& engine, Number count, CorrelationId first, CorrelationId ids) {
    for (Number n = 0; n < count;) {
      const CorrelationId id = first + static_cast<CorrelationId>(n) % ids;
      const bool admitted = engine.submit(id, Number{n}).entry == Entry::admitted;
      n += admitted ? 1 : 0;
      if (n % 64 == 0 || !admitted) engine.flush();
    }
    engine.flush();
    ASSERT_TRUE(eventually([&] { return engine.stats().total().depth == 0; }));
  }

  Watchdog watchdog_{"EngineMemoryTest"};
};

TEST_P(EngineMemoryTest, AMillionIdsOnceEachLeaveMemoryWhereItBegan) {
  PartitionEngine<Number, CountingHandler> engine(options(),
                                                  [](std::size_t) { return CountingHandler(); });
  feed(engine, 100'000, 1, 100'000);
  const std::uint64_t before = bench::allocation_count();
  feed(engine, kManyIds, 1'000'000, static_cast<CorrelationId>(kManyIds));
  EXPECT_LT(bench::allocation_count() - before, 400u);  // A lane may still find a new peak.
  EXPECT_EQ(engine.stats().total().lanes, 0u);
  EXPECT_EQ(engine.stats().total().processed, 100'000 + kManyIds);
}

TEST_P(EngineMemoryTest, TokensAndUncorrelatedTasksAllocateNothingEither) {
  PartitionEngine<Number, TokenUser> engine(options(), [](std::size_t) { return TokenUser(); });
  feed(engine, 50'000, -500, 1'000);
  const std::uint64_t before = bench::allocation_count();
  feed(engine, 200'000, -500, 1'000);
  EXPECT_LT(bench::allocation_count() - before, 400u);
  EXPECT_EQ(engine.stats().total().failed, 0u);
}

TEST_P(EngineMemoryTest, AnIdleEngineUsesNoProcessorTime) {
  PartitionEngine<Number, CountingHandler> engine(options(),
                                                  [](std::size_t) { return CountingHandler(); });
  feed(engine, 1'000, 1, 100);
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, 100ms);  // Lets the threads go to sleep.
  const std::clock_t before = std::clock();
  never.wait_for(lock, 300ms);
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineMemoryTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "CallersRun" : "OwnThreads"; });

struct GatedHandler {
  Gates<>* gates;

  void handle(const Number& task, const TaskTurn&) { gates->enter(task); }
  void finished(Number&, const TaskTurn&) noexcept {}
  void failed(Number&, const TaskTurn&, std::exception_ptr) noexcept {}
};

TEST(EngineRefusalMemoryTest, RefusalsOfAStuckPartitionAllocateNothing) {
  Gates<> gates;
  PartitionEngine<Number, GatedHandler> engine({.partitions = 1, .budget = 64},
                                               [&](std::size_t) { return GatedHandler{&gates}; });
  ASSERT_EQ(engine.post(1, 0).entry, Entry::admitted);
  ASSERT_TRUE(gates.await(0));
  for (CorrelationId id = 2; id <= 64; ++id)
    ASSERT_EQ(engine.post(id, 1).entry, Entry::admitted);
  const std::uint64_t before = bench::allocation_count();
  for (int n = 0; n < 100'000; ++n)
    ASSERT_EQ(engine.post(1 + n % 1'000, 1).entry, Entry::busy);
  EXPECT_EQ(bench::allocation_count() - before, 0u);
  gates.open_all();
  EXPECT_TRUE(engine.drain(1h).complete());
}

}  // namespace
}  // namespace ordo
