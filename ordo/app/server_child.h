// ServerChild: one persistent worker, a copy of COMMAND that answers each line with a line.
//
//   ServerChild child(settings, {"./model", "--fast"});
//   std::vector<ServerAnswer> answers;
//   ServerEnd end = child.ask(jobs, answers);  // jobs.size() answers when end is `answered`
//
// All lines given are written at once and the answers collected as they come, so a cheap line costs
// far less than a switch between processes. The child reads and answers in turn; therefore the
// first line without an answer is the one it was working on when it died or time ran out, and the
// lines behind it may be given to its successor. The child is started by the first ask() and after
// every end but `answered`.
//
// A child that keeps its answers in a buffer is noticed: it has taken all input, waits for more and
// has not answered for flush_wait. Its input is then closed; when that brings the answers out, the
// end is `never_flushes`.
//
// Threads: one owner at a time.
// Bounds:  answer_bytes_max for an answer; the lines given are held by the caller.
// Cost:    one write, one poll and one read per ask() of short lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ordo/app/job.h"
#include "ordo/app/spawn.h"
#include "ordo/app/stop_signal.h"
#include "ordo/core/clock.h"

namespace ordo::app {

struct ServerSettings {
  const Spawner* spawner = nullptr;
  const StopSignal* stop = nullptr;
  const Clock* clock = nullptr;
  std::string file;
  char separator = '\n';
  std::optional<std::chrono::nanoseconds> timeout;  // For one answer.
  std::chrono::nanoseconds kill_grace = std::chrono::seconds(2);
  std::chrono::nanoseconds flush_wait = std::chrono::seconds(3);
  std::size_t answer_bytes_max = std::size_t{64} << 20;
};

struct ServerAnswer {
  std::string out;  // Its separator included.
  std::string err;  // What the child wrote to standard error meanwhile.
  std::chrono::nanoseconds runtime{0};
};

enum class ServerEnd : std::uint8_t {
  answered,
  died,           // See wait_status().
  timed_out,      // It was ended.
  overflowed,     // An answer over the limit; it was ended.
  not_started,    // See start_error().
  stopped,        // The run is being stopped; it was ended.
  chattered,      // It answered more lines than it was given: answers can no longer be assigned.
  never_flushes,  // See above.
};

class ServerChild {
 public:
  // `words`: the command and its arguments. REQUIRES: `settings` outlives this.
  ServerChild(const ServerSettings& settings, std::vector<std::string> words)
      : settings_(settings),
        words_(std::move(words)) {}
  ServerChild(const ServerChild&) = delete;
  ServerChild& operator=(const ServerChild&) = delete;
  ~ServerChild() { kill_and_reap(); }

  // Appends one answer for each of the first jobs; which end came then is returned.
  ServerEnd ask(std::span<const Job> jobs, std::vector<ServerAnswer>& answers);

  // Closes the input of the child, so that it ends by itself.
  void close_input() { in_.reset(); }

  // Waits for the child to end by itself, then asks it to, then ends it by force, each after the
  // grace. Returns what it wrote to standard error and no answer carries.
  std::string finish();

  bool running() const { return pid_ > 0; }
  int wait_status() const { return wait_status_; }
  int start_error() const { return start_error_; }
  // What it wrote to standard error since its last answer.
  std::string take_errors() { return std::exchange(errors_, {}); }

 private:
  bool start();
  bool chatters();
  ServerEnd collect(std::size_t count, std::vector<ServerAnswer>& answers);
  std::optional<ServerEnd> wait_and_read();
  std::optional<ServerEnd> on_silence();
  bool write_lines();
  bool read_answers();
  void read_errors();
  bool next_answer(std::string& answer);
  bool waits_for_input() const;
  ServerEnd end_child(ServerEnd end, int signal);
  bool await_exit(std::chrono::nanoseconds time);
  void kill_and_reap();
  void drain_errors();

  const ServerSettings& settings_;
  std::vector<std::string> words_;
  pid_t pid_ = -1;
  int wait_status_ = 0;
  int start_error_ = 0;
  UniqueFd in_, out_, err_;
  std::string lines_;  // Being written; from written_ on it is still to be.
  std::size_t written_ = 0;
  std::string answers_;  // Read and not yet cut into answers, from taken_ on.
  std::size_t taken_ = 0;
  std::size_t searched_ = 0;
  std::string errors_;
  bool answered_ever_ = false;
  bool suspected_ = false;                 // Its input was closed to see whether answers come out.
  TimePoint deadline_ = TimePoint::max();  // For the next answer.
  TimePoint silence_ = TimePoint::max();   // When to look whether it flushes.
};

}  // namespace ordo::app
