#include "ordo/app/server_runner.h"

#include <cstring>

#include "ordo/app/child_run.h"
#include "ordo/core/units.h"

namespace ordo::app {
namespace {

std::string command_text(const RunContext& context) {
  return context.command.show({.line = "", .number = 0, .slot = 0});
}

// The command with {%} replaced by the slot; the rest is left to COMMAND.
std::vector<std::string> words_of(const RunContext& context, std::size_t slot) {
  FilledCommand filled;
  context.command.fill({}, filled);
  std::vector<std::string> words = filled.words();
  for (std::string& word : words) {
    for (std::size_t at = 0; (at = word.find("{%}", at)) != std::string::npos;) {
      word.replace(at, 3, std::to_string(slot));
    }
  }
  return words;
}

}  // namespace

ServerRunner::ServerRunner(RunContext& context) : JobRunner(context) {
  settings_.spawner = &context.spawner;
  settings_.stop = &context.stop;
  settings_.clock = &context.clock;
  settings_.file = context.file;
  settings_.separator = context.options.null_separated ? '\0' : '\n';
  settings_.timeout = context.options.timeout;
  settings_.kill_grace = context.options.kill_grace;
  settings_.flush_wait = context.options.flush_wait;
  settings_.answer_bytes_max = context.options.output_bytes_max;
}

ServerChild& ServerRunner::child_of(std::size_t slot) {
  const std::lock_guard lock(mutex_);
  while (children_.size() < slot) {
    children_.push_back(
        std::make_unique<ServerChild>(settings_, words_of(context_, children_.size() + 1)));
  }
  return *children_[slot - 1];
}

BatchResult ServerRunner::run(const Batch& batch) {
  const Slots::Taken slot = slots_.take();
  ServerChild& child = child_of(slot.number());
  BatchResult batch_result;
  batch_result.results.reserve(batch.jobs.size());
  const TimePoint began = context_.clock.now();
  std::uint32_t attempts = 0;  // Of the next job.
  while (batch_result.results.size() < batch.jobs.size()) {
    const std::size_t done = batch_result.results.size();
    const Job& next = batch.jobs[done];
    JobResult refused = result_of(next);
    if (refuse(next, refused)) {
      batch_result.results.push_back(std::move(refused));
      continue;
    }
    std::size_t count = 1;
    while (done + count < batch.jobs.size() && !batch.jobs[done + count].cut)
      ++count;
    const std::span<const Job> jobs(batch.jobs.data() + done, count);
    const std::size_t answered = exchange(child, jobs, attempts, batch_result);
    // All jobs up to the one at fault have a result; that one has none when it is to be retried.
    const bool retry = answered < count && batch_result.results.size() == done + answered;
    attempts = !retry ? 0 : answered == 0 ? attempts + 1 : 1;
    if (retry) context_.wait_before_retry(attempts);
  }
  learn_cost(context_.clock.now() - began, batch.jobs.size());
  return batch_result;
}

// Asks for all `jobs`; the first of them has had `attempts`. Returns how many were answered.
std::size_t ServerRunner::exchange(ServerChild& child, std::span<const Job> jobs,
                                   std::uint32_t attempts, BatchResult& batch_result) {
  std::vector<ServerAnswer> answers;
  answers.reserve(jobs.size());
  const ServerEnd end = child.ask(jobs, answers);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    JobResult result = result_of(jobs[i]);
    result.attempts = i == 0 ? attempts + 1 : 1;
    result.runtime = answers[i].runtime;
    result.out = std::move(answers[i].out);
    result.err = std::move(answers[i].err);
    batch_result.results.push_back(std::move(result));
  }
  if (end == ServerEnd::chattered || end == ServerEnd::never_flushes) explain(end);
  if (end == ServerEnd::answered || answers.size() == jobs.size()) return answers.size();
  const Job& job = jobs[answers.size()];
  const std::uint32_t tried = answers.empty() ? attempts + 1 : 1;
  JobResult result = result_of(job);
  fail(child, end, result);
  if (result.failed() && tried <= context_.options.retries) return answers.size();
  result.attempts = tried;
  if (result.failed()) result.line = job.line;
  context_.ended(result);
  batch_result.results.push_back(std::move(result));
  return answers.size();
}

void ServerRunner::fail(ServerChild& child, ServerEnd end, JobResult& result) const {
  result.err = child.take_errors();
  switch (end) {
    case ServerEnd::timed_out:
      result.ending = Ending::timed_out;
      result.message = "no answer within " + format_duration(*settings_.timeout);
      break;
    case ServerEnd::overflowed:
      result.ending = Ending::overflowed;
      result.message = "the answer is longer than " + format_size(settings_.answer_bytes_max) +
                       "; raise the limit with --max-output";
      break;
    case ServerEnd::not_started:
      result.ending = Ending::not_started;
      result.code = child.start_error();
      result.message = std::string("the command could not be started: ") +
                       ::strerrordesc_np(child.start_error());
      break;
    case ServerEnd::died: {
      const Ending how = ending_of(child.wait_status(), result.code);
      result.ending = how == Ending::signaled ? Ending::signaled : Ending::no_answer;
      result.message = how == Ending::signaled
                           ? std::string()
                           : "COMMAND ended with exit status " + std::to_string(result.code) +
                                 " instead of answering";
      break;
    }
    case ServerEnd::answered:
    case ServerEnd::stopped:
    case ServerEnd::chattered:
    case ServerEnd::never_flushes:
      result.ending = Ending::cancelled;
      break;
  }
}

void ServerRunner::explain(ServerEnd end) {
  const std::string command = command_text(context_);
  if (end == ServerEnd::chattered) {
    context_.verdict.stop(Verdict::Reason::error,
                          "'" + command +
                              "' answered a line with more than one line, so answers cannot be "
                              "assigned; --server needs one answer for each line");
    return;
  }
  context_.verdict.stop(
      Verdict::Reason::error,
      "'" + command +
          "' does not flush its output after each line: the answer came only when its input was "
          "closed. Try 'stdbuf -oL " +
          command + "', or 'python3 -u', 'sed -u', 'grep --line-buffered', fflush() in awk");
}

void ServerRunner::learn_cost(std::chrono::nanoseconds time, std::size_t lines) {
  const auto cost = static_cast<std::uint64_t>(time.count()) / std::max<std::size_t>(lines, 1);
  const std::uint64_t before = line_cost_.load(std::memory_order_relaxed);
  line_cost_.store(before == 0 ? cost + 1 : (7 * before + cost) / 8 + 1, std::memory_order_relaxed);
}

std::string ServerRunner::finish() {
  const std::lock_guard lock(mutex_);
  std::string errors;
  for (const auto& child : children_)
    child->close_input();
  for (const auto& child : children_)
    errors += child->finish();
  return errors;
}

}  // namespace ordo::app
