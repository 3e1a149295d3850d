// ordo subscriptions create, list, describe, update, delete.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ordo/app/broker_examples.h"
#include "ordo/app/commands.h"
#include "ordo/app/option_values.h"
#include "ordo/app/resource_text.h"

namespace ordo::app {
namespace {

using broker::Collection;
using pubsub_client::Subscription;
using std::chrono::nanoseconds;

struct Typed {
  std::shared_ptr<BrokerWords> broker = std::make_shared<BrokerWords>();
  std::vector<std::string> names = {};
  std::vector<std::string> labels = {};
  std::string topic, ack_deadline, filter, dead_letter_topic, attempts_max, retry_min, retry_max;
  std::string retention, expiration, push_endpoint, window;
  std::optional<bool> exactly_once = {}, retain_acked = {};
  bool ordered = false, clears_labels = false, clears_dead_letters = false, clears_retry = false;
  bool clears_push = false;
};
using TypedPtr = std::shared_ptr<Typed>;
using Work = std::function<Status(BrokerSeat& seat, const Typed& typed)>;

CommandOption::Take into_answer(std::optional<bool>& to) {
  return [&to](const std::string& value) { to = value == "true"; };
}

// What only a new subscription can be told.
void add_birth_options(Command& command, Typed& typed) {
  command.options.push_back({.names = "--topic",
                             .type = "TOPIC",
                             .help = "Whose messages it gets",
                             .take = into(typed.topic),
                             .is_required = true});
  command.options.push_back({.names = "--enable-message-ordering,--ordered",
                             .help = "Deliver the messages of a key in order, one at a time",
                             .take = into(typed.ordered)});
  command.options.push_back({.names = "--message-filter,--filter",
                             .type = "EXPRESSION",
                             .help = "Only messages whose attributes match: attributes.a = \"b\"",
                             .take = into(typed.filter)});
}

void add_delivery_options(Command& command, Typed& typed) {
  const char* group = "How it delivers";
  command.options.push_back({.names = "--ack-deadline",
                             .type = "D",
                             .help = "How long a message may take before it comes again (10s)",
                             .take = into(typed.ack_deadline),
                             .group = group});
  command.options.push_back({.names = "--window",
                             .type = "N",
                             .help = "Messages of a key in flight; label ordo-ordered-window",
                             .take = into(typed.window),
                             .group = group});
  command.options.push_back({.names = "--enable-exactly-once-delivery,--exactly-once",
                             .help = "Confirm each ack, and refuse those that are too late",
                             .take = into_answer(typed.exactly_once),
                             .group = group});
  command.options.push_back({.names = "--push-endpoint",
                             .type = "URL",
                             .help = "Send messages there instead of waiting to be asked",
                             .take = into(typed.push_endpoint),
                             .group = group});
  command.options.push_back({.names = "--label",
                             .type = "NAME=VALUE",
                             .help = "A label; may be given more than once",
                             .take = into(typed.labels),
                             .group = group,
                             .is_repeatable = true});
}

void add_failure_options(Command& command, Typed& typed) {
  const char* group = "When a message fails, and how long it is kept";
  command.options.push_back({.names = "--dead-letter-topic",
                             .type = "TOPIC",
                             .help = "Where messages go that fail too often",
                             .take = into(typed.dead_letter_topic),
                             .group = group});
  command.options.push_back({.names = "--max-delivery-attempts",
                             .type = "N",
                             .help = "How often that is (5 to 100; default 5)",
                             .take = into(typed.attempts_max),
                             .group = group});
  command.options.push_back({.names = "--min-retry-delay",
                             .type = "D",
                             .help = "Wait before the first retry (10s, if either is given)",
                             .take = into(typed.retry_min),
                             .group = group});
  command.options.push_back({.names = "--max-retry-delay",
                             .type = "D",
                             .help = "The wait doubles up to this (default 600s)",
                             .take = into(typed.retry_max),
                             .group = group});
  command.options.push_back({.names = "--message-retention-duration,--retention",
                             .type = "D",
                             .help = "Keep what nobody acknowledges so long (default 7d)",
                             .take = into(typed.retention),
                             .group = group});
  command.options.push_back({.names = "--retain-acked-messages,--retain-acked",
                             .help = "Keep acknowledged messages as well, for seek",
                             .take = into_answer(typed.retain_acked),
                             .group = group});
  command.options.push_back({.names = "--expiration-period",
                             .type = "D",
                             .help = "Delete it when unused so long; never",
                             .take = into(typed.expiration),
                             .group = group});
}

void add_clearing_options(Command& command, Typed& typed) {
  const char* group = "What to take away";
  command.options.push_back({.names = "--clear-labels",
                             .help = "The labels it has",
                             .take = into(typed.clears_labels),
                             .group = group});
  command.options.push_back({.names = "--clear-dead-letter-policy",
                             .help = "Its dead-letter topic",
                             .take = into(typed.clears_dead_letters),
                             .group = group});
  command.options.push_back({.names = "--clear-retry-policy",
                             .help = "Its retry delays: again at once",
                             .take = into(typed.clears_retry),
                             .group = group});
  command.options.push_back({.names = "--clear-push",
                             .help = "Its push endpoint: back to pull",
                             .take = into(typed.clears_push),
                             .group = group});
}

// Puts what was typed onto a subscription, and knows which fields that were.
class Change {
 public:
  Change(const Typed& typed, const std::string& project, Subscription& to)
      : typed_(typed),
        project_(project),
        to_(to) {}

