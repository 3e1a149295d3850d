// StopSignal: tells everybody who waits in poll() that the run is to end.
//
//   StopSignal stop;
//   pollfd fds[] = {{pipe, POLLIN, 0}, {stop.fd(), POLLIN, 0}};
//   poll(fds, 2, -1);  // returns at once from request() on, for every thread
//
// Two steps: request() asks children to end and gives them their grace; force() ends the grace.
//
// Threads: any thread may call any function. Neither step can be taken back.
// Bounds:  two file descriptors.
#pragma once

#include <atomic>

#include "ordo/app/unique_fd.h"

namespace ordo::app {

class StopSignal {
 public:
  StopSignal();

  void request();
  void force();  // Implies request().

  bool requested() const { return requested_.load(std::memory_order_acquire); }
  bool forced() const { return forced_.load(std::memory_order_acquire); }

  // Readable from request(), or force(), on. Do not read them: others wait on them too.
  int fd() const { return requested_fd_.get(); }
  int force_fd() const { return forced_fd_.get(); }

 private:
  UniqueFd requested_fd_;
  UniqueFd forced_fd_;
  std::atomic<bool> requested_{false};
  std::atomic<bool> forced_{false};
};

}  // namespace ordo::app
