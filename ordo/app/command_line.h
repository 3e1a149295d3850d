// parse_command_line(): what the person who typed the command wants.
//
//   const Invocation wanted = parse_command_line({argv + 1, argv + argc});
//   if (wanted.what == Invocation::What::map) return run_map(wanted.map);
//
// This is the one file that knows the command-line library; help, errors with a suggestion, and
// the shell completions come from the same table of options and therefore agree.
//
// Threads: none; a pure function of its arguments.
#pragma once

#include <string>
#include <vector>

#include "ordo/app/gateway_options.h"
#include "ordo/app/map_options.h"
#include "ordo/app/settings.h"
#include "ordo/app/store_command.h"

namespace ordo::app {

struct Invocation {
  enum class What : std::uint8_t {
    serve,
    map,
    gateway,
    gateway_client,
    doctor,
    repair,
    print,
    complain
  };

  What what = What::print;
  CommandWords serve;
  MapOptions map;
  CommandWords gateway;
  ClientOptions client;
  StoreWords store;  // Of doctor and repair.
  std::string text;  // For standard output (print) or standard error (complain).
};

// `arguments` without the name of the program.
Invocation parse_command_line(const std::vector<std::string>& arguments);

}  // namespace ordo::app
