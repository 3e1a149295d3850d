#include "ordo/app/interrupt_fd.h"

#include <poll.h>

#include <sys/signalfd.h>

namespace ordo::app {

InterruptFd::InterruptFd() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGINT);
  sigaddset(&watched, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &watched, &before_);
  fd_ = UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

InterruptFd::~InterruptFd() {
  (void)is_raised();  // What has come is used up, and does not end the process now.
  signalfd_siginfo info{};
  while (fd_.get() >= 0 && ::read(fd_.get(), &info, sizeof info) > 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool InterruptFd::is_raised() {
  if (is_raised_) return true;
  pollfd waiting{fd_.get(), POLLIN, 0};
  if (::poll(&waiting, 1, 0) <= 0) return false;
  is_raised_ = true;
  signalfd_siginfo info{};
  (void)::read(fd_.get(), &info, sizeof info);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  return true;
}

}  // namespace ordo::app
