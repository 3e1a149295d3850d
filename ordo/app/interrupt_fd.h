// InterruptFd: Ctrl-C as something to wait for, beside a socket, instead of the end.
//
//   const InterruptFd interrupt;                          // before any thread is made
//   stream.read(deadline, interrupt.fd());
//   if (interrupt.is_raised()) return give_back();        // a second Ctrl-C ends the process
//
// SIGINT and SIGTERM of this process, while it lives.
//
// Threads: made by main()'s thread; is_raised() by its owner.
// Bounds:  a file descriptor.
#pragma once

#include <csignal>

#include "ordo/app/unique_fd.h"

namespace ordo::app {

class InterruptFd {
 public:
  InterruptFd();
  InterruptFd(const InterruptFd&) = delete;
  InterruptFd& operator=(const InterruptFd&) = delete;
  ~InterruptFd();

  // Readable once a signal has come.
  int fd() const { return fd_.get(); }
  // From then on a further signal is not held back.
  bool is_raised();

 private:
  sigset_t before_{};
  UniqueFd fd_;
  bool is_raised_ = false;
};

}  // namespace ordo::app
