// PoolOptions: everything about a Pool that can be chosen, with its default. PoolStats: what it
// tells.
//
// An aggregate: name the fields you set and leave out the rest.
//
//   ordo::Pool<int, int> pool(fn, {.workers = 8, .preserve_order = true, .process_timeout = 2s});
//
// A value that makes no sense (no workers, max_workers < min_workers, a timeout of zero, ...) makes
// the constructor of the Pool throw std::invalid_argument with a message that names the field.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "ordo/core/clock.h"
#include "ordo/core/histogram.h"

namespace ordo {

// How the number of workers follows the demand. Demand is runnable input and free window slots.
struct Autoscale {
  std::size_t min_workers = 1;
  std::size_t max_workers = std::max(1u, std::thread::hardware_concurrency());
  std::chrono::nanoseconds scale_up_cooldown = std::chrono::seconds(5);     // Between two growths.
  std::chrono::nanoseconds scale_down_cooldown = std::chrono::seconds(10);  // Between two shrinks.
  std::chrono::nanoseconds scale_down_after = std::chrono::seconds(30);     // Idle this long first.
  std::chrono::nanoseconds check_interval = std::chrono::seconds(1);
  std::size_t step = 1;  // Workers added or removed at once.
};

// The key of an input, from any function input -> something std::hash knows. Inputs whose keys are
// equal share a lane. Two keys with one 64-bit hash share a lane too: order holds, a little
// freedom is lost, and that is one pair in four billion keys.
template <class In>
class PartitionKey {
 public:
  PartitionKey() = default;
  PartitionKey(std::nullptr_t) {}

  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, PartitionKey> && std::invocable<F&, const In&>)
      PartitionKey(F function)
      : hash_([function = std::move(function)](const In& input) mutable -> std::uint64_t {
          using Key = std::remove_cvref_t<std::invoke_result_t<F&, const In&>>;
          return std::hash<Key>{}(function(input));
        }) {}

  explicit operator bool() const { return static_cast<bool>(hash_); }
  std::uint64_t operator()(const In& input) const { return hash_(input); }

 private:
  std::function<std::uint64_t(const In&)> hash_;
};

template <class In>
struct PoolOptions {
  std::size_t workers = 1;                  // Static worker count; the minimum when autoscaling.
  std::optional<Autoscale> autoscale = {};  // None: the worker count is fixed.
  std::size_t buffer_size = 0;              // Outputs that may wait for pop() beyond the window.
  bool preserve_order = false;              // Total order of outputs = order of inputs.
  std::size_t order_buffer_size = 0;        // The window; 0: 2 x max(workers, max_workers).
  std::optional<std::chrono::nanoseconds> order_timeout =
      {};                               // How long the head may hold the line.
  PartitionKey<In> partition_key = {};  // Order per key instead of in total.
  std::optional<std::chrono::nanoseconds> process_timeout = {};  // Per item.
  // The original input and what was thrown, exactly once per failed item. None: a line on stderr,
  // at most one a second.
  std::function<void(const In&, std::exception_ptr)> on_error = {};
  std::function<void()> on_cleanup = {};  // Once, after the last output, before the end is visible.
  bool fail_stop = false;                 // Emit nothing after the first failed item, and end.
  // An input that order_timeout skipped; it counts as late, neither delivered nor failed.
  std::function<void(const In&)> on_late = {};
  Clock* clock = nullptr;  // Not owned, outlives the pool. None: the system's.
};

// What an item fails with when process_timeout ends it.
class ProcessTimeout : public std::runtime_error {
 public:
  ProcessTimeout() : std::runtime_error("process_timeout passed") {}
};

// What holds up the line.
struct HeadOfLine {
  std::uint64_t sequence = 0;  // Of the input everything behind is waiting for.
  std::chrono::nanoseconds blocked_for{0};
  bool waits_for_pop = false;  // It is done; nobody takes its output.
};

// A snapshot. When the pool has ended: admitted = delivered + failed + late + undone.
struct PoolStats {
  std::uint64_t admitted = 0;
  std::uint64_t delivered = 0;  // Inputs whose outputs, 0..n, were all taken.
  std::uint64_t failed = 0;     // Threw or timed out.
  std::uint64_t late = 0;       // Skipped by order_timeout; the result is never emitted.
  std::uint64_t undone = 0;     // Listed by stop().
  std::uint64_t outputs = 0;    // Outputs taken.

  std::size_t workers = 0;  // Now.
  std::size_t workers_min = 0;
  std::size_t workers_max = 0;
  std::uint64_t scale_ups = 0;
  std::uint64_t scale_downs = 0;
  std::size_t running = 0;  // Handlers running now; never above workers_max.

  std::size_t window = 0;
  std::size_t window_used = 0;  // Admitted and not yet released.
  std::size_t window_peak = 0;

  std::optional<HeadOfLine> head_of_line;
  Histogram stalls;  // Nanoseconds the line stood still, one entry per stall.
};

}  // namespace ordo
