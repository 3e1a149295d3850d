// Settings: the options of a bus and of a subscriber after they were found good.
//
// A value that makes no sense is refused here, once, with a message that names the field; behind
// this door nobody checks again.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "ordo/bus/options.h"
#include "ordo/core/clock.h"

namespace ordo::bus {

inline constexpr std::size_t kPriorityCount = 4;
inline constexpr std::size_t kCapacityMax = std::size_t{1} << 20;
inline constexpr std::size_t kSubscribersMax = 256;

struct Settings {
  std::array<double, kPriorityCount> watermarks{};  // By priority; that of critical is not used.
  double hysteresis = 0;
  std::chrono::nanoseconds critical_timeout{0};
  std::chrono::nanoseconds health_window{0};
  std::size_t bytes_max = 0;
  std::function<double()> load = nullptr;
  Clock* clock = nullptr;
};

// What in BusOptions does not depend on the type of the frame.
// Throws std::invalid_argument, naming the field, for values that make no sense.
Settings make_settings(const BusOptions<int>& options);

template <class Frame>
Settings make_settings(const BusOptions<Frame>& options) {
  BusOptions<int> plain;
  plain.watermarks = options.watermarks;
  plain.hysteresis = options.hysteresis;
  plain.critical_timeout = options.critical_timeout;
  plain.health_window = options.health_window;
  plain.bytes_max = options.bytes_max;
  if (options.frame_bytes) plain.frame_bytes = [](const int& /*frame*/) { return std::size_t{0}; };
  plain.load = options.load;
  plain.clock = options.clock;
  return make_settings(plain);
}

// Throws std::invalid_argument for an unknown priority or policy and for a bad capacity.
void check_subscribe(const std::string& id, Priority priority, const SubscribeOptions& options);

// Throws std::invalid_argument(message) unless the condition holds.
void require(bool condition, const std::string& message);

// The later of two ends when adding would pass the end of time.
inline TimePoint saturating_add(TimePoint time, std::chrono::nanoseconds span) {
  return span > TimePoint::max() - time ? TimePoint::max() : time + span;
}

}  // namespace ordo::bus
