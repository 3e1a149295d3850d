#include "ordo/app/setting_reader.h"

#include <algorithm>

#include "ordo/app/join.h"

namespace ordo::app {
namespace {

Result<bool> parse_switch(const SettingText& setting) {
  if (setting.text == "true" || setting.text == "1") return true;
  if (setting.text == "false" || setting.text == "0") return false;
  return Error{ErrorCode::invalid_argument,
               setting.origin + ": '" + setting.text + "' is neither true nor false"};
}

}  // namespace

void SettingReader::count(std::string_view name, CountRange range, std::size_t& to) {
  const SettingText& setting = settings_.at(name);
  take(parse_count(setting.origin, setting.text, range), to);
}

void SettingReader::truth(std::string_view name, bool& to) {
  take(parse_switch(settings_.at(name)), to);
}

void SettingReader::time(std::string_view name, std::chrono::nanoseconds& to) {
  const SettingText& setting = settings_.at(name);
  take(parse_time(setting.origin, setting.text, true), to);
}

void SettingReader::time_or_zero(std::string_view name, std::chrono::nanoseconds& to) {
  const SettingText& setting = settings_.at(name);
  take(parse_time(setting.origin, setting.text, false), to);
}

void SettingReader::bytes(std::string_view name, std::size_t& to) {
  const SettingText& setting = settings_.at(name);
  take(parse_bytes(setting.origin, setting.text), to);
}

void SettingReader::address(std::string_view name, HostPort& to) {
  const SettingText& setting = settings_.at(name);
  take(parse_host_port(setting.origin, setting.text), to);
}

std::size_t SettingReader::choice(std::string_view name, const std::vector<std::string>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), settings_.at(name).text);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  refuse(name, "is none of " + join(choices, ", "));
  return 0;
}

void SettingReader::refuse(std::string_view name, const std::string& why) {
  const SettingText& setting = settings_.at(name);
  fail({ErrorCode::invalid_argument, setting.origin + ": '" + setting.text + "' " + why});
}

}  // namespace ordo::app
