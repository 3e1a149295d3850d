// What the front door promises, sentence by sentence: counts, sharing, closing, unsubscribing.
#include "ordo/bus.h"

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::Background;

TEST(BusTest, PublishSaysHowManyGotTheFrame) {
  Bus<int> bus;
  auto one = bus.subscribe("one");
  auto two = bus.subscribe("two", Priority::normal, {.capacity = 1});

  EXPECT_EQ(bus.publish(1).sent, 2U);
  const PublishResult second = bus.publish(2);
  EXPECT_EQ(second.sent, 1U);
  EXPECT_EQ(second.dropped, 1U);
  EXPECT_FALSE(second.closed);
}

TEST(BusTest, EverySubscriberPopsTheFramesInOrder) {
  Bus<int> bus;
  auto one = bus.subscribe("one");
  auto two = bus.subscribe("two");
  for (int n = 0; n < 5; ++n)
    bus.publish(n);
  for (int n = 0; n < 5; ++n) {
    EXPECT_EQ(**one.pop(), n);
    EXPECT_EQ(**two.try_pop(), n);
  }
  EXPECT_FALSE(one.try_pop());
}

TEST(BusTest, WithoutAPriorityASubscriberIsNormal) {
  Bus<int> bus;
  auto audit = bus.subscribe("audit");
  EXPECT_EQ(bus.stats().subscribers.at("audit").priority, Priority::normal);
}

TEST(BusTest, AFrameIsSharedAndNotCopiedPerSubscriber) {
  Bus<std::string> bus;
  auto one = bus.subscribe("one");
  auto two = bus.subscribe("two");
  bus.publish(std::string("frame"));

  const auto first = one.pop();
  const auto second = two.pop();
  EXPECT_EQ(first->get(), second->get());
  EXPECT_EQ(**first, "frame");
}

