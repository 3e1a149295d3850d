// What becomes of an event whose handler fails: skip, park, dead letter, retry, step by step.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
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

// What was called, in order, from any thread.
class Journal {
 public:
  void add(const std::string& line) {
    std::lock_guard guard(mutex_);
    lines_.push_back(line);
  }
  std::vector<std::string> lines() const {
    std::lock_guard guard(mutex_);
    return lines_;
  }
  std::size_t count(const std::string& line) const {
    std::lock_guard guard(mutex_);
    return static_cast<std::size_t>(std::count(lines_.begin(), lines_.end(), line));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

class DispatcherFailureTest : public testing::TestWithParam<std::size_t> {
 protected:
  using D = Dispatcher<std::string, int>;
  using Lines = std::vector<std::string>;

  D::Options options(FailurePolicy<std::string, int> policy) {
    return {.threads = 2,
            .stripes = GetParam(),
            .on_failure = std::move(policy),
            .on_error =
                [this](const std::string& key, const int& n, std::exception_ptr error) {
                  journal_.add("error " + key + " " + std::to_string(n) + " " + describe(error));
                },
            .clock = &clock_};
  }
  // Fails for negative numbers, as often as failures_ says.
  auto handler() {
    return [this](const std::string& key, int& n) {
      journal_.add(key + " " + std::to_string(n));
      if (n < 0 && failures_.fetch_sub(1) > 0) throw std::runtime_error("negative");
    };
  }
  // Moves the time until `condition` holds.
  template <class Condition>
  bool advance_until(Condition condition, std::chrono::nanoseconds step = 1ms) {
    return eventually([&] {
      if (condition()) return true;
      clock_.advance(step);
      return false;
    });
  }

  Watchdog watchdog_{"DispatcherFailureTest"};
  Journal journal_;
  std::atomic<int> failures_ = 1'000'000;
  ManualClock clock_;
};

TEST_P(DispatcherFailureTest, SkipReportsTheFailureAndGoesOn) {
  D d(handler(), options(skip()));
  for (const int n : {1, -2, 3})
    d.dispatch("a", n);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(journal_.lines(), (Lines{"a 1", "a -2", "error a -2 negative", "a 3"}));
  EXPECT_EQ(d.stats().processed, 2U);
  EXPECT_EQ(d.stats().failed, 1U);
  EXPECT_EQ(d.stats().failed_attempts, 1U);
}

TEST_P(DispatcherFailureTest, WhateverIsThrownTheLaneGoesOn) {
  D d(
      [&](const std::string&, int& n) {
        if (n == 1) throw 42;
        if (n == 2) throw "text";
        if (n == 3) throw std::string("string");
      },
      options(skip()));
  for (const int n : {1, 2, 3, 4})
    d.dispatch("a", n);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().failed, 3U);
  EXPECT_EQ(d.stats().processed, 1U);
}

TEST_P(DispatcherFailureTest, ACallbackThatThrowsStopsNothing) {
  D::Options throwing{.threads = 1, .stripes = GetParam(), .on_failure = skip()};
  throwing.on_error = [](const std::string&, const int&, std::exception_ptr) { throw 1; };
  D d(handler(), throwing);
  d.dispatch("a", -1);
  d.dispatch("a", 2);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().processed, 1U);
}

TEST_P(DispatcherFailureTest, ParkKeepsTheEventAndAllBehindItUntilResume) {
  D d(handler(), options(park()));
  failures_ = 1;
  for (const int n : {1, -2, 3})
    d.dispatch("a", n);
  d.dispatch("zebra", 7);
  ASSERT_TRUE(eventually([&] { return d.stats().parked_lanes == 1; }));
  ASSERT_TRUE(eventually([&] { return journal_.count("zebra 7") == 1; }));
  const auto parked = d.parked();
  ASSERT_EQ(parked.size(), 1U);
  EXPECT_EQ(parked[0].key, "a");
  EXPECT_EQ(parked[0].event, -2);
  EXPECT_EQ(parked[0].reason, "negative");
  EXPECT_NE(parked[0].error, nullptr);
  EXPECT_EQ(parked[0].since, clock_.now());
  EXPECT_EQ(parked[0].queued, 2U);
  EXPECT_EQ(journal_.count("a 3"), 0U);

  EXPECT_TRUE(d.resume("a"));
  ASSERT_TRUE(eventually([&] { return journal_.count("a 3") == 1; }));
  EXPECT_EQ(journal_.count("a -2"), 2U);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().failed, 0U);
}

