// ordo topics create, list, describe, update, delete.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ordo/app/broker_examples.h"
#include "ordo/app/commands.h"
#include "ordo/app/resource_text.h"

namespace ordo::app {
namespace {

using broker::Collection;
using pubsub_client::Topic;

struct Typed {
  std::shared_ptr<BrokerWords> broker = std::make_shared<BrokerWords>();
  std::vector<std::string> names = {};
  std::vector<std::string> labels = {};
  std::string retention = {};
  bool clears_labels = false;
};
using TypedPtr = std::shared_ptr<Typed>;
using Work = std::function<Status(BrokerSeat& seat, const Typed& typed)>;

Command topics_command(const char* verb, const char* help, const TypedPtr& typed, Work work) {
  Command command{.name = std::string("topics ") + verb, .help = help};
  command.usage = "ordo " + command.name + " [OPTIONS] TOPIC...";
  command.footer = kTopicsExamples;
  command.options = {{.names = "TOPIC",
                      .help = "Their names; without projects/ of this project",
                      .take = into(typed->names),
                      .is_required = true,
                      .is_repeatable = true}};
  command.run = [typed, work = std::move(work)] {
    return with_broker(*typed->broker, [&](BrokerSeat& seat) { return work(seat, *typed); });
  };
  return command;
}

Command with_broker_options(Command command, const TypedPtr& typed) {
  add_broker_options(command, typed->broker);
  return command;
}

void add_settings(Command& command, const TypedPtr& typed) {
  command.options.push_back({.names = "--label",
                             .type = "NAME=VALUE",
                             .help = "A label; may be given more than once",
                             .take = into(typed->labels),
                             .is_repeatable = true});
  command.options.push_back({.names = "--message-retention-duration,--retention",
                             .type = "D",
                             .help = "Keep messages so long, also when acknowledged; 0: do not",
                             .take = into(typed->retention)});
}

// What was typed, onto `topic`; gives the fields that were.
Result<std::vector<std::string>> apply(const Typed& typed, Topic& topic) {
  std::vector<std::string> fields;
  const Result<Labels> labels = parse_labels("--label", typed.labels);
  if (!labels) return labels.error();
  if (typed.clears_labels) topic.labels.clear();
  for (const auto& [name, value] : *labels)
    topic.labels[name] = value;
  if (!labels->empty() || typed.clears_labels) fields.emplace_back("labels");
  if (!typed.retention.empty()) {
    const auto retention = parse_seconds("--retention", typed.retention);
    if (!retention) return retention.error();
    topic.retention.reset();
    if (*retention != std::chrono::nanoseconds{0}) topic.retention = *retention;
    fields.emplace_back("message_retention_duration");
  }
  return fields;
}

Status for_each_topic(BrokerSeat& seat, const Typed& typed,
                      const std::function<Status(const std::string& name)>& work) {
  for (const std::string& name : typed.names) {
    const Result<std::string> whole = whole_name(seat.place.project, Collection::topics, name);
    if (!whole) return whole.error();
    if (Status done = work(*whole); !done) return done;
  }
  return {};
}

Status print_done(const BrokerSeat& seat, const char* what, const Topic& topic) {
  return print_text(seat.json ? topic.json + "\n" : what + (" " + topic.name) + "\n");
}

Status create(BrokerSeat& seat, const Typed& typed) {
  return for_each_topic(seat, typed, [&](const std::string& name) -> Status {
    Topic wanted{.name = name};
    if (const auto fields = apply(typed, wanted); !fields) return fields.error();
    const Result<Topic> made = seat.client.create_topic(wanted);
    if (!made) return made.error();
    return print_done(seat, "created", *made);
  });
}

Status update(BrokerSeat& seat, const Typed& typed) {
  return for_each_topic(seat, typed, [&](const std::string& name) -> Status {
    Result<Topic> topic = seat.client.get_topic(name);
    if (!topic) return topic.error();
    const auto fields = apply(typed, *topic);
    if (!fields) return fields.error();
    if (fields->empty()) {
      return Error{ErrorCode::invalid_argument,
                   "nothing to change: give --label, --clear-labels or --retention"};
    }
    const Result<Topic> changed = seat.client.update_topic(*topic, *fields);
    if (!changed) return changed.error();
    return print_done(seat, "updated", *changed);
  });
}

Status remove(BrokerSeat& seat, const Typed& typed) {
  return for_each_topic(seat, typed, [&](const std::string& name) -> Status {
    if (Status deleted = seat.client.delete_topic(name); !deleted) return deleted;
    return seat.json ? Status() : print_text("deleted " + name + "\n");
  });
}

Status describe(BrokerSeat& seat, const Typed& typed) {
  return for_each_topic(seat, typed, [&](const std::string& name) -> Status {
    const Result<Topic> topic = seat.client.get_topic(name);
    if (!topic) return topic.error();
    if (seat.json) return print_text(topic->json + "\n");
    const Result<std::vector<std::string>> subscriptions = seat.client.topic_subscriptions(name);
    if (!subscriptions) return subscriptions.error();
    return print_table(described(*topic, *subscriptions));
  });
}

Status list(BrokerSeat& seat, const Typed&) {
  const Result<std::vector<Topic>> topics = seat.client.topics(seat.place.project);
  if (!topics) return topics.error();
  std::string json;
  Table table({"NAME", "RETENTION", "LABELS"});
  for (const Topic& topic : *topics) {
    json.append(topic.json).append("\n");
    table.add({short_name(seat.place.project, topic.name), span_text(topic.retention, ""),
               labels_text(topic.labels)});
  }
  if (seat.json) return print_text(json);
  if (!table.is_empty()) return print_table(table);
  return print_text("no topics in project " + seat.place.project + "\n");
}

}  // namespace

std::vector<Command> topics_commands() {
  const auto make = [](const char* verb, const char* help, Work work, bool has_settings) {
    auto typed = std::make_shared<Typed>();
    Command command = topics_command(verb, help, typed, std::move(work));
    if (has_settings) add_settings(command, typed);
    if (std::string(verb) == "update") {
      command.options.push_back({.names = "--clear-labels",
                                 .help = "Without the labels it has",
                                 .take = into(typed->clears_labels)});
    }
    if (std::string(verb) == "list") {
      command.options.clear();
      command.usage = "ordo topics list [OPTIONS]";
    }
    return with_broker_options(std::move(command), typed);
  };
  return {make("create", "Make topics", create, true),
          make("list", "All topics of the project", list, false),
          make("describe", "What topics are set to", describe, false),
          make("update", "Change what topics are set to", update, true),
          make("delete", "Delete topics; their subscriptions stay", remove, false)};
}

}  // namespace ordo::app
