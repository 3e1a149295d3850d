// What every command that talks to a broker shares: where the broker is, which project is meant,
// and how to print.
//
//   auto words = std::make_shared<BrokerWords>();
//   add_broker_options(command, words);                    // --host, --project, --config, --json
//   ...
//   return with_broker(*words, [&](BrokerSeat& seat) {     // connected; an Error is printed
//     return seat.client.delete_topic(seat.topic(name));
//   });
//
// Flag, then ORDO_CLIENT_HOST and PUBSUB_EMULATOR_HOST, then [client] of ordo.toml, then default;
// for the project ORDO_CLIENT_PROJECT, PUBSUB_PROJECT_ID and GOOGLE_CLOUD_PROJECT.
//
// Threads: one owner.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/grpc_client/address.h"
#include "ordo/adapters/pubsub_client/client.h"
#include "ordo/app/command.h"
#include "ordo/app/settings.h"
#include "ordo/broker/resource_name.h"
#include "ordo/core/result.h"

namespace ordo::app {

inline constexpr int kExitRefused = 1;      // The broker refused, and said why.
inline constexpr int kExitUnreachable = 2;  // There is no broker, or it was lost.

struct BrokerWords {
  CommandWords settings = {};  // host and project, as they were typed.
  bool json = false;
};

void add_broker_options(Command& command, const std::shared_ptr<BrokerWords>& words);

// The settings of all who talk to a broker: [client].
const std::vector<SettingRule>& client_rules();

// Where the broker is, and what names without a project mean.
struct BrokerPlace {
  grpc_client::Address address = {};
  std::string project = {};
};
Result<BrokerPlace> broker_place(const BrokerWords& words);
// REQUIRES: `settings` has client_rules().
Result<BrokerPlace> place_of(const Settings& settings);

// Whole names stay; others become those of the project. invalid_argument: what is wrong with it.
Result<std::string> whole_name(const std::string& project, broker::Collection collection,
                               const std::string& name);

// As people type it: the id alone when it is of this project.
std::string short_name(const std::string& project, std::string_view name);

// A connection. unavailable says what to do: start one, or name another.
Result<std::unique_ptr<pubsub_client::Client>> connect_broker(const BrokerPlace& place);

// What a command works with.
struct BrokerSeat {
  const BrokerPlace& place;
  pubsub_client::Client& client;
  const bool json;
};

// Connects and lets `work` go on. Returns 0, or prints the error and returns the exit status of it.
int with_broker(const BrokerWords& words, const std::function<Status(BrokerSeat& seat)>& work);

// kExitRefused, or kExitUnreachable when nobody answered.
int exit_status_of(const Error& error);

}  // namespace ordo::app
