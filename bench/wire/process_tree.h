// What a server and the processes it started have used. Some systems are many processes.
//
//   const std::uint64_t before = tree_cpu_ns(server);
//
// Threads: any.
// Cost:    reads /proc of every process of the machine.
#pragma once

#include <cstdint>

namespace ordo::bench {

// User and system time so far, of ended children that were waited for, too; counts in steps of
// 10 ms. 0 for process 0.
std::uint64_t tree_cpu_ns(int root);

}  // namespace ordo::bench
