#include "ordo/app/commands.h"

namespace ordo::app {

CommandTable all_commands() {
  CommandTable table;
  table.commands = {
      serve_command(),          map_command(),    gateway_command(),
      gateway_client_command(), doctor_command(), repair_command(),
  };
  table.commands.push_back(completion_command(table));
  return table;
}

}  // namespace ordo::app
