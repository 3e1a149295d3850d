// Settings: where each setting of a command comes from, and what it says.
//
//   Settings settings({{"budget", "N", "1024", "Tasks admitted and not finished"}}, "gateway");
//   settings.take_flag("budget", "64");                       // --budget 64
//   settings.take_environment(environment);                   // ORDO_GATEWAY_BUDGET
//   Status ok = settings.take_file(entries, "ordo.toml");     // [gateway] budget = 64
//   settings.at("budget");                                    // {"64", "--budget"}
//
// A flag beats the environment, which beats the file, which beats the default. An error names the
// place the value came from.
//
// Threads: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/adapters/config_toml/config_table.h"
#include "ordo/core/result.h"

namespace ordo::app {

// One setting: `strict_gaps` is --strict-gaps, ORDO_GATEWAY_STRICT_GAPS and, in the file, itself.
struct SettingRule {
  std::string name;
  std::string type;     // What the help shows for the value; empty: a switch, true or false.
  std::string initial;  // The default, as one would type it.
  std::string help;     // One line.
  std::vector<std::string> choices = {};  // Not empty: no other values.
  // Variables of others that say the same, weakest first; empty ones say nothing.
  std::vector<std::string> variables = {};
};

struct SettingText {
  std::string text;
  std::string origin;  // "--budget", "ORDO_GATEWAY_BUDGET", "ordo.toml:4: budget" or "default".
};

// What was typed to a command that has settings.
struct CommandWords {
  std::vector<std::pair<std::string, std::string>> flags;  // Setting and value.
  std::string config;                                      // Empty: ordo.toml, if there is one.
  bool check_only = false;
};

std::string flag_of(std::string_view setting);  // --strict-gaps

class Settings {
 public:
  // The value of a variable of the environment, or nullptr.
  using Environment = std::function<const char*(const std::string& name)>;

  // `rules` outlives this.
  Settings(const std::vector<SettingRule>& rules, std::string_view command);

  void take_flag(const std::string& name, std::string text);
  void take_environment(const Environment& environment);
  // An unknown key is an error, with what may have been meant.
  Status take_file(const std::vector<config_toml::ConfigEntry>& entries,
                   std::string_view file_name);

  // REQUIRES: there is a rule of that name.
  const SettingText& at(std::string_view name) const;

 private:
  enum class Rank : std::uint8_t { initial, file, environment, flag };
  struct Value {
    SettingText text;
    Rank rank = Rank::initial;
    std::vector<std::string> variables = {};
  };

  void take(const std::string& name, Rank rank, SettingText text);
  std::string variable_of(std::string_view name) const;  // ORDO_GATEWAY_STRICT_GAPS

  std::string command_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace ordo::app
