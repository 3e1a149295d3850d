// Words of a command that has settings: a flag for each, --config and --check.
//
//   auto words = std::make_shared<CommandWords>();
//   add_setting_options(command, serve_rules(), "Settings", words);
//   command.run = [words] { return run_serve(*words); };
//
// Threads: one owner.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ordo/app/command.h"
#include "ordo/app/settings.h"

namespace ordo::app {

// `config_help` says what the file has. What was typed goes to `words`, which the options share.
void add_setting_options(Command& command, const std::vector<SettingRule>& rules,
                         const std::string& config_help,
                         const std::shared_ptr<CommandWords>& words);

}  // namespace ordo::app
