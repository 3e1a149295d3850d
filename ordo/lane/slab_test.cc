#include "ordo/lane/slab.h"

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace ordo {
namespace {

struct Node {
  std::uint32_t next = kNoIndex;
  std::uint64_t value = 0;
};

TEST(SlabTest, ObjectsKeepTheirAddressAndValueWhileTheSlabGrows) {
  Slab<Node> slab;
  std::vector<Node*> nodes;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    const std::uint32_t index = slab.acquire();
    ASSERT_EQ(index, i);
    slab[index].value = i;
    nodes.push_back(&slab[index]);
  }
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    ASSERT_EQ(&slab[i], nodes[i]);
    ASSERT_EQ(slab[i].value, i);
  }
  EXPECT_EQ(std::set<Node*>(nodes.begin(), nodes.end()).size(), 10'000u);
}

TEST(SlabTest, AReleasedPlaceIsUsedAgainBeforeANewOne) {
  Slab<Node> slab;
  for (int i = 0; i < 5; ++i) {
    slab.acquire();
  }
  slab.release(1);
  slab.release(3);
  EXPECT_EQ(slab.acquire(), 3u);
  EXPECT_EQ(slab.acquire(), 1u);
  EXPECT_EQ(slab.acquire(), 5u);
  EXPECT_EQ(slab.peak_count(), 6u);
}

TEST(SlabTest, MemoryStaysAtThePeakHoweverLongItIsUsed) {
  Slab<Node> slab;
  std::mt19937 random(1);
  std::vector<std::uint32_t> taken;
  for (int step = 0; step < 100'000; ++step) {
    if (taken.size() < 100 && random() % 2 == 0) {
      taken.push_back(slab.acquire());
    } else if (!taken.empty()) {
      std::swap(taken[random() % taken.size()], taken.back());
      slab.release(taken.back());
      taken.pop_back();
    }
  }
  EXPECT_LE(slab.peak_count(), 100u);
}

TEST(SlabTest, EveryObjectIsDestroyedOnce) {
  struct Owner {
    std::uint32_t next = kNoIndex;
    std::shared_ptr<int> probe;
  };
  auto probe = std::make_shared<int>(0);
  {
    Slab<Owner> slab;
    for (int i = 0; i < 1'000; ++i) {
      slab[slab.acquire()].probe = probe;
    }
    slab.release(7);
    EXPECT_EQ(probe.use_count(), 1'001);
    slab.clear();
    EXPECT_EQ(probe.use_count(), 1);
    slab[slab.acquire()].probe = probe;
    EXPECT_EQ(slab.peak_count(), 1u);
  }
  EXPECT_EQ(probe.use_count(), 1);
}

}  // namespace
}  // namespace ordo
