#include "ordo/pool/settings.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ordo::pool {
namespace {

void require(bool condition, const std::string& message) {
  // tidy: allow(throw) as public constructors do
  if (!condition) throw std::invalid_argument(message);
}

void check_duration(std::chrono::nanoseconds value, const std::string& field, bool zero_allowed) {
  const auto least = zero_allowed ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(1);
  require(value >= least, field + " is " + std::to_string(value.count()) + " ns; it must be " +
                              (zero_allowed ? "zero or more" : "above zero"));
}

void check_count(std::size_t value, const std::string& field, std::size_t most) {
  require(value >= 1 && value <= most, field + " is " + std::to_string(value) +
                                           "; it must be between 1 and " + std::to_string(most));
}

void check_autoscale(const Autoscale& scale) {
  check_count(scale.min_workers, "autoscale.min_workers", kWorkersMax);
  check_count(scale.max_workers, "autoscale.max_workers", kWorkersMax);
  require(scale.max_workers >= scale.min_workers,
          "autoscale.max_workers (" + std::to_string(scale.max_workers) +
              ") is below autoscale.min_workers (" + std::to_string(scale.min_workers) + ")");
  check_count(scale.step, "autoscale.step", kWorkersMax);
  check_duration(scale.scale_up_cooldown, "autoscale.scale_up_cooldown", true);
  check_duration(scale.scale_down_cooldown, "autoscale.scale_down_cooldown", true);
  check_duration(scale.scale_down_after, "autoscale.scale_down_after", true);
  check_duration(scale.check_interval, "autoscale.check_interval", false);
}

}  // namespace

Settings make_settings(const PoolOptions<int>& options) {
  Settings settings;
  check_count(options.workers, "workers", kWorkersMax);
  settings.workers_min = settings.workers_max = options.workers;
  if (options.autoscale) {
    check_autoscale(*options.autoscale);
    settings.autoscale = options.autoscale;
    settings.workers_min = std::max(options.workers, options.autoscale->min_workers);
    settings.workers_max = options.autoscale->max_workers;
    require(settings.workers_max >= settings.workers_min,
            "workers (" + std::to_string(options.workers) + ") is above autoscale.max_workers (" +
                std::to_string(settings.workers_max) + ")");
  }

  settings.window =
      options.order_buffer_size != 0 ? options.order_buffer_size : 2 * settings.workers_max;
  check_count(settings.window, "order_buffer_size", kWindowMax);
  require(options.buffer_size <= kWindowMax,
          "buffer_size is " + std::to_string(options.buffer_size) + "; it must be at most " +
              std::to_string(kWindowMax));
  settings.buffer_size = options.buffer_size;

  settings.order = options.partition_key    ? Order::per_key
                   : options.preserve_order ? Order::total
                                            : Order::none;
  if (options.order_timeout) {
    check_duration(*options.order_timeout, "order_timeout", false);
    require(settings.order == Order::total,
            "order_timeout is set, but there is no total order to hold up: it needs "
            "preserve_order without partition_key");
  }
  if (options.process_timeout) check_duration(*options.process_timeout, "process_timeout", false);
  settings.order_timeout = options.order_timeout;
  settings.process_timeout = options.process_timeout;
  settings.fail_stop = options.fail_stop;
  settings.clock = options.clock != nullptr ? options.clock : &system_clock();
  return settings;
}

}  // namespace ordo::pool
