#include "ordo/bus/settings.h"

#include <cmath>
#include <stdexcept>

namespace ordo::bus {
namespace {

void check_watermark(double value, const std::string& field) {
  require(std::isfinite(value) && value > 0 && value <= 1,
          field + " is " + std::to_string(value) + "; it must be above 0 and at most 1");
}

void check_watermarks(const Watermarks& marks) {
  check_watermark(marks.high, "watermarks.high");
  check_watermark(marks.normal, "watermarks.normal");
  check_watermark(marks.best_effort, "watermarks.best_effort");
  require(marks.normal <= marks.high, "watermarks.normal (" + std::to_string(marks.normal) +
                                          ") is above watermarks.high (" +
                                          std::to_string(marks.high) + ")");
  require(marks.best_effort <= marks.normal,
          "watermarks.best_effort (" + std::to_string(marks.best_effort) +
              ") is above watermarks.normal (" + std::to_string(marks.normal) + ")");
}

std::string in_ns(std::chrono::nanoseconds span) {
  return std::to_string(span.count()) + " ns";
}

}  // namespace

void require(bool condition, const std::string& message) {
  // tidy: allow(throw) as public constructors do
  if (!condition) throw std::invalid_argument(message);
}

Settings make_settings(const BusOptions<int>& options) {
  check_watermarks(options.watermarks);
  require(std::isfinite(options.hysteresis) && options.hysteresis >= 0 &&
              options.hysteresis < options.watermarks.best_effort,
          "hysteresis is " + std::to_string(options.hysteresis) +
              "; it must be zero or more and below watermarks.best_effort (" +
              std::to_string(options.watermarks.best_effort) + ")");
  require(options.critical_timeout >= std::chrono::nanoseconds::zero(),
          "critical_timeout is " + in_ns(options.critical_timeout) + "; it must be zero or more");
  require(options.health_window >= std::chrono::milliseconds(1),
          "health_window is " + in_ns(options.health_window) + "; it must be 1 ms or more");
  require((options.bytes_max == 0) == (options.frame_bytes == nullptr),
          options.bytes_max == 0 ? "frame_bytes is set, but bytes_max is 0: there is no budget"
                                 : "bytes_max is set, but frame_bytes is not: frames have no size");
  Settings settings;
  settings.watermarks = {1, options.watermarks.high, options.watermarks.normal,
                         options.watermarks.best_effort};
  settings.hysteresis = options.hysteresis;
  settings.critical_timeout = options.critical_timeout;
  settings.health_window = options.health_window;
  settings.bytes_max = options.bytes_max;
  settings.load = options.load;
  settings.clock = options.clock != nullptr ? options.clock : &system_clock();
  return settings;
}

void check_subscribe(const std::string& id, Priority priority, const SubscribeOptions& options) {
  const auto number = static_cast<unsigned>(priority);
  require(number < kPriorityCount, "priority of subscriber '" + id + "' is " +
                                       std::to_string(number) +
                                       "; it must be between 0 (critical) and 3 (best_effort)");
  const auto policy = static_cast<unsigned>(options.overflow);
  require(policy <= static_cast<unsigned>(Overflow::block),
          "overflow of subscriber '" + id + "' is " + std::to_string(policy) +
              "; it must be drop_newest, drop_oldest, latest or block");
  require(options.capacity >= 1 && options.capacity <= kCapacityMax,
          "capacity of subscriber '" + id + "' is " + std::to_string(options.capacity) +
              "; it must be between 1 and " + std::to_string(kCapacityMax));
}

}  // namespace ordo::bus
