// Threads without choreography, for the sanitizers: every frame is counted once, whoever comes and
// goes; each publisher's frames stay in order; close races publish.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/bus.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::Watchdog;

constexpr std::size_t kPublishers = 4;

struct Stamp {
  std::size_t publisher = 0;
  std::uint64_t number = 0;
};

// Whether each publisher's frames come in order.
class OrderCheck {
 public:
  void see(const Stamp& stamp) {
    std::uint64_t& last = last_[stamp.publisher];
    if (stamp.number <= last) in_order_ = false;
    last = stamp.number;
    ++count_;
  }
  bool in_order() const { return in_order_; }
  std::uint64_t count() const { return count_; }

 private:
  std::array<std::uint64_t, kPublishers> last_{};
  std::uint64_t count_ = 0;
  bool in_order_ = true;
};

struct Totals {
  std::atomic<std::uint64_t> published = 0;
  std::atomic<std::uint64_t> sent = 0;
  std::atomic<std::uint64_t> dropped = 0;

  void add(const PublishResult& result) {
    published += 1;
    sent += result.sent;
    dropped += result.dropped;
  }
};

Overflow policy_of(std::size_t index) {
  return static_cast<Overflow>(index % 4);
}
Priority priority_of(std::size_t index) {
  return static_cast<Priority>((index / 4) % 4);
}

// One subscriber that comes, pops for a while at its own pace, and goes, again and again.
void come_and_go(Bus<Stamp>& bus, std::size_t index, const std::atomic<bool>& done,
                 std::atomic<std::uint64_t>& received) {
  std::mt19937 random(static_cast<unsigned>(index));
  const std::string id = std::to_string(index);
  while (!done.load()) {
    auto subscription = bus.subscribe(
        id, priority_of(index), {.capacity = 1 + random() % 20, .overflow = policy_of(index)});
    OrderCheck check;
    for (std::uint64_t pops = random() % 400; pops > 0 && !done.load(); --pops) {
      if (auto stamp = subscription.pop_for(1ms)) check.see(**stamp);
      if (random() % 8 == 0) std::this_thread::yield();
    }
    EXPECT_TRUE(check.in_order());
    received += check.count();
    if (random() % 2 == 0) bus.unsubscribe(id);
  }
}

