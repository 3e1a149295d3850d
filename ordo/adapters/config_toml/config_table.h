// read_table(): the settings of one table of a TOML file, as text with the line they stand on.
//
//   Result<std::vector<ConfigEntry>> entries = read_table(text, "ordo.toml", "gateway");
//   for (const ConfigEntry& entry : *entries) set(entry.key, entry.text, entry.line);
//
// A number, a truth value or a text gives the text one would type for it on the command line, so a
// setting is understood, and refused, in one place whatever way it came.
//
// Threads: a pure function.
// Errors:  not TOML, or a value of another kind: file, line, and what is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/core/result.h"

namespace ordo::config_toml {

struct ConfigEntry {
  std::string key;
  std::string text;
  std::uint32_t line = 0;
};

// In the order of the lines; empty when there is no such table. If `other_tables` are given,
// everything beside them and `table` is an error that says what may have been meant.
Result<std::vector<ConfigEntry>> read_table(std::string_view text, std::string_view file_name,
                                            std::string_view table,
                                            const std::vector<std::string>& other_tables = {});

}  // namespace ordo::config_toml
