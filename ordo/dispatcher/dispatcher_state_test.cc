// An entity's state: made before its first event, kept while it is active, cleaned up once when it
// has been idle; and the race between the reaper and everybody else.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
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

struct Cart {
  int items = 0;
};

class DispatcherStateTest : public testing::TestWithParam<std::size_t> {
 protected:
  using D = Dispatcher<int, int, Cart>;

  D::Options options() {
    return {.threads = 2,
            .stripes = GetParam(),
            .idle_timeout = 10s,
            .make_state =
                [this](const int&) {
                  ++made_;
                  return Cart{};
                },
            .end_state =
                [this](const int&, Cart& cart) {
                  ended_items_ += cart.items;
                  ++ended_;
                },
            .clock = &clock_};
  }
  static void add(int, int& n, Cart& cart) { cart.items += n; }

  // So many events were processed and their turns have ended: an event counts as processed a moment
  // before its turn ends and lets go of the state.
  static bool eventually_at_rest(D& d, std::uint64_t processed) {
    return eventually([&] {
      const DispatcherStats stats = d.stats();
      return stats.processed == processed && stats.active_lanes == 0;
    });
  }

  Watchdog watchdog_{"DispatcherStateTest"};
  ManualClock clock_;
  std::atomic<int> made_ = 0;
  std::atomic<int> ended_ = 0;
  std::atomic<int> ended_items_ = 0;
};

TEST_P(DispatcherStateTest, EventsOfAnEntityShareItsState) {
  D d(add, options());
  for (int n = 1; n <= 4; ++n) {
    d.dispatch(1, n);
    d.dispatch(2, 10 * n);
  }
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(ended_, 2);
  EXPECT_EQ(ended_items_, 10 + 100);
}

TEST_P(DispatcherStateTest, AnIdleStateIsReapedAfterTheTimeoutAndMadeAnew) {
  D d(add, options());
  d.dispatch(1, 1);
  ASSERT_TRUE(eventually_at_rest(d, 1));
  EXPECT_EQ(d.stats().entities_remembered, 1U);
  clock_.wait_for_waiters(1);
  clock_.advance(9s);
  EXPECT_EQ(ended_, 0);
  clock_.advance(1s);
  ASSERT_TRUE(eventually([&] { return ended_ == 1; }));
  ASSERT_TRUE(eventually([&] { return d.stats().entities_remembered == 0; }));

  d.dispatch(1, 2);
  ASSERT_TRUE(eventually([&] { return made_ == 2; }));
}

TEST_P(DispatcherStateTest, AnEventStartsTheIdleTimeAnew) {
  D d(add, options());
  d.dispatch(1, 1);
  ASSERT_TRUE(eventually_at_rest(d, 1));
  clock_.wait_for_waiters(1);
  clock_.advance(6s);
  d.dispatch(1, 1);
  ASSERT_TRUE(eventually_at_rest(d, 2));
  clock_.advance(6s);
  ASSERT_TRUE(eventually([&] { return clock_.waiter_count() == 1; }));
  EXPECT_EQ(ended_, 0);
  clock_.advance(4s);
  ASSERT_TRUE(eventually([&] { return ended_ == 1; }));
  EXPECT_EQ(ended_items_, 2);
}

TEST_P(DispatcherStateTest, AHandlerTenTimesLongerThanTheTimeoutIsNeitherCancelledNorOvertaken) {
  Gates<> gates;
  std::vector<int> order;
  D d(
      [&](int, int& n, Cart& cart) {
        if (n == 0) gates.enter(0);
        ++cart.items;
        order.push_back(n);
      },
      options());
  for (int n = 0; n <= 20; ++n)
    d.dispatch(1, n);
  ASSERT_TRUE(gates.await(0));
  for (int step = 0; step < 10; ++step)
    clock_.advance(10s);
  EXPECT_EQ(ended_, 0);
  gates.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(ended_items_, 21);
  for (int n = 0; n <= 20; ++n)
    EXPECT_EQ(order[static_cast<std::size_t>(n)], n);
}

TEST_P(DispatcherStateTest, AParkedEntityWithEventsIsNotIdle) {
  D::Options parking = options();
  parking.on_failure = park();
  parking.on_error = [](const int&, const int&, std::exception_ptr) {};
  std::atomic<int> failures = 1;
  D d(
      [&](int, int&, Cart& cart) {
        ++cart.items;
        if (failures-- > 0) throw 1;
      },
      parking);
  d.dispatch(1, 1);
  ASSERT_TRUE(eventually([&] { return d.stats().parked_lanes == 1; }));
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(eventually([&] { return clock_.waiter_count() == 1; }));
    clock_.advance(10s);
  }
  EXPECT_EQ(ended_, 0);
  d.resume(1);
  ASSERT_TRUE(eventually_at_rest(d, 1));
  EXPECT_TRUE(d.shutdown(0s).empty());
  EXPECT_EQ(ended_items_, 2);
}

