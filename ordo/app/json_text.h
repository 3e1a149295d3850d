// Fields of JSON objects: text as text, and as base64 what is not text.
//
//   std::string object = "{";
//   append_text_field(object, "input", line);  // "input":"..." or "input_base64":"..."
//
// Threads: none; pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ordo/core/json_text.h"
#include "ordo/core/utf8.h"

namespace ordo::app {

// "name":"text", or "name_base64":"..." when the bytes are not UTF-8; with a comma before it unless
// it is the first field of `object`. The name may be anything that is UTF-8.
void append_text_field(std::string& object, std::string_view name, std::string_view bytes);
// "name":number
void append_number_field(std::string& object, std::string_view name, long long number);

}  // namespace ordo::app
