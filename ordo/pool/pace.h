// Pace: what an item costs, as measured while the pool runs, and whether items are short.
//
// What a wake-up is worth depends on it, and so does whether a thread that waits in pop() may run
// the next item itself (see WorkLine): only if items have turned out to be short, so that nobody
// finds himself in a handler that waits for something.
//
//   pace.note(took_ns);  if (pace.items_are_short()) ...
//
// A single long sample may be a thread that lost its processor, so it is believed by degrees: the
// estimate grows by a factor at most, and items count as short again after a few short samples.
//
// Threads: any; samples that cross each other may count as one.
// Cost:    a few loads and stores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace ordo::pool {

class Pace {
 public:
  // The estimate after one more sample; 0 stands for none yet. Quick to believe that items are
  // dear, slow to believe that they are cheap: an error in the first direction costs a wake-up, in
  // the second it holds up the others.
  static double blend(double estimate_ns, double sample_ns) {
    if (estimate_ns <= 0) return sample_ns;
    const double more = sample_ns - estimate_ns;
    return estimate_ns + (more > 0 ? std::min(more, kGrowthMax * estimate_ns) / 2 : more / 16);
  }

  // A sample, and the estimate of whoever took it.
  void note(double sample_ns, double estimate_ns) {
    item_ns_.store(static_cast<std::uint64_t>(estimate_ns), std::memory_order_relaxed);
    int doubt = doubt_.load(std::memory_order_relaxed);
    doubt =
        sample_ns > kShortNs ? std::min(doubt + kDoubtPerLong, kDoubtMax) : std::max(doubt - 1, 0);
    doubt_.store(doubt, std::memory_order_relaxed);
    const bool are_short = doubt < kDoubtTolerated;
    if (are_short != short_.load(std::memory_order_relaxed)) {
      short_.store(are_short, std::memory_order_relaxed);
    }
  }

  std::uint64_t item_ns() const { return item_ns_.load(std::memory_order_relaxed); }
  bool items_are_short() const { return short_.load(std::memory_order_relaxed); }

 private:
  static constexpr double kGrowthMax = 8;
  static constexpr double kShortNs = 5'000;  // Less than a wake-up.
  static constexpr int kDoubtPerLong = 4;    // Fewer than one in five may be longer.
  static constexpr int kDoubtTolerated = 32;
  static constexpr int kDoubtMax = 256;
  static constexpr int kDoubtAtFirst = 64;
  static constexpr std::uint64_t kUnknownNs = 1'000'000;

  std::atomic<std::uint64_t> item_ns_{kUnknownNs};
  std::atomic<int> doubt_{kDoubtAtFirst};
  std::atomic<bool> short_{false};
};

}  // namespace ordo::pool
