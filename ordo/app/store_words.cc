#include <memory>
#include <utility>

#include "ordo/app/command_examples.h"
#include "ordo/app/commands.h"

namespace ordo::app {
namespace {

using Run = std::function<int(const StoreWords&)>;

Command store_command(const char* name, const char* help, std::shared_ptr<StoreWords> words,
                      Run run) {
  Command command{.name = name, .help = help};
  command.usage = "ordo " + command.name + " [OPTIONS] DIRECTORY";
  command.footer = kStoreExamples;
  command.options = {
      {.names = "DIRECTORY",
       .help = "Where a broker keeps its data",
       .take = into(words->directory),
       .is_required = true},
      {.names = "--witness",
       .type = "FILE",
       .help = "The file beside it (default: DIRECTORY.witness)",
       .take = into(words->witness),
       .is_file = true},
  };
  command.run = [words = std::move(words), run = std::move(run)] { return run(*words); };
  return command;
}

}  // namespace

Command doctor_command(Run run) {
  return store_command("doctor", "Say whether all data of a broker is there",
                       std::make_shared<StoreWords>(), std::move(run));
}

Command repair_command(Run run) {
  auto words = std::make_shared<StoreWords>();
  Command command =
      store_command("repair", "Make damaged data of a broker usable again", words, std::move(run));
  command.options.push_back({.names = "--accept-loss",
                             .help = "Go on without what is missing",
                             .take = into(words->accept_loss)});
  return command;
}

}  // namespace ordo::app
