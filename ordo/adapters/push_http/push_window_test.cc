#include "ordo/adapters/push_http/push_window.h"

#include <chrono>
#include <random>

#include <gtest/gtest.h>

namespace ordo::push_http {
namespace {

using namespace std::chrono_literals;

constexpr auto kUnanswered = PushWindow::Failure::unanswered;
constexpr auto kRefused = PushWindow::Failure::refused;

TEST(PushWindowTest, ItDoublesWhileAllGoesWellAndEndsAtItsMaximum) {
  PushWindow window({.size_first = 4, .size_max = 100});
  for (const std::uint32_t expected : {8u, 16u, 32u, 64u, 100u, 100u}) {
    const std::uint32_t under_way = window.size();
    for (std::uint32_t i = 0; i < under_way; ++i)
      window.succeed();
    EXPECT_EQ(window.size(), expected);
  }
}

TEST(PushWindowTest, FailuresOfOneRoundHalveItOnce) {
  PushWindow window({.size_first = 8});
  const std::uint64_t round = window.round();
  for (int i = 0; i < 8; ++i)
    window.fail(round, kUnanswered, TimePoint{});
  EXPECT_EQ(window.size(), 4u);
  window.fail(window.round(), kUnanswered, TimePoint{});
  EXPECT_EQ(window.size(), 2u);
  EXPECT_FALSE(window.paused_until()) << "two may still be under way";
}

TEST(PushWindowTest, WhenTheOnlyPushFailsNothingIsSentForAPauseThatDoubles) {
  PushWindow window({.size_first = 1});
  TimePoint now{};
  for (const std::chrono::nanoseconds pause : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms,
                                               12800ms, 25600ms, 51200ms, 60000ms, 60000ms}) {
    window.fail(window.round(), kUnanswered, now);
    EXPECT_EQ(window.size(), 0u);
    ASSERT_EQ(window.paused_until(), now + pause);
    EXPECT_EQ(window.pause(), pause);
    now += pause;
    window.resume();
    EXPECT_EQ(window.size(), 1u) << "one is tried";
  }
}

TEST(PushWindowTest, WhileItIsAnsweredThePauseStaysShort) {
  PushWindow window({.size_first = 1});
  for (const std::chrono::nanoseconds pause : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    window.fail(window.round(), kRefused, TimePoint{});
    EXPECT_EQ(window.pause(), pause);
    window.resume();
  }
  window.fail(window.round(), kUnanswered, TimePoint{});
  EXPECT_EQ(window.pause(), 2s);
  window.resume();
  window.fail(window.round(), kRefused, TimePoint{});
  EXPECT_EQ(window.pause(), 1s);
  PushWindow fast({.size_first = 1, .pause_min = 1ms, .pause_max = 2ms});
  for (int i = 0; i < 5; ++i) {
    fast.fail(fast.round(), kRefused, TimePoint{});
    fast.resume();
  }
  EXPECT_EQ(fast.pause(), 2ms);
}

TEST(PushWindowTest, ASuccessEndsThePauseAndForgetsItsLength) {
  PushWindow window({.size_first = 1});
  window.fail(window.round(), kUnanswered, TimePoint{});
  window.resume();
  window.fail(window.round(), kUnanswered, TimePoint{});
  EXPECT_EQ(window.pause(), 200ms);
  window.succeed();  // Of one that began before.
  EXPECT_FALSE(window.paused_until());
  EXPECT_EQ(window.size(), 2u);
  window.fail(window.round(), kUnanswered, TimePoint{});
  window.fail(window.round(), kUnanswered, TimePoint{});
  EXPECT_EQ(window.pause(), 100ms);
}

TEST(PushWindowTest, WhatBeganBeforeAPauseDoesNotLengthenIt) {
  PushWindow window({.size_first = 2});
  const std::uint64_t first = window.round();
  window.fail(first, kUnanswered, TimePoint{});
  const std::uint64_t second = window.round();
  window.fail(second, kUnanswered, TimePoint{});
  EXPECT_EQ(window.pause(), 100ms);
  window.fail(first, kUnanswered, TimePoint{} + 50ms);
  window.fail(second, kUnanswered, TimePoint{} + 60ms);
  EXPECT_EQ(window.paused_until(), TimePoint{} + 100ms);
}

// Goal: one message that fails again and again does not bring the others to a halt. Method: one in
// twenty pushes fails, in any order.
TEST(PushWindowTest, FewFailuresAmongManySuccessesNeverPauseIt) {
  std::mt19937 random(7);
  PushWindow window({});
  for (int i = 0; i < 10'000; ++i) {
    random() % 20 == 0 ? window.fail(window.round(), kUnanswered, TimePoint{}) : window.succeed();
    ASSERT_LE(window.pause(), 200ms) << i;
  }
  EXPECT_GT(window.size(), 1u);
}

}  // namespace
}  // namespace ordo::push_http
