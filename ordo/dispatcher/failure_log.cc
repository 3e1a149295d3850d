#include "ordo/dispatcher/failure_log.h"

#include <chrono>
#include <string>

#include "ordo/core/describe.h"

namespace ordo::dispatcher {

FailureLog::FailureLog(const Clock& clock) : limit_(clock, std::chrono::seconds(1)) {}

void FailureLog::attempt_failed(const std::exception_ptr& error) {
  const auto held_back = limit_.allow();
  if (!held_back) return;
  std::string line = "ordo dispatcher: a handler failed: " + describe(error);
  if (*held_back > 0) line += " (" + std::to_string(*held_back) + " more since the last line)";
  log_line(line + "; on_error can tell you of each");
}

void FailureLog::callback_threw(const char* callback, const std::exception_ptr& error) {
  log_line("ordo dispatcher: " + std::string(callback) + " threw: " + describe(error));
}

}  // namespace ordo::dispatcher
