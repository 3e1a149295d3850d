// Corners: what happens where users' code meets the engine in unusual places: destructors and
// callbacks that call back, moves that throw, the last position, the end during the end.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
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

class DispatcherCornersTest : public testing::TestWithParam<std::size_t> {
 protected:
  using D = Dispatcher<int, Number>;

  ~DispatcherCornersTest() override { gates_.open_all(); }

  Watchdog watchdog_{"DispatcherCornersTest"};
  ManualClock clock_;
  Gates<> gates_;
};

// ---- handlers of any form

TEST_P(DispatcherCornersTest, AHandlerMayBeAGenericLambdaThatChangesItsEvent) {
  Number sum = 0;
  D plain(
      [&](const auto&, auto& n) {
        n += 1;
        sum += n;
      },
      {.threads = 1, .stripes = GetParam()});
  plain.dispatch(1, Number{1});
  EXPECT_TRUE(plain.shutdown(30s).empty());
  EXPECT_EQ(sum, 2U);

  D async(
      [&](const auto&, auto& n, auto done) {
        sum += ++n;
        done();
      },
      {.threads = 1, .stripes = GetParam()});
  async.dispatch(1, Number{1});
  EXPECT_TRUE(async.shutdown(30s).empty());
  EXPECT_EQ(sum, 4U);
}

// ---- code of the user's that calls back

// Calls a function when it is destroyed, wherever that may be.
struct Farewell {
  explicit Farewell(std::function<void()> fn)
      : say(new std::function<void()>(std::move(fn)), [](std::function<void()>* call) {
          (*call)();
          delete call;
        }) {}
  std::shared_ptr<std::function<void()>> say;
};

TEST_P(DispatcherCornersTest, TheDestructorOfAnEventMayDispatchToItsOwnEntity) {
  using Farewells = Dispatcher<int, Farewell>;
  for (const bool fails : {false, true}) {
    std::atomic<int> handled = 0;
    Farewells d(
        [&](int, Farewell&) {
          ++handled;
          if (fails) throw std::runtime_error("no");
        },
        {.threads = 1,
         .stripes = GetParam(),
         .on_error = [](const int&, const Farewell&, std::exception_ptr) {}});
    d.dispatch(1, Farewell([&] { d.dispatch(1, Farewell([] {})); }));
    EXPECT_TRUE(eventually([&] { return handled == 2; }));
  }
}

TEST_P(DispatcherCornersTest, TheDestructorOfAnEventThatEndsAPausedTurnMayDispatchToo) {
  Dispatcher<int, Farewell> d([&](int, Farewell&) { gates_.enter(0); },
                              {.threads = 1, .stripes = GetParam()});
  std::atomic<bool> dispatched = false;
  d.dispatch(
      1, Farewell([&] { dispatched = d.dispatch(1, Farewell([] {})) == Dispatched::admitted; }));
  ASSERT_TRUE(gates_.await(0));
  d.pause(1);
  gates_.open_all();
  EXPECT_TRUE(eventually([&] { return dispatched.load(); }));
  EXPECT_EQ(d.stats().processed, 1U);
  EXPECT_EQ(d.stats().queued, 1U);
}

TEST_P(DispatcherCornersTest, TheDestructorOfAFailedEventWithATokenMayDispatchToo) {
  using Farewells = Dispatcher<int, Farewell>;
  std::atomic<int> handled = 0;
  Farewells d([&](int, Farewell&, const Completion&) { ++handled; },  // Dropped: fails.
              {.threads = 1,
               .stripes = GetParam(),
               .on_error = [](const int&, const Farewell&, std::exception_ptr) {}});
  d.dispatch(1, Farewell([&] { d.dispatch(1, Farewell([] {})); }));
  EXPECT_TRUE(eventually([&] { return handled == 2; }));
}

TEST_P(DispatcherCornersTest, TheDestructorOfAnErrorMayDispatchToItsOwnEntity) {
  std::atomic<int> handled = 0;
  D* self = nullptr;
  D d(
      [&](int, Number& n) {
        ++handled;
        if (n == 1) throw Farewell([&] { self->dispatch(1, Number{2}); });
      },
      {.threads = 1,
       .stripes = GetParam(),
       .on_failure = retry(1, 1ns),
       .on_error = [](const int&, const Number&, const std::exception_ptr&) {}});
  self = &d;
  d.dispatch(1, Number{1});
  EXPECT_TRUE(eventually([&] { return handled == 4; }));  // Twice, and one for each error.
}

TEST_P(DispatcherCornersTest, ShutdownFromACleanUpDuringShutdownIsRefused) {
  using Stateful = Dispatcher<int, Number, int>;
  Stateful* self = nullptr;
  int refused = 0;
  Stateful d([](int, Number&, int&) {},
             {.threads = 1, .stripes = GetParam(), .end_state = [&](const int&, int&) {
                try {
                  self->shutdown();
                } catch (const std::logic_error&) {
                  ++refused;
                }
              }});
  self = &d;
  d.dispatch(1, Number{1});
  ASSERT_TRUE(eventually([&] { return d.stats().active_lanes == 0; }));
  d.shutdown(0s);
  EXPECT_EQ(refused, 1);
}

