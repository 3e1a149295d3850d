#include "ordo/core/histogram.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ordo {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(HistogramTest, AnEmptyHistogramAnswersZero) {
  Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.sum(), 0u);
  EXPECT_EQ(histogram.mean(), 0.0);
  EXPECT_EQ(histogram.quantile(0.5), 0u);
}

TEST(HistogramTest, ValuesBelow64AreExact) {
  for (std::uint64_t value = 0; value < 64; ++value) {
    Histogram histogram;
    histogram.record(value);
    histogram.record(1000);  // So that the answer is not merely max().
    EXPECT_EQ(histogram.quantile(0.5), value);
  }
}

TEST(HistogramTest, OneValueIsEveryQuantile) {
  Histogram histogram;
  histogram.record(123'456'789);
  EXPECT_EQ(histogram.quantile(0.0), 123'456'789u);
  EXPECT_EQ(histogram.quantile(0.5), 123'456'789u);
  EXPECT_EQ(histogram.quantile(1.0), 123'456'789u);
}

TEST(HistogramTest, AcceptsTheLargestValueThereIs) {
  Histogram histogram;
  histogram.record(kMost);
  histogram.record(0);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), kMost);
  EXPECT_EQ(histogram.quantile(1.0), kMost);
  EXPECT_EQ(histogram.quantile(0.5), 0u);
}

TEST(HistogramTest, ASumTooLargeStopsAtTheLargestNumberButTheMeanStaysRight) {
  Histogram histogram;
  histogram.record(kMost, 4);
  EXPECT_EQ(histogram.sum(), kMost);
  EXPECT_DOUBLE_EQ(histogram.mean(), static_cast<double>(kMost));
}

TEST(HistogramTest, ACountRecordsTheValueThatManyTimes) {
  Histogram histogram;
  histogram.record(10, 99);
  histogram.record(20, 1);
  histogram.record(30, 0);
  EXPECT_EQ(histogram.count(), 100u);
  EXPECT_EQ(histogram.sum(), 1010u);
  EXPECT_EQ(histogram.max(), 20u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 10.1);
  EXPECT_EQ(histogram.quantile(0.99), 10u);
  EXPECT_EQ(histogram.quantile(0.991), 20u);
}

TEST(HistogramTest, ResetForgetsEverything) {
  Histogram histogram;
  histogram.record(77);
  histogram.reset();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.quantile(1.0), 0u);
  histogram.record(5);
  EXPECT_EQ(histogram.min(), 5u);
}

TEST(HistogramTest, MergingEqualsRecordingInOne) {
  std::mt19937_64 random(7);
  Histogram left, right, both;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = random() >> (random() % 64);
    (i % 3 == 0 ? left : right).record(value);
    both.record(value);
  }
  left.merge(right);
  left.merge(Histogram());
  EXPECT_EQ(left.count(), both.count());
  EXPECT_EQ(left.sum(), both.sum());
  EXPECT_EQ(left.min(), both.min());
  EXPECT_EQ(left.max(), both.max());
  for (int percent = 0; percent <= 100; ++percent) {
    EXPECT_EQ(left.quantile(percent / 100.0), both.quantile(percent / 100.0)) << percent;
  }
}

TEST(HistogramTest, MergingIntoAnEmptyOneIsACopy) {
  Histogram source, target;
  source.record(1000, 3);
  target.merge(source);
  EXPECT_EQ(target.min(), 1000u);
  EXPECT_EQ(target.max(), 1000u);
  EXPECT_EQ(target.count(), 3u);
}

TEST(HistogramTest, BucketsCoverAllValuesWithoutGapOrOverlap) {
  Histogram histogram;
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (std::uint64_t step = 0; step < 64; ++step) {
      const std::uint64_t low = std::uint64_t{1} << bit;
      histogram.record(low + (bit < 6 ? 0 : (low / 64) * step));
    }
  }
  std::uint64_t after_last = 0;
  std::uint64_t total = 0;
  histogram.for_each_bucket([&](std::uint64_t low, std::uint64_t high, std::uint64_t count) {
    EXPECT_GE(low, after_last);
    EXPECT_GE(high, low);
    EXPECT_LE(high - low, low / 32) << "bucket wider than 1/32 of its values";
    after_last = high;
    total += count;
  });
  EXPECT_EQ(after_last, kMost);
  EXPECT_EQ(total, histogram.count());
}

TEST(HistogramDeathTest, AQuantileOutsideZeroToOneIsAProgrammerError) {
  Histogram histogram;
  EXPECT_DEATH(histogram.quantile(1.5), "check failed");
  EXPECT_DEATH(histogram.quantile(-0.1), "check failed");
  EXPECT_DEATH(histogram.quantile(std::nan("")), "check failed");
}

// Goal: every quantile is at most 1/32 above the true one, and never below it.
// Method: values of all magnitudes against a sorted copy; the seed names the failing run.
class HistogramSeed : public testing::TestWithParam<std::uint32_t> {};

TEST_P(HistogramSeed, QuantilesAreWithinOneThirtySecondOfTheTruth) {
  std::mt19937_64 random(GetParam());
  Histogram histogram;
  std::vector<std::uint64_t> values(1 + random() % 5000);
  for (std::uint64_t& value : values) {
    value = random() >> (random() % 64);
    histogram.record(value);
  }
  std::sort(values.begin(), values.end());
  for (std::size_t percent = 1; percent <= 100; ++percent) {
    const std::size_t rank = (percent * values.size() + 99) / 100;
    const std::uint64_t truth = values[rank - 1];
    // The middle between two ranks, so that rounding of the product does not decide the rank.
    const double q = (static_cast<double>(rank) - 0.5) / static_cast<double>(values.size());
    const std::uint64_t answer = histogram.quantile(q);
    EXPECT_GE(answer, truth);
    EXPECT_LE(answer - truth, truth / 32) << "percent " << percent;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, HistogramSeed, testing::Range(0u, 20u));

}  // namespace
}  // namespace ordo
