// MapRun: one run of `ordo map`: lines from a descriptor through the pool to the delivery.
//
//   MapRun run(setup);
//   run.go();                // returns when every line taken in is accounted for
//   report(run.counts(), run.pool_stats());
//
// The calling thread reads lines and watches for signals, for room in the window and for the end,
// all in one poll(); it never blocks anywhere else. Work is done and outputs are written by the
// threads of the pool.
//
// Threads: the pool's. go() is called once, with the signals of `signals` blocked in all threads.
// Bounds:  `window` lines and 256 MiB of them (one line at least) taken in and not yet delivered.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "ordo/app/batcher.h"
#include "ordo/app/delivery.h"
#include "ordo/app/job_runner.h"
#include "ordo/app/line_key.h"
#include "ordo/app/line_reader.h"
#include "ordo/app/progress.h"
#include "ordo/pool/pool.h"

namespace ordo::app {

// What a run is made of. Everything outlives it.
struct MapSetup {
  const MapOptions& options;  // `workers` and `window` are not 0 any more.
  JobRunner& runner;
  Verdict& verdict;
  const Clock& clock;
  const LineKey* key = nullptr;
  const Journal* past = nullptr;  // What to skip.
  Progress& progress;
  sigset_t signals;
  int input = 0;
};

class MapRun {
 public:
  MapRun(const MapSetup& setup, DeliveryParts parts);
  void go();

  const DeliveryCounts& counts() const { return delivery_.counts(); }
  const PoolStats& pool_stats() const { return pool_stats_; }
  std::uint64_t skipped() const { return skipped_; }
  // Read, and neither skipped nor handed to the pool because the run was stopped.
  std::uint64_t left_over() const { return left_over_; }
  std::chrono::nanoseconds elapsed() const { return elapsed_; }

 private:
  using JobPool = Pool<Batch, BatchResult>;

  std::unique_ptr<JobPool> make_pool();
  void admit();
  bool has_room() const;
  bool take_line(std::string_view line, bool cut);
  bool is_done_before(const Job& job);
  void end_of_input();
  void push_ready();
  void wait();
  std::uint64_t wake_target() const;
  void read_signal();
  void wake_if_waiting();
  void draw_progress();
  bool finished() const;

  MapSetup setup_;
  const std::size_t window_;
  UniqueFd wake_;
  UniqueFd signal_;
  LineReader reader_;
  Batcher batcher_;
  Delivery delivery_;
  std::deque<Batch> ready_;  // Not yet taken by the pool.
  std::uint64_t read_lines_ = 0;
  std::uint64_t admitted_lines_ = 0;  // To batcher, ready_ or pool.
  std::uint64_t admitted_bytes_ = 0;
  std::uint64_t skipped_ = 0;
  std::uint64_t left_over_ = 0;
  std::uint64_t input_bytes_ = 0;  // Of a file; 0 when unknown.
  bool input_ended_ = false;
  bool wants_input_ = false;  // The reader has no whole line left.
  // Delivery wakes this thread when so many lines are released; max: it does not wait.
  std::atomic<std::uint64_t> wake_at_;
  TimePoint began_;
  std::chrono::nanoseconds elapsed_{0};
  PoolStats pool_stats_;
  std::unique_ptr<JobPool> pool_;
};

}  // namespace ordo::app
