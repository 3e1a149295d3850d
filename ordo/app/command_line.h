// parse_command_line(): what the person who typed the command wants.
//
//   const Invocation wanted = parse_command_line({argv + 1, argv + argc}, all_commands());
//   if (wanted.what == Invocation::What::run) return wanted.run();
//
// Its source is the one file that knows the command-line library.
//
// Threads: none; fills what the options of the table point to, and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ordo/app/command.h"

namespace ordo::app {

struct Invocation {
  enum class What : std::uint8_t { run, print, complain };

  What what = What::print;
  std::string text = {};          // For standard output (print) or standard error (complain).
  std::function<int()> run = {};  // With What::run: the command, checked.
};

// `arguments` without the name of the program. A table is good for one command line.
Invocation parse_command_line(const std::vector<std::string>& arguments, const CommandTable& table);

}  // namespace ordo::app
