#include <memory>
#include <utility>

#include "ordo/app/command_examples.h"
#include "ordo/app/commands.h"

namespace ordo::app {
namespace {

using Run = std::function<int(const StoreWords&)>;

CommandOption directory_option(StoreWords& words, bool is_required) {
  return {.names = "DIRECTORY",
          .help = "Where a broker keeps its data",
          .take = into(words.directory),
          .is_required = is_required};
}

CommandOption witness_option(StoreWords& words) {
  return {.names = "--witness",
          .type = "FILE",
          .help = "The file beside it (default: DIRECTORY.witness)",
          .take = into(words.witness),
          .is_file = true};
}

}  // namespace

Command doctor_command(Run run) {
  auto words = std::make_shared<StoreWords>();
  Command command{.name = "doctor",
                  .help = "Say whether a broker can run here, or whether all its data is there"};
  command.usage = "ordo doctor [OPTIONS] [DIRECTORY]";
  command.footer = kDoctorExamples;
  command.options = {directory_option(*words, false),
                     witness_option(*words),
                     {.names = "--config",
                      .type = "FILE",
                      .help = "Settings of the broker, without DIRECTORY",
                      .take = into(words->config),
                      .is_file = true}};
  command.check = [words]() -> Status {
    if (words->directory.empty() && !words->witness.empty())
      return Error{ErrorCode::invalid_argument, "--witness needs DIRECTORY"};
    if (!words->directory.empty() && !words->config.empty())
      return Error{ErrorCode::invalid_argument, "--config and DIRECTORY exclude each other"};
    return {};
  };
  command.run = [words, run = std::move(run)] { return run(*words); };
  return command;
}

Command repair_command(Run run) {
  auto words = std::make_shared<StoreWords>();
  Command command{.name = "repair", .help = "Make damaged data of a broker usable again"};
  command.usage = "ordo repair [OPTIONS] DIRECTORY";
  command.footer = kRepairExamples;
  command.options = {directory_option(*words, true),
                     witness_option(*words),
                     {.names = "--accept-loss",
                      .help = "Go on without what is missing",
                      .take = into(words->accept_loss)}};
  command.run = [words, run = std::move(run)] { return run(*words); };
  return command;
}

}  // namespace ordo::app
