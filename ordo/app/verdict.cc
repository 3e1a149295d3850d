#include "ordo/app/verdict.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ordo/app/map_options.h"

namespace ordo::app {

void Verdict::stop(Reason reason, std::string message) {
  {
    const std::lock_guard lock(mutex_);
    if (reason_ == Reason::none) {
      reason_ = reason;
      message_ = std::move(message);
    }
  }
  stop_.request();
}

void Verdict::interrupt(int signal) {
  const bool again = stop_.requested();
  {
    const std::lock_guard lock(mutex_);
    if (reason_ == Reason::none) {
      signal_ = signal;
      reason_ = Reason::interrupted;
      const char* name = ::sigabbrev_np(signal);
      message_ = std::string("stopped by SIG") + (name != nullptr ? name : "?");
    }
  }
  if (again) {
    stop_.force();
  } else {
    stop_.request();
  }
}

Verdict::Reason Verdict::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

std::string Verdict::message() const {
  const std::lock_guard lock(mutex_);
  return message_;
}

int Verdict::exit_status(std::uint64_t failed_count) const {
  const std::lock_guard lock(mutex_);
  switch (reason_) {
    case Reason::interrupted:
      return 128 + signal_;
    case Reason::closed_output:
      return kExitClosedOutput;
    case Reason::error:
      return kExitError;
    case Reason::none:
    case Reason::halted:
      break;
  }
  return static_cast<int>(std::min<std::uint64_t>(failed_count, kExitManyFailures));
}

}  // namespace ordo::app
