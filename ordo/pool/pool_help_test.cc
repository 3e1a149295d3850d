// A thread that waits in pop() runs the item it waits for, once items have shown to be short; and
// what holds nevertheless: order, the bound on handlers, nobody held up by anybody else's item.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/pool/pace.h"
#include "ordo/pool/pool.h"
#include "tests/support/gates.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::eventually;
using testing_support::Gates;
using testing_support::Watchdog;

// Items are numbers. A handler of number n counts where it runs, and stops at the gate of n if the
// test has closed it and a popper runs it.
class PoolHelp : public testing::TestWithParam<std::size_t> {
 protected:
  using IntPool = Pool<std::uint64_t, std::uint64_t>;

  IntPool::Options options() const {
    return {.workers = GetParam(),
            .preserve_order = true,
            .order_buffer_size = 64,
            .on_error = [this](const std::uint64_t&, const std::exception_ptr&) { ++failed_; }};
  }

  std::uint64_t handle(const std::uint64_t& n) {
    const int running = ++running_;
    int peak = peak_;
    while (running > peak && !peak_.compare_exchange_weak(peak, running)) {
    }
    const bool helped = std::this_thread::get_id() == popper_.load();
    if (helped) ++helped_;
    if (helped && gated_) gates_.enter(n);
    ++handled_;
    --running_;
    if (n % 1000 == 999) throw std::runtime_error("every thousandth fails");
    return n;
  }

  // Pushes one and takes one until this thread has run `count` items itself.
  void push_and_pop_until_helped(IntPool& pool, int count) {
    popper_ = std::this_thread::get_id();
    while (helped_ < count) {
      if (next_ % 1000 == 999) ++next_;
      ASSERT_TRUE(pool.push(next_));
      ASSERT_EQ(pool.pop(), next_);
      ++next_;
    }
  }

  // A thread in pop() that is held up in the handler of what is pushed.
  std::jthread hold_up_a_popper(IntPool& pool) {
    gated_ = true;
    std::jthread popper([this, &pool] {
      popper_ = std::this_thread::get_id();
      while (pool.pop()) {
      }
      popped_all_ = true;
    });
    // Which of them the popper gets to run is not ours to say. They are never so many that the
    // window is full behind the one that is held up.
    EXPECT_TRUE(eventually([&] {
      if (gates_.inside() == 0 && pool.stats().window_used < 8) pool.try_push(next_++);
      return gates_.inside() == 1;
    }));
    return popper;
  }

  std::atomic<std::thread::id> popper_;
  std::atomic<int> running_ = 0;
  std::atomic<int> peak_ = 0;
  std::atomic<int> helped_ = 0;
  std::atomic<int> handled_ = 0;
  mutable std::atomic<int> failed_ = 0;
  std::atomic<bool> gated_ = false;
  std::atomic<bool> popped_all_ = false;
  std::uint64_t next_ = 0;
  Gates<> gates_;
  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_P(PoolHelp, APopperRunsTheItemItWaitsForOnceItemsAreKnownToBeShort) {
  IntPool pool([this](const std::uint64_t& n) { return handle(n); }, options());
  push_and_pop_until_helped(pool, 100);
  EXPECT_EQ(pool.stats().delivered, pool.stats().admitted);
}

TEST_P(PoolHelp, NeverDoMoreHandlersRunThanThereAreWorkersAndOrderIsKept) {
  constexpr std::uint64_t kItems = 200'000;
  IntPool pool([this](const std::uint64_t& n) { return handle(n); }, options());
  std::jthread popper([&] {
    popper_ = std::this_thread::get_id();
    std::uint64_t expected = 0;
    while (const auto output = pool.pop()) {
      if (expected % 1000 == 999) ++expected;
      ASSERT_EQ(*output, expected++);
    }
  });
  for (std::uint64_t n = 0; n < kItems; ++n)
    ASSERT_TRUE(pool.push(n));
  pool.close();
  popper.join();
  EXPECT_LE(peak_, static_cast<int>(GetParam()));
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.delivered, kItems - kItems / 1000);
  EXPECT_EQ(stats.failed, kItems / 1000);
  EXPECT_EQ(failed_, kItems / 1000);
}

TEST_P(PoolHelp, WhatIsPushedRunsWhenThePopperDoesNotComeBack) {
  IntPool pool([this](const std::uint64_t& n) { return handle(n); }, options());
  push_and_pop_until_helped(pool, 100);
  const int before = handled_;
  for (int count = 0; count < 60; ++count)
    ASSERT_TRUE(pool.push(0));
  EXPECT_TRUE(eventually([&] { return handled_ == before + 60; }));
}

