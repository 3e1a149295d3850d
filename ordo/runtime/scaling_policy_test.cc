#include "ordo/runtime/scaling_policy.h"

#include <chrono>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace ordo {
namespace {

using namespace std::chrono_literals;

const ScalingSettings kSettings{.min = 1, .max = 8};

TimePoint at(std::chrono::nanoseconds since_start) {
  return TimePoint{} + 1h + since_start;
}

ScalingObservation demand(std::chrono::nanoseconds now, std::size_t workers) {
  return {
      .now = at(now), .workers = workers, .busy = workers, .runnable = 10, .window_slots_free = 10};
}

ScalingObservation idle(std::chrono::nanoseconds now, std::size_t workers, std::size_t busy = 0) {
  return {.now = at(now), .workers = workers, .busy = busy, .window_slots_free = 10};
}

TEST(ScalingPolicyTest, GrowsByTheStepWhenAllAreBusyAndInputWaits) {
  ScalingSettings settings = kSettings;
  settings.step = 3;
  const ScalingDecision decision = decide_scaling(settings, {}, demand(0s, 2));
  EXPECT_EQ(decision.grow, 3u);
  EXPECT_EQ(decision.reason, ScalingReason::demand);
}

TEST(ScalingPolicyTest, DoesNotGrowBeyondWhatCouldStartAtOnce) {
  ScalingSettings settings = kSettings;
  settings.step = 5;
  ScalingObservation seen = demand(0s, 2);
  seen.window_slots_free = 2;
  EXPECT_EQ(decide_scaling(settings, {}, seen).grow, 2u);
  seen.runnable = 1;
  EXPECT_EQ(decide_scaling(settings, {}, seen).grow, 1u);
}

TEST(ScalingPolicyTest, DoesNotGrowWhileTheLineIsStalledOnItsHead) {
  ScalingObservation seen = demand(0s, 2);
  seen.stalled_on_head = true;
  const ScalingDecision decision = decide_scaling(kSettings, {}, seen);
  EXPECT_EQ(decision.grow, 0u);
  EXPECT_EQ(decision.reason, ScalingReason::stalled);
}

TEST(ScalingPolicyTest, DoesNotGrowWithoutFreeWindowSlots) {
  ScalingObservation seen = demand(0s, 2);
  seen.window_slots_free = 0;
  EXPECT_EQ(decide_scaling(kSettings, {}, seen).reason, ScalingReason::window_full);
}

TEST(ScalingPolicyTest, DoesNotGrowWhileAWorkerIsFree) {
  ScalingObservation seen = demand(0s, 2);
  seen.busy = 1;
  EXPECT_EQ(decide_scaling(kSettings, {}, seen).grow, 0u);
}

TEST(ScalingPolicyTest, TheCooldownSeparatesTwoGrowths) {
  ScalingDecision decision = decide_scaling(kSettings, {}, demand(0s, 1));
  ASSERT_EQ(decision.grow, 1u);
  decision = decide_scaling(kSettings, decision.next, demand(5s - 1ns, 2));
  EXPECT_EQ(decision.reason, ScalingReason::up_cooldown);
  decision = decide_scaling(kSettings, decision.next, demand(5s, 2));
  EXPECT_EQ(decision.grow, 1u);
}

TEST(ScalingPolicyTest, ShrinksOnlyAfterUnbrokenIdleness) {
  ScalingDecision decision = decide_scaling(kSettings, {}, idle(0s, 4));
  EXPECT_EQ(decision.reason, ScalingReason::not_idle_enough);
  decision = decide_scaling(kSettings, decision.next, idle(29s, 4, 4));  // Busy for a moment.
  decision = decide_scaling(kSettings, decision.next, idle(30s, 4));
  EXPECT_EQ(decision.reason, ScalingReason::not_idle_enough);
  decision = decide_scaling(kSettings, decision.next, idle(59s, 4));
  EXPECT_EQ(decision.shrink, 0u);
  decision = decide_scaling(kSettings, decision.next, idle(60s, 4));
  EXPECT_EQ(decision.shrink, 1u);
  EXPECT_EQ(decision.reason, ScalingReason::idle);
}

TEST(ScalingPolicyTest, ABusyWorkerIsNeverIdleHoweverLongItRuns) {
  ScalingState state;
  for (auto now = 0s; now < 1h; now += 1s) {
    const ScalingDecision decision = decide_scaling(kSettings, state, idle(now, 4, 4));
    ASSERT_EQ(decision.shrink, 0u);
    state = decision.next;
  }
}

TEST(ScalingPolicyTest, NeverShrinksMoreThanTheIdleOnes) {
  ScalingSettings settings = kSettings;
  settings.step = 8;
  ScalingState state;
  state.idle_since = at(-1min);
  EXPECT_EQ(decide_scaling(settings, state, idle(0s, 6, 4)).shrink, 2u);
}

TEST(ScalingPolicyTest, AWorkerAskedToEndCountsUntilItHasEnded) {
  ScalingObservation seen = demand(0s, 8);
  seen.leaving = 2;  // Still running their last item: 8 handlers run.
  EXPECT_EQ(decide_scaling(kSettings, {}, seen).reason, ScalingReason::at_max);
}

TEST(ScalingPolicyTest, MissingWorkersAreReplacedAtOnce) {
  const ScalingSettings settings{.min = 3, .max = 8};
  ScalingState just_grown;
  just_grown.grown_at = just_grown.changed_at = at(0s);
  const ScalingDecision decision = decide_scaling(settings, just_grown, idle(1s, 1));
  EXPECT_EQ(decision.grow, 2u);
  EXPECT_EQ(decision.reason, ScalingReason::below_min);
}

TEST(ScalingPolicyTest, BadSettingsAreNamed) {
  EXPECT_TRUE(check_scaling(kSettings));
  EXPECT_EQ(check_scaling({.min = 0, .max = 1}).error().message,
            "min workers is 0, but must be at least 1");
  EXPECT_EQ(check_scaling({.min = 3, .max = 2}).error().message,
            "max workers is 2, but must be at least min workers (3)");
  EXPECT_EQ(check_scaling({.step = 0}).error().message, "step is 0, but must be at least 1");
  EXPECT_EQ(check_scaling({.up_cooldown = -1s}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(check_scaling({.down_cooldown = -1s}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(check_scaling({.down_after = -1s}).error().code, ErrorCode::invalid_argument);
}

TEST(ScalingPolicyTest, EveryReasonHasAText) {
  EXPECT_STREQ(text_of(ScalingReason::below_min), "below the minimum");
  EXPECT_STREQ(text_of(ScalingReason::not_idle_enough), "idle, but not for long enough");
}

// Goal: the rules hold for whatever is seen. Method: random settings, a random but possible run of
// observations in which workers end late; each decision is checked against the rules themselves.
class ScalingSchedule : public testing::TestWithParam<std::uint32_t> {
 protected:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::mt19937 random_{GetParam()};
};

TEST_P(ScalingSchedule, NoObservationBreaksTheRules) {
  ScalingSettings settings;
  settings.min = 1 + below(4);
  settings.max = settings.min + below(8);
  settings.step = 1 + below(4);
  settings.up_cooldown = std::chrono::seconds(below(6));
  settings.down_cooldown = std::chrono::seconds(below(11));
  settings.down_after = std::chrono::seconds(below(31));
  ScalingState state;
  std::size_t workers = settings.min;
  std::size_t leaving = 0;
  TimePoint now = at(0s);
  TimePoint last_growth = at(-1h);
  TimePoint last_change = at(-1h);
  bool is_idle = false;
  TimePoint idle_since{};

  for (int look = 0; look < 2'000; ++look) {
    now += std::chrono::milliseconds(below(3'000));
    const std::size_t ended = below(leaving + 1);
    workers -= ended;
    leaving -= ended;
    const bool quiet = (look / 100) % 2 == 0;
    ScalingObservation seen;
    seen.now = now;
    seen.workers = workers;
    seen.leaving = leaving;
    const std::size_t stays = workers - leaving;
    seen.busy = quiet ? 0 : below(2) == 0 ? stays : below(stays + 1);
    seen.runnable = quiet ? 0 : below(20);
    seen.window_slots_free = below(4) == 0 ? 0 : below(10);
    seen.stalled_on_head = below(5) == 0;
    const std::size_t staying = workers - leaving;
    const bool demand_now = seen.runnable > 0 && seen.busy >= staying &&
                            seen.window_slots_free > 0 && !seen.stalled_on_head;
    const bool idle_now = !demand_now && seen.busy < staying;
    if (idle_now && !is_idle) idle_since = now;
    is_idle = idle_now;

    const ScalingDecision decision = decide_scaling(settings, state, seen);

    ASSERT_TRUE(decision.grow == 0 || decision.shrink == 0);
    ASSERT_LE(workers + decision.grow, std::max(settings.max, workers));
    ASSERT_GE(staying - decision.shrink, std::min(settings.min, staying));
    if (decision.grow > 0 && staying >= settings.min) {
      ASSERT_TRUE(demand_now) << text_of(decision.reason);
      ASSERT_LE(decision.grow, settings.step);
      ASSERT_GE(now - last_growth, settings.up_cooldown);
    }
    if (decision.shrink > 0) {
      ASSERT_TRUE(is_idle && now - idle_since >= settings.down_after);
      ASSERT_LE(decision.shrink, staying - seen.busy) << "a busy worker was counted as idle";
      ASSERT_LE(decision.shrink, settings.step);
      ASSERT_GE(now - last_change, settings.down_cooldown);
    }
    if (decision.grow > 0) last_growth = now;
    if (decision.grow + decision.shrink > 0) last_change = now;
    workers += decision.grow;
    leaving += decision.shrink;
    state = decision.next;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ScalingSchedule, testing::Range(0u, 50u));

// Demand that lasts is met in full, and idleness that lasts gives back all but min.
TEST_P(ScalingSchedule, LastingDemandReachesMaxAndLastingIdlenessReachesMin) {
  ScalingSettings settings{.min = 1 + below(3), .max = 4 + below(8)};
  settings.step = 1 + below(3);
  ScalingState state;
  std::size_t workers = settings.min;
  auto now = 0s;
  for (; now < 10min; now += 1s) {
    const ScalingDecision decision = decide_scaling(settings, state, demand(now, workers));
    workers += decision.grow;
    workers -= decision.shrink;
    state = decision.next;
  }
  EXPECT_EQ(workers, settings.max);
  for (; now < 30min; now += 1s) {
    const ScalingDecision decision = decide_scaling(settings, state, idle(now, workers));
    workers += decision.grow;
    workers -= decision.shrink;
    state = decision.next;
  }
  EXPECT_EQ(workers, settings.min);
}

}  // namespace
}  // namespace ordo
