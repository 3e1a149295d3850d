// Verdict: why a run is to end before its input does. The first reason wins.
//
//   verdict.stop(Verdict::Reason::error, "cannot write to the journal: No space left on device");
//   ...
//   return verdict.exit_status(failed_count);
//
// Threads: any thread may call any function.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "ordo/app/stop_signal.h"

namespace ordo::app {

class Verdict {
 public:
  enum class Reason : std::uint8_t { none, interrupted, closed_output, halted, error };

  // REQUIRES: `stop` outlives this.
  explicit Verdict(StopSignal& stop) : stop_(stop) {}

  // Ends the run: children are asked to end, no line is taken in any more.
  void stop(Reason reason, std::string message);
  void interrupt(int signal);  // The second one ends the grace of the children.

  bool stopped() const { return stop_.requested(); }
  Reason reason() const;
  std::string message() const;
  int exit_status(std::uint64_t failed_count) const;

 private:
  StopSignal& stop_;
  mutable std::mutex mutex_;  // Guards the rest.
  Reason reason_ = Reason::none;
  int signal_ = 0;
  std::string message_;
};

}  // namespace ordo::app
