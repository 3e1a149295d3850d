#include "ordo/broker/hot_keys.h"

#include <chrono>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "ordo/core/hash.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;

class HotKeysTest : public testing::Test {
 protected:
  void deliver(const std::string& key) {
    hot_.count(static_cast<std::uint32_t>(hash_bytes(key)), key, now_);
  }
  double rate_of(const std::string& key) const {
    return hot_.per_second(static_cast<std::uint32_t>(hash_bytes(key)), key, now_);
  }
  static std::string name(int number) {
    std::string text = "k";
    return text += std::to_string(number);
  }

  HotKeys hot_;
  TimePoint now_{1h};
};

TEST_F(HotKeysTest, AHotKeyIsFoundAmongManyThatAreNot) {
  for (int round = 0; round < 20'000; ++round) {
    deliver("hot");
    deliver(name(round));
    deliver(name(round + 1'000'000));
    now_ += 1ms;
  }
  const auto top = hot_.top(1, now_);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].key, "hot");
  EXPECT_NEAR(top[0].per_second, 1'000, 150);
}

// Sixteen keys in turn, as many as one in sixteen is looked at.
TEST_F(HotKeysTest, NoRhythmOfKeysEscapesIt) {
  for (const int period : {2, 13, 16, 32}) {
    hot_ = HotKeys();
    for (int round = 0; round < 16'000 / period; ++round) {
      for (int key = 0; key < period; ++key)
        deliver(name(key));
      now_ += std::chrono::milliseconds(period);
    }
    const auto top = hot_.top(100, now_);
    ASSERT_EQ(top.size(), static_cast<std::size_t>(period));
    for (const HotKey& key : top)
      EXPECT_NEAR(key.per_second, 1'000.0 / period, 400.0 / period) << key.key << " of " << period;
  }
}

TEST_F(HotKeysTest, WhatWasHotCoolsDown) {
  for (int round = 0; round < 16'000; ++round) {
    deliver("yesterday");
    now_ += 1ms;
  }
  const double before = rate_of("yesterday");
  EXPECT_NEAR(before, 1'000, 100);
  now_ += 3 * HotKeys::kHalfTime;
  EXPECT_LT(rate_of("yesterday"), before / 4);
  now_ += 24h;
  EXPECT_LT(rate_of("yesterday"), 0.001);
  for (int round = 0; round < 1'000; ++round) {
    deliver("today");
    now_ += 10ms;
  }
  EXPECT_EQ(hot_.top(1, now_).at(0).key, "today");
}

TEST_F(HotKeysTest, KeepsNoMoreKeysThanItHasPlaces) {
  for (int key = 0; key < 100'000; ++key)
    deliver(name(key));
  EXPECT_EQ(hot_.top(1'000'000, now_).size(), HotKeys::kPlaces);
  EXPECT_EQ(hot_.top(3, now_).size(), 3u);
  EXPECT_EQ(rate_of("nobody"), 0);
}

}  // namespace
}  // namespace ordo::broker
