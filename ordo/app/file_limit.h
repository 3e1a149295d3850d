// raise_file_limit(): as many open files as the system lets us have, up to a need.
// make_room_for(): the same, for a service and its connections.
//
// Threads: any, one at a time; they change a limit of the whole process.
#pragma once

#include <cstddef>

namespace ordo::app {

// Raises the soft limit up to the hard one, but not beyond `need`. Returns the limit in force.
std::size_t raise_file_limit(std::size_t need);

// How many of `connections` there is room for beside `own_files` (half of all files, where there
// are few), at least 1; says so when that is less.
std::size_t make_room_for(std::size_t connections, std::size_t own_files);

}  // namespace ordo::app
