// Health: from a sliding window of virtual time, beside the lifetime counters.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/bus.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.

class BusHealth : public testing::Test {
 protected:
  // So many frames, of which it gets `taken`.
  void offer(int frames, int taken) {
    for (int n = 0; n < frames; ++n) {
      if (n < taken) one_.try_pop();
      bus_.publish(n);
    }
  }
  Health health() const { return bus_.health("one"); }

  ManualClock clock_{TimePoint(1000s)};
  Bus<int> bus_{{.clock = &clock_}};
  Subscription<int> one_ = bus_.subscribe("one", Priority::normal, {.capacity = 1});
};

TEST_F(BusHealth, WithoutFramesItIsUnknown) {
  EXPECT_EQ(health(), Health::unknown);
  EXPECT_TRUE(bus_.unhealthy().empty());
}

TEST_F(BusHealth, BelowHalfDroppedItIsHealthy) {
  offer(100, 51);
  EXPECT_EQ(health(), Health::healthy);
}

TEST_F(BusHealth, FromHalfDroppedItIsDegraded) {
  offer(100, 50);
  EXPECT_EQ(health(), Health::degraded);
  EXPECT_EQ(bus_.unhealthy(), std::vector<std::string>{"one"});
}

TEST_F(BusHealth, BelowNineTenthsDroppedItIsStillDegraded) {
  offer(100, 11);
  EXPECT_EQ(health(), Health::degraded);
}

TEST_F(BusHealth, FromNineTenthsDroppedItIsSaturated) {
  offer(100, 10);
  EXPECT_EQ(health(), Health::saturated);
  EXPECT_EQ(bus_.unhealthy(), std::vector<std::string>{"one"});
}

TEST_F(BusHealth, ARecoveredSubscriberIsHealthyAgain) {
  offer(1000, 1);
  EXPECT_EQ(health(), Health::saturated);
  clock_.advance(10s);
  offer(10, 10);
  EXPECT_EQ(health(), Health::healthy);
  EXPECT_TRUE(bus_.unhealthy().empty());
  EXPECT_EQ(bus_.stats().subscribers.at("one").dropped, 999U);  // For a lifetime.
}

TEST_F(BusHealth, TheWindowSlides) {
  offer(20, 0);  // All but the first are dropped.
  for (int second = 1; second < 10; ++second) {
    clock_.advance(1s);
    offer(2, 2);
    EXPECT_EQ(health(), Health::degraded) << second;
  }
  clock_.advance(1s);
  EXPECT_EQ(health(), Health::healthy);
}

TEST_F(BusHealth, AWindowWithoutFramesIsUnknownAgain) {
  offer(100, 0);
  clock_.advance(10s);
  EXPECT_EQ(health(), Health::unknown);
}

TEST_F(BusHealth, ASubscriberIsJudgedFromTheTimeItJoined) {
  offer(100, 0);
  auto two = bus_.subscribe("two");
  EXPECT_EQ(bus_.health("two"), Health::unknown);
  bus_.publish(1);
  EXPECT_EQ(bus_.health("two"), Health::healthy);
  EXPECT_EQ(bus_.stats().subscribers.at("two").health, Health::healthy);
}

TEST_F(BusHealth, TheWindowIsAnOption) {
  Bus<int> bus({.health_window = 1s, .clock = &clock_});
  auto two = bus.subscribe("two");
  bus.publish(1);
  clock_.advance(900ms);
  EXPECT_EQ(bus.health("two"), Health::healthy);
  clock_.advance(100ms);
  EXPECT_EQ(bus.health("two"), Health::unknown);
}

TEST_F(BusHealth, HealthCanBeAskedAfterClose) {
  offer(100, 0);
  bus_.close();
  EXPECT_EQ(health(), Health::saturated);
}

}  // namespace
}  // namespace ordo
