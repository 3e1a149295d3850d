// Text for JSON: strings with everything escaped that must be, base64 for what is not text.
//
//   std::string object = "{";
//   append_text_field(object, "input", line);  // "input":"..." or "input_base64":"..."
//
// Threads: none; pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ordo/core/utf8.h"

namespace ordo::app {

// `text` with quotes, as a JSON string. REQUIRES: is_utf8(text).
std::string json_string(std::string_view text);

std::string base64(std::string_view bytes);

// "name":"text", or "name_base64":"..." when the bytes are not UTF-8; with a comma before it unless
// it is the first field of `object`.
void append_text_field(std::string& object, std::string_view name, std::string_view bytes);
// "name":number
void append_number_field(std::string& object, std::string_view name, long long number);

}  // namespace ordo::app
