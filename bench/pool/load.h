// Load: the work that every contender of bench_pool does, and the measuring of it.
//
// A contender takes messages from fill(), has work() done on them by its workers in parallel, and
// hands them to take() in order. Load checks that they come complete and in order, and measures.
//
//   Load load(settings);
//   load.begin();
//   Message message;
//   for (std::uint64_t id = 0; id < load.items(); ++id) {
//     load.fill(message, id);  // Waits for the message's time when the load is paced.
//     load.work(message);
//     load.take(message);
//   }
//   Measures measures = load.finish();
//
// The message is 64 bytes. A contender moves it by value or by pointer, whichever its interface
// likes best.
//
// Threads: fill() has one caller, take() one caller at a time, work() any; begin() comes before and
//          finish() after all of them.
// Cost:    of begin() and take() about a nanosecond, plus two clock reads per sampled message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/measures.h"

namespace ordo::bench {

struct Message {
  std::uint64_t id = 0;
  std::uint64_t sent_ns = 0;  // When it was, or in a paced load should have been, sent.
  std::uint64_t answer = 0;   // What work() found.
  std::uint64_t burnt = 0;    // Keeps the burning of processor time from being optimised away.
  std::uint64_t body[4] = {};
};
static_assert(sizeof(Message) == 64);

// What a message costs. A name, so that a child process can be told which.
struct Workload {
  std::string_view name;
  std::string_view title;
  std::uint64_t burn_ns = 0;       // Processor time per message.
  std::uint64_t sleep_one_in = 0;  // One in so many messages sleeps ...
  std::uint64_t sleep_ns = 0;      // ... this long.
  std::uint64_t sleep_ns_max = 0;  // Every message sleeps a random time up to this.
  std::uint64_t pace_ns = 0;       // One message is sent per so many nanoseconds; 0: no pause.
};

// The workload called `name`, or nullptr.
const Workload* find_workload(std::string_view name);

struct LoadSettings {
  const Workload* workload = nullptr;
  std::uint64_t items = 0;
  std::size_t workers = 1;
  std::size_t window = 1024;
  double burn_rounds_per_ns = 1;  // Measured once by the driver: the same work for everybody.
  bool sample_latency = true;     // Off where memory is measured.
};

// How many rounds of the burning loop this machine does in a nanosecond.
double measure_burn_rounds_per_ns();

class Load {
 public:
  explicit Load(const LoadSettings& settings);

  std::uint64_t items() const { return settings_.items; }
  std::size_t workers() const { return settings_.workers; }
  std::size_t window() const { return settings_.window; }

  // Starts the clock.
  void begin();

  // Makes message `id`. In a paced load it returns when the message is due.
  void fill(Message& message, std::uint64_t id);

  // Does the work that the message stands for.
  void work(Message& message);

  // Accepts the next message in order.
  void take(const Message& message);

  // The measures of the run; `errors` among them is 0 when all came, once and in order.
  Measures finish();

  // How long the work of message `id` asks to sleep.
  std::uint64_t sleep_ns(std::uint64_t id) const;

 private:
  void wait_until_due(std::uint64_t due_ns) const;
  void mark_steady();
  void mark_end();
  void report_latency(Measures& measures);

  LoadSettings settings_;
  std::uint64_t burn_rounds_ = 0;
  std::uint64_t sample_mask_ = 0;
  std::vector<std::uint32_t> slept_ns_;  // Real length of each sleep; written by the workers.

  // Written by take() and begin().
  alignas(64) std::uint64_t next_ = 0;
  std::uint64_t next_mark_ = 0;
  std::uint64_t errors_ = 0;
  std::vector<double> latency_ns_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t begin_cpu_ns_ = 0;
  std::uint64_t end_ns_ = 0;
  std::uint64_t end_cpu_ns_ = 0;
  std::uint64_t half_allocations_ = 0;
  std::uint64_t end_allocations_ = 0;
  std::uint64_t early_peak_rss_ = 0;
  std::uint64_t end_peak_rss_ = 0;
};

}  // namespace ordo::bench
