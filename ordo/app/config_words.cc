// ordo config show: every setting in force, and where it came from.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ordo/app/broker_words.h"
#include "ordo/app/command_examples.h"
#include "ordo/app/commands.h"
#include "ordo/app/config_file.h"
#include "ordo/app/gateway_options.h"
#include "ordo/app/json_text.h"
#include "ordo/app/map_options.h"
#include "ordo/app/resource_text.h"
#include "ordo/app/serve_options.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

struct Typed {
  CommandWords words = {};
  std::string section;
  bool origin = false, json = false;
};

struct Section {
  const char* name;
  const std::vector<SettingRule>& rules;
  std::function<Status(const Settings&)> check;
};

template <class T>
Status status_of(const Result<T>& result) {
  return result ? Status() : result.error();
}

std::vector<Section> sections() {
  return {
      {"serve", serve_rules(), [](const Settings& all) { return status_of(serve_options(all)); }},
      {"gateway", gateway_rules(),
       [](const Settings& all) { return status_of(gateway_options(all)); }},
      {"client", client_rules(), [](const Settings& all) { return status_of(place_of(all)); }},
  };
}

std::string json_line(const std::string& name, const SettingText& setting) {
  std::string object = "{";
  append_text_field(object, "setting", name);
  append_text_field(object, "value", setting.text);
  append_text_field(object, "origin", setting.origin);
  return object + "}\n";
}

int complain(const Error& error, int status) {
  log_line("ordo: " + error.message);
  return status;
}

// What is wrong with a setting is said after all of them were shown.
int show(const Typed& typed) {
  const std::string config = config_name(typed.words);
  std::vector<std::string> heading = {"SETTING", "VALUE"};
  if (typed.origin) heading.emplace_back("ORIGIN");
  Table table(std::move(heading));
  std::string json;
  std::vector<Error> wrong;
  for (const Section& section : sections()) {
    if (!typed.section.empty() && typed.section != section.name) continue;
    const Result<Settings> settings =
        gather_settings(section.rules, section.name, typed.words, config);
    if (!settings) return complain(settings.error(), kExitError);
    for (const SettingRule& rule : section.rules) {
      const SettingText& setting = settings->at(rule.name);
      const std::string name = std::string(section.name) + "." + rule.name;
      json += json_line(name, setting);
      std::vector<std::string> row = {name, setting.text};
      if (typed.origin) row.push_back(setting.origin);
      table.add(std::move(row));
    }
    if (const Status good = section.check(*settings); !good) wrong.push_back(good.error());
  }
  if (const Status printed = typed.json ? print_text(json) : print_table(table); !printed)
    return complain(printed.error(), kExitError);
  for (const Error& error : wrong)
    log_line("ordo: " + error.message);
  return wrong.empty() ? 0 : kExitRefused;
}

}  // namespace

Command config_command() {
  auto typed = std::make_shared<Typed>();
  Command command{.name = "config show", .help = "All settings in force"};
  command.usage = "ordo config show [OPTIONS] [SECTION]";
  command.footer = kConfigExamples;
  command.options = {
      {.names = "SECTION",
       .help = "serve, gateway or client; left out: all",
       .take = into(typed->section),
       .choices = {"serve", "gateway", "client"}},
      {.names = "--origin", .help = "And where each came from", .take = into(typed->origin)},
      {.names = "--config",
       .type = "FILE",
       .help = "Settings (default ORDO_CONFIG, else ordo.toml where it exists)",
       .take = into(typed->words.config),
       .is_file = true},
      {.names = "--json", .help = "Print JSON, one object a line", .take = into(typed->json)},
  };
  command.run = [typed] { return show(*typed); };
  return command;
}

}  // namespace ordo::app