TEST_P(DispatcherCornersTest, ACleanUpThatDispatchesToAFullEntityDoesNotHoldUpTheKeeper) {
  using Stateful = Dispatcher<int, Number, int>;
  std::atomic<int> answer = -1;
  Stateful* self = nullptr;
  Stateful d(
      [&](int key, Number& n, int&) {
        if (key == 2) gates_.enter(n);
      },
      {.threads = 1,
       .stripes = GetParam(),
       .max_queued_per_key = 1,
       .idle_timeout = 10s,
       .overflow = Overflow::block,
       .end_state =
           [&](const int& key, int&) {
             if (key == 1) answer = static_cast<int>(self->dispatch(2, Number{1}));
           },
       .clock = &clock_});
  self = &d;
  d.dispatch(1, Number{0});
  ASSERT_TRUE(eventually([&] { return d.stats().processed == 1; }));
  d.dispatch(2, Number{0});
  ASSERT_TRUE(gates_.await(0));
  clock_.wait_for_waiters(1);
  clock_.advance(10s);
  EXPECT_TRUE(eventually([&] { return answer == static_cast<int>(Dispatched::key_full); }));
  gates_.open_all();
}

TEST_P(DispatcherCornersTest, ShutdownFromTheGapCallbackIsRefused) {
  D* self = nullptr;
  int refused = 0;
  D d([](int, Number&) {}, {.threads = 1,
                            .stripes = GetParam(),
                            .gaps = GapPolicy::report,
                            .on_gap = [&](const int&, Number, Number) {
                              try {
                                self->shutdown();
                              } catch (const std::logic_error&) {
                                ++refused;
                              }
                            }});
  self = &d;
  d.dispatch(1, Number{1}, 1);
  d.dispatch(1, Number{3}, 3);
  EXPECT_EQ(refused, 1);
}

// ---- the end

TEST_P(DispatcherCornersTest, AStateWhoseHandlerKeepsItsTokenBeyondShutdownIsCleanedUpOnce) {
  std::atomic<int> ended = 0;
  Completion kept;
  {
    Dispatcher<int, Number, int> d(
        [&](int, Number& n, int&, Completion done) {
          kept = std::move(done);
          gates_.enter(n);
        },
        {.threads = 1, .stripes = GetParam(), .end_state = [&](const int&, int&) { ++ended; }});
    d.dispatch(1, Number{1});
    ASSERT_TRUE(gates_.await(1));
    d.shutdown(0s);
    EXPECT_EQ(ended, 0);
    gates_.open_all();
  }
  EXPECT_EQ(ended, 1);
  EXPECT_FALSE(kept());
}

TEST_P(DispatcherCornersTest, AShutdownBesideALongerOneReturnsByItsOwnDeadline) {
  D d([&](int, Number& n) { gates_.enter(n); }, {.threads = 1, .stripes = GetParam()});
  d.dispatch(1, Number{1});
  ASSERT_TRUE(gates_.await(1));
  Background longer([&] { d.shutdown(1h); });
  ASSERT_TRUE(eventually([&] { return d.dispatch(1, Number{2}) == Dispatched::closed; }));
  EXPECT_TRUE(d.shutdown(0s).empty());
  EXPECT_FALSE(longer.is_finished());
  gates_.open_all();
  ASSERT_TRUE(longer.finished());
  EXPECT_EQ(d.stats().processed, d.stats().admitted);
}

// ---- moves that throw

struct Fragile {
  Fragile() = default;
  Fragile(Fragile&& other) noexcept(false) : throws_left(other.throws_left) {
    if (throws_left != nullptr && *throws_left > 0) {
      --*throws_left;
      throw std::runtime_error("dropped it");
    }
  }
  Fragile& operator=(Fragile&&) = default;
  int* throws_left = nullptr;
};

TEST_P(DispatcherCornersTest, AnEventWhoseMoveThrowsIsNotAdmittedAndUsesUpNoPlace) {
  Dispatcher<int, Fragile> d([](int, Fragile&) {},
                             {.threads = 1, .stripes = GetParam(), .max_queued = 2});
  int throws_left = 10;
  for (int i = 0; i < 10; ++i) {
    Fragile event;
    event.throws_left = &throws_left;
    if (i % 2 == 0) {
      EXPECT_THROW(d.dispatch(1, std::move(event)), std::runtime_error);
    } else {
      EXPECT_THROW(d.dispatch(1, std::move(event), 7), std::runtime_error);
    }
  }
  EXPECT_EQ(d.stats().admitted, 0U);
  d.pause(1);
  EXPECT_EQ(d.dispatch(1, Fragile()), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Fragile(), 7), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Fragile()), Dispatched::full);
  d.resume(1);
  EXPECT_TRUE(d.shutdown(30s).empty());
}

// ---- positions

