// CommandTemplate: COMMAND and its arguments, ready to be filled in for each line.
//
//   auto command = CommandTemplate::plain({"convert", "{}", "out/{#}.png"});
//   FilledCommand filled;
//   if (auto why = command.fill({.line = "a b.png", .number = 7, .slot = 1}, filled); !why.empty())
//     return failed(why);
//   posix_spawn(..., filled.argv(), ...);  // convert "a b.png" out/7.png
//
// {} is the line, {#} the number of the job, {%} the slot it runs in. They are replaced anywhere
// in an argument, once: what a line contains is never looked at again. Without any of them the
// line becomes the last argument.
//
// Threads: fill() may be called by any thread; the template does not change.
// Bounds:  the system's: 128 KiB for an argument, no NUL in it. fill() says so when it is broken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ordo::app {

// The arguments of one job, in one block of memory that is used again for the next.
class FilledCommand {
 public:
  // Valid until the next fill().
  char* const* argv() const { return pointers_.data(); }
  std::vector<std::string> words() const;

 private:
  friend class CommandTemplate;
  std::string block_;
  std::vector<char*> pointers_;
};

class CommandTemplate {
 public:
  struct Values {
    std::string_view line;
    std::uint64_t number = 0;
    std::size_t slot = 0;
  };

  // Runs words[0] with words[1..]. The line is appended when nothing asks for it, if
  // `line_as_argument`.
  // REQUIRES: words is not empty; so for the others.
  static CommandTemplate plain(const std::vector<std::string>& words, bool line_as_argument);

  // Runs `sh -c` with the words, joined by blanks, as the script; the line is its $1.
  static CommandTemplate shell(const std::vector<std::string>& words, bool line_as_argument);

  // As plain() and shell(), but nothing in the words is replaced: for persistent workers.
  static CommandTemplate literal(const std::vector<std::string>& words, bool shell);

  // Returns nothing, or why the line cannot be given to a command, for a person.
  std::string fill(const Values& values, FilledCommand& filled) const;

  // The name to look up in PATH.
  const std::string& program() const { return program_; }
  // Equal for equal commands, in every run.
  std::string identity() const;
  // The command for one line, as it could be typed.
  std::string show(const Values& values) const;

 private:
  enum class Part : std::uint8_t { text, line, number, slot };
  struct Piece {
    Part part;
    std::string text;
  };
  using Word = std::vector<Piece>;

  static Word parse(std::string_view word);
  static void append(const Word& word, const Values& values, std::string& block);

  std::string program_;
  std::vector<Word> words_;
};

}  // namespace ordo::app
