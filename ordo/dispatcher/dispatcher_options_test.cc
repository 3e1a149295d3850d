// Bad settings are errors that name the field; the options are an aggregate with documented values.
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "ordo/dispatcher.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using D = Dispatcher<int, int>;

void nothing(int, int&) {}

// What the constructor says to `options`; empty when it takes them.
std::string complaint(const D::Options& options) {
  try {
    D d(nothing, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

void expect_refused(const D::Options& options, const std::string& field) {
  EXPECT_EQ(complaint(options).substr(0, field.size()), field);
}

TEST(DispatcherOptionsTest, TheDefaultsAreThoseOfTheDocumentation) {
  const D::Options options;
  EXPECT_GE(options.threads, 1U);
  EXPECT_EQ(options.stripes, 0U);
  EXPECT_EQ(options.max_queued_per_key, 1'000U);
  EXPECT_EQ(options.max_queued, 1'000'000U);
  EXPECT_EQ(options.idle_timeout, 60s);
  EXPECT_EQ(options.overflow, Overflow::reject);
  EXPECT_EQ(options.on_failure.last_resort(), dispatcher::LastResort::skip);
  EXPECT_EQ(options.on_failure.retry_plan().retries, 0);
  EXPECT_FALSE(options.on_error);
}

TEST(DispatcherOptionsTest, TheFieldsStandInTheDocumentedOrder) {
  D d(nothing, {2, 8, 10, 100, 1s, Overflow::reject, park(),
                [](const int&, const int&, std::exception_ptr) {}});
  EXPECT_EQ(d.stats().threads, 2U);
}

TEST(DispatcherOptionsTest, ThreadsOutsideTheirRangeAreRefused) {
  expect_refused({.threads = 0}, "threads");
  expect_refused({.threads = 4'097}, "threads");
  expect_refused({.threads = static_cast<std::size_t>(-1)}, "threads");
}

TEST(DispatcherOptionsTest, StripesThatAreNoPowerOfTwoAreRefused) {
  expect_refused({.stripes = 3}, "stripes");
  expect_refused({.stripes = std::size_t{1} << 40}, "stripes");
  EXPECT_EQ(complaint({.threads = 1, .stripes = 1}), "");
  EXPECT_EQ(complaint({.threads = 1, .stripes = 4'096}), "");
}

TEST(DispatcherOptionsTest, LimitsOfZeroAreRefused) {
  expect_refused({.max_queued_per_key = 0}, "max_queued_per_key");
  expect_refused({.max_queued = 0}, "max_queued");
  expect_refused({.max_queued = static_cast<std::size_t>(-5)}, "max_queued");
  expect_refused({.max_queued_per_key = 1, .gaps = GapPolicy::wait}, "max_queued_per_key");
  expect_refused({.max_queued = 1, .gaps = GapPolicy::wait}, "max_queued");
}

TEST(DispatcherOptionsTest, AnIdleTimeoutOfNothingIsRefused) {
  expect_refused({.idle_timeout = 0s}, "idle_timeout");
  expect_refused({.idle_timeout = -1s}, "idle_timeout");
}

TEST(DispatcherOptionsTest, RetriesThatMakeNoSenseAreRefused) {
  expect_refused({.on_failure = retry(0, 1s)}, "on_failure");
  expect_refused({.on_failure = retry(-3, 1s).then_park()}, "on_failure");
  expect_refused({.on_failure = retry(3, 0s).then_skip()}, "on_failure");
  expect_refused({.on_failure = retry(3, -1s)}, "on_failure");
  expect_refused({.on_failure = retry(3, 2h)}, "on_failure");
}

TEST(DispatcherOptionsTest, ADeadLetterFunctionThatIsEmptyIsRefused) {
  const std::function<void(const int&, int&, std::exception_ptr)> none;
  expect_refused({.on_failure = dead_letter(none)}, "on_failure");
}

TEST(DispatcherOptionsTest, UnknownValuesOfChoicesAreRefused) {
  expect_refused({.overflow = static_cast<Overflow>(9)}, "overflow");
  expect_refused({.gaps = static_cast<GapPolicy>(9)}, "gaps");
}

TEST(DispatcherOptionsTest, AStateWithoutDefaultNeedsAMaker) {
  struct Named {
    explicit Named(int number) : n(number) {}
    int n;
  };
  using E = Dispatcher<int, int, Named>;
  const auto handler = [](int, int&, Named& state) { ++state.n; };
  EXPECT_THROW(E(handler, {}), std::invalid_argument);
  E d(handler, {.threads = 1, .make_state = [](const int& key) { return Named(key); }});
  EXPECT_EQ(d.dispatch(1, 1), Dispatched::admitted);
}

TEST(DispatcherOptionsTest, BackOffDoublesUpToAnHourAndLiesBetweenHalfAndWhole) {
  using dispatcher::back_off;
  for (std::uint64_t random = 0; random < 1'000; ++random) {
    std::uint64_t state = random;
    const std::uint64_t number = dispatcher::next_random(state);
    EXPECT_GE(back_off(100ms, 1, number), 50ms);
    EXPECT_LE(back_off(100ms, 1, number), 100ms);
    EXPECT_GE(back_off(100ms, 4, number), 400ms);
    EXPECT_LE(back_off(100ms, 4, number), 800ms);
    EXPECT_GE(back_off(1ns, 1'000'000, number), 30min);
    EXPECT_LE(back_off(1ns, 1'000'000, number), 1h);
  }
}

TEST(DispatcherOptionsTest, TheSameSeedGivesTheSameJitter) {
  std::uint64_t first = 7;
  std::uint64_t second = 7;
  std::uint64_t third = 8;
  EXPECT_EQ(dispatcher::next_random(first), dispatcher::next_random(second));
  EXPECT_NE(dispatcher::next_random(first), dispatcher::next_random(third));
}

}  // namespace
}  // namespace ordo
