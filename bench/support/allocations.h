// Counts calls of operator new. Linking allocations.cc replaces the global operators of the
// program.
//
// Each thread counts in a cell of its own, so that counting does not slow down those contenders
// that allocate from many threads. What a library takes from malloc or mmap directly is not seen.
//
// Threads: any.
#pragma once

#include <cstdint>

namespace ordo::bench {

// Calls of operator new so far, all threads together.
std::uint64_t allocation_count();

}  // namespace ordo::bench
