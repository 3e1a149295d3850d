// run_load: drives one server over many connections from one thread, and judges every answer.
//
// Closed loop (rate 0): each connection sends `pipelining` requests together and the next ones when
// all of them are answered, as redis-benchmark does.
// Open loop: bursts of `pipelining` requests are due at even times, whatever the server does, on
// the connections in turn. Latency runs from the time a request was due. A connection with
// kBurstsMax bursts unanswered keeps later ones back, and their time runs on. All that was due in
// the measured time counts, however late it is answered.
//
//   Measures run = run_load({.dialect = "redis_set", .port = port, .pipelining = 16});
//   run.get("errors") == 0
//
// Measured: requests_per_s, p50_us .. p999_us, max_us, client_cores and server_cores (processor
// time per time), errors, and of those disordered (an answer that is not the next one of its id:
// lost, doubled, overtaken), bad (refused, or another decision than the right one), unanswered.
//
// Threads: one; blocks while it runs.
// Bounds:  ends `patience_ns` after its time at the latest. Connections are closed when it returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/types.h>

#include "bench/support/measures.h"

namespace ordo::bench {

inline constexpr std::size_t kBurstsMax = 4;

struct LoadPlan {
  std::string dialect;
  std::uint16_t port = 0;
  std::size_t connections = 50;
  std::size_t first_connection = 0;  // Its number; ids differ between connections.
  std::size_t pipelining = 1;
  double rate = 0;  // Requests per second over all connections; 0: closed loop.
  std::uint64_t warm_ns = 200'000'000;
  std::uint64_t measured_ns = 1'000'000'000;
  std::uint64_t patience_ns = 5'000'000'000;  // For the last answers, after its time.
  pid_t server = 0;                           // Whose processor time is taken; 0: nobody's.
};

// What failed (no connection, say) is told as `errors`, with a line on standard error.
Measures run_load(const LoadPlan& plan);

}  // namespace ordo::bench
