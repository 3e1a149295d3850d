// SeatSet: a set of subscribers by their seats, as many bits as a bus has seats.
//
//   SeatSet takers;
//   takers.add(3);
//   takers.for_each([&](std::size_t seat) { ... });
//
// Threads: none; one owner.
// Bounds:  kSubscribersMax seats, 32 bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "ordo/bus/settings.h"

namespace ordo::bus {

struct SeatSet {
  static constexpr std::size_t kBits = 64;
  static constexpr std::size_t kWords = kSubscribersMax / kBits;

  std::array<std::uint64_t, kWords> words{};

  static constexpr std::uint64_t bit(std::size_t seat) {
    return std::uint64_t{1} << (seat % kBits);
  }

  void add(std::size_t seat) { words[seat / kBits] |= bit(seat); }
  void remove(std::size_t seat) { words[seat / kBits] &= ~bit(seat); }
  bool has(std::size_t seat) const { return (words[seat / kBits] & bit(seat)) != 0; }
  bool any() const {
    std::uint64_t all = 0;
    for (const std::uint64_t word : words)
      all |= word;
    return all != 0;
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t word = 0; word < kWords; ++word) {
      for (std::uint64_t left = words[word]; left != 0; left &= left - 1)
        visit(word * kBits + static_cast<std::size_t>(std::countr_zero(left)));
    }
  }
};

}  // namespace ordo::bus
