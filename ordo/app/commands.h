// The commands of `ordo`, one function and one file for each; all_commands() lists them.
//
//   const Invocation wanted = parse_command_line(arguments, all_commands());
//
// What a command runs may be replaced, so that tests see what was typed.
//
// Threads: plain values; one owner.
#pragma once

#include <functional>
#include <vector>

#include "ordo/app/command.h"
#include "ordo/app/gateway_command.h"
#include "ordo/app/map_command.h"
#include "ordo/app/serve_command.h"
#include "ordo/app/store_command.h"

namespace ordo::app {

Command serve_command(std::function<int(const CommandWords&)> run = run_serve);
Command map_command(std::function<int(MapOptions)> run = run_map);
Command gateway_command(std::function<int(const CommandWords&)> run = run_gateway);
Command gateway_client_command(std::function<int(const ClientOptions&)> run = run_gateway_client);
Command doctor_command(std::function<int(const StoreWords&)> run = run_doctor);
Command repair_command(std::function<int(const StoreWords&)> run = run_repair);

// Those that talk to a broker.
std::vector<Command> topics_commands();
std::vector<Command> subscriptions_commands();
std::vector<Command> snapshots_commands();
Command pub_command();
Command seek_command();
Command sub_command();

Command config_command();  // config show

// What operators look at and do; and what there is to look at.
Command keys_command();
std::vector<Command> key_commands();
Command peek_command();
Command tail_command();
Command redrive_command();
Command demo_command();
Command bench_command();

// Prints a script made from `others` and itself.
Command completion_command(const CommandTable& others);

CommandTable all_commands();

}  // namespace ordo::app