TEST_P(DispatcherFailureTest, AParkedEventCanBeDiscarded) {
  D d(handler(), options(park()));
  EXPECT_EQ(d.discard("a"), std::nullopt);
  d.dispatch("a", -1);
  d.dispatch("a", 2);
  ASSERT_TRUE(eventually([&] { return d.stats().parked_lanes == 1; }));
  EXPECT_EQ(d.discard("a"), -1);
  EXPECT_TRUE(d.resume("a"));
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().dropped, 1U);
  EXPECT_EQ(d.stats().processed, 1U);
}

TEST_P(DispatcherFailureTest, DeadLetterGetsTheEventAndTheError) {
  D d(handler(),
      options(dead_letter([this](const std::string& key, const int& n, std::exception_ptr error) {
        journal_.add("letter " + key + " " + std::to_string(n) + " " + describe(error));
      })));
  d.dispatch("a", -1);
  d.dispatch("a", 2);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(journal_.lines(),
            (Lines{"a -1", "error a -1 negative", "letter a -1 negative", "a 2"}));
  EXPECT_EQ(d.stats().dead_lettered, 1U);
  EXPECT_EQ(d.stats().failed, 0U);
}

TEST_P(DispatcherFailureTest, ADeadLetterFunctionThatFailsParksTheLaneSoThatNothingIsLost) {
  D d(handler(), options(dead_letter([](const std::string&, int&) { throw 1; })));
  d.dispatch("a", -1);
  ASSERT_TRUE(eventually([&] { return d.stats().parked_lanes == 1; }));
  const auto undone = d.shutdown(0s);
  EXPECT_EQ(undone.at("a"), (std::vector<int>{-1}));
  EXPECT_EQ(d.stats().dead_lettered, 0U);
}

TEST_P(DispatcherFailureTest, RetryRepeatsTheEventInItsPlaceAfterABackOffThatDoubles) {
  D d(handler(), options(retry(3, 100ms).then_park()));
  failures_ = 2;
  d.dispatch("a", -1);
  d.dispatch("a", 2);
  ASSERT_TRUE(eventually([&] { return d.stats().delayed_lanes == 1; }));
  clock_.advance(49ms);  // The back-off is between 50 and 100 ms.
  EXPECT_EQ(journal_.count("a -1"), 1U);
  EXPECT_EQ(d.lanes(1).at(0).state, LaneState::delayed);
  EXPECT_TRUE(d.lanes(1).at(0).due.has_value());
  clock_.advance(51ms);
  ASSERT_TRUE(eventually([&] { return journal_.count("a -1") == 2; }));
  ASSERT_TRUE(eventually([&] { return d.stats().delayed_lanes == 1; }));
  clock_.advance(99ms);  // Now between 100 and 200 ms.
  EXPECT_EQ(journal_.count("a -1"), 2U);
  clock_.advance(101ms);
  ASSERT_TRUE(eventually([&] { return journal_.count("a 2") == 1; }));
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().retried, 2U);
  EXPECT_EQ(d.stats().failed_attempts, 2U);
  EXPECT_EQ(d.stats().processed, 2U);
  EXPECT_EQ(journal_.lines(),
            (Lines{"a -1", "error a -1 negative", "a -1", "error a -1 negative", "a -1", "a 2"}));
}

TEST_P(DispatcherFailureTest, ARetryingEntityKeepsItsOrderAndBlocksNoOne) {
  D d(handler(), options(retry(5, 1s).then_skip()));
  failures_ = 3;
  d.dispatch("slow", -1);
  d.dispatch("slow", 2);
  d.dispatch("slow", 3);
  ASSERT_TRUE(eventually([&] { return d.stats().delayed_lanes == 1; }));
  int others = 0;
  for (int key = 0; key < 200; ++key) {
    const std::string name = "other" + std::to_string(key);
    d.dispatch(name, 1);
    ++others;
  }
  if (GetParam() == 0) {
    EXPECT_TRUE(eventually([&] { return d.stats().processed == 200; }));
  }
  EXPECT_EQ(journal_.count("slow 2"), 0U);
  ASSERT_TRUE(advance_until([&] { return journal_.count("slow 3") == 1; }, 100ms));
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().processed, 203U);
}

