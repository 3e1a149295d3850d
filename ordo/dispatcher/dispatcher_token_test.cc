// Asynchronous handlers: when a turn ends, and what becomes of a token whatever is done with it.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/core/describe.h"
#include "ordo/dispatcher.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::eventually;
using testing_support::Watchdog;

std::exception_ptr error_of(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

class DispatcherTokenTest : public testing::TestWithParam<std::size_t> {
 protected:
  using D = Dispatcher<int, int>;

  // A handler that keeps the token of every event, and counts the calls. It may not be back when
  // its token is used; what the token says then takes effect when it is.
  auto keeping() {
    return [this](int, int& n, Completion done) {
      std::lock_guard guard(mutex_);
      tokens_[n] = std::move(done);
      ++calls_;
    };
  }
  bool has_token(int n) {
    std::lock_guard guard(mutex_);
    return tokens_.count(n) > 0;
  }
  bool await_token(int n) {
    return eventually([&] { return has_token(n); });
  }
  Completion take_token(int n) {
    std::lock_guard guard(mutex_);
    Completion token = std::move(tokens_.at(n));
    tokens_.erase(n);
    return token;
  }
  D::Options options(FailurePolicy<int, int> policy = skip()) {
    return {.threads = 2,
            .stripes = GetParam(),
            .on_failure = std::move(policy),
            .on_error =
                [this](const int&, const int&, std::exception_ptr error) {
                  std::lock_guard guard(mutex_);
                  errors_.push_back(describe(error));
                },
            .clock = &clock_};
  }
  std::vector<std::string> errors() {
    std::lock_guard guard(mutex_);
    return errors_;
  }

  Watchdog watchdog_{"DispatcherTokenTest"};
  ManualClock clock_;
  std::mutex mutex_;
  std::map<int, Completion> tokens_;
  std::vector<std::string> errors_;
  std::atomic<int> calls_ = 0;
};

TEST_P(DispatcherTokenTest, TheNextEventWaitsForTheTokenAndNotForTheHandler) {
  D d(keeping(), options());
  d.dispatch(1, 1);
  d.dispatch(1, 2);
  ASSERT_TRUE(await_token(1));
  EXPECT_EQ(d.stats().in_flight, 1U);
  EXPECT_FALSE(has_token(2));
  EXPECT_TRUE(take_token(1)());
  ASSERT_TRUE(await_token(2));
  EXPECT_TRUE(take_token(2)());
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().processed, 2U);
}

TEST_P(DispatcherTokenTest, ATokenMayBeUsedInsideTheHandler) {
  D d([](int, int&, Completion done) { EXPECT_TRUE(done()); }, options());
  for (int n = 0; n < 100; ++n)
    d.dispatch(n % 3, n);
  ASSERT_TRUE(eventually([&] { return d.stats().processed == 100; }));
}

TEST_P(DispatcherTokenTest, ATokenMayBeUsedFromAnotherThread) {
  D d(keeping(), options());
  d.dispatch(1, 1);
  ASSERT_TRUE(await_token(1));
  std::thread([&] { EXPECT_TRUE(take_token(1)()); }).join();
  EXPECT_TRUE(eventually([&] { return d.stats().processed == 1; }));
}

TEST_P(DispatcherTokenTest, ATokenThatIsUsedTwiceCountsOnce) {
  D d(keeping(), options());
  d.dispatch(1, 1);
  ASSERT_TRUE(await_token(1));
  const Completion token = take_token(1);
  const Completion copy = token;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_TRUE(token());
  EXPECT_FALSE(token());
  EXPECT_FALSE(copy.fail(error_of("late")));
  EXPECT_EQ(d.stats().tokens_late, 2U);
  EXPECT_TRUE(d.shutdown(30s).empty());  // The handler that kept the token may not be back yet.
  EXPECT_EQ(d.stats().processed, 1U);
  EXPECT_TRUE(errors().empty());
}

TEST_P(DispatcherTokenTest, AnOldTokenDoesNotEndTheTurnOfTheNextEvent) {
  D d(keeping(), options());
  d.dispatch(1, 1);
  d.dispatch(1, 2);
  ASSERT_TRUE(await_token(1));
  const Completion old = take_token(1);
  EXPECT_TRUE(old());
  ASSERT_TRUE(await_token(2));
  EXPECT_FALSE(old());
  EXPECT_EQ(d.stats().in_flight, 1U);
  EXPECT_TRUE(take_token(2)());
}