TEST_P(DispatcherStateTest, EventsThatComeDuringACleanUpWaitForItsEndAndGetANewState) {
  Gates<> gates;
  D::Options slow = options();
  slow.end_state = [&](const int&, Cart&) {
    gates.enter(0);
    ++ended_;
  };
  std::atomic<int> seen = 0;
  D d(
      [&](int, int& n, Cart& cart) {
        cart.items += n;
        if (n == 2) {
          EXPECT_EQ(ended_, 1);
          EXPECT_EQ(cart.items, 2);
        }
        ++seen;
      },
      slow);
  d.dispatch(1, 1);
  ASSERT_TRUE(eventually_at_rest(d, 1));
  clock_.wait_for_waiters(1);
  clock_.advance(10s);
  ASSERT_TRUE(gates.await(0));
  EXPECT_EQ(d.dispatch(1, 2), Dispatched::admitted);
  EXPECT_TRUE(d.parked().empty());
  EXPECT_FALSE(d.resume(1));
  EXPECT_EQ(seen, 1);
  gates.open_all();
  ASSERT_TRUE(eventually([&] { return seen == 2; }));
  EXPECT_EQ(made_, 2);
}

TEST_P(DispatcherStateTest, AStateThatCannotBeMadeIsAFailureOfTheEvent) {
  D::Options failing = options();
  failing.make_state = [this](const int&) -> Cart {
    if (made_++ == 0) throw std::runtime_error("no state");
    return Cart{};
  };
  failing.on_error = [](const int&, const int&, std::exception_ptr) {};
  D d(add, failing);
  d.dispatch(1, 1);
  d.dispatch(1, 2);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().failed, 1U);
  EXPECT_EQ(d.stats().processed, 1U);
  EXPECT_EQ(ended_items_, 2);
}

TEST_P(DispatcherStateTest, AStateInUseAtShutdownIsCleanedUpWhenItsHandlerReturns) {
  Gates<> gates;
  {
    D d([&](int, const int&, Cart&) { gates.enter(0); }, options());
    d.dispatch(1, 1);
    ASSERT_TRUE(gates.await(0));
    EXPECT_EQ(d.shutdown(0s).size(), 1U);
    EXPECT_EQ(ended_, 0);
    gates.open_all();
    EXPECT_TRUE(eventually([&] { return ended_ == 1; }));
  }
  EXPECT_EQ(ended_, 1);
}

TEST_P(DispatcherStateTest, PositionsAreForgottenWithTheRest) {
  D d(add, options());
  d.dispatch(1, 1, 5);
  EXPECT_EQ(d.dispatch(1, 1, 5), Dispatched::duplicate);
  ASSERT_TRUE(eventually_at_rest(d, 1));
  clock_.wait_for_waiters(1);
  clock_.advance(10s);
  ASSERT_TRUE(eventually([&] { return d.stats().entities_remembered == 0; }));
  EXPECT_EQ(d.dispatch(1, 1, 5), Dispatched::admitted);
}

// Goal: whatever the reaper does meanwhile, nothing is lost, repeated, overtaken or run beside
// another, and no state is cleaned up in use. Method: an idle limit of 1 ms, 8 threads that
// dispatch to 50 entities with pauses around 1 ms, for ORDO_REAPER_SECONDS (5; 60 in a long run).
TEST_P(DispatcherStateTest, TheReaperRaceLosesRepeatsAndOverlapsNothing) {
  constexpr std::size_t kKeys = 50;
  constexpr std::size_t kThreads = 8;
  struct Session {
    bool is_open = true;
  };
  struct Event {
    std::size_t thread;
    Number number;
  };
  std::vector<std::vector<Number>> last(kKeys, std::vector<Number>(kThreads, 0));
  std::vector<std::atomic<int>> inside(kKeys);
  std::vector<std::atomic<int>> open(kKeys);
  std::atomic<int> wrong = 0;
  std::atomic<Number> handled = 0;
  std::atomic<Number> reaped = 0;
  Dispatcher<std::size_t, Event, Session> d(
      [&](const std::size_t& key, Event& event, Session& session) {
        if (inside[key].fetch_add(1) != 0 || !session.is_open || open[key] != 1) ++wrong;
        if (event.number != ++last[key][event.thread]) ++wrong;
        inside[key].fetch_sub(1);
        ++handled;
      },
      {.threads = 2,
       .stripes = GetParam(),
       .idle_timeout = 1ms,
       .make_state =
           [&](const std::size_t& key) {
             if (open[key].fetch_add(1) != 0) ++wrong;
             return Session{};
           },
       .end_state =
           [&](const std::size_t& key, Session& session) {
             if (inside[key] != 0 || !std::exchange(session.is_open, false)) ++wrong;
             if (open[key].fetch_sub(1) != 1) ++wrong;
             ++reaped;
           }});
  const char* text = std::getenv("ORDO_REAPER_SECONDS");
  const auto span = std::chrono::seconds(text != nullptr ? std::atoi(text) : 5);
  const TimePoint end = system_clock().now() + span;
  std::atomic<Number> admitted = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<Number> next(kKeys, 0);
      std::mutex mutex;
      std::condition_variable never;
      while (system_clock().now() < end) {
        const std::size_t key = random() % kKeys;
        const Dispatched result = d.dispatch(key, Event{t, next[key] + 1});
        if (result == Dispatched::admitted) {
          ++next[key];
          ++admitted;
        }
        if (random() % 4 != 0) continue;
        std::unique_lock lock(mutex);
        never.wait_for(lock, std::chrono::microseconds(500 + random() % 1'000));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_TRUE(d.shutdown(60s).empty());
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(handled, admitted);
  EXPECT_GT(reaped, 0U);
  for (const auto& count : open)
    EXPECT_EQ(count, 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, DispatcherStateTest, testing::Values(0U, 64U),
                         [](const auto& mode) { return mode.param == 0 ? "Elastic" : "Striped"; });

}  // namespace
}  // namespace ordo
