#include "bench/pool/plan.h"

#include <algorithm>
#include <utility>

#include "bench/pool/contenders.h"

namespace ordo::bench {
namespace {

std::vector<std::string> all_but(const std::vector<std::string>& left_out) {
  std::vector<std::string> names;
  for (const Contender& contender : contenders()) {
    const std::string name(contender.name);
    if (std::find(left_out.begin(), left_out.end(), name) == left_out.end()) names.push_back(name);
  }
  return names;
}

// The figures are asked at 2 and 8 workers (skewed work: 8 and 32), so these get more rounds.
void add_throughput(std::vector<Heat>& plan, bool quick) {
  const std::vector<std::size_t> sizes =
      quick ? std::vector<std::size_t>{2} : std::vector<std::size_t>{2, 4, 8, 16, 32};
  for (const char* workload : {"empty", "1us", "10us", "skewed"}) {
    const bool skewed = std::string(workload) == "skewed";
    for (const std::size_t workers : sizes) {
      Heat heat{.group = "throughput", .workload = workload, .workers = workers};
      heat.contenders =
          workers == 2 ? all_but({"tbb_flow_push"}) : all_but({"tbb_flow_push", "one_thread"});
      heat.seconds = quick ? 0.01 : 0.2;
      const bool asked = workers == 2 || workers == 8 || (skewed && workers == 32);
      heat.rounds = quick ? 1 : (asked ? 5 : 3);
      if (skewed) {
        heat.items = quick ? 1'000 : 25'000 * std::min<std::size_t>(workers, 8);
        heat.contenders.push_back(kIdeal);
      }
      plan.push_back(std::move(heat));
    }
  }
}

void add_latency(std::vector<Heat>& plan, bool quick) {
  const std::vector<std::size_t> sizes =
      quick ? std::vector<std::size_t>{2} : std::vector<std::size_t>{2, 8};
  for (const std::size_t workers : sizes) {
    Heat heat{.group = "latency", .workload = "paced", .workers = workers};
    heat.items = quick ? 2'000 : 100'000;
    heat.rounds = quick ? 1 : 5;
    heat.contenders = all_but({"ordo_pointer"});
    plan.push_back(std::move(heat));
  }
}

void add_sleep(std::vector<Heat>& plan, bool quick) {
  Heat heat{.group = "sleep", .workload = "random", .workers = 16};
  heat.items = quick ? 200 : 10'000;
  heat.rounds = quick ? 1 : 2;
  heat.contenders = all_but({"ordo_pointer", "tbb_flow_push", "one_thread"});
  heat.contenders.push_back(kIdeal);
  plan.push_back(std::move(heat));
}

void add_memory(std::vector<Heat>& plan, bool quick) {
  Heat heat{.group = "memory", .workload = "empty", .workers = 2, .window = 64};
  heat.items = quick ? 100'000 : 10'000'000;
  heat.sample_latency = false;
  heat.contenders = {"ordo", "ordo_emit", "tbb_pipeline", "mutex_and_map"};
  plan.push_back(std::move(heat));
}

}  // namespace

std::vector<Heat> make_plan(Extent extent) {
  const bool quick = extent == Extent::kQuick;
  std::vector<Heat> plan;
  add_throughput(plan, quick);
  add_latency(plan, quick);
  add_sleep(plan, quick);
  add_memory(plan, quick);
  return plan;
}

std::vector<Heat> filter_plan(std::vector<Heat> plan, const std::string& prefix,
                              const std::vector<std::string>& contenders) {
  std::erase_if(plan, [&](const Heat& heat) {
    const std::string place =
        heat.group + "/" + heat.workload + "/" + std::to_string(heat.workers) + "/";
    return !place.starts_with(prefix);
  });
  if (contenders.empty()) return plan;
  for (Heat& heat : plan) {
    std::erase_if(heat.contenders, [&](const std::string& name) {
      return std::find(contenders.begin(), contenders.end(), name) == contenders.end();
    });
  }
  return plan;
}

}  // namespace ordo::bench
