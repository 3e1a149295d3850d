// How load is shed: watermarks, who outranks whom, hysteresis, recovery, signals from outside; and
// what happens when a queue is full, policy by policy.
#include <chrono>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/bus.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.

std::uint64_t sent_to(const Bus<int>& bus, const std::string& id) {
  return bus.stats().subscribers.at(id).sent;
}

void publish_many(Bus<int>& bus, int count) {
  for (int n = 0; n < count; ++n)
    bus.publish(n);
}

template <class Subscription>
void pop_many(Subscription& subscription, int count) {
  for (int n = 0; n < count; ++n)
    ASSERT_TRUE(subscription.try_pop());
}

// One critical subscriber sets the load; the others have room for everything.
class BusShedding : public testing::Test {
 protected:
  Bus<int> bus_{{.critical_timeout = 0ns}};
  Subscription<int> critical_ = bus_.subscribe("critical", Priority::critical, {.capacity = 10});
  Subscription<int> high_ = bus_.subscribe("high", Priority::high, {.capacity = 1000});
  Subscription<int> normal_ = bus_.subscribe("normal", Priority::normal, {.capacity = 1000});
  Subscription<int> best_ = bus_.subscribe("best", Priority::best_effort, {.capacity = 1000});
};

TEST_F(BusShedding, EachPriorityIsShedAboveItsWatermark) {
  publish_many(bus_, 30);
  EXPECT_EQ(sent_to(bus_, "critical"), 10U);
  EXPECT_EQ(sent_to(bus_, "best"), 8U);    // Up to a load of 7/10.
  EXPECT_EQ(sent_to(bus_, "normal"), 9U);  // 8/10.
  EXPECT_EQ(sent_to(bus_, "high"), 10U);   // 9/10.
}

TEST_F(BusShedding, ALoadAtTheWatermarkIsNotAboveIt) {
  publish_many(bus_, 7);
  EXPECT_EQ(bus_.publish(7).sent, 4U);
  EXPECT_EQ(bus_.publish(8).sent, 3U);
}

TEST_F(BusShedding, SheddingEndsOnlyWhenTheLoadIsTheHysteresisBelowTheWatermark) {
  publish_many(bus_, 9);
  const std::uint64_t before = sent_to(bus_, "best");
  pop_many(critical_, 2);  // Load 0.7: at the watermark, but not far enough below.
  bus_.publish(0);
  EXPECT_EQ(sent_to(bus_, "best"), before);
  pop_many(critical_, 2);  // 0.6.
  bus_.publish(0);
  EXPECT_EQ(sent_to(bus_, "best"), before + 1);
  EXPECT_EQ(sent_to(bus_, "normal"), 11U);
}

TEST_F(BusShedding, WhenTheLoadFallsNothingIsDroppedAnyMore) {
  publish_many(bus_, 100);
  while (critical_.try_pop()) {
  }
  const std::uint64_t dropped = bus_.stats().dropped;
  for (int n = 0; n < 500; ++n) {
    EXPECT_EQ(bus_.publish(n).sent, 4U);
    pop_many(critical_, 1);
  }
  EXPECT_EQ(bus_.stats().dropped, dropped);
}

TEST_F(BusShedding, WhoIsOutrankedByNobodyInTroubleIsNotShed) {
  auto slow = bus_.subscribe("slow", Priority::best_effort, {.capacity = 10});
  for (int n = 0; n < 100; ++n) {
    bus_.publish(n);
    pop_many(critical_, 1);
  }
  EXPECT_EQ(sent_to(bus_, "high"), 100U);
  EXPECT_EQ(sent_to(bus_, "normal"), 100U);
  EXPECT_EQ(sent_to(bus_, "best"), 100U);  // A full queue of its own priority is no load for it.
  EXPECT_EQ(sent_to(bus_, "slow"), 8U);    // Its own queue is.
}

TEST_F(BusShedding, ALateFrameIsShedAsIfAllButTheCriticalWereBestEffort) {
  ManualClock clock(TimePoint(10s));
  Bus<int> bus({.critical_timeout = 1s, .clock = &clock});
  auto critical = bus.subscribe("critical", Priority::critical, {.capacity = 10});
  auto high = bus.subscribe("high", Priority::high, {.capacity = 1000});
  EXPECT_EQ(bus.publish(0, TimePoint(9s)).sent, 2U);
  publish_many(bus, 7);
  EXPECT_EQ(bus.publish(0, TimePoint(11s)).sent, 2U);
  const PublishResult late = bus.publish(0, TimePoint(10s));
  EXPECT_EQ(late.sent, 1U);
  EXPECT_EQ(late.dropped, 1U);
  EXPECT_EQ(bus.publish(0, TimePoint(10s)).dropped, 2U);  // Nobody waits for the critical one.
  EXPECT_EQ(clock.now(), TimePoint(10s));
}

