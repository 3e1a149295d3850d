// Memory: no allocation per event once warm, and nothing left of entities that are gone. A program
// of its own, because it counts every operator new there is.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bench/support/allocations.h"
#include "ordo/dispatcher.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::eventually;
using testing_support::Watchdog;
using Number = std::uint64_t;

class DispatcherMemoryTest : public testing::TestWithParam<std::size_t> {
 protected:
  // Dispatches `count` events to `key_of(n)`, never more than 500 ahead of the handler.
  template <class D, class KeyOf>
  void feed(D& d, Number count, KeyOf key_of) {
    const Number before = handled_;
    for (Number n = 0; n < count; ++n) {
      while (n + before - handled_ > 500)
        std::this_thread::yield();
      ASSERT_EQ(d.dispatch(key_of(n), Number{n}), Dispatched::admitted);
    }
    ASSERT_TRUE(eventually([&] { return handled_ == before + count; }));
  }

  Watchdog watchdog_{"DispatcherMemoryTest"};
  std::atomic<Number> handled_ = 0;
};

TEST_P(DispatcherMemoryTest, NoEventAllocatesOnceWarm) {
  Dispatcher<Number, Number> d([&](const Number&, Number&) { ++handled_; },
                               {.threads = 2, .stripes = GetParam()});
  const auto key_of = [](Number n) { return n * 7 % 1'000; };
  feed(d, 200'000, key_of);
  const std::uint64_t before = bench::allocation_count();
  feed(d, 200'000, key_of);
  EXPECT_LT(bench::allocation_count() - before, 200U);  // A shard may still find a new peak.
}

TEST_P(DispatcherMemoryTest, TextKeysAllocateNothingEither) {
  Dispatcher<std::string, Number> d([&](const std::string&, Number&) { ++handled_; },
                                    {.threads = 2, .stripes = GetParam()});
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i)
    keys.push_back("an entity with a name longer than a small string " + std::to_string(i));
  const auto key_of = [&](Number n) -> const std::string& { return keys[n % keys.size()]; };
  feed(d, 100'000, key_of);
  const std::uint64_t before = bench::allocation_count();
  feed(d, 100'000, key_of);
  if (GetParam() == 0) {
    EXPECT_LT(bench::allocation_count() - before, 400U);
  } else {
    // Striped, every event carries its key: one allocation for a long one, and no more.
    EXPECT_LT(bench::allocation_count() - before, 100'400U);
  }
}

TEST_P(DispatcherMemoryTest, NothingIsRememberedOfEntitiesThatAreGone) {
  Dispatcher<Number, Number> d([&](const Number&, Number&) { ++handled_; },
                               {.threads = 2, .stripes = GetParam()});
  feed(d, 100'000, [](Number n) { return n; });
  // The last turns may not have ended with their handlers.
  EXPECT_TRUE(eventually([&] { return d.stats().active_lanes == 0; }));
  EXPECT_EQ(d.stats().entities_remembered, 0U);
}

TEST_P(DispatcherMemoryTest, AnIdleDispatcherUsesNoProcessorTime) {
  Dispatcher<Number, Number> d([&](const Number&, Number&) { ++handled_; },
                               {.threads = 4, .stripes = GetParam()});
  feed(d, 1'000, [](Number n) { return n; });
  const auto cpu = [] { return std::clock(); };
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, 100ms);  // Lets the workers go to sleep.
  const std::clock_t before = cpu();
  never.wait_for(lock, 300ms);
  EXPECT_LT(static_cast<double>(cpu() - before) / CLOCKS_PER_SEC, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Modes, DispatcherMemoryTest, testing::Values(0U, 64U),
                         [](const auto& mode) { return mode.param == 0 ? "Elastic" : "Striped"; });

}  // namespace
}  // namespace ordo