TEST(BusStress, EveryFrameIsCountedOnceWhileSubscribersComeAndGo) {
  const Watchdog watchdog("bus stress");
  Bus<Stamp> bus({.critical_timeout = 100us});
  auto fixed = bus.subscribe("fixed", Priority::normal, {.capacity = 1000});
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> received = 0;
  std::vector<std::thread> consumers;
  for (std::size_t index = 0; index < 16; ++index)
    consumers.emplace_back([&, index] { come_and_go(bus, index, done, received); });

  Totals totals;
  std::vector<std::thread> publishers;
  for (std::size_t publisher = 0; publisher < kPublishers; ++publisher) {
    publishers.emplace_back([&, publisher] {
      for (std::uint64_t number = 1; number <= 3'000; ++number)
        totals.add(bus.publish({publisher, number}, system_clock().now() + 5ms));
    });
  }
  OrderCheck check;
  std::thread popper([&] {
    while (auto stamp = fixed.pop())
      check.see(**stamp);
  });
  for (std::thread& thread : publishers)
    thread.join();
  done = true;
  for (std::thread& thread : consumers)
    thread.join();
  bus.close();
  popper.join();

  const BusStats stats = bus.stats();
  const SubscriberStats& stayed = stats.subscribers.at("fixed");
  EXPECT_TRUE(check.in_order());
  EXPECT_EQ(stats.published, totals.published);
  EXPECT_EQ(stayed.sent + stayed.dropped, stats.published);
  EXPECT_EQ(stayed.sent, check.count());
  EXPECT_EQ(stayed.queued, 0U);
  // Evicted frames were reported as sent and count as dropped in the end.
  EXPECT_EQ(stats.sent + stats.dropped + stats.departed.sent + stats.departed.dropped,
            totals.sent + totals.dropped);
  EXPECT_LE(stats.sent + stats.departed.sent, totals.sent);
  EXPECT_EQ(stats.departed.sent, received + stats.departed.discarded);
  EXPECT_LE(stats.departed.critical_dropped, stats.departed.dropped);
}

// For a fixed set of subscribers the account is exact for each, under every policy.
TEST(BusStress, AFixedSetOfSubscribersIsOfferedEveryFrame) {
  const Watchdog watchdog("bus stress");
  Bus<Stamp> bus({.critical_timeout = 50us});
  std::vector<Subscription<Stamp>> subscriptions;
  for (std::size_t index = 0; index < 16; ++index)
    subscriptions.push_back(bus.subscribe(std::to_string(index), priority_of(index),
                                          {.capacity = 1 + index, .overflow = policy_of(index)}));
  std::vector<std::thread> consumers;
  std::vector<OrderCheck> checks(subscriptions.size());
  for (std::size_t index = 0; index < subscriptions.size(); ++index) {
    consumers.emplace_back([&, index] {
      while (auto stamp = subscriptions[index].pop())
        checks[index].see(**stamp);
    });
  }
  Totals totals;
  std::vector<std::thread> publishers;
  for (std::size_t publisher = 0; publisher < kPublishers; ++publisher) {
    publishers.emplace_back([&, publisher] {
      for (std::uint64_t number = 1; number <= 2'000; ++number)
        totals.add(bus.publish({publisher, number}));
    });
  }
  for (std::thread& thread : publishers)
    thread.join();
  bus.close();
  for (std::thread& thread : consumers)
    thread.join();

  const BusStats stats = bus.stats();
  EXPECT_EQ(stats.published, kPublishers * 2'000);
  EXPECT_EQ(stats.sent + stats.dropped, stats.published * subscriptions.size());
  EXPECT_EQ(totals.sent + totals.dropped, stats.published * subscriptions.size());
  for (std::size_t index = 0; index < subscriptions.size(); ++index) {
    const SubscriberStats& part = stats.subscribers.at(std::to_string(index));
    EXPECT_TRUE(checks[index].in_order()) << index;
    EXPECT_EQ(part.sent + part.dropped, stats.published) << index;
    EXPECT_EQ(part.received, checks[index].count()) << index;
    EXPECT_EQ(part.sent, part.received) << index;
  }
}

TEST(BusStress, CloseRacingPublishNeverMiscounts) {
  const Watchdog watchdog("close racing publish");
  std::atomic<Bus<int>*> current = nullptr;
  std::atomic<int> round_done = 0;
  std::atomic<std::uint64_t> counted = 0;
  constexpr int kRounds = 10'000;
  std::thread publisher([&] {
    for (int round = 0; round < kRounds; ++round) {
      Bus<int>* bus = nullptr;
      while ((bus = current.exchange(nullptr)) == nullptr)
        std::this_thread::yield();
      std::uint64_t published = 0;
      for (PublishResult result; !result.closed;) {
        result = bus->publish(round);
        if (!result.closed) ++published;
      }
      counted = published;
      round_done = round + 1;
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    Bus<int> bus({.critical_timeout = 0ns});
    auto one = bus.subscribe("one", Priority::critical, {.capacity = 4});
    auto two = bus.subscribe("two", Priority::best_effort, {.overflow = Overflow::latest});
    current = &bus;
    for (int pause = round % 64; pause > 0; --pause)
      one.try_pop();
    bus.close();
    while (round_done.load() <= round)
      std::this_thread::yield();
    const BusStats stats = bus.stats();
    ASSERT_EQ(stats.published, counted);
    ASSERT_EQ(stats.sent + stats.dropped, 2 * stats.published);
    std::uint64_t left = 0;
    while (one.pop())
      ++left;
    ASSERT_EQ(stats.subscribers.at("one").queued, left);
  }
  publisher.join();
}

TEST(BusStress, DropRatesAreMonotoneInPriorityUnderTheSameConsumers) {
  Bus<int> bus({.critical_timeout = 0ns});
  std::vector<Subscription<int>> subscriptions;
  for (unsigned index = 0; index < 4; ++index)
    subscriptions.push_back(
        bus.subscribe(std::to_string(index), static_cast<Priority>(index), {.capacity = 20}));
  // The same consumers: each pops twice for three frames.
  for (int n = 0; n < 9'000; ++n) {
    bus.publish(n);
    if (n % 3 == 2) continue;
    for (auto& subscription : subscriptions)
      subscription.try_pop();
  }
  const BusStats stats = bus.stats();
  std::uint64_t least = 0;
  for (unsigned index = 0; index < 4; ++index) {
    const std::uint64_t dropped = stats.subscribers.at(std::to_string(index)).dropped;
    EXPECT_GE(dropped, least) << index;
    least = dropped;
  }
  EXPECT_GT(least, 0U);
}

}  // namespace
}  // namespace ordo
