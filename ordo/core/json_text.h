// Text for JSON: strings with everything escaped that must be, base64 for what is not text.
//
//   json_string("a \"b\"")     // "a \"b\"" with its quotes and backslashes
//   base64("\x01\x02")         // AQI=
//
// Threads: pure functions.
// Cost:    one pass, one allocation or a few.
#pragma once

#include <string>
#include <string_view>

namespace ordo {

// `text` with quotes, as a JSON string. REQUIRES: is_utf8(text).
std::string json_string(std::string_view text);

// With padding.
std::string base64(std::string_view bytes);

}  // namespace ordo
