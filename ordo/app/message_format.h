// MessageFormat: messages printed as an operator wants them, and some of the words for it.
//
//   Result<MessageFormat> format = MessageFormat::parse("-f", "%k %d");
//   print_text(format->text(message, is_terminal));
//
// Threads: pure functions; a format is a plain value.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/pubsub_client/resources.h"
#include "ordo/core/result.h"

namespace ordo::app {

// "name":value, with a comma before it unless it is the first field of `object`.
void append_field(std::string& object, std::string_view name, std::string_view json_value);

// Rough, for people: 90 s, 12 min, 3 h, 5 d.
std::string rough_time(std::chrono::nanoseconds time);

// Cut to so many bytes, with what a terminal would act on escaped.
std::string one_line(std::string_view text, std::size_t bytes_max);

class MessageFormat {
 public:
  // invalid_argument: an unknown letter.
  static Result<MessageFormat> parse(std::string_view option, std::string_view text);

  // With a newline. `is_escaped`: what a terminal would act on is shown, not done.
  std::string text(const pubsub_client::IncomingMessage& message, bool is_escaped) const;

 private:
  struct Part {
    char letter = 0;  // 0: the text itself.
    std::string text;
  };
  std::vector<Part> parts_;
};

}  // namespace ordo::app
