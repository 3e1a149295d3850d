// OutputWriter: writes to standard output and error, which may make a writer wait, yet can be
// stopped while it waits.
//
//   OutputWriter out(STDOUT_FILENO, stop);
//   switch (out.write(text)) {
//     case WriteEnd::written: record(); break;
//     case WriteEnd::closed: stop_quietly(); break;   // the reader went away: `| head -1`
//     case WriteEnd::stopped: break;                  // nobody reads and the run is to end
//     case WriteEnd::failed: complain(out.error());
//   }
//
// A pipe that poll() calls writable takes 4 KiB without blocking, so that is how much is written
// at a time; the mode of the descriptor, which others share, is left alone.
//
// Threads: one owner at a time.
// Cost:    files: one write; others: a poll and a write per 4 KiB.
#pragma once

#include <cstdint>
#include <string_view>

#include "ordo/app/stop_signal.h"

namespace ordo::app {

enum class WriteEnd : std::uint8_t { written, closed, stopped, failed };

class OutputWriter {
 public:
  // REQUIRES: `stop` outlives this.
  OutputWriter(int fd, const StopSignal& stop);

  WriteEnd write(std::string_view text);

  int error() const { return error_; }

 private:
  bool wait_until_writable();

  int fd_;
  const StopSignal& stop_;
  bool is_file_ = false;
  int error_ = 0;
};

}  // namespace ordo::app
