// Words of the shell: how to show a command so that it can be pasted, and how to put an argument
// into a script without ever making it part of the script.
//
//   quote_for_shell("it's")            -> 'it'\''s'
//   placeholders_as_parameters("cp {} /tmp/'{}.bak'")  -> cp "${1}" /tmp/''"${1}"'.bak'
//
// Threads: none; pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ordo::app {

// `word` as one word of a POSIX shell; unquoted when that is safe.
std::string quote_for_shell(std::string_view word);

// `script` with {} {#} {%} replaced by the positional parameters 1, 2 and 3, each as one word: the
// quotes around a placeholder are taken into account. The text of the result does not depend on
// any input line, so no line can change what the shell parses.
std::string placeholders_as_parameters(std::string_view script);

// Whether the script takes its line itself: it has a placeholder or a positional parameter.
bool script_takes_the_line(std::string_view script);

}  // namespace ordo::app
