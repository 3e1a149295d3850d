// ordo sub: receive messages; print them, or run a command for each.
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "ordo/app/broker_examples.h"
#include "ordo/app/commands.h"
#include "ordo/app/map_options.h"
#include "ordo/app/option_values.h"
#include "ordo/app/sub_run.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

struct Typed {
  std::shared_ptr<BrokerWords> broker = std::make_shared<BrokerWords>();
  std::string subscription, exec, count, idle, timeout;
  std::string jobs = "1";
  bool acks = false, data = false;
  SubOptions options = {};
};

Status check(Typed& typed) {
  const auto invalid = [](const char* text) { return Error{ErrorCode::invalid_argument, text}; };
  const bool runs = !typed.exec.empty();
  if (runs && typed.acks) return invalid("--exec acknowledges by itself; leave --ack out");
  if (runs && (typed.data || typed.broker->json))
    return invalid("--exec prints what CMD prints; leave --data and --json out");
  if (typed.data && typed.broker->json) return invalid("--data and --json exclude each other");
  if (!runs && !typed.timeout.empty()) return invalid("--timeout is for --exec");
  SubOptions& options = typed.options;
  const auto jobs = parse_count("--jobs", typed.jobs, {1, 1'000});
  if (!jobs) return jobs.error();
  options.jobs = *jobs;
  if (!typed.count.empty()) {
    const auto count = parse_count("--count", typed.count, {1, 1'000'000'000'000});
    if (!count) return count.error();
    options.count = *count;
  }
  for (const auto& [name, text, to] : {std::tuple{"--idle", &typed.idle, &options.idle},
                                       std::tuple{"--timeout", &typed.timeout, &options.timeout}}) {
    if (text->empty()) continue;
    const auto time = parse_time(name, *text, true);
    if (!time) return time.error();
    *to = *time;
  }
  options.exec = typed.exec;
  options.acks = typed.acks;
  using Form = SubOptions::Form;
  options.form = typed.data                                           ? Form::data
                 : typed.broker->json || ::isatty(STDOUT_FILENO) != 1 ? Form::json
                                                                      : Form::line;
  return {};
}

int complain(const Error& error, int status) {
  log_line("ordo: " + error.message);
  return status;
}

int receive(Typed& typed) {
  const Result<BrokerPlace> place = broker_place(*typed.broker);
  if (!place) return complain(place.error(), kExitError);
  Result<std::string> name =
      whole_name(place->project, broker::Collection::subscriptions, typed.subscription);
  if (!name) return complain(name.error(), kExitError);
  typed.options.subscription = std::move(*name);
  Result<std::unique_ptr<pubsub_client::Client>> client = connect_broker(*place);
  if (!client) return complain(client.error(), kExitUnreachable);
  const auto settings = (*client)->get_subscription(typed.options.subscription);
  if (!settings) return complain(settings.error(), exit_status_of(settings.error()));
  if (settings->dead_letters) typed.options.attempts_max = settings->dead_letters->attempts_max;
  const bool says_so = typed.exec.empty() && !typed.acks;
  if (says_so && ::isatty(STDERR_FILENO) == 1)
    log_line("ordo: without --ack messages stay, and nothing comes behind an ordered one");
  SubRun run(*place, std::move(*client), typed.options);
  const Status ended = run.go();
  if (says_so && ::isatty(STDERR_FILENO) == 1)
    log_line("ordo: gave back " + std::to_string(run.given_back_count()) + " messages");
  if (!ended) return complain(ended.error(), exit_status_of(ended.error()));
  return run.failed_count() == 0 ? 0 : kExitRefused;
}

}  // namespace

Command sub_command() {
  auto typed = std::make_shared<Typed>();
  Command command{.name = "sub", .help = "Receive messages; print them, or run a command for each"};
  command.usage = "ordo sub [OPTIONS] SUBSCRIPTION [--exec CMD | --ack]";
  command.footer = kSubExamples;
  command.options = {
      {.names = "SUBSCRIPTION",
       .help = "Its name; without projects/ of this project",
       .take = into(typed->subscription),
       .is_required = true},
      {.names = "-x,--exec",
       .type = "CMD",
       .help = "Run it for each message, acknowledge when it exits with 0",
       .take = into(typed->exec)},
      {.names = "--ack", .help = "Acknowledge what was printed", .take = into(typed->acks)},
      {.names = "-j,--jobs",
       .type = "N",
       .help = "Commands at a time, of different keys (default 1)",
       .take = into(typed->jobs)},
      {.names = "-n,--count",
       .type = "N",
       .help = "End after so many messages",
       .take = into(typed->count)},
      {.names = "--idle",
       .type = "D",
       .help = "End when nothing came for so long",
       .take = into(typed->idle)},
      {.names = "--timeout",
       .type = "D",
       .help = "End a CMD that takes longer; the message comes again",
       .take = into(typed->timeout)},
      {.names = "--data", .help = "Print the data alone, a line each", .take = into(typed->data)},
  };
  add_broker_options(command, typed->broker);
  command.check = [typed] { return check(*typed); };
  command.run = [typed] { return receive(*typed); };
  return command;
}

}  // namespace ordo::app
