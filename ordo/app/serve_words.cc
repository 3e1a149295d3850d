#include <memory>
#include <utility>

#include "ordo/app/command_examples.h"
#include "ordo/app/commands.h"
#include "ordo/app/serve_options.h"
#include "ordo/app/setting_words.h"

namespace ordo::app {

Command serve_command(std::function<int(const CommandWords&)> run) {
  auto words = std::make_shared<CommandWords>();
  Command command{.name = "serve", .help = "Keep messages and deliver them, in order per key"};
  command.usage = "ordo serve [OPTIONS]";
  command.footer = kServeExamples;
  add_setting_options(command, serve_rules(), "Settings", words);
  command.run = [words, run = std::move(run)] { return run(*words); };
  return command;
}

}  // namespace ordo::app
