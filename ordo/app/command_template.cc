#include "ordo/app/command_template.h"

#include <charconv>

#include "ordo/app/shell_words.h"
#include "ordo/core/check.h"

namespace ordo::app {
namespace {

constexpr std::size_t kArgumentBytesMax = 131'072;  // MAX_ARG_STRLEN of Linux, its NUL included.

void append_number(std::uint64_t number, std::string& block) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  block.append(digits, end);
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

}  // namespace

std::vector<std::string> FilledCommand::words() const {
  std::vector<std::string> words;
  for (char* const* word = pointers_.data(); *word != nullptr; ++word)
    words.emplace_back(*word);
  return words;
}

CommandTemplate::Word CommandTemplate::parse(std::string_view word) {
  Word pieces;
  std::string text;
  const auto flush = [&] {
    if (!text.empty()) pieces.push_back({Part::text, std::move(text)});
    text.clear();
  };
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::string_view rest = word.substr(i);
    const Part part = rest.starts_with("{}")    ? Part::line
                      : rest.starts_with("{#}") ? Part::number
                      : rest.starts_with("{%}") ? Part::slot
                                                : Part::text;
    if (part == Part::text) {
      text += word[i];
      continue;
    }
    flush();
    pieces.push_back({part, {}});
    i += part == Part::line ? 1 : 2;
  }
  flush();
  return pieces;
}

CommandTemplate CommandTemplate::plain(const std::vector<std::string>& words,
                                       bool line_as_argument) {
  ORDO_CHECK(!words.empty());
  CommandTemplate command;
  command.program_ = words[0];
  bool takes_the_line = false;
  command.words_.push_back({{Part::text, words[0]}});
  for (std::size_t i = 1; i < words.size(); ++i) {
    command.words_.push_back(parse(words[i]));
    for (const Piece& piece : command.words_.back())
      takes_the_line |= piece.part != Part::text;
  }
  if (line_as_argument && !takes_the_line) command.words_.push_back({{Part::line, {}}});
  return command;
}

CommandTemplate CommandTemplate::shell(const std::vector<std::string>& words,
                                       bool line_as_argument) {
  ORDO_CHECK(!words.empty());
  std::string script = join(words);
  const bool takes_the_line = script_takes_the_line(script);
  const bool append_line = line_as_argument && !takes_the_line;
  script = placeholders_as_parameters(append_line ? script + " {}" : script);

  CommandTemplate command;
  command.program_ = "sh";
  for (const char* text : {"sh", "-c"})
    command.words_.push_back({{Part::text, text}});
  command.words_.push_back({{Part::text, script}});
  command.words_.push_back({{Part::text, "ordo"}});
  command.words_.push_back(line_as_argument || takes_the_line ? Word{{Part::line, {}}} : Word{});
  command.words_.push_back({{Part::number, {}}});
  command.words_.push_back({{Part::slot, {}}});
  return command;
}

CommandTemplate CommandTemplate::literal(const std::vector<std::string>& words, bool shell) {
  ORDO_CHECK(!words.empty());
  CommandTemplate command;
  const std::vector<std::string> all =
      shell ? std::vector<std::string>{"sh", "-c", join(words)} : words;
  command.program_ = all[0];
  for (const std::string& word : all)
    command.words_.push_back({{Part::text, word}});
  return command;
}

void CommandTemplate::append(const Word& word, const Values& values, std::string& block) {
  for (const Piece& piece : word) {
    switch (piece.part) {
      case Part::text:
        block += piece.text;
        break;
      case Part::line:
        block += values.line;
        break;
      case Part::number:
        append_number(values.number, block);
        break;
      case Part::slot:
        append_number(values.slot, block);
        break;
    }
  }
}

std::string CommandTemplate::fill(const Values& values, FilledCommand& filled) const {
  std::string& block = filled.block_;
  block.clear();
  std::vector<std::size_t> begins;
  begins.reserve(words_.size());
  for (const Word& word : words_) {
    begins.push_back(block.size());
    append(word, values, block);
    if (block.size() - begins.back() >= kArgumentBytesMax) {
      return "the line makes an argument of " + std::to_string(block.size() - begins.back()) +
             " bytes, and the system allows " + std::to_string(kArgumentBytesMax - 1) +
             "; give the line to COMMAND with --stdin or --server instead";
    }
    if (block.find('\0', begins.back()) != std::string::npos) {
      return "the line contains a NUL byte, which cannot be part of an argument; give the line to "
             "COMMAND with --stdin or --server instead, or separate the input with --null";
    }
    block.push_back('\0');
  }
  filled.pointers_.clear();
  for (const std::size_t begin : begins)
    filled.pointers_.push_back(block.data() + begin);
  filled.pointers_.push_back(nullptr);
  return {};
}

std::string CommandTemplate::identity() const {
  std::string text;
  for (const Word& word : words_) {
    for (const Piece& piece : word) {
      text += static_cast<char>('0' + static_cast<int>(piece.part));
      text += piece.text;
      text += '\1';
    }
    text += '\2';
  }
  return text;
}

std::string CommandTemplate::show(const Values& values) const {
  std::string line;
  for (const Word& word : words_) {
    std::string text;
    append(word, values, text);
    if (!line.empty()) line += ' ';
    line += quote_for_shell(text);
  }
  return line;
}

}  // namespace ordo::app