TEST(BusSignalTest, TheUsersSignalShedsLikeAnyLoad) {
  double load = 0;
  Bus<int> bus({.load = [&load] { return load; }});
  std::vector<Subscription<int>> all;
  for (unsigned i = 0; i < 4; ++i)
    all.push_back(bus.subscribe(std::to_string(i), static_cast<Priority>(i)));
  const std::map<double, std::size_t> takers = {{0.0, 4},  {0.70, 4}, {0.71, 3}, {0.85, 2},
                                                {0.95, 1}, {7.0, 1},  {0.0, 4}};
  for (const auto& [given, expected] : takers) {
    load = 0;
    bus.publish(0);
    load = given;
    EXPECT_EQ(bus.publish(0).sent, expected) << given;
  }
}

TEST(BusSignalTest, HysteresisHoldsForTheUsersSignal) {
  double load = 0.75;
  Bus<int> bus({.load = [&load] { return load; }});
  auto best = bus.subscribe("best", Priority::best_effort);
  EXPECT_EQ(bus.publish(0).sent, 0U);
  load = 0.65;
  EXPECT_EQ(bus.publish(0).sent, 0U);
  load = 0.60;
  EXPECT_EQ(bus.publish(0).sent, 1U);
  load = 0.65;
  EXPECT_EQ(bus.publish(0).sent, 1U);
}

TEST(BusSignalTest, ASignalThatThrowsOrMakesNoSenseIsNoLoad) {
  int call = 0;
  Bus<int> bus({.load = [&call]() -> double {
    if (++call == 1) throw std::runtime_error("no signal");
    return call == 2 ? -1.0 : std::nan("");
  }});
  auto best = bus.subscribe("best", Priority::best_effort);
  for (int n = 0; n < 3; ++n)
    EXPECT_EQ(bus.publish(n).sent, 1U);
}

TEST(BusSignalTest, TheByteBudgetCountsASharedFrameOnceUntilItIsPopped) {
  Bus<std::string> bus(
      {.bytes_max = 1000, .frame_bytes = [](const std::string& frame) { return frame.size(); }});
  auto critical = bus.subscribe("critical", Priority::critical);
  auto best = bus.subscribe("best", Priority::best_effort);
  const std::string frame(100, 'x');
  for (int n = 0; n < 8; ++n)
    EXPECT_EQ(bus.publish(frame).sent, 2U) << n;  // 800 bytes, not 1,600.
  EXPECT_EQ(bus.publish(frame).sent, 1U);         // 0.8 is above the watermark.
  pop_many(best, 8);
  EXPECT_EQ(bus.publish(frame).sent, 1U);  // The critical one still has them all.
  pop_many(critical, 4);
  EXPECT_EQ(bus.publish(frame).sent, 2U);  // 0.6.
}

TEST(BusSignalTest, UnsubscribingGivesTheBytesBack) {
  Bus<std::string> bus(
      {.bytes_max = 10, .frame_bytes = [](const std::string& frame) { return frame.size(); }});
  auto stays = bus.subscribe("stays", Priority::best_effort);
  auto goes = bus.subscribe("goes", Priority::best_effort);
  EXPECT_EQ(bus.publish(std::string(10, 'x')).sent, 2U);
  pop_many(stays, 1);
  EXPECT_EQ(bus.publish(std::string("y")).sent, 0U);
  goes.unsubscribe();
  EXPECT_EQ(bus.publish(std::string("y")).sent, 1U);
}

TEST(BusSignalTest, AFrameSharedByTwoBusesIsTakenOffBothBudgets) {
  const auto size = [](const std::string& frame) { return frame.size(); };
  Bus<std::string> left({.bytes_max = 1000, .frame_bytes = size});
  Bus<std::string> right({.bytes_max = 1000, .frame_bytes = size});
  auto one = left.subscribe("one", Priority::best_effort);
  auto two = right.subscribe("two", Priority::best_effort);
  for (int n = 0; n < 20; ++n) {
    const auto frame = FrameRef<std::string>::make(std::string(300, 'x'));
    EXPECT_EQ(left.publish(frame).sent, 1U) << n;
    EXPECT_EQ(right.publish(frame).sent, 1U) << n;
    pop_many(one, 1);
    pop_many(two, 1);
  }
}

