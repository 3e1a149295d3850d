// The configuration file of a command, and all its settings: flag, environment, file, default.
//
//   Result<Settings> settings = gather_settings(serve_rules(), "serve", words, config);
//   if (!settings) return settings.error();     // ordo.toml:3: lisen: [serve] has no such setting
//
// One file serves all commands: each has a table of its name, and the gateway some more.
//
// Threads: call them where the environment does not change.
// Errors:  cannot be read, is not TOML, has a table or a setting that nobody knows: file and line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ordo/app/settings.h"
#include "ordo/core/result.h"

namespace ordo::app {

Result<std::string> read_file(const std::string& name);

// --config, else ORDO_CONFIG, else ordo.toml where it exists; empty: there is none.
std::string config_name(const CommandWords& words);

// The tables of the file that belong to others than `command`.
std::vector<std::string> tables_of_others(std::string_view command);

// `config` may be empty. REQUIRES: `rules` outlives what is returned.
Result<Settings> gather_settings(const std::vector<SettingRule>& rules, std::string_view command,
                                 const CommandWords& words, const std::string& config);

}  // namespace ordo::app
