#include "ordo/app/dead_letters.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <sys/stat.h>

#include "ordo/app/json_text.h"
#include "ordo/app/write_all.h"
#include "ordo/core/check.h"

namespace ordo::app {
namespace {

constexpr std::size_t kErrorBytesMax = 4096;

// The last bytes, not beginning inside a character.
std::string_view tail(std::string_view text) {
  if (text.size() <= kErrorBytesMax) return text;
  text.remove_prefix(text.size() - kErrorBytesMax);
  for (int i = 0; i < 3 && !text.empty() && (text[0] & 0xc0) == 0x80; ++i)
    text.remove_prefix(1);
  return text;
}

}  // namespace

Result<DeadLetters> DeadLetters::open(const std::string& path) {
  DeadLetters letters;
  letters.file_ = UniqueFd(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  if (!letters.file_) {
    return Error{ErrorCode::failed_precondition, "cannot open the dead-letter file '" + path +
                                                     "': " + ::strerrordesc_np(errno) +
                                                     "; give --dlq a file that can be written"};
  }
  return letters;
}

std::string DeadLetters::describe(const JobResult& result) {
  std::string object = "{";
  append_number_field(object, "job", static_cast<long long>(result.number));
  append_text_field(object, "input", result.line);
  append_number_field(object, "attempts", result.attempts);
  append_text_field(object, "reason", ending_word(result));
  if (result.ending == Ending::exited) append_number_field(object, "exit", result.code);
  if (result.ending == Ending::signaled) append_number_field(object, "signal", result.code);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, ",\"seconds\":%.6f",
                std::chrono::duration<double>(result.runtime).count());
  object += seconds;
  if (!result.message.empty()) append_text_field(object, "message", result.message);
  append_text_field(object, "stderr", tail(result.err));
  return object + "}";
}

int DeadLetters::append(const JobResult& result) {
  ORDO_CHECK(result.failed());
  return write_all(file_.get(), describe(result) + '\n');
}

}  // namespace ordo::app
