// The loads of the wire benchmark, the same for every system.
//
//   publish   `batch` messages a request, `window` requests under way, for `seconds`
//   flow      the same, while a consumer receives and acknowledges; with `keys`: all messages of a
//             request have one key, a key has one request under way, and `handler_ns` pass between
//             receipt and acknowledgement
//   drain     `count` messages are stored first; then they are received and acknowledged
//   sync      `count` requests, one after the other
//   paced     `count` messages due at even times, `rate` a second, each sent when it is due
//   fill      `count` messages, which stay there
//   unary     `count` small calls that store nothing
//   fsync     `count` times `size` bytes are appended to a file in `folder` and synced: no server
//
//   Measures measures = run_load(plan);     // messages_per_s, p50_us, ..., errors
//
// Everything that was sent has to come once, in order within its key and one of a key in flight;
// `errors` counts what was otherwise. Latencies run from the time a message was due.
//
// Threads: `flow` and `paced` have a thread that consumes.
// Bounds:  30 s without progress end the run.
#pragma once

#include "bench/support/measures.h"
#include "bench/wire/plan.h"

namespace ordo::bench {

Measures run_load(const WirePlan& plan);

// The main() of every driver: arguments as in plan.h, measures as lines, 1 when a run was wrong.
int run_driver(int argc, char** argv);

}  // namespace ordo::bench
