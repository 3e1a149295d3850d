// TokenBucket: lets a burst pass, and so many a second after it.
//
//   TokenBucket resets(1'000, 100);
//   if (!resets.take(now)) return too_many();
//
// Threads: one owner.
// Cost:    some arithmetic.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "ordo/core/clock.h"

namespace ordo::http2 {

class TokenBucket {
 public:
  TokenBucket(std::uint32_t burst, std::uint32_t per_second)
      : burst_(burst),
        per_second_(per_second),
        tokens_(burst) {}

  // False when there is none left; `now` never goes back.
  [[nodiscard]] bool take(TimePoint now) {
    if (tokens_ < 1) refill(now);
    if (tokens_ < 1) return false;
    if (tokens_ == burst_) filled_at_ = now;
    --tokens_;
    return true;
  }

 private:
  void refill(TimePoint now) {
    const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(now - filled_at_);
    const auto seconds = std::min<std::int64_t>(passed.count() / 1'000'000, 1 << 20);
    const auto parts = passed.count() % 1'000'000;
    const std::int64_t gained = seconds * per_second_ + parts * per_second_ / 1'000'000;
    if (gained < 1) return;
    tokens_ = std::min(burst_, tokens_ + gained);
    filled_at_ = now;
  }

  const std::int64_t burst_;
  const std::int64_t per_second_;
  std::int64_t tokens_;
  TimePoint filled_at_{};
};

}  // namespace ordo::http2
