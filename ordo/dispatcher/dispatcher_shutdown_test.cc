// Stopping ends: by its deadline, once, with an account of what was not done.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
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

class DispatcherShutdownTest : public testing::TestWithParam<std::size_t> {
 protected:
  using D = Dispatcher<int, Number>;

  Watchdog watchdog_{"DispatcherShutdownTest"};
  ManualClock clock_;
  Gates<> gates_;
};

TEST_P(DispatcherShutdownTest, EverythingAdmittedIsDoneWhenThereIsTime) {
  std::atomic<Number> count = 0;
  D d([&](int, Number&) { ++count; }, {.threads = 2, .stripes = GetParam()});
  for (int key = 0; key < 5'000; ++key)
    d.dispatch(key, Number{0});
  EXPECT_TRUE(d.shutdown(60s).empty());
  EXPECT_EQ(count, 5'000U);
  EXPECT_EQ(d.stats().queued, 0U);
  EXPECT_EQ(d.dispatch(1, Number{0}), Dispatched::closed);
}

TEST_P(DispatcherShutdownTest, OneStuckAndTenBackloggedEntitiesEndByTheDeadlineAndAreListed) {
  // One thread, which is stuck; whatever the others have waits behind it.
  D d([&](int, const Number& n) { gates_.enter(n); },
      {.threads = 1, .stripes = GetParam() * 1024, .clock = &clock_});
  d.dispatch(0, Number{0});
  ASSERT_TRUE(gates_.await(0));
  d.dispatch(0, Number{1});
  for (int key = 1; key <= 10; ++key) {
    for (Number n = 0; n < 5; ++n)
      d.dispatch(key, Number{100 * static_cast<Number>(key) + n});
  }
  std::map<int, std::vector<Number>> undone;
  {
    Background caller([&] { undone = d.shutdown(5s); });
    clock_.wait_for_waiters(1);
    clock_.advance(4999ms);
    EXPECT_FALSE(caller.is_finished());
    clock_.advance(1ms);
    ASSERT_TRUE(caller.finished());
  }
  EXPECT_EQ(undone.size(), 11U);
  EXPECT_EQ(undone.at(0), (std::vector<Number>{0, 1}));  // The stuck one too: it is only read.
  for (int key = 1; key <= 10; ++key) {
    const Number first = 100 * static_cast<Number>(key);
    EXPECT_EQ(undone.at(key),
              (std::vector<Number>{first, first + 1, first + 2, first + 3, first + 4}));
  }
  EXPECT_EQ(d.stats().undone, 52U);
  EXPECT_EQ(d.stats().admitted, 52U);
  gates_.open_all();
}

TEST_P(DispatcherShutdownTest, AStuckHandlerThatMayChangeItsEventIsCountedOnly) {
  D d([&](int, Number& n) { gates_.enter(n); }, {.threads = 1, .stripes = GetParam()});
  d.dispatch(0, Number{0});
  ASSERT_TRUE(gates_.await(0));
  EXPECT_TRUE(d.shutdown(0s).empty());
  EXPECT_EQ(d.stats().undone, 1U);
  gates_.open_all();
}

TEST_P(DispatcherShutdownTest, WhatAStuckHandlerDoesLaterChangesNothing) {
  D d(
      [&](int, const Number& n) {
        gates_.enter(n);
        if (n == 0) throw 1;
      },
      {.threads = 1, .stripes = GetParam()});
  d.dispatch(0, Number{0});
  d.dispatch(0, Number{1});
  ASSERT_TRUE(gates_.await(0));
  EXPECT_EQ(d.shutdown(0s).at(0), (std::vector<Number>{0, 1}));
  gates_.open_all();
  ASSERT_TRUE(gates_.await_left(0));
  EXPECT_EQ(d.stats().undone, 2U);
  EXPECT_EQ(d.stats().failed, 0U);
  EXPECT_FALSE(gates_.has_started(1));
}

TEST_P(DispatcherShutdownTest, ParkedLanesAreNotWaitedForAndAreListed) {
  D d(
      [&](int key, Number&) {
        if (key == 1) throw 1;
      },
      {.threads = 1, .stripes = GetParam(), .on_failure = park(), .clock = &clock_});
  for (Number n = 0; n < 3; ++n)
    d.dispatch(1, Number{n});
  d.pause(50);
  d.dispatch(50, Number{9});
  ASSERT_TRUE(eventually([&] { return d.stats().parked_lanes == 2; }));
  const auto undone = d.shutdown(1h);  // The clock stands still: nothing is waited for.
  EXPECT_EQ(undone.at(1), (std::vector<Number>{0, 1, 2}));
  EXPECT_EQ(undone.at(50), (std::vector<Number>{9}));
  EXPECT_TRUE(d.parked().empty());
}

TEST_P(DispatcherShutdownTest, RetriesGoOnUntilTheDeadline) {
  std::atomic<int> failures = 2;
  D d(
      [&](int, Number&) {
        if (failures-- > 0) throw 1;
      },
      {.threads = 1,
       .stripes = GetParam(),
       .on_failure = retry(5, 10ms).then_park(),
       .clock = &clock_});
  d.dispatch(1, Number{0});
  ASSERT_TRUE(eventually([&] { return d.stats().delayed_lanes == 1; }));
  std::map<int, std::vector<Number>> undone;
  {
    Background caller([&] { undone = d.shutdown(1h); });
    ASSERT_TRUE(eventually([&] { return clock_.advance(1ms), caller.is_finished(); }));
  }
  EXPECT_TRUE(undone.empty());
  EXPECT_EQ(d.stats().processed, 1U);
}

TEST_P(DispatcherShutdownTest, AnEventThatWaitsForItsRetryAtTheDeadlineIsListed) {
  D d([&](int, Number&) { throw 1; }, {.threads = 1,
                                       .stripes = GetParam(),
                                       .on_failure = retry(5, 1s).then_park(),
                                       .clock = &clock_});
  d.dispatch(1, Number{7});
  ASSERT_TRUE(eventually([&] { return d.stats().delayed_lanes == 1; }));
  EXPECT_EQ(d.shutdown(0s).at(1), (std::vector<Number>{7}));
}

TEST_P(DispatcherShutdownTest, ASecondShutdownReturnsNothing) {
  D d([&](int, Number&) {}, {.threads = 1, .stripes = GetParam()});
  d.pause(1);
  d.dispatch(1, Number{1});
  EXPECT_EQ(d.shutdown(0s).size(), 1U);
  EXPECT_TRUE(d.shutdown(10s).empty());
  EXPECT_FALSE(d.pause(1));
  EXPECT_FALSE(d.resume(1));
  EXPECT_EQ(d.stats().undone, 1U);
}

TEST_P(DispatcherShutdownTest, ShutdownFromAHandlerIsAnErrorOfThatEvent) {
  D* self = nullptr;
  std::atomic<int> errors = 0;
  D d([&](int, Number&) { self->shutdown(1s); },
      {.threads = 1,
       .stripes = GetParam(),
       .on_error = [&](const int&, const Number&, std::exception_ptr error) {
         EXPECT_THROW(std::rethrow_exception(error), std::logic_error);
         ++errors;
       }});
  self = &d;
  d.dispatch(1, Number{1});
  ASSERT_TRUE(eventually([&] { return d.stats().failed == 1; }));
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(d.dispatch(1, Number{2}), Dispatched::admitted);  // It goes on.
}

TEST_P(DispatcherShutdownTest, TheDestructorEndsEverythingAndWaitsForRunningHandlers) {
  std::atomic<bool> returned = false;
  {
    auto d = std::make_unique<D>(
        [&](int, Number& n) {
          gates_.enter(n);
          returned = true;
        },
        D::Options{.threads = 2, .stripes = GetParam()});
    d->dispatch(1, Number{1});
    ASSERT_TRUE(gates_.await(1));
    Background destroyer([&] { d.reset(); });
    gates_.open_all();
    ASSERT_TRUE(destroyer.finished());
  }
  EXPECT_TRUE(returned);
}

TEST_P(DispatcherShutdownTest, ShutdownRacingDispatchAccountsForEverything) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<Number> handled = 0;
    Dispatcher<int, std::string> d(
        [&](int, const std::string& text) { handled += text.empty() ? 0 : 1; },
        {.threads = 2, .stripes = GetParam()});
    std::atomic<Number> admitted = 0;
    std::atomic<bool> go = false;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        while (!go)
          std::this_thread::yield();
        for (int n = 0; n < 500; ++n) {
          const Dispatched result = d.dispatch((n + t) % 11, std::string(40, 'x'));
          if (result == Dispatched::closed) return;
          if (result == Dispatched::admitted) ++admitted;
        }
      });
    }
    go = true;
    while (admitted < 20)
      std::this_thread::yield();
    Number listed = 0;
    for (const auto& [key, events] : d.shutdown(0s)) {
      for (const std::string& text : events) {
        EXPECT_EQ(text, std::string(40, 'x'));
        ++listed;
      }
    }
    for (std::thread& thread : threads)
      thread.join();
    const DispatcherStats stats = d.stats();
    EXPECT_EQ(stats.admitted, admitted);
    EXPECT_EQ(stats.undone, listed);
    EXPECT_EQ(stats.admitted, stats.processed + stats.undone);
    EXPECT_EQ(stats.queued, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, DispatcherShutdownTest, testing::Values(0U, 64U),
                         [](const auto& mode) { return mode.param == 0 ? "Elastic" : "Striped"; });

}  // namespace
}  // namespace ordo
