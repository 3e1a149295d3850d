// Dice: the random choices of one simulated run, all from its seed.
//
//   Dice dice(seed);
//   if (dice.chance(10)) ...            // one time in ten
//   dice.between(1, 6), dice.pick(keys)
//
// Threads: one owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ordo/core/hash.h"

namespace ordo::simulation {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(mix64(seed + 0x9e3779b97f4a7c15u)) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    return mix64(state_);
  }
  // REQUIRES: count > 0.
  std::uint64_t below(std::uint64_t count) { return next() % count; }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + below(most - least + 1);
  }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  template <class T>
  const T& pick(const std::vector<T>& values) {
    return values[below(values.size())];
  }
  std::chrono::nanoseconds time(std::chrono::nanoseconds least, std::chrono::nanoseconds most) {
    return std::chrono::nanoseconds(between(static_cast<std::uint64_t>(least.count()),
                                            static_cast<std::uint64_t>(most.count())));
  }

 private:
  std::uint64_t state_;
};

}  // namespace ordo::simulation
