// Command: one subcommand of `ordo`: its words and options, what checks them, and what it runs.
//
//   struct Typed { std::string topic; bool is_quiet = false; };
//
//   Command greet_command() {
//     auto typed = std::make_shared<Typed>();   // Filled while the command line is read.
//     Command command{"topics greet", "Say hello to a topic"};
//     command.usage = "ordo topics greet [OPTIONS] TOPIC";
//     command.footer = kGreetExamples;
//     command.options = {
//         {.names = "TOPIC", .help = "Its name", .take = into(typed->topic), .is_required = true},
//         {.names = "-q,--quiet", .help = "Say nothing", .take = into(typed->is_quiet)},
//     };
//     command.run = [typed] { return run_greet(*typed); };
//     return command;
//   }
//
// To add a command: a file with such a function, a line for it in commands.cc. Help, errors with a
// suggestion and the completions of bash and zsh come from the same table and therefore agree.
//
// Threads: plain values; one owner.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ordo/core/result.h"

namespace ordo::app {

struct CommandOption {
  using Take = std::function<void(const std::string& value)>;

  std::string names = {};  // "-j,--workers"; without dashes, "TOPIC", it is a word.
  std::string type = {};   // Shown for the value; empty: a switch. A word has none.
  std::string help = {};   // One line.
  Take take = {};          // Called with each value that was typed; "true" for a switch.
  std::string group = {};  // The heading in the help; empty: "Options".
  std::vector<std::string> choices = {};  // Not empty: no other values.
  bool is_required = false;
  bool is_repeatable = false;  // May be typed more than once; a word: takes all that follow.
  bool is_file = false;        // Completed as one.

  bool is_word() const { return !names.starts_with('-'); }
  bool is_switch() const { return !is_word() && type.empty(); }
};

// Where what was typed goes. REQUIRES: `to` lives until the command line has been read.
CommandOption::Take into(std::string& to);
CommandOption::Take into(bool& to);
CommandOption::Take into(std::vector<std::string>& to);

struct Command {
  std::string name = {};    // "serve"; "topics create": a verb of a group.
  std::string help = {};    // One line.
  std::string usage = {};   // All of it: "ordo serve [OPTIONS]".
  std::string footer = {};  // Three examples, exit statuses.
  std::vector<CommandOption> options = {};
  // Set: the words from the first that is no option on are a command of the user.
  std::function<void(std::vector<std::string> words)> take_command = {};
  // Whether what was typed makes sense; may be left out.
  std::function<Status()> check = {};
  std::function<int()> run = {};  // Gives the exit status. Called after check(), once.
};

// What several commands share as their first word.
struct CommandGroup {
  std::string name = {};
  std::string help = {};
  std::string footer = {};
};

struct CommandTable {
  std::vector<CommandGroup> groups = {};
  std::vector<Command> commands = {};

  const CommandGroup* group(const std::string& name) const;
  const Command* command(const std::string& name) const;
  std::vector<std::string> first_words() const;  // In the order of the help.
  std::vector<std::string> verbs(const std::string& group) const;
};

}  // namespace ordo::app