TEST(BusSignalTest, TheFirstSizeOfAFrameIsTheOneThatCounts) {
  std::size_t size = 100;
  Bus<int> bus({.bytes_max = 1000, .frame_bytes = [&size](const int& /*frame*/) { return size; }});
  auto best = bus.subscribe("best", Priority::best_effort);
  const auto frame = FrameRef<int>::make(1);
  EXPECT_EQ(bus.publish(frame).sent, 1U);
  size = 900;  // It has grown, says the function: 900 would be taken off where 100 were added.
  EXPECT_EQ(bus.publish(frame).sent, 1U);
  pop_many(best, 2);
  EXPECT_EQ(bus.publish(frame).sent, 1U);
}

TEST(BusPolicyTest, DropOldestKeepsTheNewestFrames) {
  Bus<int> bus;
  auto one =
      bus.subscribe("one", Priority::normal, {.capacity = 3, .overflow = Overflow::drop_oldest});
  for (int n = 0; n < 10; ++n)
    EXPECT_EQ(bus.publish(n).sent, 1U);
  const SubscriberStats stats = bus.stats().subscribers.at("one");
  EXPECT_EQ(stats.sent, 3U);  // Seven were sent and then dropped: they count as dropped.
  EXPECT_EQ(stats.dropped, 7U);
  EXPECT_EQ(stats.queued, 3U);
  for (int n = 7; n < 10; ++n)
    EXPECT_EQ(**one.pop(), n);
}

TEST(BusPolicyTest, LatestKeepsOneFrameWhateverTheCapacity) {
  Bus<int> bus;
  auto one =
      bus.subscribe("one", Priority::best_effort, {.capacity = 8, .overflow = Overflow::latest});
  publish_many(bus, 5);
  EXPECT_EQ(**one.pop(), 4);
  EXPECT_FALSE(one.try_pop());
  EXPECT_EQ(bus.stats().subscribers.at("one").dropped, 4U);
}

TEST(BusPolicyTest, LatestIsNoLoadForOthersAndDropOldestIs) {
  Bus<int> bus;
  auto latest = bus.subscribe("latest", Priority::critical, {.overflow = Overflow::latest});
  auto best = bus.subscribe("best", Priority::best_effort, {.capacity = 100});
  publish_many(bus, 20);
  EXPECT_EQ(sent_to(bus, "best"), 20U);

  auto oldest = bus.subscribe("oldest", Priority::critical,
                              {.capacity = 10, .overflow = Overflow::drop_oldest});
  publish_many(bus, 20);
  EXPECT_EQ(sent_to(bus, "best"), 28U);
}

TEST(BusPolicyTest, ACriticalSubscriberThatDropsTheOldestIsNotWaitedFor) {
  ManualClock clock;
  Bus<int> bus({.clock = &clock});
  auto one =
      bus.subscribe("one", Priority::critical, {.capacity = 2, .overflow = Overflow::drop_oldest});
  publish_many(bus, 5);
  const SubscriberStats stats = bus.stats().subscribers.at("one");
  EXPECT_EQ(stats.dropped, 3U);
  EXPECT_EQ(stats.critical_dropped, 3U);
}

TEST(BusPolicyTest, ASubscriberThatDropsTheOldestIsShedForThoseThatOutrankIt) {
  Bus<int> bus({.critical_timeout = 0ns});
  auto critical = bus.subscribe("critical", Priority::critical, {.capacity = 10});
  auto one = bus.subscribe("one", Priority::normal, {.overflow = Overflow::latest});
  publish_many(bus, 20);
  EXPECT_EQ(**one.pop(), 8);  // The last one before the load was above 0.8.
}

TEST(BusPolicyTest, AnEvictedFrameIsDestroyedOnlyWhenTheOthersAreDoneWithIt) {
  Bus<std::shared_ptr<int>> bus;
  auto latest = bus.subscribe("latest", Priority::normal, {.overflow = Overflow::latest});
  auto other = bus.subscribe("other");
  const auto first = std::make_shared<int>(1);
  bus.publish(first);
  bus.publish(std::make_shared<int>(2));
  EXPECT_EQ(first.use_count(), 2);
  EXPECT_EQ(***other.pop(), 1);
  EXPECT_EQ(first.use_count(), 1);
}

}  // namespace
}  // namespace ordo
