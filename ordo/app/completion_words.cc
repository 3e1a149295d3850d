#include <algorithm>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "ordo/app/commands.h"
#include "ordo/app/completion.h"
#include "ordo/app/map_options.h"
#include "ordo/app/write_all.h"

namespace ordo::app {
namespace {

CompletionOption described(const CommandOption& option) {
  CompletionOption result;
  for (std::size_t at = 0; at < option.names.size();) {
    const std::size_t end = std::min(option.names.find(',', at), option.names.size());
    result.names.push_back(option.names.substr(at, end - at));
    at = end + 1;
  }
  result.text = option.help;
  result.takes_value = !option.is_switch();
  result.takes_file = option.is_file;
  result.values = option.choices;
  return result;
}

CompletionCommand described(const Command& command) {
  CompletionCommand result{command.name, command.help, {}, {}, false};
  result.options.push_back({{"-h", "--help"}, "Print this help and exit", false, false, {}});
  for (const CommandOption& option : command.options) {
    if (!option.is_word()) {
      result.options.push_back(described(option));
    } else if (result.words.empty()) {
      result.words = option.choices;
    }
  }
  result.runs_a_command = static_cast<bool>(command.take_command);
  return result;
}

}  // namespace

Command completion_command(const CommandTable& others) {
  auto shell = std::make_shared<std::string>();
  Command command{.name = "completion", .help = "Print a completion script for bash or zsh"};
  command.usage = "ordo completion [OPTIONS] SHELL";
  command.footer =
      "\nExamples:\n  source <(ordo completion bash)\n"
      "  ordo completion bash > /etc/bash_completion.d/ordo\n"
      "  ordo completion zsh > ~/.zfunc/_ordo\n";
  command.options = {{.names = "SHELL",
                      .help = "bash or zsh",
                      .take = into(*shell),
                      .choices = {"bash", "zsh"},
                      .is_required = true}};
  std::vector<CompletionCommand> commands;
  commands.reserve(others.commands.size() + 1);
  for (const Command& other : others.commands)
    commands.push_back(described(other));
  commands.push_back(described(command));
  std::vector<CompletionGroup> groups;
  groups.reserve(others.groups.size());
  for (const CommandGroup& group : others.groups)
    groups.push_back({group.name, group.help, others.verbs(group.name)});
  command.run = [shell, commands = std::move(commands), groups = std::move(groups)] {
    const std::string script =
        *shell == "bash" ? bash_completion(commands, groups) : zsh_completion(commands, groups);
    return write_all(STDOUT_FILENO, script) == 0 ? 0 : kExitError;
  };
  return command;
}

}  // namespace ordo::app
