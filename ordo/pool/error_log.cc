#include "ordo/pool/error_log.h"

#include <chrono>
#include <string>

#include "ordo/core/describe.h"

namespace ordo::pool {

ErrorLog::ErrorLog(Clock* clock) : limit_(*clock, std::chrono::seconds(1)) {}

void ErrorLog::item_failed(const std::exception_ptr& error) {
  const auto held_back = limit_.allow();
  if (!held_back) return;
  std::string line = "ordo pool: an item failed: " + describe(error);
  if (*held_back > 0) line += " (and " + std::to_string(*held_back) + " more before it)";
  log_line(line + "; set on_error to handle failures");
}

void ErrorLog::callback_threw(const char* callback, const std::exception_ptr& error) {
  log_line(std::string("ordo pool: ") + callback + " threw: " + describe(error));
}

}  // namespace ordo::pool
