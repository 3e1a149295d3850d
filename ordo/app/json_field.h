// json_field(): one field of a line that is a JSON object.
//
//   const auto key = json_field(R"({"user": 17, "x": {}})", "user");     // 17
//
// A string is unescaped; a number, true, false or null is its text; an object or a list is an
// error, since it would be no key. Nothing: there is no such field at the top. Of two fields of the
// same name the last one counts.
//
// Threads: pure function.
// Bounds:  kJsonDepthMax levels.
// Cost:    one pass over the line.
// Errors:  invalid_argument: the line is no JSON object; says where.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ordo/core/result.h"

namespace ordo::app {

inline constexpr int kJsonDepthMax = 64;

Result<std::optional<std::string>> json_field(std::string_view line, std::string_view name);

}  // namespace ordo::app
