// Completion scripts for bash and zsh, made from the table of options.
//
//   source <(ordo completion bash)
//
// Threads: none; pure functions.
#pragma once

#include <string>
#include <vector>

namespace ordo::app {

struct CompletionOption {
  std::vector<std::string> names;  // "-j", "--workers"
  std::string text;                // One line.
  bool takes_value = false;
  bool takes_file = false;
  std::vector<std::string> values;  // When only these make sense.
};

struct CompletionCommand {
  std::string name;  // One word, or two: a verb of a group.
  std::string text;
  std::vector<CompletionOption> options;
  std::vector<std::string> words;  // What may follow, when it is a fixed list.
  bool runs_a_command = false;     // COMMAND and its arguments follow.
};

// The first word of commands of two.
struct CompletionGroup {
  std::string name;
  std::string text;
  std::vector<std::string> verbs;
};

std::string bash_completion(const std::vector<CompletionCommand>& commands,
                            const std::vector<CompletionGroup>& groups);
std::string zsh_completion(const std::vector<CompletionCommand>& commands,
                           const std::vector<CompletionGroup>& groups);

}  // namespace ordo::app
