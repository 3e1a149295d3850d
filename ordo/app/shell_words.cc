#include "ordo/app/shell_words.h"

#include <algorithm>
#include <cctype>

namespace ordo::app {
namespace {

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-+=./:,@%^").find(c) != std::string_view::npos;
}

// The number of the parameter for the placeholder that begins at `at`, 0 for none.
char parameter_at(std::string_view script, std::size_t at) {
  const std::string_view rest = script.substr(at);
  if (rest.starts_with("{}")) return '1';
  if (rest.starts_with("{#}")) return '2';
  if (rest.starts_with("{%}")) return '3';
  return 0;
}

enum class Quotes { none, single, doubled };

std::string parameter_word(char number, Quotes quotes) {
  std::string value = std::string("${") + number + "}";
  switch (quotes) {
    case Quotes::none:
      return "\"" + value + "\"";
    case Quotes::doubled:
      return value;
    case Quotes::single:
      return "'\"" + value + "\"'";
  }
  return value;
}

Quotes quotes_after(Quotes before, char c) {
  if (c == '\'' && before != Quotes::doubled) {
    return before == Quotes::single ? Quotes::none : Quotes::single;
  }
  if (c == '"' && before != Quotes::single) {
    return before == Quotes::doubled ? Quotes::none : Quotes::doubled;
  }
  return before;
}

}  // namespace

std::string quote_for_shell(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string placeholders_as_parameters(std::string_view script) {
  std::string text;
  Quotes quotes = Quotes::none;
  for (std::size_t i = 0; i < script.size(); ++i) {
    if (const char number = parameter_at(script, i); number != 0) {
      text += parameter_word(number, quotes);
      i += number == '1' ? 1 : 2;
      continue;
    }
    const char c = script[i];
    text += c;
    if (c == '\\' && quotes != Quotes::single && i + 1 < script.size()) {
      text += script[++i];
      continue;
    }
    quotes = quotes_after(quotes, c);
  }
  return text;
}

bool script_takes_the_line(std::string_view script) {
  for (const std::string_view sign : {"{}", "{#}", "{%}", "$1", "${1", "$@", "$*", "$#"}) {
    if (script.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace ordo::app
