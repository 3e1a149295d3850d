#include "bench/broker/plan.h"

#include <sstream>

namespace ordo::bench {
namespace {

constexpr std::size_t kSizes[] = {100, 1'024};

void add_publishing(std::vector<Plan>& plans, bool quick) {
  const std::uint64_t milliseconds = quick ? 30 : 600;
  for (const char* sync : {"commit", "interval", "os"}) {
    for (const std::size_t size : kSizes) {
      for (const std::size_t batch : {1u, 100u, 1'000u}) {
        if (quick && batch == 1'000) continue;
        for (const char* contender : {"ordo", "raw"}) {
          plans.push_back({.group = "publish",
                           .contender = contender,
                           .sync = sync,
                           .size = size,
                           .batch = batch,
                           .milliseconds = milliseconds});
        }
      }
    }
  }
  for (const std::size_t outstanding : {1u, 64u, 256u}) {
    plans.push_back({.group = "latency",
                     .contender = "ordo",
                     .outstanding = outstanding,
                     .milliseconds = milliseconds});
  }
  plans.push_back({.group = "latency", .contender = "raw", .milliseconds = milliseconds});
}

void add_flows(std::vector<Plan>& plans, bool quick) {
  const std::uint64_t milliseconds = quick ? 50 : 1'500;
  for (const char* sync : {"commit", "interval", "os"}) {
    for (const std::size_t size : kSizes) {
      plans.push_back({.group = "consume",
                       .contender = "ordo",
                       .sync = sync,
                       .size = size,
                       .batch = 100,
                       .messages = quick ? 2'000u : 200'000u});
      plans.push_back({.group = "flow",
                       .contender = "ordo",
                       .sync = sync,
                       .size = size,
                       .batch = 100,
                       .outstanding = 20'000,
                       .milliseconds = milliseconds});
    }
  }
  for (const std::size_t batch : {1u, 10u, 100u}) {
    plans.push_back({.group = "flow",
                     .contender = "ordo",
                     .size = 100,
                     .batch = batch,
                     .outstanding = 20'000,
                     .keys = 1'000,
                     .milliseconds = milliseconds});
  }
}

void add_backlogs(std::vector<Plan>& plans, bool quick) {
  for (const std::size_t size : kSizes) {
    plans.push_back({.group = "backlog",
                     .contender = "ordo",
                     .sync = "os",
                     .size = size,
                     .batch = 1'000,
                     .messages = quick ? 10'000u : 1'000'000u});
  }
  for (const char* contender : {"without", "with"}) {
    plans.push_back({.group = "blocked",
                     .contender = contender,
                     .size = 100,
                     .batch = 10,
                     .outstanding = 2'000,
                     .keys = 1'000,
                     .messages = quick ? 10'000u : 1'000'000u,
                     .milliseconds = quick ? 50u : 4'000u});
  }
}

}  // namespace

std::string Plan::heat() const {
  if (group == "latency") return group;
  std::ostringstream name;
  name << group << '/' << sync << '/' << size << '/' << batch << '/' << keys;
  return name.str();
}

std::string Plan::title() const {
  if (contender == "raw") return sync == "os" ? "append" : "append and fdatasync";
  if (group == "blocked") return contender == "with" ? "1,000 keys blocked" : "no key blocked";
  return "Ordo";
}

std::string Plan::text() const {
  std::ostringstream out;
  out << group << ' ' << contender << ' ' << sync << ' ' << size << ' ' << batch << ' '
      << outstanding << ' ' << keys << ' ' << messages << ' ' << milliseconds;
  return out.str();
}

std::optional<Plan> Plan::from_text(const std::string& text) {
  std::istringstream in(text);
  Plan plan;
  in >> plan.group >> plan.contender >> plan.sync >> plan.size >> plan.batch >> plan.outstanding >>
      plan.keys >> plan.messages >> plan.milliseconds;
  return in ? std::optional<Plan>(plan) : std::nullopt;
}

store_rocksdb::SyncPolicy Plan::policy() const {
  if (sync == "interval") return store_rocksdb::SyncPolicy::interval;
  if (sync == "os") return store_rocksdb::SyncPolicy::os;
  return store_rocksdb::SyncPolicy::commit;
}

std::vector<Plan> all_plans(bool quick) {
  std::vector<Plan> plans;
  add_publishing(plans, quick);
  add_flows(plans, quick);
  add_backlogs(plans, quick);
  return plans;
}

}  // namespace ordo::bench
