// ordo demo: something to look at.
#include <memory>
#include <string>
#include <unistd.h>

#include "ordo/app/commands.h"
#include "ordo/app/demo.h"
#include "ordo/app/interrupt_fd.h"
#include "ordo/app/json_text.h"
#include "ordo/app/operator_examples.h"
#include "ordo/app/option_values.h"
#include "ordo/app/resource_text.h"

namespace ordo::app {
namespace {

struct Typed {
  std::shared_ptr<BrokerWords> broker = std::make_shared<BrokerWords>();
  std::string time = "60s", rate = "200", keys = "20", bad = "3";
  bool is_clean = false;
};

Result<DemoOptions> options_of(const BrokerSeat& seat, const Typed& typed) {
  DemoOptions options;
  options.project = seat.place.project;
  const auto time = parse_time("--for", typed.time, true);
  if (!time) return time.error();
  options.time = *time;
  const auto rate = parse_count("--rate", typed.rate, {1, 10'000});
  if (!rate) return rate.error();
  options.rate = *rate;
  const auto keys = parse_count("--keys", typed.keys, {1, 10'000});
  if (!keys) return keys.error();
  options.keys = *keys;
  const auto bad = parse_count("--bad", typed.bad, {0, options.keys});
  if (!bad) return bad.error();
  options.bad_keys = *bad;
  return options;
}

std::string counts_text(const DemoCounts& counts, bool json) {
  if (!json) {
    return std::to_string(counts.published) + " published, " + std::to_string(counts.acknowledged) +
           " acknowledged, " + std::to_string(counts.failed) + " failed";
  }
  std::string object = "{";
  append_number_field(object, "published", static_cast<long long>(counts.published));
  append_number_field(object, "acknowledged", static_cast<long long>(counts.acknowledged));
  append_number_field(object, "failed", static_cast<long long>(counts.failed));
  return object + "}";
}

Status demonstrate(BrokerSeat& seat, const Typed& typed) {
  const Result<DemoOptions> options = options_of(seat, typed);
  if (!options) return options.error();
  Demo demo(seat.client, *options);
  if (typed.is_clean) {
    if (Status removed = demo.remove(); !removed) return removed;
    return print_text(seat.json ? "{}\n" : "removed the topic and the subscription ordo-demo\n");
  }
  if (Status made = demo.make(); !made) return made;
  const std::string at = seat.place.address.text();
  if (!seat.json) {
    const Status printed =
        print_text("  Look       http://" + at +
                   "/\n  Or         ordo keys ordo-demo --blocked\n"
                   "  Free one   ordo key skip ordo-demo customer-0\n  Stop       Ctrl-C\n");
    if (!printed) return printed;
  }
  InterruptFd interrupt;
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0 && !seat.json;
  const auto show = [&](const DemoCounts& counts) {
    if (is_terminal) (void)print_text("\r  " + counts_text(counts, false) + "  ");
  };
  Status ran = demo.run(
      interrupt.fd(), [&] { return interrupt.is_raised(); }, show);
  std::string end = is_terminal ? "\n" : "";
  if (!is_terminal) end += counts_text(demo.counts(), seat.json) + "\n";
  if (!seat.json)
    end +=
        "  the topic and the subscription ordo-demo stay; remove them with 'ordo demo --clean'\n";
  if (Status printed = print_text(end); !printed) return printed;
  return ran;
}

}  // namespace

Command demo_command() {
  auto typed = std::make_shared<Typed>();
  Command command{.name = "demo", .help = "Ordered traffic with a few bad keys, to look at"};
  command.usage = "ordo demo [OPTIONS]";
  command.footer = kDemoExamples;
  command.options = {
      {.names = "--for", .type = "D", .help = "So long (default 60s)", .take = into(typed->time)},
      {.names = "--rate",
       .type = "N",
       .help = "Messages a second (default 200)",
       .take = into(typed->rate)},
      {.names = "--keys", .type = "N", .help = "Keys (default 20)", .take = into(typed->keys)},
      {.names = "--bad",
       .type = "N",
       .help = "Of them, those that always fail (default 3)",
       .take = into(typed->bad)},
      {.names = "--clean",
       .help = "Delete what an earlier demo made, and end",
       .take = into(typed->is_clean)}};
  command.run = [typed] {
    return with_broker(*typed->broker, [&](BrokerSeat& seat) { return demonstrate(seat, *typed); });
  };
  add_broker_options(command, typed->broker);
  return command;
}

}  // namespace ordo::app
