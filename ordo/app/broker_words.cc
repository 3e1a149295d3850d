#include "ordo/app/broker_words.h"

#include <utility>

#include "ordo/app/config_file.h"
#include "ordo/app/map_options.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

CommandOption setting_option(const SettingRule& rule, const std::shared_ptr<BrokerWords>& words) {
  CommandOption option;
  option.names = flag_of(rule.name);
  option.type = rule.type;
  option.help = rule.help + " (default " + rule.initial + ")";
  option.group = "Which broker";
  option.take = [words, name = rule.name](const std::string& value) {
    words->settings.flags.emplace_back(name, value);
  };
  return option;
}

}  // namespace

const std::vector<SettingRule>& client_rules() {
  static const std::vector<SettingRule> rules = {
      {"host", "HOST:PORT", "127.0.0.1:8085", "Where the broker is", {}, {"PUBSUB_EMULATOR_HOST"}},
      {"project",
       "NAME",
       "ordo",
       "What names without a project belong to",
       {},
       {"GOOGLE_CLOUD_PROJECT", "PUBSUB_PROJECT_ID"}},
  };
  return rules;
}

void add_broker_options(Command& command, const std::shared_ptr<BrokerWords>& words) {
  for (const SettingRule& rule : client_rules())
    command.options.push_back(setting_option(rule, words));
  command.options.push_back({.names = "--config",
                             .type = "FILE",
                             .help = "Settings (default ordo.toml where it exists)",
                             .take = into(words->settings.config),
                             .group = "Which broker",
                             .is_file = true});
  command.options.push_back(
      {.names = "--json", .help = "Print JSON, one object a line", .take = into(words->json)});
}

Result<BrokerPlace> broker_place(const BrokerWords& words) {
  const Result<Settings> settings =
      gather_settings(client_rules(), "client", words.settings, config_name(words.settings));
  if (!settings) return settings.error();
  return place_of(*settings);
}

Result<BrokerPlace> place_of(const Settings& settings) {
  const SettingText& host = settings.at("host");
  const SettingText& project = settings.at("project");
  Result<grpc_client::Address> address = grpc_client::Address::parse(host.origin, host.text);
  if (!address) return address.error();
  if (project.text.empty() || project.text.find('/') != std::string::npos) {
    return Error{ErrorCode::invalid_argument,
                 project.origin + ": '" + project.text + "' is no project; it has no slash"};
  }
  return BrokerPlace{std::move(*address), project.text};
}

Result<std::string> whole_name(const std::string& project, broker::Collection collection,
                               const std::string& name) {
  std::string whole =
      name.find('/') == std::string::npos ? broker::resource_name(project, collection, name) : name;
  const Result<broker::ResourceName> parsed = broker::ResourceName::parse(whole, collection);
  if (parsed) return whole;
  return Error{ErrorCode::invalid_argument,
               "'" + name + "' is no name in " + std::string(broker::collection_name(collection)) +
                   ": 3 to 255 letters, digits and -_.~+%, a letter first, not beginning with "
                   "'goog'"};
}

std::string short_name(const std::string& project, std::string_view name) {
  const std::string mine = "projects/" + project + "/";
  if (!name.starts_with(mine)) return std::string(name);
  return std::string(broker::id_of(name));
}

Result<std::unique_ptr<pubsub_client::Client>> connect_broker(const BrokerPlace& place) {
  Result<std::unique_ptr<pubsub_client::Client>> client =
      pubsub_client::Client::connect(place.address);
  if (client) return client;
  return Error{ErrorCode::unavailable,
               "no broker at " + place.address.text() + " (" + client.error().message +
                   "): start one with 'ordo serve', or name another with --host"};
}

int exit_status_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::unavailable:
    case ErrorCode::deadline_exceeded:
      return kExitUnreachable;
    default:
      return kExitRefused;
  }
}

int with_broker(const BrokerWords& words, const std::function<Status(BrokerSeat& seat)>& work) {
  const Result<BrokerPlace> place = broker_place(words);
  if (!place) {
    log_line("ordo: " + place.error().message);
    return kExitError;
  }
  Result<std::unique_ptr<pubsub_client::Client>> client = connect_broker(*place);
  Status done;
  if (client) {
    BrokerSeat seat{*place, **client, words.json};
    done = work(seat);
  } else {
    done = client.error();
  }
  if (done) return 0;
  log_line("ordo: " + done.error().message);
  return exit_status_of(done.error());
}

}  // namespace ordo::app