TEST_P(PoolHelp, AHelperThatIsHeldUpHoldsUpNobodyElse) {
  if (GetParam() == 1) GTEST_SKIP() << "one worker: the helper is all there is";
  IntPool pool([this](const std::uint64_t& n) { return handle(n); }, options());
  push_and_pop_until_helped(pool, 100);
  const std::jthread popper = hold_up_a_popper(pool);
  const int before = handled_;
  for (int count = 0; count < 20; ++count)
    ASSERT_TRUE(pool.push(0));
  EXPECT_TRUE(eventually([&] { return handled_ >= before + 20; }));
  gated_ = false;
  gates_.open_all();
  pool.close();
}

// Nobody knows who gets to run the first of two items; the other has to be started in any case. A
// popper that looks for items is relied on by pushes, and may not be able to take what they push.
TEST_P(PoolHelp, AnItemThatWaitsForItsSuccessorGetsItWhileAPopperLooks) {
  if (GetParam() == 1) GTEST_SKIP() << "one worker: an item cannot wait for its successor";
  constexpr std::uint64_t kShortItems = 98;
  constexpr int kRounds = 500;
  std::atomic<int> successors = 0;
  std::atomic<std::uint64_t> popped = 0;
  IntPool pool(
      [&](const std::uint64_t& n) {
        if (n % 100 == kShortItems + 1) ++successors;
        const int round = static_cast<int>(n / 100);
        while (n % 100 == kShortItems && successors <= round)
          std::this_thread::yield();
        return n;
      },
      options());
  const std::jthread popper([&] {
    while (pool.pop())
      ++popped;
  });
  for (int round = 0; round < kRounds; ++round) {
    for (std::uint64_t item = 0; item < kShortItems; ++item)
      ASSERT_TRUE(pool.push(next_++));
    ASSERT_TRUE(eventually([&] { return popped == next_; }));
    ASSERT_TRUE(pool.push(next_++));
    for (int pause = 0; pause < round % 50; ++pause)
      std::this_thread::yield();
    ASSERT_TRUE(pool.push(next_++));
    ASSERT_TRUE(eventually([&] { return popped == next_; }));
  }
  pool.close();
}

TEST_P(PoolHelp, StopReturnsWhileAHelperIsHeldUpAndListsItsInput) {
  IntPool pool([this](const std::uint64_t& n) { return handle(n); }, options());
  push_and_pop_until_helped(pool, 100);
  const std::jthread popper = hold_up_a_popper(pool);
  const std::vector<std::uint64_t> held_up = gates_.started();
  const std::vector<std::uint64_t> undone = pool.stop(1ms);
  ASSERT_EQ(held_up.size(), 1u);
  EXPECT_TRUE(std::ranges::find(undone, held_up[0]) != undone.end());
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.undone, undone.size());
  EXPECT_EQ(stats.delivered + stats.failed + stats.undone, stats.admitted);
  EXPECT_FALSE(popped_all_);
  gates_.open_all();
  EXPECT_TRUE(eventually([&] { return popped_all_.load(); }));
}

TEST_P(PoolHelp, AHelperThatIsHeldUpIsTheHeadOfTheLineAndCountsAsRunning) {
  IntPool pool([this](const std::uint64_t& n) { return handle(n); }, options());
  push_and_pop_until_helped(pool, 100);
  const std::jthread popper = hold_up_a_popper(pool);
  const PoolStats stats = pool.stats();
  EXPECT_GE(stats.running, 1u);
  ASSERT_TRUE(stats.head_of_line);
  EXPECT_FALSE(stats.head_of_line->waits_for_pop);
  EXPECT_LT(stats.head_of_line->blocked_for, 60s);
  gates_.open_all();
  pool.close();
}

INSTANTIATE_TEST_SUITE_P(, PoolHelp, testing::Values(1, 2, 4),
                         [](const auto& test) { return std::to_string(test.param) + "Workers"; });

TEST(Pace, ItemsAreNotTakenForShortBeforeSomeHaveBeenMeasured) {
  pool::Pace pace;
  pace.note(100, 100);
  EXPECT_FALSE(pace.items_are_short());
}

TEST(Pace, ItemsAreShortAfterManyShortSamplesAndOneLongOneChangesNothing) {
  pool::Pace pace;
  for (int sample = 0; sample < 64; ++sample)
    pace.note(100, 100);
  EXPECT_TRUE(pace.items_are_short());
  pace.note(1'000'000, 500);
  EXPECT_TRUE(pace.items_are_short());
}

TEST(Pace, ItemsAreLongWhenOneInFourIs) {
  pool::Pace pace;
  for (int sample = 0; sample < 64; ++sample)
    pace.note(100, 100);
  for (int sample = 0; sample < 200; ++sample)
    pace.note(sample % 4 == 0 ? 1'000'000 : 100, 100);
  EXPECT_FALSE(pace.items_are_short());
}

TEST(Pace, AnEstimateRisesByAFactorAtMostAndFallsSlowly) {
  EXPECT_EQ(pool::Pace::blend(0, 100), 100);
  EXPECT_EQ(pool::Pace::blend(100, 1'000'000), 500);
  EXPECT_EQ(pool::Pace::blend(160, 0), 150);
}

}  // namespace
}  // namespace ordo
