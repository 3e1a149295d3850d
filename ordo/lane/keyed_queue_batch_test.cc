// Turns of several items, and making room among those that wait.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/lane/keyed_queue.h"

namespace ordo {
namespace {

using Queue = KeyedQueue<std::string, int>;

Queue& fill(Queue& queue, const std::string& key, int count) {
  for (int n = 1; n <= count; ++n)
    EXPECT_EQ(queue.push(key, n), Admission::admitted);
  return queue;
}

std::vector<int> items_of(Queue& queue, LaneHandle lane) {
  std::vector<int> items;
  std::uint32_t place = queue.head_place(lane);
  for (std::size_t left = queue.item_count(lane); left > 0; --left) {
    items.push_back(queue.item_at(place));
    if (left > 1) place = queue.place_behind(place);
  }
  return items;
}

TEST(KeyedQueueBatchTest, ATurnMayWalkOverTheItemsOfItsLaneInOrder) {
  Queue queue(16);
  fill(queue, "a", 5);
  const auto turn = queue.take();

  EXPECT_EQ(items_of(queue, turn->lane), (std::vector<int>{1, 2, 3, 4, 5}));
}

TEST(KeyedQueueBatchTest, PoppedItemsAreGoneWhileTheTurnGoesOn) {
  Queue queue(16);
  fill(queue, "a", 5);
  const auto turn = queue.take();

  queue.pop(turn->lane, 2);

  EXPECT_EQ(queue.item_count(), 3U);
  EXPECT_FALSE(queue.take());
  EXPECT_EQ(items_of(queue, turn->lane), (std::vector<int>{3, 4, 5}));
  queue.give_back(turn->lane);
  EXPECT_EQ(queue.take()->item, 3);
}

TEST(KeyedQueueBatchTest, ATurnThatPoppedEverythingStillHoldsItsKey) {
  Queue queue(16);
  fill(queue, "a", 2);
  const auto turn = queue.take();

  queue.pop(turn->lane, 2);
  ASSERT_EQ(queue.push("a", 3), Admission::admitted);
  EXPECT_FALSE(queue.take());

  queue.give_back(turn->lane);
  EXPECT_EQ(queue.take()->item, 3);
}

TEST(KeyedQueueBatchTest, ATurnGivenBackEmptyLeavesNoLane) {
  Queue queue(16);
  fill(queue, "a", 2);
  const auto turn = queue.take();
  queue.pop(turn->lane, 2);
  queue.give_back(turn->lane);
  EXPECT_EQ(queue.key_count(), 0U);
}

TEST(KeyedQueueBatchTest, AnItemIsFoundByItsTurnOnlyWhileThatTurnLasts) {
  Queue queue(16);
  fill(queue, "a", 1);
  const auto turn = queue.take();
  const LaneHandle lane = turn->lane;
  ASSERT_NE(queue.in_flight_item(lane), nullptr);
  EXPECT_EQ(*queue.in_flight_item(lane), 1);
  EXPECT_EQ(queue.key_of(lane), "a");

  queue.finish(lane);
  EXPECT_EQ(queue.in_flight_item(lane), nullptr);
  EXPECT_EQ(queue.in_flight_item(LaneHandle{}), nullptr);
}

TEST(KeyedQueueBatchTest, TheOldestWaitingItemIsTheOneBehindTheOneInFlight) {
  Queue queue(16);
  fill(queue, "a", 3);
  const auto turn = queue.take();

  EXPECT_EQ(queue.drop_waiting("a"), 2);
  EXPECT_EQ(queue.drop_waiting("a"), 3);
  EXPECT_EQ(queue.drop_waiting("a"), std::nullopt);
  EXPECT_EQ(queue.item_count(), 1U);

  ASSERT_EQ(queue.push("a", 4), Admission::admitted);  // The tail was found again.
  queue.finish(turn->lane);
  EXPECT_EQ(queue.take()->item, 4);
}

TEST(KeyedQueueBatchTest, TheNewestItemIsTheOneThatCameLastWhetherInFlightOrNot) {
  Queue queue(16);
  EXPECT_EQ(queue.newest("a"), nullptr);
  fill(queue, "a", 2);
  EXPECT_EQ(*queue.newest("a"), 2);
  const auto turn = queue.take();
  EXPECT_EQ(queue.drop_waiting("a"), 2);
  EXPECT_EQ(*queue.newest("a"), 1);
  queue.finish(turn->lane);
  EXPECT_EQ(queue.newest("a"), nullptr);
}

TEST(KeyedQueueBatchTest, WithNothingInFlightTheHeadIsTheOldest) {
  Queue queue(16);
  fill(queue, "a", 2);
  EXPECT_EQ(queue.drop_waiting("a"), 1);
  EXPECT_EQ(queue.drop_waiting("a"), 2);
  EXPECT_EQ(queue.drop_waiting("a"), std::nullopt);
  EXPECT_EQ(queue.key_count(), 0U);
}

TEST(KeyedQueueBatchTest, WhatWasAdmittedEarlierComesInOverTheLimit) {
  Queue queue(16, 1);
  ASSERT_EQ(queue.push("a", 1), Admission::admitted);
  ASSERT_EQ(queue.push("a", 2), Admission::key_full);
  queue.push_admitted("a", 2);
  EXPECT_EQ(queue.item_count("a"), 2U);
}

TEST(KeyedQueueBatchDeathTest, PoppingMoreThanThereIsIsAProgrammerError) {
  Queue queue(16);
  fill(queue, "a", 1);
  const auto turn = queue.take();
  EXPECT_DEATH(queue.pop(turn->lane, 2), "item_count");
}

}  // namespace
}  // namespace ordo