TEST_P(DispatcherCornersTest, BehindTheLastPositionEverythingIsADuplicate) {
  constexpr Number kLast = std::numeric_limits<Number>::max();
  for (const GapPolicy gaps : {GapPolicy::accept, GapPolicy::report, GapPolicy::wait}) {
    D d([](int, Number&) {}, {.threads = 1, .stripes = GetParam(), .gaps = gaps});
    EXPECT_EQ(d.dispatch(1, Number{0}, kLast - 2), Dispatched::admitted);
    EXPECT_EQ(d.dispatch(1, Number{2}, kLast), Dispatched::admitted);  // Held back if they wait.
    EXPECT_EQ(d.dispatch(1, Number{1}, kLast - 1),
              gaps == GapPolicy::wait ? Dispatched::admitted : Dispatched::duplicate);
    for (const Number position : {kLast, kLast - 1, Number{0}, Number{1}})
      EXPECT_EQ(d.dispatch(1, Number{3}, position), Dispatched::duplicate);
    EXPECT_TRUE(d.shutdown(30s).empty());
  }
}

TEST_P(DispatcherCornersTest, NothingIsRememberedOfAnEntityWhoseOnlyEventWasRefused) {
  D d([&](int, Number& n) { gates_.enter(n); },
      {.threads = 1, .stripes = GetParam(), .max_queued = 1});
  d.dispatch(0, Number{0});
  ASSERT_TRUE(gates_.await(0));
  for (int key = 1; key < 1'000; ++key)
    EXPECT_EQ(d.dispatch(key, Number{1}, 1), Dispatched::full);
  EXPECT_EQ(d.stats().entities_remembered, 0U);
  gates_.open_all();
}

TEST_P(DispatcherCornersTest, HeldBackAndQueuedTogetherKeepWithinTheLimitOfTheEntity) {
  D d([](int, Number&) {},
      {.threads = 1, .stripes = GetParam(), .max_queued_per_key = 4, .gaps = GapPolicy::wait});
  d.pause(1);
  EXPECT_EQ(d.dispatch(1, Number{1}, 1), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{5}, 5), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{6}, 6), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{2}, 2), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{3}, 3), Dispatched::key_full);  // 1, 2, 5 and 6 are there.
  EXPECT_EQ(d.stats().queued, 4U);
  EXPECT_TRUE(d.resume(1));  // Accepts the gap as well.
  EXPECT_TRUE(d.shutdown(30s).empty());
}

TEST_P(DispatcherCornersTest, EventsBehindGapsLeaveAPlaceForTheOneThatClosesThem) {
  D d([](int, Number&) {},
      {.threads = 1, .stripes = GetParam(), .max_queued = 3, .gaps = GapPolicy::wait});
  for (int key = 0; key < 3; ++key) {
    d.dispatch(key, Number{1}, 1);
    ASSERT_TRUE(eventually([&] { return d.stats().queued == 0; }));
  }
  EXPECT_EQ(d.dispatch(0, Number{3}, 3), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(1, Number{3}, 3), Dispatched::admitted);
  EXPECT_EQ(d.dispatch(2, Number{3}, 3), Dispatched::full);
  EXPECT_EQ(d.dispatch(0, Number{2}, 2), Dispatched::admitted);
  ASSERT_TRUE(eventually([&] { return d.stats().queued == 1; }));
  EXPECT_EQ(d.dispatch(2, Number{3}, 3), Dispatched::admitted);
  for (int key = 1; key < 3; ++key) {
    ASSERT_TRUE(eventually([&] { return d.dispatch(key, Number{2}, 2) == Dispatched::admitted; }));
  }
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().processed, 9U);
}

TEST_P(DispatcherCornersTest, ALaneWithEventsAndAGapIsShownWithBoth) {
  D d([](int, Number&) {}, {.threads = 1, .stripes = GetParam(), .gaps = GapPolicy::wait});
  d.pause(1);
  d.dispatch(1, Number{1}, 1);
  d.dispatch(1, Number{2}, 2);
  for (Number n = 10; n < 14; ++n)
    d.dispatch(1, Number{n}, n);
  for (int key = 2; key < 200; ++key) {  // Deeper queues in the same shard, less in all.
    d.pause(key);
    for (Number n = 0; n < 3; ++n)
      d.dispatch(key, Number{n});
  }
  if (GetParam() == 0) {
    const auto deepest = d.lanes(1);
    ASSERT_EQ(deepest.size(), 1U);
    EXPECT_EQ(deepest[0].key, 1);
    EXPECT_EQ(deepest[0].queued, 2U);
    EXPECT_EQ(deepest[0].held, 4U);
    EXPECT_EQ(deepest[0].state, LaneState::parked);
  }
  EXPECT_EQ(d.shutdown(0s).at(1).size(), 6U);
}

INSTANTIATE_TEST_SUITE_P(Modes, DispatcherCornersTest, testing::Values(0U, 64U),
                         [](const auto& mode) { return mode.param == 0 ? "Elastic" : "Striped"; });

}  // namespace
}  // namespace ordo
