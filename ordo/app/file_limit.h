// raise_file_limit(): as many open files as the system lets us have, up to a need.
//
// Threads: any, one at a time; it changes a limit of the whole process.
#pragma once

#include <cstddef>

namespace ordo::app {

// Raises the soft limit up to the hard one, but not beyond `need`. Returns the limit in force.
std::size_t raise_file_limit(std::size_t need);

}  // namespace ordo::app
