#include "ordo/app/stop_signal.h"

#include <sys/eventfd.h>

#include "ordo/core/check.h"

namespace ordo::app {

StopSignal::StopSignal()
    : requested_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      forced_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ORDO_CHECK(requested_fd_ && forced_fd_);
}

void StopSignal::request() {
  if (requested_.exchange(true, std::memory_order_acq_rel)) return;
  ORDO_CHECK(::eventfd_write(requested_fd_.get(), 1) == 0);
}

void StopSignal::force() {
  request();
  if (forced_.exchange(true, std::memory_order_acq_rel)) return;
  ORDO_CHECK(::eventfd_write(forced_fd_.get(), 1) == 0);
}

}  // namespace ordo::app
