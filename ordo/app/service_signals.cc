#include "ordo/app/service_signals.h"

namespace ordo::app {

ServiceSignals::ServiceSignals() {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&watched_, signal);
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): cannot fail for a valid signal.
  ::sigprocmask(SIG_BLOCK, &watched_, nullptr);
}

void ServiceSignals::wait_for_stop(const std::function<void()>& on_hang_up) const {
  while (true) {
    int number = 0;
    if (::sigwait(&watched_, &number) != 0) continue;
    if (number != SIGHUP) break;
    on_hang_up();
  }
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM})
    sigaddset(&ends, signal);
  ::sigprocmask(SIG_UNBLOCK, &ends, nullptr);  // A terminal that closes now ends nothing early.
}

}  // namespace ordo::app
