#include "ordo/adapters/config_toml/table_headers.h"

#include <algorithm>

namespace ordo::config_toml {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

void skip_spaces(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
}

bool takes(std::string_view& line, char c) {
  if (line.empty() || line.front() != c) return false;
  line.remove_prefix(1);
  return true;
}

bool begins_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '"' || c == '\'';
}

bool is_broken(std::string_view line) {
  skip_spaces(line);
  if (!takes(line, '[')) return false;
  skip_spaces(line);
  if (takes(line, '[')) skip_spaces(line);
  // "[]" is left to the parser, which says what is wrong with it.
  return line.empty() || !(begins_a_name(line.front()) || line.front() == ']');
}

}  // namespace

std::uint32_t broken_header(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::uint32_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (is_broken(text.substr(0, end))) return number;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return 0;
}

}  // namespace ordo::config_toml
