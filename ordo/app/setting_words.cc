#include "ordo/app/setting_words.h"

namespace ordo::app {

void add_setting_options(Command& command, const std::vector<SettingRule>& rules,
                         const std::string& config_help,
                         const std::shared_ptr<CommandWords>& words) {
  for (const SettingRule& rule : rules) {
    CommandOption option{.names = flag_of(rule.name), .type = rule.type, .help = rule.help};
    if (!rule.type.empty()) option.help += " (default " + rule.initial + ")";
    option.take = [words, name = rule.name](const std::string& value) {
      words->flags.emplace_back(name, value);
    };
    option.choices = rule.choices;
    option.is_file = rule.type == "DIR" || rule.type == "FILE";
    command.options.push_back(std::move(option));
  }
  command.options.push_back({.names = "--config",
                             .type = "FILE",
                             .help = config_help,
                             .take = [words](const std::string& value) { words->config = value; },
                             .is_file = true});
  command.options.push_back({.names = "--check",
                             .help = "Say whether all settings are good, and exit",
                             .take = [words](const std::string&) { words->check_only = true; }});
}

}  // namespace ordo::app
