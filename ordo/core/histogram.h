// Histogram: how values (latencies, sizes) are distributed, in fixed memory and a few percent.
//
//   Histogram latency;
//   latency.record(static_cast<std::uint64_t>(elapsed.count()));
//   report(latency.quantile(0.5), latency.quantile(0.99), latency.max());
//
// Log-linear: every power of two is cut into 32 buckets of equal width, so the width of a bucket
// is at most 1/32 of any value in it. Values below 64 are exact, as are min, max, count and sum.
//
// Threads: one owner. Give each thread its own and merge() copies of them.
// Bounds:  any 64-bit value, 15 KiB each; sum() stops at the largest 64-bit number.
// Cost:    record() is a few instructions, no allocation; quantile() and merge() visit all buckets.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace ordo {

class Histogram {
 public:
  // Adds `value`, `count` times.
  void record(std::uint64_t value, std::uint64_t count = 1) {
    if (count == 0) return;
    buckets_[bucket_of(value)] += count;
    count_ += count;
    sum_ += static_cast<Wide>(value) * count;
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }

  std::uint64_t count() const { return count_; }

  // Exact; 0 when nothing was recorded.
  std::uint64_t min() const { return count_ == 0 ? 0 : min_; }
  std::uint64_t max() const { return max_; }
  double mean() const;
  std::uint64_t sum() const;

  // The value that a share `q` of all values does not exceed: the highest value of the bucket it
  // lies in, but never above max(). 0 when nothing was recorded.
  // REQUIRES: 0 <= q <= 1.
  std::uint64_t quantile(double q) const;

  // Adds what `other` has recorded, as if it had been recorded here.
  void merge(const Histogram& other);

  void reset() { *this = Histogram(); }

  // Calls visit(lowest, highest, count) for each bucket that holds something, in rising order.
  template <class Visit>
  void for_each_bucket(Visit&& visit) const {
    for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
      if (buckets_[bucket] != 0) visit(lowest_of(bucket), highest_of(bucket), buckets_[bucket]);
    }
  }

 private:
  __extension__ using Wide = unsigned __int128;

  static constexpr unsigned kStepBits = 5;
  static constexpr std::size_t kStepCount = std::size_t{1} << kStepBits;
  static constexpr std::size_t kBucketCount = (64 - kStepBits + 1) * kStepCount;

  // Values below 2 * kStepCount are their own bucket. Above, the leading kStepBits + 1 bits of the
  // value and the number of bits below them make the bucket.
  static constexpr std::size_t bucket_of(std::uint64_t value) {
    if (value < kStepCount) return static_cast<std::size_t>(value);
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kStepBits;
    return shift * kStepCount + static_cast<std::size_t>(value >> shift);
  }
  static constexpr std::uint64_t lowest_of(std::size_t bucket) {
    if (bucket < kStepCount) return bucket;
    const std::size_t shift = bucket / kStepCount - 1;
    return static_cast<std::uint64_t>(bucket - shift * kStepCount) << shift;
  }
  static constexpr std::uint64_t highest_of(std::size_t bucket) {
    if (bucket < kStepCount) return bucket;
    const std::size_t shift = bucket / kStepCount - 1;
    return lowest_of(bucket) + ((std::uint64_t{1} << shift) - 1);
  }

  std::uint64_t count_ = 0;
  std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_ = 0;
  Wide sum_ = 0;
  std::array<std::uint64_t, kBucketCount> buckets_{};
};

}  // namespace ordo
