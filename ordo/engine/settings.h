// check_options: refuses options of an engine that make no sense, once, naming the field.
#pragma once

#include <chrono>
#include <cstddef>

#include "ordo/engine/options.h"

namespace ordo::engine {

inline constexpr std::size_t kPartitionsMax = 256;
inline constexpr std::size_t kBudgetMax = std::size_t{1} << 20;
inline constexpr std::size_t kBatchMax = std::size_t{1} << 16;

// A loop turn ends after the task during which it has lasted this long, so that slow handlers do
// not hold back the answers of those before them.
inline constexpr std::chrono::microseconds kTurnTimeMax{100};
// A timer that is still due after it ran is not asked again before this.
inline constexpr std::chrono::milliseconds kOverduePause{1};
// What one flush() runs of a partition before it leaves the rest to the partition's own thread.
inline constexpr int kCallerTurnsMax = 8;
// Submits of a thread that may share one reading of the clock.
inline constexpr unsigned kSubmitsPerReading = 16;

// Throws std::invalid_argument, naming the field.
void check_options(const EngineOptions& options);

// The end of time when adding would pass it.
inline TimePoint saturating_add(TimePoint time, std::chrono::nanoseconds span) {
  return span > TimePoint::max() - time ? TimePoint::max() : time + span;
}

}  // namespace ordo::engine
