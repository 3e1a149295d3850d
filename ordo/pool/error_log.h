// ErrorLog: what a pool says on standard error when its user has not asked to be told.
//
// Threads: any.
// Bounds:  one line a second for failed items, with the count of those it left out.
#pragma once

#include <exception>

#include "ordo/core/clock.h"
#include "ordo/core/log.h"

namespace ordo::pool {

class ErrorLog {
 public:
  explicit ErrorLog(Clock* clock);

  void item_failed(const std::exception_ptr& error);
  void callback_threw(const char* callback, const std::exception_ptr& error);

 private:
  RateLimit limit_;
};

}  // namespace ordo::pool
