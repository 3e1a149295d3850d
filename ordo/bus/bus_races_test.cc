// Races of a few instructions, each widened until it happens: a seat that changes hands while its
// sleeper wakes up, a place that is given back while somebody looks for one, a frame pushed out for
// one that is refused, and a subscriber that leaves while its queue is full.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/bus.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::Background;
using testing_support::eventually;
using testing_support::Watchdog;

// The first who waits, once woken, stands still until release(): as a thread that does not get a
// processor.
class LateWaker final : public Clock {
 public:
  TimePoint now() const override { return system_clock().now(); }
  WallTime wall_now() const override { return system_clock().wall_now(); }
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition,
                  TimePoint deadline) override {
    const bool is_first = wait_count_.fetch_add(1) == 0;
    const bool over = system_clock().wait_until(lock, condition, deadline);
    if (is_first) {
      lock.unlock();
      released_.wait(false);
      lock.lock();
    }
    return over;
  }
  void release() {
    released_ = true;
    released_.notify_all();
  }
  int wait_count() const { return wait_count_; }

 private:
  std::atomic<int> wait_count_ = 0;
  std::atomic<bool> released_ = false;
};

TEST(BusRaces, AFrameWakesASleeperWhoseSeatWasLeftByOneThatIsStillWakingUp) {
  LateWaker clock;
  Bus<int> bus({.clock = &clock});
  auto one = bus.subscribe("one");
  Background leaver([&] { EXPECT_FALSE(one.pop()); });
  ASSERT_TRUE(eventually([&] { return clock.wait_count() == 1; }));
  bus.unsubscribe("one");
  auto two = bus.subscribe("two");  // Has the same seat.
  Background sleeper([&] { EXPECT_EQ(**two.pop(), 7); });
  ASSERT_TRUE(eventually([&] { return clock.wait_count() == 2; }));
  clock.release();
  ASSERT_TRUE(leaver.finished());
  bus.publish(7);
  EXPECT_TRUE(sleeper.finished());
  bus.close();
}

// Each publish of the other publisher claims a place in every queue and gives 200 of them back.
TEST(BusRaces, APlaceThatIsGivenBackEndsTheWaitForIt) {
  const Watchdog watchdog("a place that is given back");
  static thread_local double load = 0;
  Bus<int> bus({.load = [] { return load; }});
  auto taker = bus.subscribe("taker", Priority::critical, {.overflow = Overflow::latest});
  std::vector<Subscription<int>> crowd;
  for (int i = 0; i < 200; ++i)
    crowd.push_back(bus.subscribe(std::to_string(i), Priority::normal, {.capacity = 1}));
  auto block =
      bus.subscribe("block", Priority::normal, {.capacity = 1, .overflow = Overflow::block});
  std::atomic<bool> done = false;
  std::thread other([&] {
    load = 0.95;
    while (!done.load())
      bus.publish(-1);
  });
  bus.publish(0);
  for (int round = 1; round <= 100; ++round) {
    Background publisher([&] { bus.publish(round); });
    for (int turn = round % 32; turn > 0; --turn)
      std::this_thread::yield();
    ASSERT_EQ(**block.pop(), round - 1);
    ASSERT_TRUE(publisher.finished());
  }
  done = true;
  other.join();
}

TEST(BusRaces, NoFrameIsPushedOutForOneThatComesTooLate) {
  const Watchdog watchdog("close racing the latest frame");
  for (int round = 0; round < 200; ++round) {
    Bus<int> bus;
    auto latest = bus.subscribe("latest", Priority::normal, {.overflow = Overflow::latest});
    std::atomic<int> published = 0;
    std::thread publisher([&] {
      while (!bus.publish(round).closed)
        published.fetch_add(1);
    });
    while (published.load() <= round % 16)
      std::this_thread::yield();
    bus.close();
    publisher.join();
    ASSERT_TRUE(latest.pop()) << round;
    ASSERT_FALSE(latest.pop());
  }
}

TEST(BusRaces, SubscribersThatLeaveFullNeverKeepMoreThanTheirCapacity) {
  const Watchdog watchdog("leaving while full");
  constexpr std::size_t kRounds = 500;  // Each yields to publishers that never do.
  Bus<int> bus;
  auto taker = bus.subscribe("taker", Priority::critical, {.overflow = Overflow::latest});
  std::atomic<bool> done = false;
  std::vector<std::thread> publishers;
  for (int i = 0; i < 3; ++i) {
    publishers.emplace_back([&] {
      while (!done.load())
        bus.publish(1);
    });
  }
  for (std::size_t round = 0; round < kRounds; ++round) {
    auto one = bus.subscribe("one", Priority::normal,
                             {.capacity = 1 + round % 3, .overflow = Overflow::drop_oldest});
    for (std::size_t turn = round % 8; turn > 0; --turn)
      std::this_thread::yield();
  }
  done = true;
  for (std::thread& publisher : publishers)
    publisher.join();
  const BusStats stats = bus.stats();
  EXPECT_LE(stats.departed.discarded, kRounds * 3);
  EXPECT_EQ(stats.departed.sent, stats.departed.discarded);
}

// A frame behind one that is not yet written was announced before its subscriber slept, and nobody
// will announce it again.
TEST(BusRaces, NobodySleepsBeforeAFrameThatIsNotYetWritten) {
  bus::FrameLog log;
  bus::Subscriber one("one", Priority::normal, {}, 3, log);
  one.begin_at(0);
  EXPECT_FALSE(one.may_have_frame(0));
  bus::FrameNode frame(nullptr);
  bus::SeatSet takers;
  takers.add(3);
  log.write(1, &frame, takers);
  EXPECT_TRUE(one.may_have_frame(2));
  EXPECT_TRUE(one.take(2).blocked);
  log.write(0, nullptr, {});  // Not for this one.
  EXPECT_TRUE(one.may_have_frame(2));
  EXPECT_EQ(one.take(2).frame, &frame);
  EXPECT_FALSE(one.may_have_frame(2));
}

// A full queue without luck: a publisher that has claimed a place makes room after leave(), too.
TEST(BusRaces, RoomIsMadeInTheQueueOfOneThatIsAboutToLeave) {
  bus::FrameLog log;
  bus::Subscriber one("one", Priority::normal, {.overflow = Overflow::latest}, 3, log);
  one.begin_at(0);
  bus::FrameNode first(nullptr);
  bus::SeatSet takers;
  takers.add(3);
  log.write(0, &first, takers);
  one.leave();

  std::vector<bus::FrameNode*> dropped;
  const auto drop = [&](bus::FrameNode* frame) { dropped.push_back(frame); };
  EXPECT_TRUE(one.evict(1, one.pops_needed(1), drop));
  EXPECT_EQ(dropped, std::vector<bus::FrameNode*>{&first});

  EXPECT_FALSE(one.evict(2, one.pops_needed(2), drop));  // Position 1 is not yet written.
  bus::FrameNode second(nullptr);
  log.write(1, &second, takers);
  EXPECT_TRUE(one.evict(2, one.pops_needed(2), drop));
  EXPECT_EQ(dropped.size(), 2U);
}

}  // namespace
}  // namespace ordo
