// is_utf8(): whether bytes are text.
//
//   if (!is_utf8(key)) return Error{ErrorCode::invalid_argument, "..."};
//
// Threads: a pure function.
// Cost:    eight bytes of ASCII at a time, others one character at a time.
#pragma once

#include <string_view>

namespace ordo {

// Well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
bool is_utf8(std::string_view bytes);

}  // namespace ordo
