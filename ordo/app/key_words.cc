// ordo keys; ordo key pause, resume, skip, dead-letter.
#include <cstdio>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "ordo/adapters/pubsub_client/operator_client.h"
#include "ordo/app/commands.h"
#include "ordo/app/json_text.h"
#include "ordo/app/message_format.h"
#include "ordo/app/operator_examples.h"
#include "ordo/app/option_values.h"
#include "ordo/app/resource_text.h"

namespace ordo::app {
namespace {

using broker::Collection;
using pubsub_client::KeyQuery;
using pubsub_client::KeyRow;
using pubsub_client::KeyVerb;
using pubsub_client::OperatorClient;

constexpr std::size_t kKeyShownMax = 60;
constexpr std::uint64_t kKeysMax = 1'000;

struct Typed {
  std::shared_ptr<BrokerWords> broker = std::make_shared<BrokerWords>();
  std::string subscription, key, top = "20", by = "blocked";
  bool is_blocked_only = false;
};

std::string rate_text(double per_second) {
  if (per_second <= 0) return "";
  char text[32];
  (void)std::snprintf(text, sizeof text, per_second < 10 ? "%.1f" : "%.0f", per_second);
  return text;
}

std::string json_of(const KeyRow& row) {
  std::string object = "{";
  append_text_field(object, "key", row.key);
  append_text_field(object, "reason", row.reason);
  append_field(object, "stuck", row.is_stuck ? "true" : "false");
  append_field(object, "blocked_seconds",
               std::to_string(std::chrono::duration<double>(row.blocked).count()));
  append_text_field(object, "blocked_since", moment_text(row.blocked_since));
  append_number_field(object, "waiting", row.waiting);
  append_number_field(object, "attempts", row.attempts);
  append_text_field(object, "last_failure", row.last_failure);
  append_text_field(object, "head_message_id", row.head_id);
  append_number_field(object, "stream", row.stream);
  append_field(object, "deliveries_per_second", std::to_string(row.per_second));
  return object + "}\n";
}

Status print_keys(const std::vector<KeyRow>& rows, bool json, const Typed& typed) {
  if (json) {
    std::string text;
    for (const KeyRow& row : rows)
      text += json_of(row);
    return print_text(text);
  }
  if (rows.empty()) {
    return print_text(typed.is_blocked_only
                          ? "no key is blocked\n"
                          : "no key has anything to do, as far as the subscription has come\n");
  }
  Table table({"KEY", "WHY", "FOR", "BEHIND IT", "ATTEMPTS", "LAST FAILURE", "HEAD", "STREAM",
               "PER SECOND"});
  for (const KeyRow& row : rows) {
    table.add({row.key.empty() ? "(not known)" : one_line(row.key, kKeyShownMax), row.reason,
               rough_time(row.blocked), std::to_string(row.waiting), std::to_string(row.attempts),
               row.last_failure, row.head_id, row.stream == 0 ? "" : std::to_string(row.stream),
               rate_text(row.per_second)});
  }
  return print_table(table);
}

Status list_keys(BrokerSeat& seat, const Typed& typed) {
  const Result<std::string> subscription =
      whole_name(seat.place.project, Collection::subscriptions, typed.subscription);
  if (!subscription) return subscription.error();
  const Result<std::uint64_t> top = parse_count("--top", typed.top, {1, kKeysMax});
  if (!top) return top.error();
  KeyQuery query;
  query.is_stuck_only = typed.is_blocked_only;
  query.count_max = static_cast<std::int32_t>(*top);
  if (typed.by == "deepest") query.order = pubsub_client::KeyOrder::deepest;
  if (typed.by == "hottest") query.order = pubsub_client::KeyOrder::hottest;
  const Result<std::vector<KeyRow>> rows = OperatorClient(seat.client).keys(*subscription, query);
  if (!rows) return rows.error();
  return print_keys(*rows, seat.json || ::isatty(STDOUT_FILENO) == 0, typed);
}

struct VerbWords {
  KeyVerb verb;
  const char* word;
  const char* help;
  const char* done;
};

Status act(BrokerSeat& seat, const Typed& typed, const VerbWords& verb) {
  const Result<std::string> subscription =
      whole_name(seat.place.project, Collection::subscriptions, typed.subscription);
  if (!subscription) return subscription.error();
  const Status done = OperatorClient(seat.client).act(*subscription, typed.key, verb.verb);
  if (!done) {
    std::string next;
    if (done.error().message.find("in flight") != std::string::npos)
      next = ": pause it with 'ordo key pause', and try again when its delivery has ended";
    if (done.error().code == ErrorCode::not_found)
      next = ": 'ordo keys " + short_name(seat.place.project, *subscription) +
             "' lists those that wait";
    return Error{done.error().code, done.error().message + next};
  }
  if (seat.json) return print_text("{}\n");
  return print_text(std::string(verb.done) + one_line(typed.key, kKeyShownMax) + "\n");
}

Command key_command(const VerbWords& verb) {
  auto typed = std::make_shared<Typed>();
  Command command{.name = std::string("key ") + verb.word, .help = verb.help};
  command.usage = "ordo " + command.name + " [OPTIONS] SUBSCRIPTION KEY";
  command.footer = kKeyExamples;
  command.options = {{.names = "SUBSCRIPTION",
                      .help = "Its name; without projects/ of this project",
                      .take = into(typed->subscription),
                      .is_required = true},
                     {.names = "KEY",
                      .help = "The ordering key; '': the oldest message without one that is held",
                      .take = into(typed->key),
                      .is_required = true}};
  command.run = [typed, verb] {
    return with_broker(*typed->broker, [&](BrokerSeat& seat) { return act(seat, *typed, verb); });
  };
  add_broker_options(command, typed->broker);
  return command;
}

}  // namespace

Command keys_command() {
  auto typed = std::make_shared<Typed>();
  Command command{.name = "keys", .help = "Keys that are blocked, deep or hot, and why"};
  command.usage = "ordo keys [OPTIONS] SUBSCRIPTION";
  command.footer = kKeysExamples;
  command.options = {{.names = "SUBSCRIPTION",
                      .help = "Its name; without projects/ of this project",
                      .take = into(typed->subscription),
                      .is_required = true},
                     {.names = "--blocked",
                      .help = "Only those that do not go on",
                      .take = into(typed->is_blocked_only)},
                     {.names = "--by",
                      .type = "ORDER",
                      .help = "Which come first: blocked (longest, default), deepest, hottest",
                      .take = into(typed->by),
                      .choices = {"blocked", "deepest", "hottest"}},
                     {.names = "--top",
                      .type = "N",
                      .help = "So many (default 20, at most 1000)",
                      .take = into(typed->top)}};
  command.run = [typed] {
    return with_broker(*typed->broker, [&](BrokerSeat& seat) { return list_keys(seat, *typed); });
  };
  add_broker_options(command, typed->broker);
  return command;
}

std::vector<Command> key_commands() {
  std::vector<Command> commands;
  for (const VerbWords& verb :
       {VerbWords{KeyVerb::pause, "pause", "Deliver nothing more of a key", "paused key "},
        VerbWords{KeyVerb::resume, "resume", "End a pause or a park", "resumed key "},
        VerbWords{KeyVerb::skip, "skip", "Give up the message at the head of a key",
                  "skipped the head of key "},
        VerbWords{KeyVerb::dead_letter, "dead-letter", "Send the head to the dead-letter topic",
                  "dead-lettered the head of key "}})
    commands.push_back(key_command(verb));
  return commands;
}

}  // namespace ordo::app
