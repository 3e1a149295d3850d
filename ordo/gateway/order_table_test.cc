#include "ordo/gateway/order_table.h"

#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ordo::gateway {
namespace {

TEST(OrderTableTest, AnOrderIsFoundUntilItIsErased) {
  OrderTable orders;
  EXPECT_EQ(orders.find(1), nullptr);
  orders.insert(1).quantity = Quantity{10};
  orders.insert(std::numeric_limits<std::int64_t>::max()).quantity = Quantity{20};
  ASSERT_NE(orders.find(1), nullptr);
  EXPECT_EQ(orders.find(1)->quantity, Quantity{10});
  EXPECT_EQ(orders.find(std::numeric_limits<std::int64_t>::max())->quantity, Quantity{20});
  EXPECT_EQ(orders.count(), 2U);

  orders.erase(1);
  EXPECT_EQ(orders.find(1), nullptr);
  EXPECT_EQ(orders.count(), 1U);
}

TEST(OrderTableTest, MemoryFollowsTheNumberOfOrdersUpAndDown) {
  OrderTable orders;
  constexpr std::int64_t kCount = 200'000;
  for (std::int64_t id = 1; id <= kCount; ++id)
    orders.insert(id * 4);
  EXPECT_LT(orders.slot_count(), kCount * 3);
  for (std::int64_t id = 2; id <= kCount; ++id)
    orders.erase(id * 4);
  EXPECT_EQ(orders.count(), 1U);
  EXPECT_LE(orders.slot_count(), 64U * 8);  // Though one order stayed.
  EXPECT_NE(orders.find(4), nullptr);
}

// Goal: the table agrees with a map. Method: random inserts and erases of few ids, so that they
// collide, grow and shrink; the seed names the failing run.
TEST(OrderTableTest, NobodyOutsideKnowsWhichOrdersAreNeighbours) {
  OrderTable first;
  OrderTable second;
  std::vector<std::int64_t> seen_first;
  std::vector<std::int64_t> seen_second;
  for (std::int64_t id = 1; id <= 1'000; ++id) {
    first.insert(id);
    second.insert(id);
  }
  first.for_each([&](const Order& order) { seen_first.push_back(order.id); });
  second.for_each([&](const Order& order) { seen_second.push_back(order.id); });
  EXPECT_NE(seen_first, seen_second);
}

class OrderTableSchedule : public testing::TestWithParam<unsigned> {};

TEST_P(OrderTableSchedule, AgreesWithAMap) {
  std::mt19937_64 random(GetParam());
  OrderTable orders;
  std::map<std::int64_t, std::int64_t> model;
  for (int step = 0; step < 20'000; ++step) {
    const bool growing = (step / 4'000) % 2 == 0;
    const auto id = static_cast<std::int64_t>(1 + random() % 3'000) << (GetParam() % 40);
    Order* found = orders.find(id);
    const auto known = model.find(id);
    ASSERT_EQ(found != nullptr, known != model.end());
    if (found == nullptr && (growing || random() % 4 == 0)) {
      orders.insert(id).quantity = Quantity{step};
      model[id] = step;
    } else if (found != nullptr) {
      ASSERT_EQ(found->quantity.count, known->second);
      if (growing && random() % 4 != 0) continue;
      orders.erase(id);
      model.erase(known);
    }
    ASSERT_EQ(orders.count(), model.size());
  }
  std::size_t visited = 0;
  orders.for_each([&](const Order& order) {
    ++visited;
    EXPECT_EQ(model.at(order.id), order.quantity.count);
  });
  EXPECT_EQ(visited, model.size());
}
INSTANTIATE_TEST_SUITE_P(Seeds, OrderTableSchedule, testing::Range(0u, 10u));

}  // namespace
}  // namespace ordo::gateway