TEST_P(DispatcherTokenTest, AFailedTokenGoesTheWayOfTheFailurePolicy) {
  D d(keeping(), options(park()));
  d.dispatch(1, 1);
  ASSERT_TRUE(await_token(1));
  EXPECT_TRUE(take_token(1).fail(error_of("refused")));
  ASSERT_TRUE(eventually([&] { return d.stats().parked_lanes == 1; }));
  EXPECT_EQ(errors(), std::vector<std::string>{"refused"});
  const auto parked = d.parked();
  ASSERT_EQ(parked.size(), 1U);
  EXPECT_EQ(parked[0].reason, "refused");
  EXPECT_EQ(parked[0].event, 1);
}

TEST_P(DispatcherTokenTest, AnEventThatIsRetriedGetsANewToken) {
  D d(keeping(), options(retry(1, 1ms).then_skip()));
  d.dispatch(1, 1);
  ASSERT_TRUE(await_token(1));
  const Completion old = take_token(1);
  EXPECT_TRUE(old.fail(error_of("once")));
  ASSERT_TRUE(eventually([&] { return d.stats().delayed_lanes == 1; }));
  clock_.advance(1ms);
  ASSERT_TRUE(await_token(1));
  EXPECT_FALSE(old());
  EXPECT_TRUE(take_token(1)());
  ASSERT_TRUE(eventually([&] { return d.stats().processed == 1; }));
  EXPECT_EQ(d.stats().retried, 1U);
}

TEST_P(DispatcherTokenTest, ATokenDroppedWithoutUseIsAFailure) {
  D d(keeping(), options());
  d.dispatch(1, 1);
  ASSERT_TRUE(await_token(1));
  {
    const Completion first = take_token(1);
    const Completion second = first;  // NOLINT(performance-unnecessary-copy-initialization)
  }
  ASSERT_TRUE(eventually([&] { return d.stats().failed == 1; }));
  EXPECT_EQ(errors(), std::vector<std::string>{"the completion token was dropped without use"});
}

TEST_P(DispatcherTokenTest, ATokenDroppedInTheHandlerIsAFailure) {
  D d([](int, int&, const Completion&) {}, options());
  d.dispatch(1, 1);
  ASSERT_TRUE(eventually([&] { return d.stats().failed == 1; }));
  EXPECT_EQ(errors(), std::vector<std::string>{"the completion token was dropped without use"});
}

TEST_P(DispatcherTokenTest, AHandlerThatThrowsUsesUpItsToken) {
  std::optional<Completion> kept;
  D d(
      [&](int, int&, Completion done) {
        kept = std::move(done);
        throw std::runtime_error("thrown");
      },
      options());
  d.dispatch(1, 1);
  ASSERT_TRUE(eventually([&] { return d.stats().failed == 1; }));
  EXPECT_EQ(errors(), std::vector<std::string>{"thrown"});
  EXPECT_FALSE((*kept)());
}

TEST_P(DispatcherTokenTest, WhatATokenSaidFirstCountsEvenIfTheHandlerThrowsThen) {
  D d(
      [&](int, int&, const Completion& done) {
        done();
        throw std::runtime_error("thrown");
      },
      options());
  d.dispatch(1, 1);
  ASSERT_TRUE(eventually([&] { return d.stats().processed == 1; }));
  EXPECT_TRUE(errors().empty());
}

TEST_P(DispatcherTokenTest, ATokenUsedAfterShutdownDoesNothing) {
  D d(keeping(), options());
  d.dispatch(1, 1);
  d.dispatch(1, 2);
  ASSERT_TRUE(await_token(1));
  const auto undone = d.shutdown(0s);
  EXPECT_EQ(undone.at(1), std::vector<int>{2});  // The first is in somebody's hands: counted.
  EXPECT_EQ(d.stats().undone, 2U);
  EXPECT_FALSE(take_token(1)());
  EXPECT_EQ(d.stats().processed, 0U);
}

