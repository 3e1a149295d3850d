#include "ordo/lane/flat_index.h"

#include <cstdint>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace ordo {
namespace {

// The keys of the objects are the objects themselves: object n has key n.
std::uint32_t find(const FlatIndex& index, std::uint32_t hash, std::uint32_t key) {
  return index.find(hash, [&](std::uint32_t object) { return object == key; });
}

TEST(FlatIndexTest, FindsWhatWasInsertedAndNothingElse) {
  FlatIndex index;
  EXPECT_EQ(find(index, 5, 1), kNoIndex);
  index.insert(5, 1);
  EXPECT_EQ(find(index, 5, 1), 1u);
  EXPECT_EQ(find(index, 5, 2), kNoIndex);
  EXPECT_EQ(find(index, 6, 1), kNoIndex);
  index.erase(5, 1);
  EXPECT_EQ(find(index, 5, 1), kNoIndex);
  EXPECT_EQ(index.count(), 0u);
}

TEST(FlatIndexTest, ErasingOneOfManyWithEqualHashKeepsTheOthers) {
  FlatIndex index;
  for (std::uint32_t object = 0; object < 50; ++object) {
    index.insert(15, object);  // The last slot of the smallest table: they wrap around.
  }
  for (std::uint32_t object = 0; object < 50; object += 3) {
    index.erase(15, object);
  }
  for (std::uint32_t object = 0; object < 50; ++object) {
    EXPECT_EQ(find(index, 15, object), object % 3 == 0 ? kNoIndex : object);
  }
}

TEST(FlatIndexTest, ReservingAndClearingKeepItConsistent) {
  FlatIndex index;
  index.insert(1, 1);
  index.reserve(10'000);
  EXPECT_EQ(find(index, 1, 1), 1u);
  index.clear();
  EXPECT_EQ(find(index, 1, 1), kNoIndex);
  EXPECT_EQ(index.count(), 0u);
}

TEST(FlatIndexDeathTest, ErasingWhatIsNotThereIsAProgrammerError) {
  FlatIndex index;
  EXPECT_DEATH(index.erase(5, 1), "kNoIndex");
}

// Goal: finds exactly what is in it, whatever hashes collide. Method: random inserting and erasing
// with hashes of few values against a map; the seed names the failing run.
class FlatIndexSchedule : public testing::TestWithParam<std::uint32_t> {};

TEST_P(FlatIndexSchedule, AgreesWithAMapAtEveryStep) {
  std::mt19937 random(GetParam());
  const std::uint32_t hash_count = 1 + static_cast<std::uint32_t>(random() % 40);
  FlatIndex index;
  std::map<std::uint32_t, std::uint32_t> model;  // From objects to hashes.
  for (int step = 0; step < 5'000; ++step) {
    const auto object = static_cast<std::uint32_t>(random() % 100);
    if (model.contains(object)) {
      index.erase(model[object], object);
      model.erase(object);
    } else {
      model[object] = static_cast<std::uint32_t>(random() % hash_count) * 0x40000001u;
      index.insert(model[object], object);
    }
    ASSERT_EQ(index.count(), model.size());
    const auto probe = static_cast<std::uint32_t>(random() % 100);
    const bool is_there = model.contains(probe);
    ASSERT_EQ(find(index, is_there ? model[probe] : 1, probe), is_there ? probe : kNoIndex)
        << "at step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FlatIndexSchedule, testing::Range(0u, 30u));

}  // namespace
}  // namespace ordo
