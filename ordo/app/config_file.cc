#include "ordo/app/config_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unistd.h>
#include <utility>

#include "ordo/adapters/config_toml/config_table.h"

namespace ordo::app {
namespace {

constexpr const char* kUsualConfig = "ordo.toml";

}  // namespace

Result<std::string> read_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  std::ostringstream text;
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || text.fail()) {
    return Error{ErrorCode::not_found,
                 "cannot read '" + name + "': " + std::string(::strerrordesc_np(errno))};
  }
  return std::move(text).str();
}

std::string config_name(const CommandWords& words) {
  if (!words.config.empty()) return words.config;
  if (const char* name = std::getenv("ORDO_CONFIG")) return name;
  return ::access(kUsualConfig, F_OK) == 0 ? kUsualConfig : "";
}

std::vector<std::string> tables_of_others(std::string_view command) {
  std::vector<std::string> tables;
  for (const char* table : {"client", "gateway", "oms", "risk", "route", "serve"}) {
    if (table != command) tables.emplace_back(table);
  }
  return tables;
}

Result<Settings> gather_settings(const std::vector<SettingRule>& rules, std::string_view command,
                                 const CommandWords& words, const std::string& config) {
  Settings settings(rules, command);
  if (!config.empty()) {
    const Result<std::string> text = read_file(config);
    if (!text) return text.error();
    const auto entries = config_toml::read_table(*text, config, command, tables_of_others(command));
    if (!entries) return entries.error();
    if (const Status taken = settings.take_file(*entries, config); !taken) return taken.error();
  }
  settings.take_environment([](const std::string& name) { return std::getenv(name.c_str()); });
  for (const auto& [name, text] : words.flags)
    settings.take_flag(name, text);
  return settings;
}

}  // namespace ordo::app
