// The heats of bench_bus, each in a process of its own, and what they measure.
//
//   full     nobody pops: what does a publish cost that reaches nobody?
//   alone    the publishing thread empties all queues between bursts: the push path by itself
//   polled   one other thread empties all queues all the time; a burst is timed, then waited for
//   threads  the same with a sleeping thread for each subscriber
// In the last three every frame reaches everybody; a run in which one does not fails.
//
//   overload four subscribers of different priority, each of which burns as much processor time per
//            frame, on all cores; `load` is the demand as a multiple of what the machine has
#pragma once

#include <cstddef>
#include <string_view>

#include "bench/bus/fan_out.h"
#include "bench/support/measures.h"

namespace ordo::bench {

// ns_per_publish over some `milliseconds`; errors: frames lost, 0 in a good run.
Measures measure_publish(const BusContender& contender, std::string_view mode,
                         std::size_t subscribers, std::size_t milliseconds);

// Percent dropped by priority: dropped_critical, dropped_high, dropped_normal,
// dropped_best_effort.
Measures measure_overload(double load, std::size_t milliseconds);

}  // namespace ordo::bench
