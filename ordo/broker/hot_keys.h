// HotKeys: which keys of a subscription were delivered most often lately, and about how often.
//
//   HotKeys hot;
//   hot.count(lane.hash, lane.key, now);             // every delivery under a key
//   for (const HotKey& key : hot.top(20, now)) show(key.key, key.per_second);
//
// Of about sixteen deliveries one is looked at, and of the keys seen that way the most frequent are
// kept: who is not among them takes the place of the least frequent, with its count (the
// "space-saving" summary, so a hot key is never missed). Counts are halved every kHalfTime, so what
// was hot an hour ago is not hot now. Which deliveries are looked at is the same in every run, and
// no rhythm of keys escapes it: they are those of an irrational step around a circle.
//
// Threads: one owner.
// Bounds:  kPlaces keys.
// Cost:    a multiplication for each delivery; a search among kPlaces for each sixteenth.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/core/clock.h"

namespace ordo::broker {

struct HotKey {
  std::string key;
  double per_second = 0;  // Deliveries, about.
};

class HotKeys {
 public:
  static constexpr std::size_t kPlaces = 64;
  static constexpr std::chrono::seconds kHalfTime{8};

  void count(std::uint32_t hash, std::string_view key, TimePoint now) {
    if (((++seen_ * kGoldenStep) >> kSampleShift) == 0) take_sample(hash, key, now);
  }

  // The hottest first.
  std::vector<HotKey> top(std::size_t count_max, TimePoint now) const;
  // About; 0: it is not among the hottest.
  double per_second(std::uint32_t hash, std::string_view key, TimePoint now) const;

 private:
  static constexpr std::uint64_t kGoldenStep = 0x9e3779b97f4a7c15;
  static constexpr unsigned kSampleShift = 60;
  static constexpr double kSampleEvery = 16;

  struct Place {
    std::uint32_t hash = 0;
    double count = 0;      // Samples, those of its predecessors in this place included,
    double inherited = 0;  // which were so many.
    std::string key;
  };
  // How much a count has faded, and the time in which it grew, at a moment.
  struct Fading {
    double factor = 1;
    double seconds = 0;
  };

  void take_sample(std::uint32_t hash, std::string_view key, TimePoint now);
  void fade(TimePoint now);
  Fading fading_at(TimePoint now) const;
  static double rate_of(const Place& place, const Fading& fading);

  std::uint64_t seen_ = 0;
  std::vector<Place> places_;
  TimePoint faded_at_{};
  double weight_ = 0;  // Seconds before faded_at_ in which the counts grew, faded like them.
};

}  // namespace ordo::broker
