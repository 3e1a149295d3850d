#include "ordo/core/hash.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/core/id.h"

namespace ordo {
namespace {

// How many of `counts` lie further than a fifth from their even share.
std::size_t uneven_count(const std::vector<int>& counts, int total) {
  const int share = total / static_cast<int>(counts.size());
  std::size_t uneven = 0;
  for (const int count : counts) {
    if (count < share - share / 5 || count > share + share / 5) ++uneven;
  }
  return uneven;
}

TEST(HashTest, IdsInStepsOfAnyPowerOfTwoSpreadEvenly) {
  constexpr int kKeys = 16'000;
  for (const std::size_t bucket_count : {2u, 3u, 4u, 7u, 8u, 16u}) {
    for (unsigned shift = 0; shift < 48; ++shift) {
      std::vector<int> counts(bucket_count);
      for (std::uint64_t key = 1; key <= kKeys; ++key) {
        ++counts[hash_to_bucket(key << shift, bucket_count)];
      }
      EXPECT_EQ(uneven_count(counts, kKeys), 0u) << bucket_count << " buckets, shift " << shift;
    }
  }
}

TEST(HashTest, NumberedTextsSpreadEvenly) {
  constexpr int kKeys = 16'000;
  for (const std::string_view prefix : {"", "user-", "a-rather-long-prefix-of-a-key-"}) {
    std::vector<int> counts(16);
    for (int key = 0; key < kKeys; ++key) {
      ++counts[hash_to_bucket(hash_of(std::string(prefix) + std::to_string(key)), 16)];
    }
    EXPECT_EQ(uneven_count(counts, kKeys), 0u) << prefix;
  }
}

TEST(HashTest, OneBucketTakesAll) {
  EXPECT_EQ(hash_to_bucket(0, 1), 0u);
  EXPECT_EQ(hash_to_bucket(std::numeric_limits<std::uint64_t>::max(), 1), 0u);
}

TEST(HashTest, EveryBucketIsWithinTheCount) {
  for (std::uint64_t key = 0; key < 10'000; ++key) {
    EXPECT_LT(hash_to_bucket(key, 7), 7u);
  }
}

TEST(HashTest, AFlippedBitOfTheInputFlipsAboutHalfOfTheOutput) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    int flipped = 0;
    for (std::uint64_t key = 1; key <= 256; ++key) {
      flipped += std::popcount(mix64(key) ^ mix64(key ^ (std::uint64_t{1} << bit)));
    }
    EXPECT_GT(flipped, 256 * 24) << bit;
    EXPECT_LT(flipped, 256 * 40) << bit;
  }
}

TEST(HashTest, EveryByteAndTheLengthCount) {
  std::set<std::uint64_t> hashes;
  std::size_t made = 0;
  for (std::size_t length = 0; length < 40; ++length) {
    hashes.insert(hash_bytes(std::string(length, '\0')));
    ++made;
    for (std::size_t place = 0; place < length; ++place) {
      std::string text(length, '\0');
      text[place] = '\1';
      hashes.insert(hash_bytes(text));
      text[place] = '\xff';
      hashes.insert(hash_bytes(text));
      made += 2;
    }
  }
  EXPECT_EQ(hashes.size(), made);
}

TEST(HashTest, SwappedWordsHashDifferently) {
  EXPECT_NE(hash_bytes("aaaaaaaabbbbbbbb"), hash_bytes("bbbbbbbbaaaaaaaa"));
}

TEST(HashTest, AllTextTypesAgree) {
  EXPECT_EQ(hash_of(std::string("user-1")), hash_of(std::string_view("user-1")));
  EXPECT_EQ(hash_of("user-1"), hash_of(std::string_view("user-1")));
}

TEST(HashTest, ASeedGivesAnotherHash) {
  EXPECT_NE(hash_bytes("a", 1), hash_bytes("a", 2));
}

TEST(HashTest, IdsAndEnumerationsHashByValue) {
  using OrderId = Id<struct OrderIdTag>;
  enum class Color { red = 7 };
  EXPECT_EQ(hash_of(OrderId(7)), hash_of(OrderId(7)));
  EXPECT_NE(hash_of(OrderId(7)), hash_of(OrderId(8)));
  EXPECT_EQ(hash_of(Color::red), hash_of(7));
}

// The numbers may be written to disk or told to another process: they must never change.
TEST(HashTest, ResultsAreTheSameForever) {
  EXPECT_EQ(mix64(1), 0x5692161d100b05e5u);
  static_assert(mix64(0) == 0);
  EXPECT_EQ(hash_bytes("user-1"), 0xa404113b4d3c2abdu);
  EXPECT_EQ(hash_bytes("a longer text of more than eight bytes"), 0xbca9900286e41746u);
}

TEST(HashDeathTest, NoBucketsIsAProgrammerError) {
  EXPECT_DEATH(static_cast<void>(hash_to_bucket(1, 0)), "bucket_count > 0");
}

}  // namespace
}  // namespace ordo