  Result<std::vector<std::string>> apply() {
    for (const auto step : {&Change::labels, &Change::delivery, &Change::retry,
                            &Change::dead_letters, &Change::keeping}) {
      if (Status done = (this->*step)(); !done) return done.error();
    }
    return fields_;
  }

 private:
  Status labels() {
    const Result<Labels> labels = parse_labels("--label", typed_.labels);
    if (!labels) return labels.error();
    if (typed_.clears_labels) to_.labels.clear();
    for (const auto& [name, value] : *labels)
      to_.labels[name] = value;
    if (!typed_.window.empty()) {
      const auto window = parse_count("--window", typed_.window, {1, 1'000});
      if (!window) return window.error();
      to_.labels["ordo-ordered-window"] = std::to_string(*window);
    }
    if (typed_.clears_labels || !labels->empty() || !typed_.window.empty()) note("labels");
    return {};
  }

  Status delivery() {
    if (!typed_.ack_deadline.empty()) {
      const auto deadline = parse_seconds("--ack-deadline", typed_.ack_deadline);
      if (!deadline) return deadline.error();
      to_.ack_deadline = std::chrono::ceil<std::chrono::seconds>(*deadline);
      note("ack_deadline_seconds");
    }
    if (typed_.exactly_once) {
      to_.is_exactly_once = *typed_.exactly_once;
      note("enable_exactly_once_delivery");
    }
    if (!typed_.push_endpoint.empty() || typed_.clears_push) {
      to_.push_endpoint = typed_.push_endpoint;
      note("push_config");
    }
    return {};
  }

  Status retry() {
    if (typed_.clears_retry) to_.retry.reset();
    if (!typed_.retry_min.empty() || !typed_.retry_max.empty()) {
      if (!to_.retry) to_.retry.emplace();
      if (Status taken = span("--min-retry-delay", typed_.retry_min, to_.retry->minimum); !taken)
        return taken;
      if (Status taken = span("--max-retry-delay", typed_.retry_max, to_.retry->maximum); !taken)
        return taken;
      note("retry_policy");
    } else if (typed_.clears_retry) {
      note("retry_policy");
    }
    return {};
  }

  Status dead_letters() {
    if (typed_.clears_dead_letters) to_.dead_letters.reset();
    if (!typed_.dead_letter_topic.empty()) {
      const Result<std::string> topic =
          whole_name(project_, Collection::topics, typed_.dead_letter_topic);
      if (!topic) return topic.error();
      if (!to_.dead_letters) to_.dead_letters.emplace();
      to_.dead_letters->topic = *topic;
    }
    if (!typed_.attempts_max.empty()) {
      const auto attempts = parse_count("--max-delivery-attempts", typed_.attempts_max, {5, 100});
      if (!attempts) return attempts.error();
      if (!to_.dead_letters) {
        return Error{ErrorCode::invalid_argument,
                     "--max-delivery-attempts needs --dead-letter-topic, where they go then"};
      }
      to_.dead_letters->attempts_max = static_cast<std::int32_t>(*attempts);
    }
    if (typed_.clears_dead_letters || !typed_.dead_letter_topic.empty() ||
        !typed_.attempts_max.empty()) {
      note("dead_letter_policy");
    }
    return {};
  }

  Status keeping() {
    if (!typed_.retention.empty()) {
      to_.retention.emplace();
      if (Status taken = span("--retention", typed_.retention, *to_.retention); !taken)
        return taken;
      note("message_retention_duration");
    }
    if (typed_.retain_acked) {
      to_.retains_acked = *typed_.retain_acked;
      note("retain_acked_messages");
    }
    if (!typed_.expiration.empty()) {
      to_.expiration.emplace(0);
      if (typed_.expiration != "never") {
        if (Status taken = span("--expiration-period", typed_.expiration, *to_.expiration); !taken)
          return taken;
      }
      note("expiration_policy");
    }
    return {};
  }

  static Status span(const char* option, const std::string& text, nanoseconds& to) {
    if (text.empty()) return {};
    const Result<nanoseconds> value = parse_seconds(option, text);
    if (!value) return value.error();
    to = *value;
    return {};
  }
  void note(const char* field) { fields_.emplace_back(field); }

  const Typed& typed_;
  const std::string& project_;
  Subscription& to_;
  std::vector<std::string> fields_;
};

Status for_each_subscription(BrokerSeat& seat, const Typed& typed,
                             const std::function<Status(const std::string& name)>& work) {
  for (const std::string& name : typed.names) {
    const Result<std::string> whole =
        whole_name(seat.place.project, Collection::subscriptions, name);
    if (!whole) return whole.error();
    if (Status done = work(*whole); !done) return done;
  }
  return {};
}

Status print_done(const BrokerSeat& seat, const char* what, const Subscription& subscription) {
  return print_text(seat.json ? subscription.json + "\n" : what + (" " + subscription.name) + "\n");
}

Status create(BrokerSeat& seat, const Typed& typed) {
  const Result<std::string> topic = whole_name(seat.place.project, Collection::topics, typed.topic);
  if (!topic) return topic.error();
  return for_each_subscription(seat, typed, [&](const std::string& name) -> Status {
    Subscription wanted{.name = name, .topic = *topic};
    wanted.is_ordered = typed.ordered;
    wanted.filter = typed.filter;
    if (const auto fields = Change(typed, seat.place.project, wanted).apply(); !fields)
      return fields.error();
    const Result<Subscription> made = seat.client.create_subscription(wanted);
    if (!made) return made.error();
    return print_done(seat, "created", *made);
  });
}

Status update(BrokerSeat& seat, const Typed& typed) {
  return for_each_subscription(seat, typed, [&](const std::string& name) -> Status {
    Result<Subscription> subscription = seat.client.get_subscription(name);
    if (!subscription) return subscription.error();
    const auto fields = Change(typed, seat.place.project, *subscription).apply();
    if (!fields) return fields.error();
    if (fields->empty()) {
      return Error{ErrorCode::invalid_argument,
                   "nothing to change: see 'ordo subscriptions update --help'"};
    }
    const Result<Subscription> changed = seat.client.update_subscription(*subscription, *fields);
    if (!changed) return changed.error();
    return print_done(seat, "updated", *changed);
  });
}

Status remove(BrokerSeat& seat, const Typed& typed) {
  return for_each_subscription(seat, typed, [&](const std::string& name) -> Status {
    if (Status deleted = seat.client.delete_subscription(name); !deleted) return deleted;
    return seat.json ? Status() : print_text("deleted " + name + "\n");
  });
}

Status describe(BrokerSeat& seat, const Typed& typed) {
  return for_each_subscription(seat, typed, [&](const std::string& name) -> Status {
    const Result<Subscription> subscription = seat.client.get_subscription(name);
    if (!subscription) return subscription.error();
    if (seat.json) return print_text(subscription->json + "\n");
    return print_table(described(*subscription));
  });
}

Status list(BrokerSeat& seat, const Typed&) {
  const Result<std::vector<Subscription>> all = seat.client.subscriptions(seat.place.project);
  if (!all) return all.error();
  std::string json;
  Table table({"NAME", "TOPIC", "ORDERED", "ACK DEADLINE", "DELIVERY", "LABELS"});
  for (const Subscription& one : *all) {
    json.append(one.json).append("\n");
    const char* delivery = one.is_detached              ? "detached"
                           : !one.push_endpoint.empty() ? "push"
                           : one.is_exactly_once        ? "pull, exactly once"
                                                        : "pull";
    table.add({short_name(seat.place.project, one.name), short_name(seat.place.project, one.topic),
               one.is_ordered ? "yes" : "no", span_text(one.ack_deadline, ""), delivery,
               labels_text(one.labels)});
  }
  if (seat.json) return print_text(json);
  if (!table.is_empty()) return print_table(table);
  return print_text("no subscriptions in project " + seat.place.project + "\n");
}

Command made(const char* verb, const char* help, const TypedPtr& typed, Work work) {
  Command command{.name = std::string("subscriptions ") + verb, .help = help};
  command.usage = "ordo " + command.name + " [OPTIONS] SUBSCRIPTION...";
  command.footer = kSubscriptionsExamples;
  command.options = {{.names = "SUBSCRIPTION",
                      .help = "Their names; without projects/ of this project",
                      .take = into(typed->names),
                      .is_required = true,
                      .is_repeatable = true}};
  command.run = [typed, work = std::move(work)] {
    return with_broker(*typed->broker, [&](BrokerSeat& seat) { return work(seat, *typed); });
  };
  return command;
}

Command create_command() {
  auto typed = std::make_shared<Typed>();
  Command command = made("create", "Make subscriptions to a topic", typed, create);
  add_birth_options(command, *typed);
  add_delivery_options(command, *typed);
  add_failure_options(command, *typed);
  add_broker_options(command, typed->broker);
  return command;
}

Command update_command() {
  auto typed = std::make_shared<Typed>();
  Command command = made("update", "Change what subscriptions are set to", typed, update);
  add_delivery_options(command, *typed);
  add_failure_options(command, *typed);
  add_clearing_options(command, *typed);
  add_broker_options(command, typed->broker);
  return command;
}

Command plain_command(const char* verb, const char* help, Work work) {
  auto typed = std::make_shared<Typed>();
  Command command = made(verb, help, typed, std::move(work));
  if (command.name == "subscriptions list") {
    command.options.clear();
    command.usage = "ordo subscriptions list [OPTIONS]";
  }
  add_broker_options(command, typed->broker);
  return command;
}

}  // namespace

std::vector<Command> subscriptions_commands() {
  return {create_command(), plain_command("list", "All subscriptions of the project", list),
          plain_command("describe", "What subscriptions are set to", describe), update_command(),
          plain_command("delete", "Delete subscriptions, and what waits in them", remove)};
}

}  // namespace ordo::app
