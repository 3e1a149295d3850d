// Target: what an HTTP request asks for: the segments of its path, an action, and its query.
//
//   Result<Target> target = Target::parse("/v1/projects/p/topics/t:publish?prettyPrint=false");
//   target->segments       // v1, projects, p, topics, t
//   target->action         // publish
//   target->query          // {prettyPrint, false}
//
// Escapes (%41) are undone, but %2F is left: a name with a slash in it would be another name. In a
// query `+` is a space.
//
// Threads: a plain value.
// Bounds:  those of the text.
// Errors:  invalid_argument for an escape that is none, and for what is not UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/core/result.h"

namespace ordo::pubsub_rest {

struct Target {
  std::vector<std::string> segments{};
  std::string action{};  // Behind the last colon of the last segment; empty: none.
  std::vector<std::pair<std::string, std::string>> query{};  // In order.

  static Result<Target> parse(std::string_view text);
};

}  // namespace ordo::pubsub_rest
