#include "ordo/app/job_runner.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>

#include "ordo/app/child_run.h"
#include "ordo/app/shell_words.h"
#include "ordo/core/units.h"

namespace ordo::app {

void RunContext::ended(const JobResult& result) {
  if (!options.halt_on_error || !result.failed()) return;
  std::uint64_t first = halted_at.load(std::memory_order_acquire);
  while (result.number < first &&
         !halted_at.compare_exchange_weak(first, result.number, std::memory_order_acq_rel)) {
  }
}

bool RunContext::wait_before_retry(std::uint32_t attempts) const {
  constexpr std::chrono::nanoseconds kWaitMax = std::chrono::hours(1);
  std::chrono::nanoseconds wait = std::min(options.backoff, kWaitMax);
  for (std::uint32_t i = 1; i < attempts && wait < kWaitMax; ++i)
    wait = std::min(2 * wait, kWaitMax);
  const TimePoint deadline = clock.now() + wait;
  while (!stop.requested()) {
    if (clock.now() >= deadline) return true;
    pollfd fd{stop.fd(), POLLIN, 0};
    ::poll(&fd, 1, poll_timeout(deadline, clock.now()));
  }
  return false;
}

bool JobRunner::refuse(const Job& job, JobResult& result) const {
  if (!context_.may_begin(job.number)) {
    result.ending = Ending::cancelled;
    return true;
  }
  if (!job.cut) return false;
  result.ending = Ending::not_started;
  result.message = "the line is longer than " + format_size(context_.options.line_bytes_max) +
                   "; raise the limit with --max-line";
  result.line = job.line;
  return true;
}

BatchResult ProcessRunner::run(const Batch& batch) {
  BatchResult batch_result;
  for (const Job& job : batch.jobs) {
    JobResult result = result_of(job);
    if (!refuse(job, result)) run_job(job, result);
    context_.ended(result);
    batch_result.results.push_back(std::move(result));
  }
  return batch_result;
}

void ProcessRunner::run_job(const Job& job, JobResult& result) {
  const Slots::Taken slot = slots_.take();
  const MapOptions& options = context_.options;
  thread_local FilledCommand filled;
  std::string input;
  if (options.line_on_stdin) {
    input = job.line;
    input += options.null_separated ? '\0' : '\n';
  }
  result.message = context_.command.fill(
      {.line = job.line, .number = job.number, .slot = slot.number()}, filled);
  if (result.message.empty()) {
    do {
      attempt(filled, options.line_on_stdin ? &input : nullptr, result);
    } while (result.failed() && result.attempts <= options.retries &&
             context_.wait_before_retry(result.attempts));
  } else {
    result.ending = Ending::not_started;
  }
  if (result.failed()) result.line = job.line;
}

void ProcessRunner::attempt(const FilledCommand& filled, const std::string* input,
                            JobResult& result) {
  const MapOptions& options = context_.options;
  const ChildLimits limits{.timeout = options.timeout,
                           .kill_grace = options.kill_grace,
                           .output_bytes_max = options.output_bytes_max};
  ChildCommand command{context_.file.c_str(), filled.argv(), std::nullopt};
  if (input != nullptr) command.input = *input;
  const TimePoint began = context_.clock.now();
  ChildRun run = run_child(context_.spawner, command, limits, context_.stop, context_.clock);
  result.runtime = context_.clock.now() - began;
  ++result.attempts;
  result.ending = run.ending;
  result.code = run.code;
  result.out = std::move(run.out);
  result.err = std::move(run.err);
  result.message = std::move(run.message);
  if (run.ending == Ending::timed_out) {
    result.message = "took longer than " + format_duration(*options.timeout);
  }
}

BatchResult DryRunner::run(const Batch& batch) {
  BatchResult batch_result;
  const MapOptions& options = context_.options;
  for (const Job& job : batch.jobs) {
    JobResult result = result_of(job);
    if (!refuse(job, result)) {
      const bool fed = options.server || options.line_on_stdin;
      if (fed) {
        result.out = std::string("printf ") + (options.null_separated ? "'%s\\0' " : "'%s\\n' ") +
                     quote_for_shell(job.line) + " | ";
      }
      result.out += context_.command.show({.line = job.line, .number = job.number, .slot = 1});
      result.out += '\n';
    }
    batch_result.results.push_back(std::move(result));
  }
  return batch_result;
}

}  // namespace ordo::app
