// The ideal: what a pool without any cost of its own would need for a load of sleeps.
//
// So many workers, each taking the next message the moment it is free; a message is admitted when
// the one `window` places before it was released; released in order. No processor time at all.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/pool/load.h"
#include "bench/support/measures.h"

namespace ordo::bench {

// The time until the last message is released, when the work on message i takes lengths_ns[i].
double ideal_ns(const std::vector<double>& lengths_ns, std::size_t workers, std::size_t window);

// The ideal for the load, with sleeps as long as they really are on this machine when nothing else
// runs: the asked length plus the usual lateness, measured here first on `sample_count` of them.
Measures measure_ideal(const LoadSettings& settings, std::size_t sample_count);

}  // namespace ordo::bench
