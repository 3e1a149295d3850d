// Waiting for a critical or blocking subscriber: after everybody else was served, one budget in
// all, and without holding up anybody.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/bus.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::Background;
using testing_support::eventually;

class BusWaiting : public testing::Test {
 protected:
  // Has room for one frame.
  Subscription<int> small(const std::string& id, Priority priority, Overflow overflow) {
    return bus_.subscribe(id, priority, {.capacity = 1, .overflow = overflow});
  }

  ManualClock clock_;
  Bus<int> bus_{{.critical_timeout = 5ms, .clock = &clock_}};
};

TEST_F(BusWaiting, TwoFullCriticalOnesCostOneTimeoutInTotal) {
  auto one = small("one", Priority::critical, Overflow::drop_newest);
  auto two = small("two", Priority::critical, Overflow::drop_newest);
  bus_.publish(1);
  PublishResult result;
  Background publisher([&] { result = bus_.publish(2); });
  clock_.wait_for_waiters(1);
  EXPECT_EQ(clock_.next_deadline(), TimePoint(5ms));
  clock_.advance(5ms);
  ASSERT_TRUE(publisher.finished());
  EXPECT_EQ(result.sent, 0U);
  EXPECT_EQ(result.dropped, 2U);
  EXPECT_EQ(bus_.stats().critical_dropped, 2U);
}

TEST_F(BusWaiting, EverybodyWhoCanTakeTheFrameHasItBeforeTheWait) {
  auto one = small("one", Priority::critical, Overflow::drop_newest);
  auto two = small("two", Priority::critical, Overflow::drop_newest);
  // Since two full critical queues are a load of 1, only critical ones are not shed.
  std::vector<Subscription<int>> healthy;
  bus_.publish(1);
  for (int i = 0; i < 8; ++i)
    healthy.push_back(bus_.subscribe(std::to_string(i), Priority::critical));
  PublishResult result;
  Background publisher([&] { result = bus_.publish(2); });
  clock_.wait_for_waiters(1);
  for (auto& subscription : healthy)
    EXPECT_EQ(**subscription.try_pop(), 2);
  clock_.advance(5ms);
  ASSERT_TRUE(publisher.finished());
  EXPECT_EQ(result.sent, 8U);
  EXPECT_EQ(result.dropped, 2U);
}

TEST(BusWaitingTest, WithWatermarksOfOneNobodyIsShedForAFullCriticalQueue) {
  ManualClock clock;
  Bus<int> bus({.watermarks = {.high = 1, .normal = 1, .best_effort = 1}, .clock = &clock});
  auto one = bus.subscribe("one", Priority::critical, {.capacity = 1});
  auto two = bus.subscribe("two", Priority::critical, {.capacity = 1});
  bus.publish(1);
  std::vector<Subscription<int>> healthy;
  for (unsigned i = 0; i < 8; ++i)
    healthy.push_back(bus.subscribe(std::to_string(i), static_cast<Priority>(i % 4)));
  Background publisher([&] { EXPECT_EQ(bus.publish(2).sent, 8U); });
  clock.wait_for_waiters(1);
  for (auto& subscription : healthy)
    EXPECT_EQ(**subscription.try_pop(), 2);
  clock.advance(1ms);
  EXPECT_TRUE(publisher.finished());
}

TEST_F(BusWaiting, ThoseThatAreShedForAFullCriticalQueueAreCountedBeforeTheWait) {
  auto one = small("one", Priority::critical, Overflow::drop_newest);
  auto two = small("two", Priority::critical, Overflow::drop_newest);
  auto peer = bus_.subscribe("peer", Priority::critical);
  auto high = bus_.subscribe("high", Priority::high);
  auto normal = bus_.subscribe("normal");
  EXPECT_EQ(bus_.publish(1).sent, 5U);
  PublishResult result;
  Background publisher([&] { result = bus_.publish(2); });
  clock_.wait_for_waiters(1);
  const BusStats stats = bus_.stats();
  EXPECT_EQ(stats.subscribers.at("peer").sent, 2U);
  EXPECT_EQ(stats.subscribers.at("high").dropped, 1U);  // A load of 1 is above their watermarks.
  EXPECT_EQ(stats.subscribers.at("normal").dropped, 1U);
  EXPECT_EQ(stats.subscribers.at("one").dropped, 0U);  // Not yet.
  clock_.advance(5ms);
  ASSERT_TRUE(publisher.finished());
  EXPECT_EQ(result.sent, 1U);
  EXPECT_EQ(result.dropped, 4U);
}

TEST_F(BusWaiting, SubscribeAndUnsubscribeReturnWhileAPublisherWaits) {
  auto one = small("one", Priority::critical, Overflow::drop_newest);
  auto two = small("two", Priority::critical, Overflow::drop_newest);
  bus_.publish(1);
  Background publisher([&] { bus_.publish(2); });
  clock_.wait_for_waiters(1);

  // The quickest of some: what else runs on the machine may hold up any of them.
  std::chrono::nanoseconds quickest = 1h;
  for (int round = 0; round < 10; ++round) {
    const TimePoint begin = system_clock().now();
    auto other = bus_.subscribe("other", Priority::high);
    bus_.unsubscribe("other");
    quickest = std::min(quickest, system_clock().now() - begin);
  }
  EXPECT_LT(quickest, 10ms);
  EXPECT_FALSE(publisher.is_finished());
  EXPECT_EQ(bus_.publish(3, clock_.now()).dropped, 2U);  // Nor is another publisher held up.
  clock_.advance(5ms);
  EXPECT_TRUE(publisher.finished());
}