TEST_P(DispatcherTokenTest, ATokenMayOutliveTheDispatcher) {
  Completion token;
  {
    D d(keeping(), options());
    d.dispatch(1, 1);
    ASSERT_TRUE(await_token(1));
    token = take_token(1);
  }
  EXPECT_FALSE(token());
}

TEST_P(DispatcherTokenTest, ATokenThatWasNeverGivenDoesNothing) {
  const Completion none;
  EXPECT_FALSE(none());
  EXPECT_FALSE(none.fail(nullptr));
}

TEST_P(DispatcherTokenTest, StepsMayBeAsynchronousAndAStepThatSucceededIsNotRepeated) {
  std::atomic<int> first = 0;
  std::atomic<int> last = 0;
  D d(steps([&](int, int&) { ++first; }, keeping(), [&](int, int&) { ++last; }),
      options(retry(2, 1ms).then_skip()));
  d.dispatch(1, 1);
  ASSERT_TRUE(await_token(1));
  EXPECT_TRUE(take_token(1).fail(error_of("once")));
  ASSERT_TRUE(eventually([&] { return d.stats().delayed_lanes == 1; }));
  clock_.advance(1ms);
  ASSERT_TRUE(await_token(1));
  EXPECT_TRUE(take_token(1)());
  ASSERT_TRUE(eventually([&] { return d.stats().processed == 1; }));
  EXPECT_EQ(first, 1);
  EXPECT_EQ(last, 1);
}

TEST_P(DispatcherTokenTest, TokensUsedFromManyThreadsKeepOrderAndLoseNothing) {
  constexpr int kEvents = 4'000;
  constexpr int kKeys = 7;
  std::vector<int> last(kKeys, -1);
  std::atomic<int> wrong = 0;
  std::mutex mutex;
  std::vector<Completion> pending;
  std::atomic<bool> stop = false;
  Dispatcher<int, int> d(
      [&](int key, int& n, Completion done) {
        const auto place = static_cast<std::size_t>(key);
        if (n <= last[place]) ++wrong;
        last[place] = n;
        if (n % 3 == 0) return void(done());
        std::lock_guard guard(mutex);
        pending.push_back(std::move(done));
      },
      {.threads = 2, .stripes = GetParam(), .max_queued_per_key = 10'000});
  std::vector<std::thread> finishers;
  for (int i = 0; i < 3; ++i) {
    finishers.emplace_back([&] {
      while (!stop) {
        std::vector<Completion> batch;
        {
          std::lock_guard guard(mutex);
          batch.swap(pending);
        }
        for (const Completion& done : batch)
          done();
        std::this_thread::yield();
      }
    });
  }
  for (int n = 0; n < kEvents; ++n)
    ASSERT_EQ(d.dispatch(n % kKeys, n), Dispatched::admitted);
  EXPECT_TRUE(d.shutdown(60s).empty());
  stop = true;
  for (std::thread& thread : finishers)
    thread.join();
  EXPECT_EQ(d.stats().processed, static_cast<std::uint64_t>(kEvents));
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, DispatcherTokenTest, testing::Values(0U, 64U),
                         [](const auto& mode) { return mode.param == 0 ? "Elastic" : "Striped"; });

TEST(DispatcherElasticTokenTest, TenThousandEntitiesCanBeInFlightOnFourThreads) {
  Watchdog watchdog("DispatcherElasticTokenTest");
  constexpr int kKeys = 10'000;
  std::mutex mutex;
  std::vector<Completion> tokens;
  Dispatcher<int, int> d(
      [&](int, int&, Completion done) {
        std::lock_guard guard(mutex);
        tokens.push_back(std::move(done));
      },
      {.threads = 4});
  for (int key = 0; key < kKeys; ++key)
    ASSERT_EQ(d.dispatch(key, key), Dispatched::admitted);
  ASSERT_TRUE(eventually([&] {
    std::lock_guard guard(mutex);
    return tokens.size() == kKeys;
  }));
  EXPECT_EQ(d.stats().in_flight, static_cast<std::size_t>(kKeys));
  {
    std::lock_guard guard(mutex);
    for (const Completion& done : tokens)
      EXPECT_TRUE(done());
  }
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().processed, static_cast<std::uint64_t>(kKeys));
  tokens.clear();
}

}  // namespace
}  // namespace ordo
