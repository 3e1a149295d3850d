// How a pool ends when something unusual happens on the way: each of these once hung, lost an
// output or counted an input twice.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/pool/pool.h"
#include "tests/support/gates.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::eventually;
using testing_support::Gates;
using testing_support::Watchdog;

class PoolEndings : public testing::TestWithParam<bool> {
 protected:
  bool ordered() const { return GetParam(); }
  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_P(PoolEndings, WaitReturnsOnceTheLastOutputWasTaken) {
  std::atomic<int> cleanups = 0;
  Pool<int, int> pool(
      [](int n) { return n; },
      {.workers = 2, .preserve_order = ordered(), .on_cleanup = [&] { ++cleanups; }});
  for (int n = 0; n < 3; ++n)
    ASSERT_TRUE(pool.push(n));
  pool.close();
  for (int n = 0; n < 3; ++n)
    ASSERT_TRUE(pool.pop());
  pool.wait();
  EXPECT_EQ(cleanups, 1);
}

TEST_P(PoolEndings, FailStopGivesWhatCameBeforeTheFailureHoweverLateItIsTaken) {
  for (const std::size_t buffer_size : {0u, 10u}) {
    Gates<> failed;
    Pool<int, int> pool(
        [](int n) -> int {
          if (n == 5) throw std::runtime_error("five");
          return n;
        },
        {.workers = 1,
         .buffer_size = buffer_size,
         .preserve_order = true,
         .order_buffer_size = 8,
         .on_error = [&](const int&, const std::exception_ptr&) { failed.open_all(); },
         .fail_stop = true});
    for (int n = 0; n <= 5; ++n)
      ASSERT_TRUE(pool.push(n));
    failed.enter(0);  // Nothing is taken before the failure.
    for (int n = 0; n < 5; ++n)
      EXPECT_EQ(pool.pop(), n) << "buffer " << buffer_size;
    EXPECT_FALSE(pool.pop());
  }
}

// Can be copied `copies` times; a copy more throws.
struct Brittle {
  explicit Brittle(std::shared_ptr<std::atomic<int>> copies) : copies_left(std::move(copies)) {}
  Brittle(Brittle&&) = default;
  Brittle& operator=(Brittle&&) = default;
  Brittle& operator=(const Brittle&) = delete;
  ~Brittle() = default;
  Brittle(const Brittle& other) : copies_left(other.copies_left) {
    if (copies_left->fetch_sub(1) <= 0) throw std::runtime_error("cannot be copied");
  }
  std::shared_ptr<std::atomic<int>> copies_left;
};

TEST_P(PoolEndings, AnInputThatCannotBeCopiedIsCountedByStopThoughNotListed) {
  Gates<> gates;
  std::atomic<int> cleanups = 0;
  Pool<Brittle, int> pool(
      [&](const Brittle&) { return gates.enter(0), 1; },
      {.workers = 1, .preserve_order = ordered(), .on_cleanup = [&] { ++cleanups; }});
  ASSERT_TRUE(pool.push(Brittle(std::make_shared<std::atomic<int>>(0))));
  ASSERT_TRUE(gates.await_inside(1));
  EXPECT_TRUE(pool.stop(0s).empty());
  EXPECT_EQ(pool.stats().undone, 1u);
  EXPECT_EQ(cleanups, 1);
  gates.open_all();
}

TEST_P(PoolEndings, AHandlerThatThrowsAfterStopListedItsInputIsUndoneAndNotFailed) {
  Gates<> gates;
  std::atomic<int> errors = 0;
  std::atomic<bool> thrown = false;
  {
    Pool<int, int> pool(
        [&](int n) -> int {
          gates.enter(static_cast<std::uint64_t>(n));
          thrown = true;
          throw n;
        },
        {.workers = 1,
         .preserve_order = ordered(),
         .on_error = [&](const int&, const std::exception_ptr&) { ++errors; }});
    ASSERT_TRUE(pool.push(7));
    ASSERT_TRUE(gates.await_inside(1));
    EXPECT_EQ(pool.stop(0s), std::vector<int>{7});
    gates.open_all();
    ASSERT_TRUE(eventually([&] { return thrown.load(); }));
    EXPECT_EQ(pool.stats().undone, 1u);
    EXPECT_EQ(pool.stats().failed, 0u);
  }
  EXPECT_EQ(errors, 0);
}

TEST(PoolLate, AFunctionThatMayWriteItsInputIsWaitedForBeforeOnLate) {
  Gates<> gates;
  std::atomic<int> late = 0;
  ManualClock clock;
  Pool<int, int> pool([&](int& n) { return gates.enter(static_cast<std::uint64_t>(n)), n; },
                      {.workers = 2,
                       .preserve_order = true,
                       .order_timeout = 1s,
                       .on_late = [&](const int& n) { late = n; },
                       .clock = &clock});
  ASSERT_TRUE(pool.push(5));
  ASSERT_TRUE(gates.await_inside(1));
  clock.advance(1s);
  ASSERT_TRUE(eventually([&] { return pool.stats().late == 1; }));
  EXPECT_EQ(late, 0) << "its handler may still write to it";
  gates.open_all();
  EXPECT_TRUE(eventually([&] { return late == 5; }));
}

// Goal: an item pushed just when workers leave is run by one who stays. Method: a pool that grows
// and shrinks all the time, a few items at a time, for a bounded number of rounds.
TEST(PoolShrinking, AnItemPushedWhileWorkersLeaveIsRun) {
  Watchdog watchdog("AnItemPushedWhileWorkersLeaveIsRun");
  Pool<int, int> pool([](int n) { return n; }, {.autoscale = Autoscale{.min_workers = 1,
                                                                       .max_workers = 3,
                                                                       .scale_up_cooldown = 0s,
                                                                       .scale_down_cooldown = 0s,
                                                                       .scale_down_after = 0s,
                                                                       .check_interval = 20us,
                                                                       .step = 2},
                                                .preserve_order = true});
  for (int round = 0; round < 20'000; ++round) {
    const int count = 1 + round % 5;
    for (int n = 0; n < count; ++n)
      ASSERT_TRUE(pool.push(n));
    for (int n = 0; n < count; ++n)
      ASSERT_EQ(pool.pop(), n) << "round " << round;
  }
}

std::string name_of_order(const testing::TestParamInfo<bool>& order) {
  return order.param ? "Ordered" : "Unordered";
}
INSTANTIATE_TEST_SUITE_P(Order, PoolEndings, testing::Bool(), name_of_order);

}  // namespace
}  // namespace ordo
