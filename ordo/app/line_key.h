// LineKey: the part of a line that order is kept by.
//
//   Result<LineKey> key = LineKey::regex("user=([0-9]+)");
//   if (!key) return key.error();
//   key->of("POST user=17 /cart")  -> "17"
//   key->of("GET /")               -> nothing: the line is free of any order
//
// Threads: one owner.
// Cost:    a field: one pass over the line up to it; a pattern: what regexec() takes.
#pragma once

#include <memory>
#include <optional>
#include <regex.h>
#include <string>
#include <string_view>

#include "ordo/core/result.h"

namespace ordo::app {

class LineKey {
 public:
  // The field with this number, 1 for the first. Fields are separated by `separator`, or by blanks
  // and tabs when that is 0.
  // REQUIRES: number >= 1.
  static LineKey field(std::size_t number, char separator);

  // The first group of a POSIX extended regular expression, or the whole match without groups.
  static Result<LineKey> regex(const std::string& pattern);

  std::optional<std::string_view> of(std::string_view line) const;

 private:
  struct Free {
    void operator()(regex_t* pattern) const {
      ::regfree(pattern);
      delete pattern;
    }
  };

  std::size_t number_ = 0;
  char separator_ = 0;
  std::unique_ptr<regex_t, Free> pattern_;
};

}  // namespace ordo::app
