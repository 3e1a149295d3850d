#include "ordo/app/command.h"

#include <algorithm>

namespace ordo::app {

CommandOption::Take into(std::string& to) {
  return [&to](const std::string& value) { to = value; };
}

CommandOption::Take into(bool& to) {
  return [&to](const std::string& value) { to = value == "true"; };
}

CommandOption::Take into(std::vector<std::string>& to) {
  return [&to](const std::string& value) { to.push_back(value); };
}

const CommandGroup* CommandTable::group(const std::string& name) const {
  const auto found = std::ranges::find(groups, name, &CommandGroup::name);
  return found == groups.end() ? nullptr : &*found;
}

const Command* CommandTable::command(const std::string& name) const {
  const auto found = std::ranges::find(commands, name, &Command::name);
  return found == commands.end() ? nullptr : &*found;
}

std::vector<std::string> CommandTable::first_words() const {
  std::vector<std::string> words;
  for (const Command& command : commands) {
    std::string word = command.name.substr(0, command.name.find(' '));
    if (words.empty() || words.back() != word) words.push_back(std::move(word));
  }
  return words;
}

std::vector<std::string> CommandTable::verbs(const std::string& group) const {
  std::vector<std::string> words;
  for (const Command& command : commands) {
    if (command.name.starts_with(group + " "))
      words.push_back(command.name.substr(group.size() + 1));
  }
  return words;
}

}  // namespace ordo::app
