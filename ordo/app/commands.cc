#include "ordo/app/commands.h"

#include <utility>

#include "ordo/app/broker_examples.h"
#include "ordo/app/command_examples.h"
#include "ordo/app/operator_examples.h"

namespace ordo::app {

CommandTable all_commands() {
  CommandTable table;
  const auto add = [&](std::vector<Command> commands) {
    for (Command& command : commands)
      table.commands.push_back(std::move(command));
  };
  table.groups = {
      {"topics", "Create, list, describe, update and delete topics", kTopicsExamples},
      {"subscriptions", "The same of subscriptions", kSubscriptionsExamples},
      {"config", "What is set, and where that came from", kConfigExamples},
      {"snapshots", "Keep where a subscription is, to come back to it", kSnapshotsExamples},
      {"key", "Pause, resume, skip or dead-letter one key", kKeyExamples},
  };
  add({serve_command()});
  add(topics_commands());
  add(subscriptions_commands());
  add({pub_command(), sub_command(), seek_command()});
  add(snapshots_commands());
  add({keys_command()});
  add(key_commands());
  add({peek_command(), tail_command(), redrive_command()});
  add({map_command(), gateway_command(), gateway_client_command(), doctor_command(),
       repair_command(), config_command(), demo_command(), bench_command()});
  add({completion_command(table)});
  return table;
}

}  // namespace ordo::app
