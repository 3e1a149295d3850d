// run_child(): runs one command to its end and brings back everything it printed.
//
//   ChildRun run = run_child(spawner, {.file = "/bin/date", .argv = argv}, limits, stop, clock);
//   if (run.ending == Ending::succeeded) print(run.out);
//
// The run is over when the child has ended and nobody holds its output any more. A deadline, too
// much output or a stop ends it sooner: SIGTERM to its process group, after the grace SIGKILL. The
// child is not reaped before its group was signalled, so the number cannot mean somebody else.
//
// Threads: blocks the caller in poll(); any number of threads may do so.
// Bounds:  output_bytes_max for standard output and as much for standard error; 4 descriptors.
// Cost:    a process creation; no thread, no timer, no signal handler.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "ordo/app/job.h"
#include "ordo/app/spawn.h"
#include "ordo/app/stop_signal.h"
#include "ordo/core/clock.h"

namespace ordo::app {

struct ChildLimits {
  std::optional<std::chrono::nanoseconds> timeout;
  std::chrono::nanoseconds kill_grace = std::chrono::seconds(2);  // From SIGTERM to SIGKILL.
  std::size_t output_bytes_max = std::size_t{64} << 20;
};

struct ChildCommand {
  const char* file = nullptr;
  char* const* argv = nullptr;
  std::optional<std::string_view> input;  // For its standard input; none: /dev/null.
  char* const* environment = nullptr;     // nullptr: ours.
};

struct ChildRun {
  Ending ending = Ending::succeeded;
  int code = 0;     // As in JobResult.
  std::string out;  // All of it, also of a run that failed.
  std::string err;
  std::string message;  // For a person; empty when the ending says it all.
};

ChildRun run_child(const Spawner& spawner, const ChildCommand& command, const ChildLimits& limits,
                   const StopSignal& stop, const Clock& clock);

// The ending for a status of waitpid().
Ending ending_of(int wait_status, int& code);

// Milliseconds for poll() until `deadline`, rounded up; -1 when there is none.
int poll_timeout(TimePoint deadline, TimePoint now);

}  // namespace ordo::app
