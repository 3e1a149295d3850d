#include "ordo/app/job.h"

#include <cstring>

namespace ordo::app {

std::string ending_word(const JobResult& result) {
  switch (result.ending) {
    case Ending::succeeded:
      return "ok";
    case Ending::exited:
      return "exit:" + std::to_string(result.code);
    case Ending::signaled:
      return "signal:" + std::to_string(result.code);
    case Ending::timed_out:
      return "timeout";
    case Ending::overflowed:
      return "output-limit";
    case Ending::not_started:
      return "not-started";
    case Ending::no_answer:
      return "no-answer";
    case Ending::cancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string ending_text(const JobResult& result) {
  if (!result.message.empty()) return result.message;
  switch (result.ending) {
    case Ending::succeeded:
      return "succeeded";
    case Ending::exited:
      return "exit status " + std::to_string(result.code);
    case Ending::signaled: {
      const char* name = ::sigdescr_np(result.code);
      return "killed by signal " + std::to_string(result.code) +
             (name ? " (" + std::string(name) + ")" : "");
    }
    case Ending::timed_out:
      return "timed out";
    case Ending::overflowed:
      return "too much output";
    case Ending::not_started:
      return "not started";
    case Ending::no_answer:
      return "ended without an answer";
    case Ending::cancelled:
      return "cancelled";
  }
  return "unknown";
}

JobResult result_of(const Job& job) {
  JobResult result;
  result.number = job.number;
  result.hash = job.hash;
  result.line_bytes = job.line.size();
  return result;
}

}  // namespace ordo::app