TEST(BusTest, AFrameGoesWhenItsLastOwnerDoes) {
  Bus<std::shared_ptr<int>> bus;
  auto one = bus.subscribe("one");
  auto two = bus.subscribe("two");
  auto witness = std::make_shared<int>(7);
  bus.publish(witness);
  EXPECT_EQ(witness.use_count(), 2);

  auto held = one.pop();
  EXPECT_TRUE(two.pop());
  EXPECT_EQ(witness.use_count(), 2);
  auto copy = held;
  held.reset();
  EXPECT_EQ(witness.use_count(), 2);
  copy.reset();
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(BusTest, AFrameThatExistsIsPublishedWithoutACopy) {
  Bus<std::vector<int>> bus;
  auto one = bus.subscribe("one");
  const auto frame = FrameRef<std::vector<int>>::make(3U, 4);
  bus.publish(frame);
  EXPECT_EQ(one.pop()->get(), frame.get());
}

TEST(BusTest, AFrameThatWasMovedFromIsRefused) {
  Bus<int> bus;
  auto one = bus.subscribe("one");
  auto frame = FrameRef<int>::make(3);
  const auto other = std::move(frame);
  EXPECT_THROW(bus.publish(frame), std::invalid_argument);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(bus.publish(other).sent, 1U);
  EXPECT_EQ(bus.stats().published, 1U);
}

TEST(BusTest, AFrameThatCannotBeCopiedIsMoved) {
  Bus<std::unique_ptr<int>> bus;
  auto one = bus.subscribe("one");
  bus.publish(std::make_unique<int>(5));
  EXPECT_EQ(***one.pop(), 5);
}

TEST(BusTest, AFrameThatThrowsWhenCopiedIsNotCounted) {
  struct Thrower {
    Thrower() = default;
    Thrower(const Thrower& /*other*/) { throw std::runtime_error("no copy"); }
  };
  Bus<Thrower> bus;
  auto one = bus.subscribe("one");
  EXPECT_THROW(bus.publish(Thrower()), std::runtime_error);
  EXPECT_EQ(bus.stats().published, 0U);
  bus.unsubscribe("one");  // Nobody is stuck inside the gate.
}

TEST(BusTest, PublishingToNobodyIsCounted) {
  Bus<int> bus;
  const PublishResult result = bus.publish(1);
  EXPECT_EQ(result.sent + result.dropped, 0U);
  EXPECT_EQ(bus.stats().published, 1U);
}

TEST(BusTest, TotalsAreTheSumsOfTheParts) {
  Bus<int> bus({.critical_timeout = 0ns});
  auto one = bus.subscribe("one", Priority::critical, {.capacity = 2});
  auto two = bus.subscribe("two", Priority::best_effort, {.capacity = 3});
  for (int n = 0; n < 10; ++n)
    bus.publish(n);
  ASSERT_TRUE(one.pop());

  const BusStats stats = bus.stats();
  const SubscriberStats& first = stats.subscribers.at("one");
  const SubscriberStats& second = stats.subscribers.at("two");
  EXPECT_EQ(stats.published, 10U);
  EXPECT_EQ(first.sent + first.dropped, 10U);
  EXPECT_EQ(second.sent + second.dropped, 10U);
  EXPECT_EQ(stats.sent, first.sent + second.sent);
  EXPECT_EQ(stats.dropped, first.dropped + second.dropped);
  EXPECT_EQ(stats.critical_dropped, first.critical_dropped);
  EXPECT_EQ(first.critical_dropped, 8U);
  EXPECT_EQ(second.critical_dropped, 0U);
  EXPECT_EQ(first.received, 1U);
  EXPECT_EQ(first.queued, 1U);
}

TEST(BusTest, WhatWasCountedForTheDepartedIsKeptApart) {
  Bus<int> bus;
  auto stays = bus.subscribe("stays");
  auto goes = bus.subscribe("goes", Priority::high, {.capacity = 2});
  for (int n = 0; n < 3; ++n)
    bus.publish(n);
  ASSERT_TRUE(goes.pop());
  bus.unsubscribe("goes");

  const BusStats stats = bus.stats();
  EXPECT_FALSE(stats.subscribers.contains("goes"));
  EXPECT_EQ(stats.sent, stats.subscribers.at("stays").sent);
  EXPECT_EQ(stats.departed.subscribers, 1U);
  EXPECT_EQ(stats.departed.sent + stats.departed.dropped, 3U);
  EXPECT_EQ(stats.departed.sent, 2U);
  EXPECT_EQ(stats.departed.discarded, 1U);
}

TEST(BusTest, PublishingOnAClosedBusSaysSoAndCountsNothing) {
  Bus<int> bus;
  auto one = bus.subscribe("one");
  bus.publish(1);
  bus.close();
  bus.close();

  const PublishResult result = bus.publish(2);
  EXPECT_TRUE(result.closed);
  EXPECT_EQ(result.sent + result.dropped, 0U);
  EXPECT_EQ(bus.stats().published, 1U);
}

TEST(BusTest, FramesQueuedBeforeCloseCanStillBePopped) {
  Bus<int> bus;
  auto one = bus.subscribe("one");
  bus.publish(1);
  bus.publish(2);
  bus.close();
  EXPECT_EQ(**one.pop(), 1);
  EXPECT_EQ(**one.pop_for(1h), 2);
  EXPECT_FALSE(one.pop());
  EXPECT_EQ(bus.stats().subscribers.at("one").received, 2U);
}

TEST(BusTest, CloseWakesWhoeverWaitsForAFrame) {
  Bus<int> bus;
  auto one = bus.subscribe("one");
  Background consumer([&] { EXPECT_FALSE(one.pop()); });
  bus.close();
  EXPECT_TRUE(consumer.finished());
}

TEST(BusTest, AFrameWakesWhoeverWaitsForIt) {
  ManualClock clock;
  Bus<int> bus({.clock = &clock});
  auto one = bus.subscribe("one");
  Background consumer([&] { EXPECT_EQ(**one.pop_for(1h), 9); });
  clock.wait_for_waiters(1);
  bus.publish(9);
  EXPECT_TRUE(consumer.finished());
}

TEST(BusTest, ManySleepersAreAllWoken) {
  ManualClock clock;
  Bus<int> bus({.clock = &clock});
  std::vector<Subscription<int>> subscriptions;
  for (unsigned i = 0; i < 40; ++i)
    subscriptions.push_back(bus.subscribe(std::to_string(i), static_cast<Priority>(i % 4)));
  std::vector<std::unique_ptr<Background>> consumers;
  for (auto& subscription : subscriptions)
    consumers.push_back(
        std::make_unique<Background>([&] { EXPECT_EQ(**subscription.pop_for(1h), 9); }));
  clock.wait_for_waiters(subscriptions.size());
  bus.publish(9);
  for (auto& consumer : consumers)
    EXPECT_TRUE(consumer->finished());
}

TEST(BusTest, SeveralThreadsMayShareASubscription) {
  ManualClock clock;
  Bus<int> bus({.clock = &clock});
  auto one = bus.subscribe("one");
  Background first([&] { EXPECT_TRUE(one.pop_for(1h)); });
  Background second([&] { EXPECT_TRUE(one.pop_for(1h)); });
  clock.wait_for_waiters(2);
  bus.publish(1);
  bus.publish(2);
  EXPECT_TRUE(first.finished());
  EXPECT_TRUE(second.finished());
}

TEST(BusTest, PopForGivesUpWhenItsTimeIsOver) {
  ManualClock clock;
  Bus<int> bus({.clock = &clock});
  auto one = bus.subscribe("one");
  Background consumer([&] { EXPECT_FALSE(one.pop_for(5s)); });
  clock.wait_for_waiters(1);
  clock.advance(4s);
  EXPECT_FALSE(consumer.is_finished());
  clock.advance(1s);
  EXPECT_TRUE(consumer.finished());
  EXPECT_FALSE(one.pop_for(-1s));
}

TEST(BusTest, NothingIsDeliveredAfterUnsubscribeReturned) {
  Bus<int> bus;
  auto one = bus.subscribe("one");
  bus.publish(1);
  bus.unsubscribe("one");
  bus.publish(2);
  EXPECT_FALSE(one.try_pop());
  EXPECT_FALSE(one.pop());
}

TEST(BusTest, UnsubscribeWakesWhoeverWaitsForAFrame) {
  Bus<int> bus;
  auto one = bus.subscribe("one");
  Background consumer([&] { EXPECT_FALSE(one.pop()); });
  bus.unsubscribe("one");
  EXPECT_TRUE(consumer.finished());
}

TEST(BusTest, ANewSubscriberGetsNothingOfTheOneWhoseSeatItHas) {
  Bus<int> bus;
  for (int round = 0; round < 1000; ++round) {
    auto one = bus.subscribe("one");
    EXPECT_FALSE(one.try_pop());
    bus.publish(round);
    bus.publish(-1);
    EXPECT_EQ(**one.pop(), round);
  }
  EXPECT_TRUE(bus.stats().subscribers.empty());
}

TEST(BusTest, DestroyingASubscriptionUnsubscribes) {
  Bus<int> bus;
  { auto one = bus.subscribe("one"); }
  EXPECT_TRUE(bus.stats().subscribers.empty());
  auto again = bus.subscribe("one");
  EXPECT_EQ(bus.publish(1).sent, 1U);
}

TEST(BusTest, DestroyingASubscriptionWakesWhoeverWaitsForAFrame) {
  ManualClock clock;
  Bus<int> bus({.clock = &clock});
  std::optional<Subscription<int>> one(bus.subscribe("one"));
  Background consumer([&] { EXPECT_FALSE(one->pop_for(1h)); });
  clock.wait_for_waiters(1);
  one.reset();
  EXPECT_TRUE(consumer.finished());
}

TEST(BusTest, AMovedSubscriptionStaysSubscribed) {
  Bus<int> bus;
  auto one = bus.subscribe("one");
  Subscription<int> moved = std::move(one);
  bus.publish(1);
  EXPECT_EQ(**moved.pop(), 1);
  EXPECT_EQ(moved.id(), "one");

  auto other = bus.subscribe("other");
  other = std::move(moved);
  EXPECT_EQ(bus.stats().subscribers.size(), 1U);
  EXPECT_EQ(other.id(), "one");
}

TEST(BusTest, ASubscriptionOutlivesItsBus) {
  std::optional<Bus<int>> bus(std::in_place);
  auto one = bus->subscribe("one");
  bus->publish(4);
  bus.reset();
  EXPECT_EQ(**one.pop(), 4);
  EXPECT_FALSE(one.pop());
}

TEST(BusTest, ASubscriberOfAClosedBusFindsTheEnd) {
  Bus<int> bus;
  bus.close();
  auto one = bus.subscribe("one");
  EXPECT_FALSE(one.pop());
}

TEST(BusTest, ASubscriberThatNeverPopsNeitherStallsTheOthersNorKeepsMoreThanItsCapacity) {
  Bus<std::shared_ptr<int>> bus;
  auto stuck = bus.subscribe("stuck", Priority::normal, {.capacity = 10});
  auto slow = bus.subscribe("slow", Priority::normal, {.capacity = 5});
  auto quick = bus.subscribe("quick");
  const auto witness = std::make_shared<int>(0);
  std::uint64_t received = 0;
  int pops = 0;
  for (int n = 0; n < 10'000; ++n) {
    bus.publish(witness);
    if (quick.try_pop()) ++received;
    if (n % 1500 == 0) pops += slow.try_pop() ? 1 : 0;
  }
  EXPECT_EQ(received, 10'000U);
  EXPECT_EQ(pops, 7);
  EXPECT_LE(witness.use_count(), 1 + 10 + 5);
  for (std::uint64_t left = bus.stats().subscribers.at("stuck").queued; left > 0; --left)
    EXPECT_TRUE(stuck.try_pop());
  EXPECT_FALSE(stuck.try_pop());
}

}  // namespace
}  // namespace ordo
