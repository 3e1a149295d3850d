#include "ordo/runtime/channel.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ordo {
namespace {

using namespace std::chrono_literals;

TEST(ChannelTest, ItemsComeOutInTheOrderTheyWentIn) {
  Channel<int> channel({.items_max = 4});
  for (int item = 0; item < 4; ++item)
    ASSERT_EQ(channel.push(int(item)), ChannelPush::admitted);
  for (int item = 0; item < 4; ++item)
    EXPECT_EQ(channel.pop(), item);
}

TEST(ChannelTest, AFullChannelRefusesAndTheItemStaysWithTheCaller) {
  Channel<std::unique_ptr<int>> channel({.items_max = 1});
  ASSERT_EQ(channel.try_push(std::make_unique<int>(1)), ChannelPush::admitted);
  auto second = std::make_unique<int>(2);
  EXPECT_EQ(channel.try_push(std::move(second)), ChannelPush::full);
  EXPECT_NE(second, nullptr);
}

TEST(ChannelTest, BytesAreLimitedBesideItems) {
  Channel<int> channel({.items_max = 10, .bytes_max = 100});
  EXPECT_EQ(channel.try_push(1, 60), ChannelPush::admitted);
  EXPECT_EQ(channel.try_push(2, 41), ChannelPush::full);
  EXPECT_EQ(channel.try_push(3, 40), ChannelPush::admitted);
  EXPECT_EQ(channel.bytes(), 100u);
  EXPECT_EQ(channel.pop(), 1);
  EXPECT_EQ(channel.bytes(), 40u);
  EXPECT_EQ(channel.try_push(2, 41), ChannelPush::admitted);
}

TEST(ChannelTest, AnItemThatCanNeverFitIsRefusedInsteadOfWaitingForEver) {
  Channel<int> channel({.items_max = 10, .bytes_max = 100});
  EXPECT_EQ(channel.push(1, 101), ChannelPush::too_large);
}

TEST(ChannelTest, ABatchTakesAllThatWaitsUpToItsLimit) {
  Channel<int> channel({.items_max = 10});
  for (int item = 0; item < 5; ++item)
    ASSERT_EQ(channel.push(int(item)), ChannelPush::admitted);
  std::vector<int> out;
  EXPECT_EQ(channel.pop_some(out, 3), 3u);
  EXPECT_EQ(channel.try_pop_all(out), 2u);
  EXPECT_EQ(channel.try_pop_all(out), 0u);
  EXPECT_EQ(out, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(ChannelTest, AfterCloseNothingGoesInAndTheRestComesOut) {
  Channel<int> channel({.items_max = 4});
  ASSERT_EQ(channel.push(1), ChannelPush::admitted);
  channel.close();
  channel.close();
  EXPECT_EQ(channel.push(2), ChannelPush::closed);
  EXPECT_FALSE(channel.ended());
  EXPECT_EQ(channel.pop(), 1);
  EXPECT_EQ(channel.pop(), std::nullopt);
  EXPECT_TRUE(channel.ended());
}

TEST(ChannelTest, CloseWakesEveryWaiter) {
  Channel<int> empty({.items_max = 1});
  Channel<int> full({.items_max = 1});
  ASSERT_EQ(full.push(1), ChannelPush::admitted);
  std::vector<std::thread> waiters;
  for (int i = 0; i < 2; ++i) {
    waiters.emplace_back([&] { EXPECT_EQ(empty.pop(), std::nullopt); });
    waiters.emplace_back([&] { EXPECT_EQ(full.push(2), ChannelPush::closed); });
  }
  empty.close();
  full.close();
  for (auto& waiter : waiters)
    waiter.join();
}

TEST(ChannelTest, TimedCallsEndWhenTheirClockSaysSo) {
  ManualClock clock;
  Channel<int> channel({.items_max = 1}, clock);
  const TimePoint deadline = clock.now() + 5s;
  std::thread popper([&] { EXPECT_EQ(channel.pop_until(deadline), std::nullopt); });
  clock.wait_for_waiters(1);
  clock.advance(5s);
  popper.join();

  ASSERT_EQ(channel.push(1), ChannelPush::admitted);
  std::thread pusher([&] { EXPECT_EQ(channel.push_until(deadline + 5s, 2), ChannelPush::full); });
  clock.wait_for_waiters(1);
  clock.advance(5s);
  pusher.join();

  std::vector<int> out;
  EXPECT_EQ(channel.pop_some_until(deadline, out, 5), 1u);  // There at once: no wait, no time-out.
  EXPECT_EQ(channel.pop_some_until(deadline, out, 5), 0u);
}

TEST(ChannelTest, AnItemEndsATimedWait) {
  ManualClock clock;
  Channel<int> channel({.items_max = 1}, clock);
  std::thread popper([&] { EXPECT_EQ(channel.pop_until(clock.now() + 1h), 7); });
  clock.wait_for_waiters(1);
  EXPECT_EQ(channel.push(7), ChannelPush::admitted);
  popper.join();
}

// Goal: nothing is lost or doubled and no wake-up is lost, whoever waits on which limit.
// Method: four pushers of items of different sizes, three poppers in batches, both limits tight.
TEST(ChannelStress, ManyPushersAndPoppersConserveItems) {
  constexpr int kItemsPerPusher = 5'000;
  constexpr int kPusherCount = 4;
  Channel<int> channel({.items_max = 8, .bytes_max = 20});
  std::vector<std::thread> pushers;
  for (int self = 0; self < kPusherCount; ++self) {
    pushers.emplace_back([&, self] {
      for (int i = 0; i < kItemsPerPusher; ++i) {
        const int item = self * kItemsPerPusher + i;
        ASSERT_EQ(channel.push(int(item), static_cast<std::size_t>(1 + item % 17)),
                  ChannelPush::admitted);
      }
    });
  }
  std::vector<std::atomic<int>> seen(std::size_t{kPusherCount} * kItemsPerPusher);
  std::vector<std::thread> poppers;
  for (int self = 0; self < 3; ++self) {
    poppers.emplace_back([&] {
      std::vector<int> batch;
      while (channel.pop_some(batch, 3) > 0) {
        for (const int item : batch)
          seen[static_cast<std::size_t>(item)].fetch_add(1);
        batch.clear();
      }
    });
  }
  for (auto& pusher : pushers)
    pusher.join();
  channel.close();
  for (auto& popper : poppers)
    popper.join();
  for (const auto& count : seen)
    ASSERT_EQ(count.load(), 1);
  EXPECT_EQ(channel.bytes(), 0u);
}

}  // namespace
}  // namespace ordo
