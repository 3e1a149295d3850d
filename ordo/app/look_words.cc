// ordo peek: what a subscription has not settled. ordo tail: what comes into a topic.
#include <algorithm>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "ordo/adapters/pubsub_client/operator_client.h"
#include "ordo/app/commands.h"
#include "ordo/app/json_text.h"
#include "ordo/app/message_format.h"
#include "ordo/app/message_text.h"
#include "ordo/app/operator_examples.h"
#include "ordo/app/option_values.h"
#include "ordo/app/resource_text.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

using broker::Collection;
using pubsub_client::OperatorClient;
using pubsub_client::PeekedRow;
using pubsub_client::PeekedRows;
using pubsub_client::TailRows;
using pubsub_client::TailStream;

constexpr std::size_t kShownMax = 60;
constexpr std::uint64_t kPageMax = 500;

struct Typed {
  std::shared_ptr<BrokerWords> broker = std::make_shared<BrokerWords>();
  std::string name, key, top = "20", format, filter, count = "0";
};

bool prints_json(const BrokerSeat& seat) {
  return seat.json || ::isatty(STDOUT_FILENO) == 0;
}

// ----------------------------------------------------------------------------------- peek

std::string json_of(const PeekedRow& row) {
  std::string object = "{";
  append_text_field(object, "state", row.state);
  if (!row.reason.empty()) append_text_field(object, "reason", row.reason);
  append_number_field(object, "attempts", row.attempts);
  if (row.stream > 0) append_number_field(object, "stream", row.stream);
  if (!row.is_readable) return object + "}\n";
  return object + "," + message_json(row.message).substr(1);
}

std::vector<std::string> cells_of(const PeekedRow& row) {
  const std::string state = row.reason.empty() ? row.state : row.state + ": " + row.reason;
  if (!row.is_readable) return {state, "", "", "", "", "(cannot be read)"};
  return {state,
          one_line(row.message.key, kShownMax),
          row.message.id,
          moment_text(row.message.published_at),
          std::to_string(row.attempts),
          one_line(row.message.data, kShownMax)};
}

Status peek(BrokerSeat& seat, const Typed& typed) {
  const Result<std::string> subscription =
      whole_name(seat.place.project, Collection::subscriptions, typed.name);
  if (!subscription) return subscription.error();
  std::uint64_t left = UINT64_MAX;
  if (typed.top != "all") {
    const Result<std::uint64_t> top = parse_count("--top", typed.top, {1, 1'000'000'000});
    if (!top) return top.error();
    left = *top;
  }
  OperatorClient operators(seat.client);
  pubsub_client::PeekQuery query{.key = typed.key};
  Table table({"STATE", "KEY", "ID", "PUBLISHED", "ATTEMPTS", "DATA"});
  do {
    query.messages_max = static_cast<std::int32_t>(std::min<std::uint64_t>(left, kPageMax));
    const Result<PeekedRows> page = operators.peek(*subscription, query);
    if (!page) return page.error();
    std::string json;
    for (const PeekedRow& row : page->rows) {
      json += json_of(row);
      if (!prints_json(seat)) table.add(cells_of(row));
    }
    if (prints_json(seat)) {
      if (Status printed = print_text(json); !printed) return printed;
    }
    left -= page->rows.size();
    query.page_token = page->next_page_token;
  } while (left > 0 && !query.page_token.empty());
  if (prints_json(seat)) return {};
  if (table.is_empty()) return print_text("everything is acknowledged\n");
  return print_table(table);
}

// ----------------------------------------------------------------------------------- tail

Status tail(BrokerSeat& seat, const Typed& typed) {
  const Result<std::string> topic = whole_name(seat.place.project, Collection::topics, typed.name);
  if (!topic) return topic.error();
  const Result<std::uint64_t> count = parse_count("--count", typed.count, {0, 1'000'000'000});
  if (!count) return count.error();
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  const bool is_json = typed.format.empty() && (seat.json || !is_terminal);
  const Result<MessageFormat> format = MessageFormat::parse("-f", typed.format);
  if (!format) return format.error();
  TailStream stream(seat.client, {*topic, typed.key, typed.filter});
  std::uint64_t shown = 0;
  for (;;) {
    const Result<TailRows> some = stream.read(TimePoint::max());
    if (!some) return some.error();
    if (some->missed > 0)
      log_line("ordo: " + std::to_string(some->missed) +
               " messages came too fast and are left out");
    std::string text;
    for (const pubsub_client::IncomingMessage& message : some->messages) {
      text += is_json                ? message_json(message)
              : typed.format.empty() ? message_line(message)
                                     : format->text(message, is_terminal);
      if (++shown == *count) break;
    }
    if (Status printed = print_text(text); !printed) return printed;
    if (*count > 0 && shown >= *count) return {};
  }
}

Command look_command(const char* name, const char* help, const char* word,
                     const std::shared_ptr<Typed>& typed,
                     Status (*work)(BrokerSeat& seat, const Typed& typed)) {
  Command command{.name = name, .help = help};
  command.usage = std::string("ordo ") + name + " [OPTIONS] " + word;
  command.options = {{.names = word,
                      .help = "Its name; without projects/ of this project",
                      .take = into(typed->name),
                      .is_required = true},
                     {.names = "--key",
                      .type = "KEY",
                      .help = "Only messages of this ordering key",
                      .take = into(typed->key)}};
  command.run = [typed, work] {
    return with_broker(*typed->broker, [&](BrokerSeat& seat) { return work(seat, *typed); });
  };
  return command;
}

}  // namespace

Command peek_command() {
  auto typed = std::make_shared<Typed>();
  Command command = look_command("peek", "What waits in a subscription, without consuming it",
                                 "SUBSCRIPTION", typed, peek);
  command.footer = kPeekExamples;
  command.options.push_back({.names = "--top",
                             .type = "N",
                             .help = "So many of the oldest (default 20), or all",
                             .take = into(typed->top)});
  add_broker_options(command, typed->broker);
  return command;
}

Command tail_command() {
  auto typed = std::make_shared<Typed>();
  Command command =
      look_command("tail", "Follow a topic, without consuming it", "TOPIC", typed, tail);
  command.footer = kTailExamples;
  command.options.push_back({.names = "-f,--format",
                             .type = "FORMAT",
                             .help = "How a message is printed: %k %d %i %t %a",
                             .take = into(typed->format)});
  command.options.push_back({.names = "--filter",
                             .type = "EXPRESSION",
                             .help = "Only messages that it lets through, as a subscription's",
                             .take = into(typed->filter)});
  command.options.push_back({.names = "--count",
                             .type = "N",
                             .help = "End after so many (default 0: go on)",
                             .take = into(typed->count)});
  add_broker_options(command, typed->broker);
  return command;
}

}  // namespace ordo::app
