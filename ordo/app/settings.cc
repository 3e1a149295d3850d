#include "ordo/app/settings.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "ordo/core/check.h"
#include "ordo/core/nearest.h"

namespace ordo::app {
namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

}  // namespace

std::string flag_of(std::string_view setting) {
  std::string flag = "--" + std::string(setting);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

Settings::Settings(const std::vector<SettingRule>& rules, std::string_view command)
    : command_(command) {
  for (const SettingRule& rule : rules)
    values_[rule.name] = {{rule.initial, "default"}, Rank::initial, rule.variables};
}

void Settings::take(const std::string& name, Rank rank, SettingText text) {
  const auto place = values_.find(name);
  ORDO_CHECK(place != values_.end());
  if (place->second.rank > rank) return;
  place->second.text = std::move(text);
  place->second.rank = rank;
}

void Settings::take_flag(const std::string& name, std::string text) {
  take(name, Rank::flag, {std::move(text), flag_of(name)});
}

std::string Settings::variable_of(std::string_view name) const {
  return "ORDO_" + upper(command_) + "_" + upper(name);
}

void Settings::take_environment(const Environment& environment) {
  for (const auto& [name, value] : values_) {
    for (const std::string& variable : value.variables) {
      const char* text = environment(variable);
      if (text != nullptr && *text != '\0') take(name, Rank::environment, {text, variable});
    }
    const std::string variable = variable_of(name);
    if (const char* text = environment(variable)) take(name, Rank::environment, {text, variable});
  }
}

Status Settings::take_file(const std::vector<config_toml::ConfigEntry>& entries,
                           std::string_view file_name) {
  for (const config_toml::ConfigEntry& entry : entries) {
    const std::string origin =
        std::string(file_name) + ":" + std::to_string(entry.line) + ": " + entry.key;
    if (!values_.contains(entry.key)) {
      std::vector<std::string> known;
      known.reserve(values_.size());
      for (const auto& [name, value] : values_)
        known.push_back(name);
      const std::string meant = nearest(entry.key, known);
      return Error{ErrorCode::invalid_argument,
                   origin + ": [" + command_ + "] has no such setting" +
                       (meant.empty() ? "" : "; did you mean '" + meant + "'?")};
    }
    take(entry.key, Rank::file, {entry.text, origin});
  }
  return {};
}

const SettingText& Settings::at(std::string_view name) const {
  const auto place = values_.find(name);
  ORDO_CHECK(place != values_.end());
  return place->second.text;
}

}  // namespace ordo::app
