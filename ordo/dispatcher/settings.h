// Settings: the options of a dispatcher that do not depend on its types, checked and complete.
//
//   Settings settings = make_settings(options);   // throws std::invalid_argument, naming the field
//
// Threads: plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "ordo/core/clock.h"
#include "ordo/dispatcher/options.h"

namespace ordo::dispatcher {

inline constexpr std::size_t kThreadsMax = 4096;
inline constexpr std::size_t kStripesMax = std::size_t{1} << 20;
inline constexpr std::size_t kQueuedMax = std::size_t{1} << 31;
inline constexpr std::int64_t kRetriesMax = 1'000'000;
inline constexpr std::chrono::nanoseconds kBackOffMax = std::chrono::hours(1);

struct Settings {
  std::size_t threads = 1;
  std::size_t stripes = 0;
  std::size_t max_queued_per_key = 1;
  std::size_t max_queued = 1;
  std::chrono::nanoseconds idle_timeout{0};
  Overflow overflow = Overflow::reject;
  GapPolicy gaps = GapPolicy::accept;
  RetryPlan retry;
  LastResort last = LastResort::skip;
  std::uint64_t seed = 1;
  Clock* clock = nullptr;
};

// Throws std::invalid_argument with the name of the field whose value makes no sense.
void check_settings(const Settings& settings);

template <class Options>
Settings make_settings(const Options& options) {
  Settings settings{
      .threads = options.threads,
      .stripes = options.stripes,
      .max_queued_per_key = options.max_queued_per_key,
      .max_queued = options.max_queued,
      .idle_timeout = options.idle_timeout,
      .overflow = options.overflow,
      .gaps = options.gaps,
      .retry = options.on_failure.retry_plan(),
      .last = options.on_failure.last_resort(),
      .seed = options.seed,
      .clock = options.clock != nullptr ? options.clock : &system_clock(),
  };
  check_settings(settings);
  return settings;
}

// How long to wait before attempt number `attempt` + 1: the base, doubled for each attempt before,
// at most kBackOffMax; of that between a half and the whole, as `random` says.
std::chrono::nanoseconds back_off(std::chrono::nanoseconds base, unsigned attempt,
                                  std::uint64_t random);

// The next number of a generator whose state is `state`.
std::uint64_t next_random(std::uint64_t& state);

// `time` plus `span`, or the end of time where that lies behind it.
TimePoint later(TimePoint time, std::chrono::nanoseconds span);

// While it lives, the current thread runs code of the user's on behalf of the dispatcher `owner`.
class CallingOut {
 public:
  explicit CallingOut(const void* owner);
  CallingOut(const CallingOut&) = delete;
  CallingOut& operator=(const CallingOut&) = delete;
  ~CallingOut();

  static bool is_for(const void* owner);

 private:
  const void* owner_;
  CallingOut* outer_;
};

}  // namespace ordo::dispatcher
