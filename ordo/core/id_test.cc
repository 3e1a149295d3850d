#include "ordo/core/id.h"

#include <concepts>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

namespace ordo {
namespace {

using OrderId = Id<struct OrderIdTag>;
using UserId = Id<struct UserIdTag>;
using ShardId = Id<struct ShardIdTag, std::uint8_t>;
using Name = Id<struct NameTag, std::string>;
using Position = Id<struct PositionTag, std::uint64_t, IdKind::sequence>;

template <class T>
concept Increments = requires(T t) {
  ++t;
};

TEST(IdTest, IdsOfDifferentMeaningDoNotMix) {
  static_assert(!std::is_convertible_v<OrderId, UserId>);
  static_assert(!std::is_constructible_v<OrderId, UserId>);
  static_assert(!std::equality_comparable_with<OrderId, UserId>);
  static_assert(!std::is_convertible_v<int, OrderId>);
  static_assert(!std::is_convertible_v<OrderId, std::uint64_t>);
}

TEST(IdTest, OnlyASequenceCanBeIncremented) {
  static_assert(!Increments<OrderId>);
  static_assert(Increments<Position>);
  Position position(7);
  EXPECT_EQ(++position, Position(8));
  EXPECT_EQ(position.next(), Position(9));
  EXPECT_EQ(position + 5, Position(13));
  EXPECT_EQ(Position(13) - position, 5u);
}

TEST(IdTest, ComparesLikeItsValue) {
  EXPECT_EQ(OrderId(3), OrderId(3));
  EXPECT_NE(OrderId(3), OrderId(4));
  EXPECT_LT(OrderId(3), OrderId(4));
  EXPECT_LT(Name("a"), Name("b"));
  EXPECT_EQ(OrderId(), OrderId(0));
}

TEST(IdTest, IsAKeyOfMapsAndSets) {
  std::unordered_set<Name> set{Name("a"), Name("b"), Name("a")};
  EXPECT_EQ(set.size(), 2u);
  std::map<OrderId, int> map{{OrderId(2), 1}, {OrderId(1), 2}};
  EXPECT_EQ(map.begin()->first, OrderId(1));
}

TEST(IdTest, PrintsItsValue) {
  std::ostringstream out;
  out << OrderId(42) << ' ' << ShardId(65) << ' ' << Name("x");
  EXPECT_EQ(out.str(), "42 65 x");
}

TEST(IdTest, CostsNoMoreThanItsValue) {
  static_assert(sizeof(OrderId) == sizeof(std::uint64_t));
  static_assert(sizeof(ShardId) == 1);
  static_assert(std::is_trivially_copyable_v<Position>);
}

}  // namespace
}  // namespace ordo
