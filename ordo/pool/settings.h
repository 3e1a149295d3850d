// Settings: PoolOptions after they were found good, with every default filled in.
//
// A value that makes no sense is refused here, once, with a message that names the field; behind
// this door nobody checks again.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "ordo/core/clock.h"
#include "ordo/pool/options.h"

namespace ordo::pool {

// The most items a window and a buffer may hold, each; and the most workers.
inline constexpr std::size_t kWindowMax = std::size_t{1} << 24;
inline constexpr std::size_t kWorkersMax = 4096;

enum class Order : std::uint8_t { none, total, per_key };

struct Settings {
  std::size_t workers_min = 1;
  std::size_t workers_max = 1;
  std::optional<Autoscale> autoscale;
  std::size_t window = 2;
  std::size_t buffer_size = 0;
  Order order = Order::none;
  std::optional<std::chrono::nanoseconds> order_timeout;
  std::optional<std::chrono::nanoseconds> process_timeout;
  bool fail_stop = false;
  Clock* clock = nullptr;
};

// What in PoolOptions does not depend on the type of the input.
// Throws std::invalid_argument, naming the field, for values that make no sense.
Settings make_settings(const PoolOptions<int>& options);

template <class In>
Settings make_settings(const PoolOptions<In>& options) {
  PoolOptions<int> plain;
  plain.workers = options.workers;
  plain.autoscale = options.autoscale;
  plain.buffer_size = options.buffer_size;
  plain.preserve_order = options.preserve_order;
  plain.order_buffer_size = options.order_buffer_size;
  plain.order_timeout = options.order_timeout;
  if (options.partition_key) plain.partition_key = [](const int& input) { return input; };
  plain.process_timeout = options.process_timeout;
  plain.fail_stop = options.fail_stop;
  plain.clock = options.clock;
  return make_settings(plain);
}

// The later of two ends when adding would pass the end of time.
inline TimePoint saturating_add(TimePoint time, std::chrono::nanoseconds span) {
  return span > TimePoint::max() - time ? TimePoint::max() : time + span;
}

}  // namespace ordo::pool
