// ordo snapshots create, list, describe, delete; ordo seek.
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
using pubsub_client::Snapshot;

struct Typed {
  std::shared_ptr<BrokerWords> broker = std::make_shared<BrokerWords>();
  std::vector<std::string> names = {};
  std::vector<std::string> labels = {};
  std::string subscription, time, snapshot;
};
using TypedPtr = std::shared_ptr<Typed>;
using Work = std::function<Status(BrokerSeat& seat, const Typed& typed)>;

Status for_each_snapshot(BrokerSeat& seat, const Typed& typed,
                         const std::function<Status(const std::string& name)>& work) {
  for (const std::string& name : typed.names) {
    const Result<std::string> whole = whole_name(seat.place.project, Collection::snapshots, name);
    if (!whole) return whole.error();
    if (Status done = work(*whole); !done) return done;
  }
  return {};
}

Status create(BrokerSeat& seat, const Typed& typed) {
  const Result<std::string> subscription =
      whole_name(seat.place.project, Collection::subscriptions, typed.subscription);
  if (!subscription) return subscription.error();
  const Result<Labels> labels = parse_labels("--label", typed.labels);
  if (!labels) return labels.error();
  return for_each_snapshot(seat, typed, [&](const std::string& name) -> Status {
    const Result<Snapshot> made =
        seat.client.create_snapshot({.name = name, .labels = *labels}, *subscription);
    if (!made) return made.error();
    return print_text(seat.json ? made->json + "\n" : "created " + made->name + "\n");
  });
}

Status remove(BrokerSeat& seat, const Typed& typed) {
  return for_each_snapshot(seat, typed, [&](const std::string& name) -> Status {
    if (Status deleted = seat.client.delete_snapshot(name); !deleted) return deleted;
    return seat.json ? Status() : print_text("deleted " + name + "\n");
  });
}

Status describe(BrokerSeat& seat, const Typed& typed) {
  return for_each_snapshot(seat, typed, [&](const std::string& name) -> Status {
    const Result<Snapshot> snapshot = seat.client.get_snapshot(name);
    if (!snapshot) return snapshot.error();
    if (seat.json) return print_text(snapshot->json + "\n");
    return print_table(described(*snapshot));
  });
}

Status list(BrokerSeat& seat, const Typed&) {
  const Result<std::vector<Snapshot>> all = seat.client.snapshots(seat.place.project);
  if (!all) return all.error();
  std::string json;
  Table table({"NAME", "TOPIC", "EXPIRES", "LABELS"});
  for (const Snapshot& one : *all) {
    json.append(one.json).append("\n");
    table.add({short_name(seat.place.project, one.name), short_name(seat.place.project, one.topic),
               moment_text(one.expires_at), labels_text(one.labels)});
  }
  if (seat.json) return print_text(json);
  if (!table.is_empty()) return print_table(table);
  return print_text("no snapshots in project " + seat.place.project + "\n");
}

Status seek(BrokerSeat& seat, const Typed& typed) {
  const Result<std::string> subscription =
      whole_name(seat.place.project, Collection::subscriptions, typed.subscription);
  if (!subscription) return subscription.error();
  if (!typed.snapshot.empty()) {
    const Result<std::string> snapshot =
        whole_name(seat.place.project, Collection::snapshots, typed.snapshot);
    if (!snapshot) return snapshot.error();
    if (Status done = seat.client.seek_to_snapshot(*subscription, *snapshot); !done) return done;
    return seat.json ? Status() : print_text(*subscription + " is at " + *snapshot + "\n");
  }
  const Result<WallTime> time = parse_moment("--time", typed.time, system_clock().wall_now());
  if (!time) return time.error();
  if (Status done = seat.client.seek_to_time(*subscription, *time); !done) return done;
  if (seat.json) return {};
  return print_text(*subscription + " is at " + moment_text(*time) + "\n");
}

Command made(const char* verb, const char* help, const TypedPtr& typed, Work work) {
  Command command{.name = std::string("snapshots ") + verb, .help = help};
  command.usage = "ordo " + command.name + " [OPTIONS] SNAPSHOT...";
  command.footer = kSnapshotsExamples;
  command.options = {{.names = "SNAPSHOT",
                      .help = "Their names; without projects/ of this project",
                      .take = into(typed->names),
                      .is_required = true,
                      .is_repeatable = true}};
  if (command.name == "snapshots list") {
    command.options.clear();
    command.usage = "ordo snapshots list [OPTIONS]";
  }
  command.run = [typed, work = std::move(work)] {
    return with_broker(*typed->broker, [&](BrokerSeat& seat) { return work(seat, *typed); });
  };
  return command;
}

Command plain_command(const char* verb, const char* help, Work work) {
  auto typed = std::make_shared<Typed>();
  Command command = made(verb, help, typed, std::move(work));
  add_broker_options(command, typed->broker);
  return command;
}

Command create_command() {
  auto typed = std::make_shared<Typed>();
  Command command = made("create", "Keep where a subscription is", typed, create);
  command.options.push_back({.names = "--subscription",
                             .type = "SUBSCRIPTION",
                             .help = "Whose place is kept",
                             .take = into(typed->subscription),
                             .is_required = true});
  command.options.push_back({.names = "--label",
                             .type = "NAME=VALUE",
                             .help = "A label; may be given more than once",
                             .take = into(typed->labels),
                             .is_repeatable = true});
  add_broker_options(command, typed->broker);
  return command;
}

}  // namespace

std::vector<Command> snapshots_commands() {
  return {create_command(), plain_command("list", "All snapshots of the project", list),
          plain_command("describe", "What snapshots are of", describe),
          plain_command("delete", "Delete snapshots", remove)};
}

Command seek_command() {
  auto typed = std::make_shared<Typed>();
  Command command{.name = "seek", .help = "Move a subscription in time, or to a snapshot"};
  command.usage = "ordo seek [OPTIONS] SUBSCRIPTION (--time TIME | --snapshot SNAPSHOT)";
  command.footer = kSeekExamples;
  command.options = {
      {.names = "SUBSCRIPTION",
       .help = "Its name",
       .take = into(typed->subscription),
       .is_required = true},
      {.names = "--time",
       .type = "TIME",
       .help = "What is older counts as acknowledged: 2026-01-31T12:00:00Z, now, -10m, +1h",
       .take = into(typed->time)},
      {.names = "--snapshot",
       .type = "SNAPSHOT",
       .help = "As it was when the snapshot was made",
       .take = into(typed->snapshot)},
  };
  add_broker_options(command, typed->broker);
  command.check = [typed]() -> Status {
    if (typed->time.empty() == typed->snapshot.empty())
      return Error{ErrorCode::invalid_argument, "say where to: either --time or --snapshot"};
    return {};
  };
  command.run = [typed] {
    return with_broker(*typed->broker, [&](BrokerSeat& seat) { return seek(seat, *typed); });
  };
  return command;
}

}  // namespace ordo::app
