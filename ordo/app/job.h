// Job, JobResult: one input line on its way in, and what became of it on its way out.
//
// The pool carries batches of jobs. With a process per line a batch is one job; persistent workers
// get as many lines at once as are waiting and cheap.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ordo::app {

struct Job {
  std::uint64_t number = 0;  // 1 for the first line of the input.
  std::uint64_t hash = 0;    // Of the line; 0 when no journal is kept.
  std::string line;          // Without its separator.
  bool cut = false;          // Longer than --max-line; `line` is its beginning.
};

struct Batch {
  std::vector<Job> jobs;
  std::uint64_t lane = 0;  // Equal for batches that must not overtake each other, with keys.
};

enum class Ending : std::uint8_t {
  succeeded,
  exited,       // code: the exit status, not 0.
  signaled,     // code: the signal.
  timed_out,    // code: unused.
  overflowed,   // More output than --max-output.
  not_started,  // code: errno, or 0 with a message.
  no_answer,    // A persistent worker ended without answering; code: its exit status.
  cancelled,    // The run was stopped first: not done, not failed.
};

struct JobResult {
  std::uint64_t number = 0;
  std::uint64_t hash = 0;
  std::uint64_t line_bytes = 0;
  Ending ending = Ending::succeeded;
  int code = 0;
  std::uint32_t attempts = 0;
  std::chrono::nanoseconds runtime{0};  // Of the last attempt.
  std::string out;
  std::string err;
  std::string message;  // Why it was not started or stopped, for a person; often empty.
  std::string line;     // Only of a failed job: goes to the dead letters.

  bool failed() const { return ending != Ending::succeeded && ending != Ending::cancelled; }
};

struct BatchResult {
  std::vector<JobResult> results;
};

// "exit:3", "signal:9", "timeout", ...: one word for journals and dead letters.
std::string ending_word(const JobResult& result);

// "exit status 3", "killed by signal 9 (Killed)", ...: for people.
std::string ending_text(const JobResult& result);

// The result of `job` before anything is known about its end.
JobResult result_of(const Job& job);

}  // namespace ordo::app
