#include "ordo/core/histogram.h"

#include <algorithm>
#include <cmath>

#include "ordo/core/check.h"

namespace ordo {

double Histogram::mean() const {
  return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::uint64_t Histogram::sum() const {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return sum_ > kMost ? kMost : static_cast<std::uint64_t>(sum_);
}

std::uint64_t Histogram::quantile(double q) const {
  ORDO_CHECK(q >= 0.0 && q <= 1.0);
  if (count_ == 0) return 0;
  const double wanted = std::ceil(q * static_cast<double>(count_));
  const bool is_last = wanted >= static_cast<double>(count_);
  const std::uint64_t rank =
      is_last ? count_ : std::max(static_cast<std::uint64_t>(wanted), std::uint64_t{1});
  std::uint64_t seen = 0;
  for (std::size_t bucket = bucket_of(min_); bucket < kBucketCount; ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank) return std::min(highest_of(bucket), max_);
  }
  return max_;
}

void Histogram::merge(const Histogram& other) {
  if (other.count_ == 0) return;
  const std::size_t last = bucket_of(other.max_);
  for (std::size_t bucket = bucket_of(other.min_); bucket <= last; ++bucket) {
    buckets_[bucket] += other.buckets_[bucket];
  }
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

}  // namespace ordo
