// Durations and sizes as people write them: 250ms, 1.5h, 1h30m, 64MiB, 10k.
//
//   Result<std::chrono::nanoseconds> timeout = parse_duration("250ms");
//   Result<std::uint64_t> limit = parse_size("64MiB");
//   if (!limit) return limit.error();  // says what was given and what is allowed
//
// Reading back what format_*() wrote gives the same value, always.
//
// Threads: pure functions.
// Bounds:  a duration up to 292 years, a size up to 16 EiB; beyond that an error, never a wrap.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/core/result.h"

namespace ordo {

// One or more numbers, each with a unit of ns, us, ms, s, m, h, d, largest unit first; the numbers
// may have a fraction. 0 needs no unit. Not negative, and not finer than a nanosecond.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// One number, perhaps with a fraction, and a unit: k M G T P E for powers of 1000, Ki Mi Gi Ti Pi
// Ei for powers of 1024, each with or without B, in any case; no unit or B for single ones.
Result<std::uint64_t> parse_size(std::string_view text);

// Exact and as short as it can be: 1h30m, 2.5s, 250ms.
// REQUIRES: duration >= 0.
std::string format_duration(std::chrono::nanoseconds duration);

// Exact, in the largest unit that divides it: 64MiB, 10k, 1023.
std::string format_size(std::uint64_t size);

}  // namespace ordo
