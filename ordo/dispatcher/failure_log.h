// FailureLog: what a dispatcher says on standard error when its user has not asked to be told.
//
// Threads: any.
// Bounds:  one line a second for failed attempts, with the count of those it left out.
#pragma once

#include <exception>

#include "ordo/core/clock.h"
#include "ordo/core/log.h"

namespace ordo::dispatcher {

class FailureLog {
 public:
  explicit FailureLog(const Clock& clock);

  void attempt_failed(const std::exception_ptr& error);
  // A callback of the user's threw, and there is nobody left to tell.
  void callback_threw(const char* callback, const std::exception_ptr& error);

 private:
  RateLimit limit_;
};

}  // namespace ordo::dispatcher