TEST_P(DispatcherFailureTest, WhenNoAttemptIsLeftTheLastResortIsTaken) {
  D d(handler(), options(retry(2, 1ms).then_dead_letter([this](const std::string&, int& n) {
        journal_.add("letter " + std::to_string(n));
      })));
  d.dispatch("a", -1);
  ASSERT_TRUE(advance_until([&] { return journal_.count("letter -1") == 1; }));
  EXPECT_EQ(journal_.count("a -1"), 3U);
  EXPECT_TRUE(d.shutdown(30s).empty());
  EXPECT_EQ(d.stats().retried, 2U);
  EXPECT_EQ(d.stats().failed_attempts, 3U);
  EXPECT_EQ(d.stats().dead_lettered, 1U);
}

TEST_P(DispatcherFailureTest, RetryWithoutALastResortSkips) {
  D d(handler(), options(retry(1, 1ms)));
  d.dispatch("a", -1);
  ASSERT_TRUE(advance_until([&] { return d.stats().failed == 1; }));
  EXPECT_EQ(journal_.count("a -1"), 2U);
}

TEST_P(DispatcherFailureTest, AfterResumeAParkedEventHasAllItsAttemptsAgain) {
  D d(handler(), options(retry(1, 1ms).then_park()));
  d.dispatch("a", -1);
  ASSERT_TRUE(advance_until([&] { return d.stats().parked_lanes == 1; }));
  EXPECT_EQ(journal_.count("a -1"), 2U);
  d.resume("a");
  ASSERT_TRUE(advance_until([&] { return journal_.count("a -1") == 4; }));
  ASSERT_TRUE(advance_until([&] { return d.stats().parked_lanes == 1; }));
}

TEST_P(DispatcherFailureTest, APausedRetryWaitsForResumeAndNotForItsTime) {
  D d(handler(), options(retry(5, 1s).then_skip()));
  failures_ = 1;
  d.dispatch("a", -1);
  ASSERT_TRUE(eventually([&] { return d.stats().delayed_lanes == 1; }));
  d.pause("a");
  clock_.advance(1h);
  EXPECT_EQ(d.stats().parked_lanes, 1U);
  EXPECT_EQ(journal_.count("a -1"), 1U);
  d.resume("a");
  ASSERT_TRUE(eventually([&] { return d.stats().processed == 1; }));
}

TEST_P(DispatcherFailureTest, AStepThatSucceededIsNotRepeated) {
  D d(steps([this](const std::string&, int&) { journal_.add("reserve"); },
            [this](const std::string&, int&) {
              journal_.add("charge");
              if (failures_.fetch_sub(1) > 0) throw std::runtime_error("no answer");
            },
            [this](const std::string&, int&) { journal_.add("ship"); }),
      options(retry(3, 1ms).then_park()));
  failures_ = 2;
  d.dispatch("a", 1);
  ASSERT_TRUE(advance_until([&] { return d.stats().processed == 1; }));
  std::vector<std::string> without_errors;
  for (const std::string& line : journal_.lines()) {
    if (line.substr(0, 5) != "error") without_errors.push_back(line);
  }
  EXPECT_EQ(without_errors, (Lines{"reserve", "charge", "charge", "charge", "ship"}));
}

TEST_P(DispatcherFailureTest, EveryStepHasItsOwnAttempts) {
  std::atomic<int> first = 2;
  std::atomic<int> second = 2;
  D d(steps(
          [&](const std::string&, int&) {
            if (first-- > 0) throw 1;
          },
          [&](const std::string&, int&) {
            if (second-- > 0) throw 2;
          }),
      options(retry(2, 1ms).then_skip()));
  d.dispatch("a", 1);
  ASSERT_TRUE(advance_until([&] { return d.stats().processed + d.stats().failed == 1; }));
  EXPECT_EQ(d.stats().processed, 1U);
}

TEST_P(DispatcherFailureTest, WithoutOnErrorFailuresAreLoggedAndCounted) {
  D d(handler(), {.threads = 1, .stripes = GetParam(), .clock = &clock_});
  testing::internal::CaptureStderr();
  for (int n = 0; n < 5; ++n)
    d.dispatch("a", -1);
  EXPECT_TRUE(d.shutdown(30s).empty());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);  // At most one a second.
  EXPECT_NE(log.find("negative"), std::string::npos);
  EXPECT_EQ(d.stats().failed, 5U);
}

INSTANTIATE_TEST_SUITE_P(Modes, DispatcherFailureTest, testing::Values(0U, 64U),
                         [](const auto& mode) { return mode.param == 0 ? "Elastic" : "Striped"; });

}  // namespace
}  // namespace ordo
