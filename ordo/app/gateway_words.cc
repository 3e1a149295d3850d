#include <memory>
#include <string>
#include <utility>

#include "ordo/app/command_examples.h"
#include "ordo/app/commands.h"
#include "ordo/app/gateway_options.h"
#include "ordo/app/option_values.h"
#include "ordo/app/setting_words.h"

namespace ordo::app {

Command gateway_command(std::function<int(const CommandWords&)> run) {
  auto words = std::make_shared<CommandWords>();
  Command command{.name = "gateway", .help = "Serve orders over TCP, in order per correlation id"};
  command.usage = "ordo gateway [OPTIONS]";
  command.footer = kGatewayExamples;
  add_setting_options(command, gateway_rules(), "Settings, routes and risk limits", words);
  command.options.push_back(
      {.names = "--no-admin",
       .help = "No HTTP server; as --admin off",
       .take = [words](const std::string&) { words->flags.emplace_back("admin", "off"); }});
  command.run = [words, run = std::move(run)] { return run(*words); };
  return command;
}

Command gateway_client_command(std::function<int(const ClientOptions&)> run) {
  struct Typed {
    ClientOptions options;
    std::string window = "256";
  };
  auto typed = std::make_shared<Typed>();
  Command command{.name = "gateway-client",
                  .help = "Send lines to a gateway and print the replies"};
  command.usage = "ordo gateway-client [OPTIONS] < LINES";
  command.footer = kClientExamples;
  command.options = {
      {.names = "--connect",
       .type = "ADDR:PORT",
       .help = "The gateway (default 127.0.0.1:7070)",
       .take = into(typed->options.connect)},
      {.names = "--binary",
       .help = "Speak the binary protocol",
       .take = into(typed->options.binary)},
      {.names = "--raw",
       .help = "Lines have their own request ids; text only",
       .take = into(typed->options.raw)},
      {.names = "--window",
       .type = "N",
       .help = "Requests sent and not yet answered (default 256)",
       .take = into(typed->window)},
  };
  command.check = [typed]() -> Status {
    // More, and both ends might wait to be read.
    const auto window = parse_count("--window", typed->window, {1, 1'024});
    if (!window) return window.error();
    typed->options.window = *window;
    return {};
  };
  command.run = [typed, run = std::move(run)] { return run(typed->options); };
  return command;
}

}  // namespace ordo::app
