// EventLog: what a process that may be killed at any moment has seen, in a file that survives it.
//
//   EventLog log("events.log");
//   log.add({"begin", uid, key, ...});    // one line, written before add() returns
//
// A line is words separated by tabs; the first names the event, the second is the time, the last is
// kEnd. A process may end in the middle of a line; the next one begins with a new line.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <fcntl.h>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unistd.h>

#include "ordo/core/check.h"
#include "ordo/core/clock.h"

namespace ordo::testing_support {

class EventLog {
 public:
  explicit EventLog(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    ORDO_CHECK(file_ >= 0);
    write("\n");
  }
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  ~EventLog() { ::close(file_); }

  static constexpr std::string_view kEnd = "end.";

  static std::int64_t now() { return system_clock().now().time_since_epoch().count(); }

  void add(std::string_view event, std::initializer_list<std::string_view> words) const {
    std::string line(event);
    line.append("\t").append(std::to_string(now()));
    for (const std::string_view word : words)
      line.append("\t").append(word);
    line.append("\t").append(kEnd).append("\n");
    write(line);
  }

 private:
  void write(std::string_view text) const {
    ORDO_CHECK(::write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }

  const int file_;
};

}  // namespace ordo::testing_support
