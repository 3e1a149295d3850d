// What SpscRing and MpscRing promise alike, and what real threads make of it.
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/runtime/mpsc_ring.h"
#include "ordo/runtime/spsc_ring.h"

namespace ordo {
namespace {

template <class Ring>
class RingTest : public testing::Test {};

using AllRings =
    testing::Types<SpscRing<int, BlockWait>, SpscRing<int, YieldWait>, SpscRing<int, SpinWait>,
                   MpscRing<int, BlockWait>, MpscRing<int, YieldWait>, MpscRing<int, SpinWait>>;
TYPED_TEST_SUITE(RingTest, AllRings);

template <class Ring>
std::vector<int> drain(Ring& ring, std::size_t max = 1000) {
  std::vector<int> out;
  while (ring.try_consume(max, [&](int& item) { out.push_back(item); }) > 0) {
  }
  return out;
}

TYPED_TEST(RingTest, ItemsComeOutInTheOrderTheyWentIn) {
  TypeParam ring(4);
  for (int item = 0; item < 4; ++item)
    ASSERT_TRUE(ring.try_push(item));
  EXPECT_EQ(drain(ring), (std::vector<int>{0, 1, 2, 3}));
}

TYPED_TEST(RingTest, AFullRingRefusesAndTakesAgainAfterOneWasConsumed) {
  TypeParam ring(2);
  ASSERT_TRUE(ring.try_push(1));
  ASSERT_TRUE(ring.try_push(2));
  EXPECT_FALSE(ring.try_push(3));
  EXPECT_EQ(ring.try_pop(), 1);
  EXPECT_TRUE(ring.try_push(3));
  EXPECT_FALSE(ring.try_push(4));
  EXPECT_EQ(drain(ring), (std::vector<int>{2, 3}));
}

TYPED_TEST(RingTest, ARingOfOneSlotWorks) {
  TypeParam ring(1);
  for (int item = 0; item < 10; ++item) {
    ASSERT_TRUE(ring.try_push(item));
    ASSERT_FALSE(ring.try_push(99));
    ASSERT_EQ(ring.try_pop(), item);
    ASSERT_FALSE(ring.try_pop());
  }
}

TYPED_TEST(RingTest, ABatchTakesWhatFitsAndSaysHowMany) {
  TypeParam ring(4);
  const std::vector<int> items{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(ring.try_push_n(items.begin(), items.size()), 4u);
  EXPECT_EQ(ring.try_push_n(items.begin(), items.size()), 0u);
  EXPECT_EQ(ring.try_push_n(items.begin(), 0), 0u);
  EXPECT_EQ(drain(ring), (std::vector<int>{1, 2, 3, 4}));
}

TYPED_TEST(RingTest, ConsumptionStopsAtItsMaximum) {
  TypeParam ring(8);
  for (int item = 0; item < 5; ++item)
    ASSERT_TRUE(ring.try_push(item));
  std::vector<int> out;
  EXPECT_EQ(ring.try_consume(3, [&](int& item) { out.push_back(item); }), 3u);
  EXPECT_EQ(out, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(ring.size(), 2u);
}

TYPED_TEST(RingTest, AfterCloseNothingGoesInAndTheRestComesOut) {
  TypeParam ring(4);
  ASSERT_TRUE(ring.push(1));
  ASSERT_TRUE(ring.push(2));
  ring.close();
  ring.close();
  EXPECT_TRUE(ring.closed());
  EXPECT_FALSE(ring.push(3));
  EXPECT_FALSE(ring.try_push(3));
  const std::vector<int> more{3, 4};
  EXPECT_EQ(ring.push_n(more.begin(), more.size()), 0u);
  EXPECT_EQ(ring.pop(), 1);
  EXPECT_EQ(ring.pop(), 2);
  EXPECT_EQ(ring.pop(), std::nullopt);
  EXPECT_EQ(ring.consume(1, [](int&) {}), 0u);
}

TYPED_TEST(RingTest, AnExceptionOfTheConsumerConsumesItsItemAndKeepsTheRest) {
  TypeParam ring(4);
  for (int item = 0; item < 4; ++item)
    ASSERT_TRUE(ring.try_push(item));
  const auto fail_at_one = [](int& item) {
    if (item == 1) (void)std::stoi("not a number");
  };
  EXPECT_THROW(ring.try_consume(4, fail_at_one), std::invalid_argument);
  EXPECT_TRUE(ring.try_push(4));  // Two slots were given back.
  EXPECT_TRUE(ring.try_push(5));
  EXPECT_FALSE(ring.try_push(6));
  EXPECT_EQ(drain(ring), (std::vector<int>{2, 3, 4, 5}));
}

TYPED_TEST(RingTest, AConsumerThatWaitsIsWokenByAnItem) {
  TypeParam ring(4);
  std::thread consumer([&] { EXPECT_EQ(ring.pop(), 7); });
  ring.push(7);
  consumer.join();
}

TYPED_TEST(RingTest, CloseWakesAWaitingConsumerAndAWaitingProducer) {
  TypeParam empty(1);
  std::thread consumer([&] { EXPECT_EQ(empty.pop(), std::nullopt); });
  TypeParam full(1);
  ASSERT_TRUE(full.push(1));
  std::thread producer([&] { EXPECT_FALSE(full.push(2)); });
  empty.close();
  full.close();
  consumer.join();
  producer.join();
  EXPECT_EQ(full.pop(), 1);
  EXPECT_EQ(full.pop(), std::nullopt);
}

TYPED_TEST(RingTest, ManyItemsThroughASmallRingStayInOrder) {
  constexpr int kItemCount = 20'000;
  TypeParam ring(64);
  std::thread producer([&] {
    std::vector<int> batch(5);
    for (int item = 0; item < kItemCount; item += 5) {
      std::iota(batch.begin(), batch.end(), item);
      if (item % 2 == 0) {
        ASSERT_EQ(ring.push_n(batch.begin(), batch.size()), batch.size());
      } else {
        for (const int one : batch)
          ASSERT_TRUE(ring.push(one));
      }
    }
    ring.close();
  });
  int expected = 0;
  while (ring.consume(3, [&](int& item) { ASSERT_EQ(item, expected++); }) > 0) {
  }
  producer.join();
  EXPECT_EQ(expected, kItemCount);
}

template <class Ring>
class MoveOnlyRingTest : public testing::Test {};
using MoveOnlyRings =
    testing::Types<SpscRing<std::unique_ptr<int>>, MpscRing<std::unique_ptr<int>>>;
TYPED_TEST_SUITE(MoveOnlyRingTest, MoveOnlyRings);

TYPED_TEST(MoveOnlyRingTest, AnItemThatIsRefusedStaysWithTheCaller) {
  TypeParam ring(1);
  auto first = std::make_unique<int>(1);
  auto second = std::make_unique<int>(2);
  EXPECT_TRUE(ring.try_push(std::move(first)));
  EXPECT_FALSE(ring.try_push(std::move(second)));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(**ring.pop(), 1);
  ring.close();
  EXPECT_FALSE(ring.push(std::move(second)));
  EXPECT_NE(second, nullptr);
}

TYPED_TEST(MoveOnlyRingTest, WhatIsLeftIsDestroyedWithTheRing) {
  TypeParam ring(4);  // The leak checker of the address sanitizer is the judge.
  std::vector<std::unique_ptr<int>> items;
  for (int i = 0; i < 6; ++i)
    items.push_back(std::make_unique<int>(i));
  EXPECT_EQ(ring.try_push_n(std::make_move_iterator(items.begin()), items.size()), 4u);
  EXPECT_EQ(items[3], nullptr);
  EXPECT_NE(items[4], nullptr);
  EXPECT_EQ(**ring.try_pop(), 0);
}

TEST(RingDeathTest, ACapacityThatIsNoPowerOfTwoIsAProgrammerError) {
  EXPECT_DEATH(SpscRing<int>(3), "capacity");
  EXPECT_DEATH(MpscRing<int>(0), "capacity");
}

// Goal: whatever the interleaving of real threads, each producer's items arrive once, whole and in
// order, and a push that succeeded is consumed although the ring is closed at some moment.
// Method: three producers push 64-byte items singly and in batches until the ring closes.
struct Item {
  std::uint64_t producer;
  std::uint64_t number;
  std::uint64_t copies[6];  // All equal to number: torn items show.
};

Item make_item(std::uint64_t producer, std::uint64_t number) {
  return {producer, number, {number, number, number, number, number, number}};
}

template <template <class> class Wait>
void stress_mpsc(std::size_t capacity) {
  constexpr std::size_t kProducerCount = 3;
  constexpr std::uint64_t kItemCountMax = 40'000;
  MpscRing<Item, Wait> ring(capacity);
  std::vector<std::uint64_t> pushed(kProducerCount);
  std::vector<std::thread> producers;
  for (std::size_t self = 0; self < kProducerCount; ++self) {
    producers.emplace_back([&, self] {
      std::uint64_t number = 0;
      while (number < kItemCountMax) {
        Item batch[3] = {make_item(self, number), make_item(self, number + 1),
                         make_item(self, number + 2)};
        const std::size_t wanted = number % 2 == 0 ? 3 : 1;
        const std::size_t count = ring.push_n(std::begin(batch), wanted);
        number += count;
        if (count < wanted) break;
      }
      pushed[self] = number;
    });
  }
  std::vector<std::uint64_t> seen(kProducerCount);
  std::uint64_t total = 0;
  const auto check = [&](Item& item) {
    ASSERT_EQ(item.number, seen[item.producer]++);
    for (const std::uint64_t copy : item.copies)
      ASSERT_EQ(copy, item.number);
    if (++total == kProducerCount * kItemCountMax * 3 / 4) ring.close();
  };
  while (ring.consume(64, check) > 0) {
  }
  for (auto& producer : producers)
    producer.join();
  EXPECT_EQ(seen, pushed);
}

TEST(MpscRingStress, ThreeProducersBlocking) {
  stress_mpsc<BlockWait>(16);
}
TEST(MpscRingStress, ThreeProducersBlockingOnOneSlot) {
  stress_mpsc<BlockWait>(1);
}
TEST(MpscRingStress, ThreeProducersYielding) {
  stress_mpsc<YieldWait>(16);
}

// Goal: closing from a third thread is exact. Method: many short lives of a small ring.
TEST(SpscRingStress, ClosingFromAThirdThreadLosesNoAcceptedItem) {
  for (int life = 0; life < 300; ++life) {
    SpscRing<int> ring(2);
    int pushed = 0;
    std::thread producer([&] {
      while (ring.push(pushed))
        ++pushed;
    });
    std::atomic<int> seen{0};
    std::thread closer([&] {
      while (seen.load(std::memory_order_relaxed) < life)
        StdAtomics::yield();
      ring.close();
    });
    int expected = 0;
    while (ring.consume(4, [&](int& item) { ASSERT_EQ(item, expected++); }) > 0)
      seen.store(expected, std::memory_order_relaxed);
    producer.join();
    closer.join();
    ASSERT_EQ(expected, pushed);
  }
}

TEST(LookPaceTest, AConsumerOfLoneItemsLooksOften) {
  LookPace pace;
  for (int wait = 0; wait < 100; ++wait) {
    pace.got(1);
    EXPECT_LE(pace.pauses(), 8);
  }
}

TEST(LookPaceTest, AConsumerOfAStreamStaysAwayLongerAndComesBackWhenItEnds) {
  LookPace pace;
  EXPECT_EQ(pace.pauses(), 1);
  for (int wait = 0; wait < 10; ++wait)
    pace.got(64);
  EXPECT_EQ(pace.pauses(), LookPace::kPausesMax);
  for (int wait = 0; wait < 10; ++wait)
    pace.got(1);
  EXPECT_LE(pace.pauses(), 8);
}

}  // namespace
}  // namespace ordo
