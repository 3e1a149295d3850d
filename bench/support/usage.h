// What time, processor time and memory a benchmark used, and what the rest of the machine used
// meanwhile.
//
//   const std::uint64_t from = now_ns(), cpu_from = process_cpu_ns();
//   work();
//   report(now_ns() - from, process_cpu_ns() - cpu_from);
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string_view>

#include "bench/support/measures.h"

namespace ordo::bench {

// Monotonic time.
std::uint64_t now_ns();

// User and system time of all threads of this process so far.
std::uint64_t process_cpu_ns();

// The largest resident size of this process so far; 0 where the system does not tell.
std::uint64_t process_peak_rss_bytes();

// Busy time of all processors of the machine so far, other machines' share (steal) included; counts
// in steps of 10 ms. 0 where the system does not tell.
std::uint64_t machine_busy_ns();

unsigned machine_processors();

// The first line of a result file: processor model, kernel, memory, compiler and build. Holds no
// host name. `mode` says how much was measured.
JsonLine machine_line(std::string_view mode);

}  // namespace ordo::bench
