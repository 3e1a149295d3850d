#include "ordo/app/json_text.h"

namespace ordo::app {
namespace {

void append_name(std::string& object, std::string_view name, std::string_view suffix) {
  if (!object.empty() && object.back() != '{') object += ',';
  object += json_string(std::string(name).append(suffix));
  object += ':';
}

}  // namespace

void append_text_field(std::string& object, std::string_view name, std::string_view bytes) {
  if (is_utf8(bytes)) {
    append_name(object, name, "");
    object += json_string(bytes);
  } else {
    append_name(object, name, "_base64");
    object += '"' + base64(bytes) + '"';
  }
}

void append_number_field(std::string& object, std::string_view name, long long number) {
  append_name(object, name, "");
  object += std::to_string(number);
}

}  // namespace ordo::app
