#include "ordo/gateway/order_table.h"

#include <algorithm>
#include <random>
#include <utility>

#include "ordo/core/check.h"

namespace ordo::gateway {

static_assert(sizeof(Order) == 48);

std::string_view name_of(OrderState state) {
  constexpr std::array<std::string_view, 4> kNames = {"open", "partially-filled", "filled",
                                                      "cancelled"};
  return kNames.at(static_cast<std::size_t>(state));
}

std::uint64_t OrderTable::random_seed() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source();
}

Order& OrderTable::insert(std::int64_t id) {
  ORDO_CHECK(id > 0);
  const std::uint64_t hash = hash_with_seed(id);
  const std::size_t index = hash >> kPartShift;
  std::vector<Order>& part = parts_[index];
  // At most three slots in four are taken.
  if ((std::size_t{part_counts_[index]} + 1) * 4 > part.size() * 3) {
    resize(part, std::max(kSlotCountMin, part.size() * 2));
  }
  ++part_counts_[index];
  ++count_;
  Order& order = place_for(part, hash);
  order = Order{.id = id};
  return order;
}

void OrderTable::erase(std::int64_t id) {
  const std::uint64_t hash = hash_with_seed(id);
  const std::size_t index = hash >> kPartShift;
  std::vector<Order>& part = parts_[index];
  ORDO_CHECK(!part.empty());
  const std::size_t mask = part.size() - 1;
  std::size_t hole = hash & mask;
  while (part[hole].id != id) {
    ORDO_CHECK(part[hole].id != 0);
    hole = (hole + 1) & mask;
  }
  // A follower may move into the hole unless its home lies behind the hole.
  for (std::size_t place = (hole + 1) & mask; part[place].id != 0; place = (place + 1) & mask) {
    const std::size_t distance_home = (place - hash_with_seed(part[place].id)) & mask;
    const std::size_t distance_hole = (place - hole) & mask;
    if (distance_home >= distance_hole) {
      part[hole] = part[place];
      hole = place;
    }
  }
  part[hole] = Order{};
  --count_;
  if (std::size_t{--part_counts_[index]} * 8 < part.size() && part.size() > kSlotCountMin) {
    resize(part, part.size() / 2);
  }
}

std::size_t OrderTable::slot_count() const {
  std::size_t sum = 0;
  for (const std::vector<Order>& part : parts_)
    sum += part.size();
  return sum;
}

Order& OrderTable::place_for(std::vector<Order>& part, std::uint64_t hash) {
  const std::size_t mask = part.size() - 1;
  std::size_t place = hash & mask;
  while (part[place].id != 0)
    place = (place + 1) & mask;
  return part[place];
}

void OrderTable::resize(std::vector<Order>& part, std::size_t slot_count) const {
  const std::vector<Order> old = std::exchange(part, std::vector<Order>(slot_count));
  for (const Order& order : old) {
    if (order.id != 0) place_for(part, hash_with_seed(order.id)) = order;
  }
}

}  // namespace ordo::gateway
