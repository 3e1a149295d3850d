// JobRunner: what a worker of the pool does with a batch of lines. It does not fail: whatever
// happens to a job becomes its result.
//
//   ProcessRunner runner(context);             // or ServerRunner, or DryRunner
//   pool([&](const Batch& batch, std::stop_token) { return runner.run(batch); }, ...)
//
// Threads: run() may be called by any number of threads at once; finish() when none does.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>

#include "ordo/app/command_template.h"
#include "ordo/app/job.h"
#include "ordo/app/map_options.h"
#include "ordo/app/slots.h"
#include "ordo/app/spawn.h"
#include "ordo/app/stop_signal.h"
#include "ordo/app/verdict.h"
#include "ordo/core/clock.h"

namespace ordo::app {

// What all jobs of a run share. Everything outlives the runner.
struct RunContext {
  const MapOptions& options;
  const CommandTemplate& command;
  const std::string& file;  // Of the command.
  const Spawner& spawner;
  const StopSignal& stop;
  const Clock& clock;
  Verdict& verdict;
  // With --halt, the number of the first job that failed: later ones are not begun.
  std::atomic<std::uint64_t> halted_at{std::numeric_limits<std::uint64_t>::max()};

  bool may_begin(std::uint64_t number) const {
    return !stop.requested() && number <= halted_at.load(std::memory_order_acquire);
  }
  // Takes note of the end of a job.
  void ended(const JobResult& result);
  // Before attempt `attempts` + 1. False: the run is being stopped.
  bool wait_before_retry(std::uint32_t attempts) const;
};

class JobRunner {
 public:
  explicit JobRunner(RunContext& context) : context_(context) {}
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;
  virtual ~JobRunner() = default;

  virtual BatchResult run(const Batch& batch) = 0;

  // Ends what the runner keeps. Returns what is left to be written to standard error.
  virtual std::string finish() { return {}; }

  // Nanoseconds a line takes of late; 0 while unknown.
  virtual std::uint64_t line_cost() const { return 0; }

 protected:
  // The end of a job that is not run: the line was cut, or the run is being stopped.
  bool refuse(const Job& job, JobResult& result) const;

  RunContext& context_;
  Slots slots_;
};

// A process for each line.
class ProcessRunner final : public JobRunner {
 public:
  using JobRunner::JobRunner;
  BatchResult run(const Batch& batch) override;

 private:
  void run_job(const Job& job, JobResult& result);
  void attempt(const FilledCommand& filled, const std::string* input, JobResult& result);
};

// Shows the command for each line and runs nothing.
class DryRunner final : public JobRunner {
 public:
  using JobRunner::JobRunner;
  BatchResult run(const Batch& batch) override;
};

}  // namespace ordo::app