TEST_F(BusWaiting, RoomThatAppearsDuringTheWaitIsUsed) {
  auto one = small("one", Priority::critical, Overflow::drop_newest);
  auto two = small("two", Priority::critical, Overflow::drop_newest);
  bus_.publish(1);
  PublishResult result;
  Background publisher([&] { result = bus_.publish(2); });
  clock_.wait_for_waiters(1);
  EXPECT_EQ(**one.pop(), 1);
  EXPECT_EQ(**one.pop_for(1h), 2);
  EXPECT_FALSE(publisher.is_finished());  // Still waits for the other.
  clock_.advance(5ms);
  ASSERT_TRUE(publisher.finished());
  EXPECT_EQ(result.sent, 1U);
  EXPECT_EQ(result.dropped, 1U);
  const BusStats stats = bus_.stats();
  EXPECT_EQ(stats.published, 2U);
  EXPECT_EQ(stats.subscribers.at("one").sent, 2U);
  EXPECT_EQ(stats.subscribers.at("one").dropped, 0U);
  EXPECT_EQ(stats.subscribers.at("two").critical_dropped, 1U);
}

TEST_F(BusWaiting, APublishDoesNotWaitPastItsDeadline) {
  auto one = small("one", Priority::critical, Overflow::drop_newest);
  bus_.publish(1);
  Background publisher([&] { EXPECT_EQ(bus_.publish(2, TimePoint(2ms)).dropped, 1U); });
  clock_.wait_for_waiters(1);
  EXPECT_EQ(clock_.next_deadline(), TimePoint(2ms));
  clock_.advance(2ms);
  EXPECT_TRUE(publisher.finished());
}

TEST_F(BusWaiting, ABlockingSubscriberIsWaitedForBeyondTheCriticalTimeout) {
  auto critical = small("critical", Priority::critical, Overflow::drop_newest);
  auto block = small("block", Priority::critical, Overflow::block);
  bus_.publish(1);
  PublishResult result;
  Background publisher([&] { result = bus_.publish(2, TimePoint(1h)); });
  clock_.wait_for_waiters(1);
  clock_.advance(5ms);
  ASSERT_TRUE(eventually([&] { return bus_.stats().subscribers.at("critical").dropped == 1; }));
  clock_.wait_for_waiters(1);
  EXPECT_FALSE(publisher.is_finished());
  EXPECT_EQ(**block.pop(), 1);
  ASSERT_TRUE(publisher.finished());
  EXPECT_EQ(result.sent, 1U);
  EXPECT_EQ(result.dropped, 1U);
  EXPECT_EQ(**block.pop(), 2);
}

TEST_F(BusWaiting, ABlockingSubscriberIsGivenUpAtTheDeadline) {
  auto block = small("block", Priority::normal, Overflow::block);
  bus_.publish(1);
  Background publisher([&] { EXPECT_EQ(bus_.publish(2, TimePoint(1s)).dropped, 1U); });
  clock_.wait_for_waiters(1);
  clock_.advance(1s);
  EXPECT_TRUE(publisher.finished());
  EXPECT_EQ(bus_.stats().subscribers.at("block").critical_dropped, 0U);
}

TEST_F(BusWaiting, CloseEndsEveryWait) {
  auto critical = small("critical", Priority::critical, Overflow::drop_newest);
  auto block = small("block", Priority::critical, Overflow::block);
  bus_.publish(1);
  PublishResult result;
  Background publisher([&] { result = bus_.publish(2); });
  clock_.wait_for_waiters(1);
  bus_.close();
  ASSERT_TRUE(publisher.finished());
  EXPECT_FALSE(result.closed);  // It was published before; two did not get it.
  EXPECT_EQ(result.dropped, 2U);
  EXPECT_EQ(bus_.stats().dropped, 2U);
  EXPECT_EQ(bus_.stats().published, 2U);
}

TEST_F(BusWaiting, UnsubscribingEndsTheWaitForTheOneWhoLeaves) {
  auto block = small("block", Priority::critical, Overflow::block);
  bus_.publish(1);
  PublishResult result;
  Background publisher([&] { result = bus_.publish(2); });
  ASSERT_TRUE(eventually([&] { return bus_.stats().published == 2; }));
  bus_.unsubscribe("block");
  auto again = bus_.subscribe("block", Priority::critical);  // Takes its seat, not its frame.
  ASSERT_TRUE(publisher.finished());
  EXPECT_EQ(result.dropped, 1U);
  EXPECT_FALSE(again.try_pop());
  EXPECT_EQ(bus_.stats().departed.dropped, 1U);
  EXPECT_EQ(bus_.stats().departed.sent, 1U);
}

TEST_F(BusWaiting, FramesOfOnePublisherStayInOrderThroughWaits) {
  auto block = small("block", Priority::critical, Overflow::block);
  auto other = bus_.subscribe("other", Priority::critical, {.capacity = 1000});
  Background publisher([&] {
    for (int n = 0; n < 500; ++n)
      EXPECT_EQ(bus_.publish(n).sent, 2U);
  });
  for (int n = 0; n < 500; ++n)
    ASSERT_EQ(**block.pop(), n);
  ASSERT_TRUE(publisher.finished());
  for (int n = 0; n < 500; ++n)
    ASSERT_EQ(**other.pop(), n);
  EXPECT_EQ(bus_.stats().dropped, 0U);
  EXPECT_EQ(bus_.stats().published, 500U);
}

TEST(BusWaitingTest, TheRealClockBoundsThePublishToo) {
  Bus<int> bus({.critical_timeout = 2ms});
  auto one = bus.subscribe("one", Priority::critical, {.capacity = 1});
  auto two = bus.subscribe("two", Priority::critical, {.capacity = 1});
  bus.publish(1);
  const TimePoint begin = system_clock().now();
  EXPECT_EQ(bus.publish(2).dropped, 2U);
  EXPECT_GE(system_clock().now() - begin, 2ms);
}

}  // namespace
}  // namespace ordo
