// ordo redrive: dead letters back where they came from.
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include "ordo/app/commands.h"
#include "ordo/app/interrupt_fd.h"
#include "ordo/app/json_text.h"
#include "ordo/app/map_options.h"
#include "ordo/app/message_format.h"
#include "ordo/app/operator_examples.h"
#include "ordo/app/option_values.h"
#include "ordo/app/progress.h"
#include "ordo/app/redrive.h"
#include "ordo/app/resource_text.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

using broker::Collection;

constexpr std::size_t kKeyShownMax = 60;
constexpr std::size_t kGroupsShownMax = 50;

struct Typed {
  std::shared_ptr<BrokerWords> broker = std::make_shared<BrokerWords>();
  std::string subscription, key, to, patience = "10s";
  bool is_dry = false, is_any_order = false;
  bool is_interrupted = false;
};

std::string counted(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " dead letter" : " dead letters");
}

Status print_groups(const Redrive& redrive, const BrokerSeat& seat) {
  if (seat.json || ::isatty(STDOUT_FILENO) == 0) {
    std::string text;
    for (const auto& [group, count] : redrive.groups()) {
      std::string object = "{";
      append_text_field(object, "origin", group.first);
      append_text_field(object, "key", group.second);
      append_number_field(object, "count", static_cast<long long>(count));
      text += object + "}\n";
    }
    return print_text(text);
  }
  if (redrive.found() == 0) return print_text("nothing to put back\n");
  Table table({"ORIGIN", "KEY", "COUNT"});
  std::size_t shown = 0;
  for (const auto& [group, count] : redrive.groups()) {
    if (++shown > kGroupsShownMax) break;
    const std::string origin = short_name(seat.place.project, group.first);
    table.add({origin.empty() ? "(does not say)" : origin, one_line(group.second, kKeyShownMax),
               std::to_string(count)});
  }
  if (Status printed = print_table(table); !printed) return printed;
  const std::size_t more = redrive.groups().size() - std::min(shown, redrive.groups().size());
  std::string text = counted(redrive.found()) + " would be put back";
  if (more > 0) text += "; " + std::to_string(more) + " more keys are not shown";
  return print_text(text + "\n");
}

Status print_done(const Redrive& redrive, const BrokerSeat& seat) {
  if (seat.json) {
    std::string object = "{";
    append_number_field(object, "redriven", static_cast<long long>(redrive.done()));
    append_number_field(object, "found", static_cast<long long>(redrive.found()));
    return print_text(object + "}\n");
  }
  std::string text = counted(redrive.done()) + " put back";
  for (const auto& [topic, count] : redrive.published())
    text += ", " + std::to_string(count) + " to " + short_name(seat.place.project, topic);
  return print_text(text + "\n");
}

Result<RedriveOptions> options_of(const BrokerSeat& seat, const Typed& typed) {
  RedriveOptions options;
  Result<std::string> subscription =
      whole_name(seat.place.project, Collection::subscriptions, typed.subscription);
  if (!subscription) return subscription.error();
  options.subscription = std::move(*subscription);
  if (!typed.to.empty()) {
    Result<std::string> topic = whole_name(seat.place.project, Collection::topics, typed.to);
    if (!topic) return topic.error();
    options.to = std::move(*topic);
  }
  const auto patience = parse_time("--patience", typed.patience, true);
  if (!patience) return patience.error();
  options.patience = *patience;
  options.key = typed.key;
  options.keeps_order = !typed.is_any_order;
  return options;
}

Status redrive(BrokerSeat& seat, Typed& typed) {
  Result<RedriveOptions> options = options_of(seat, typed);
  if (!options) return options.error();
  Redrive redrive(seat.client, std::move(*options));
  if (Status looked = redrive.look(); !looked) return looked;
  if (typed.is_dry || redrive.found() == 0) return print_groups(redrive, seat);
  InterruptFd interrupt;
  Progress progress(true, STDERR_FILENO, system_clock());
  const TimePoint began = system_clock().now();
  const Status done = redrive.run(interrupt.fd(), [&] {
    const double share = static_cast<double>(redrive.done()) / static_cast<double>(redrive.found());
    progress.draw({redrive.done(), 0, system_clock().now() - began, share});
    return interrupt.is_raised();
  });
  progress.hide();
  typed.is_interrupted = interrupt.is_raised();
  if (Status printed = print_done(redrive, seat); !printed) return printed;
  if (!done) {
    return Error{done.error().code,
                 done.error().message + " (" + counted(redrive.done()) + " were put back before)"};
  }
  if (redrive.done() >= redrive.found() || typed.is_interrupted) return {};
  return Error{ErrorCode::failed_precondition,
               counted(redrive.found() - redrive.done()) +
                   " did not come: they are with others or blocked; see 'ordo peek' and 'ordo keys "
                   "--blocked'"};
}

}  // namespace

Command redrive_command() {
  auto typed = std::make_shared<Typed>();
  Command command{.name = "redrive", .help = "Put dead letters back where they came from"};
  command.usage = "ordo redrive [OPTIONS] SUBSCRIPTION";
  command.footer = kRedriveExamples;
  command.options = {{.names = "SUBSCRIPTION",
                      .help = "A subscription of the dead-letter topic",
                      .take = into(typed->subscription),
                      .is_required = true},
                     {.names = "--key",
                      .type = "KEY",
                      .help = "Only those of this ordering key",
                      .take = into(typed->key)},
                     {.names = "--dry-run",
                      .help = "Count them by origin and key, and do nothing",
                      .take = into(typed->is_dry)},
                     {.names = "--to",
                      .type = "TOPIC",
                      .help = "Publish them there (default: where they came from)",
                      .take = into(typed->to)},
                     {.names = "--any-order",
                      .help = "Also from a subscription that keeps no order",
                      .take = into(typed->is_any_order)},
                     {.names = "--patience",
                      .type = "D",
                      .help = "End when none comes for so long (default 10s)",
                      .take = into(typed->patience)}};
  command.run = [typed] {
    const int status =
        with_broker(*typed->broker, [&](BrokerSeat& seat) { return redrive(seat, *typed); });
    return typed->is_interrupted ? kExitInterrupted : status;
  };
  add_broker_options(command, typed->broker);
  return command;
}

}  // namespace ordo::app
