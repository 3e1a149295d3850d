// broken_header(): the first line that begins like a table and names none, such as "[.]".
//
//   if (std::uint32_t line = broken_header(text)) return error_at(line, kTableHeaderRule);
//   toml::parse(text);
//
// toml++ 3.3 takes it for granted that a key follows the bracket: it aborts in debug builds, and
// anything may happen in others. So ask before parsing. A line of a nested array that begins with a
// bracket and nothing that could be a key is refused as well; no setting is written like that.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <string_view>

namespace ordo::config_toml {

inline constexpr std::string_view kTableHeaderRule =
    "a table is written as [name] or [[name]], and a name has letters, digits, - and _";

// Counted from 1; 0 when there is none.
std::uint32_t broken_header(std::string_view text);

}  // namespace ordo::config_toml
