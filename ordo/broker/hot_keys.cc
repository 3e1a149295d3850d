#include "ordo/broker/hot_keys.h"

#include <algorithm>
#include <cmath>

namespace ordo::broker {

HotKeys::Fading HotKeys::fading_at(TimePoint now) const {
  const double seconds = std::chrono::duration<double>(now - faded_at_).count();
  const double half_time = std::chrono::duration<double>(kHalfTime).count();
  const double halvings = std::floor(std::max(seconds, 0.0) / half_time);
  Fading fading;
  // What grew for h seconds in each of n periods, halved after each.
  fading.factor = std::exp2(-std::min(halvings, 64.0));
  fading.seconds = weight_ * fading.factor + half_time * (1 - fading.factor) +
                   (std::max(seconds, 0.0) - halvings * half_time);
  return fading;
}

double HotKeys::rate_of(const Place& place, const Fading& fading) {
  const double samples = (place.count - place.inherited) * fading.factor;
  // In the first moments a single delivery is no rate.
  return samples * kSampleEvery / std::max(fading.seconds, 1.0);
}

void HotKeys::fade(TimePoint now) {
  if (places_.empty()) {
    faded_at_ = now;
    weight_ = 0;
    return;
  }
  if (now - faded_at_ < kHalfTime) return;
  const auto halvings = (now - faded_at_) / kHalfTime;
  const Fading fading = fading_at(faded_at_ + halvings * kHalfTime);
  for (Place& place : places_) {
    place.count *= fading.factor;
    place.inherited *= fading.factor;
  }
  weight_ = fading.seconds;
  faded_at_ += halvings * kHalfTime;
}

void HotKeys::take_sample(std::uint32_t hash, std::string_view key, TimePoint now) {
  fade(now);
  Place* least = nullptr;
  for (Place& place : places_) {
    if (place.hash == hash && place.key == key) {
      place.count += 1;
      return;
    }
    if (least == nullptr || place.count < least->count) least = &place;
  }
  if (least == nullptr || places_.size() < kPlaces) {
    places_.push_back({hash, 1, 0, std::string(key)});
    return;
  }
  least->hash = hash;
  least->inherited = least->count;
  least->count += 1;
  least->key.assign(key);
}

std::vector<HotKey> HotKeys::top(std::size_t count_max, TimePoint now) const {
  const Fading fading = fading_at(now);
  std::vector<HotKey> keys;
  keys.reserve(places_.size());
  for (const Place& place : places_)
    keys.push_back({place.key, rate_of(place, fading)});
  std::stable_sort(keys.begin(), keys.end(),
                   [](const HotKey& a, const HotKey& b) { return a.per_second > b.per_second; });
  if (keys.size() > count_max) keys.resize(count_max);
  return keys;
}

double HotKeys::per_second(std::uint32_t hash, std::string_view key, TimePoint now) const {
  for (const Place& place : places_) {
    if (place.hash == hash && place.key == key) return rate_of(place, fading_at(now));
  }
  return 0;
}

}  // namespace ordo::broker
