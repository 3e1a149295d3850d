// SelfBench: what a broker does on this machine, in a few seconds.
//
//   Result<BenchReport> report = run_self_bench({.part_time = 3s, .message_bytes = 100});
//   print(bench_picture(report->publish_latency));
//
// A broker of its own in a temporary folder, used in the process. First one publisher that waits
// for each message; then batches of 100 without waiting; then all of it is consumed, by key in
// order, and acknowledged.
//
// Threads: the caller's, who waits; and those of the broker.
// Bounds:  the three parts take `part_time` each, the last one as long as it takes, at most
//          kConsumeTime; the folder is removed, also after an error.
// Errors:  what the broker says; cancelled: it was stopped.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "ordo/core/histogram.h"
#include "ordo/core/result.h"

namespace ordo::app {

struct BenchOptions {
  std::chrono::nanoseconds part_time = std::chrono::seconds(3);
  std::size_t message_bytes = 100;
  std::string folder = {};  // Where the temporary folder is made; empty: the system's.
  std::function<bool()> stops = [] { return false; };  // Asked all the time; true: no more.
};

struct BenchReport {
  Histogram publish_latency;        // Nanoseconds, of one message that is waited for.
  double publishes_per_second = 0;  // One publisher that waits.
  double batched_per_second = 0;
  std::uint64_t batched = 0;
  double consumed_per_second = 0;  // And acknowledged.
  std::uint64_t consumed = 0;
  std::uint64_t misordered = 0;  // Of a key, before one that was published earlier: always 0.
  std::chrono::nanoseconds open_time{};
};

Result<BenchReport> run_self_bench(const BenchOptions& options);

// How the values lie, as bars of text: at most `rows` lines.
std::string bench_picture(const Histogram& latency, std::size_t rows = 16);

}  // namespace ordo::app
