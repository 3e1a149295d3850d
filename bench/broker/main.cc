// bench_broker: the broker in a process, on RocksDB, beside a file that the same bytes are appended
// to and synced the same way.
//
// Questions it answers: how many messages a second are published, delivered and acknowledged, by
// size, batch and sync policy, and what share is that of what the disk allows? How long does a
// durable publish take beside one fdatasync? What does a backlog of a million cost in memory, and
// when the broker starts? Do blocked keys slow the others?
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "bench/broker/plan.h"
#include "bench/broker/rig.h"
#include "bench/support/child.h"
#include "bench/support/measures.h"
#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

struct Options {
  bool quick = false;
  std::string out{};
  std::string only{};  // The beginning of a heat's name.
  std::string dir = std::filesystem::temp_directory_path();
  std::size_t rounds = 0;
};

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options),
        rounds_(options.rounds != 0 ? options.rounds
                : options.quick     ? 1
                                    : 5) {
    if (!options.out.empty()) results_.open(options.out);
    results_ << machine_line(options.quick ? "quick" : "full").str() << "\n";
  }

  // The plans of one heat, round by round beside each other.
  void run(const std::vector<Plan>& plans) {
    std::vector<std::vector<Measures>> runs(plans.size());
    std::vector<std::string> failures(plans.size());
    std::vector<std::size_t> disturbed(plans.size());
    const std::size_t rounds =
        plans[0].group == "backlog" ? std::min<std::size_t>(rounds_, 3) : rounds_;
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < plans.size(); ++i) {
        const std::size_t index = (i + round) % plans.size();
        const ChildResult child = run_once(plans[index]);
        if (!child.failure.empty()) failures[index] = child.failure;
        if (child.foreign_share > kForeignMax) ++disturbed[index];
        runs[index].push_back(Measures::from_lines(child.output));
      }
    }
    std::printf("\n%s\n", plans[0].heat().c_str());
    for (std::size_t i = 0; i < plans.size(); ++i)
      report(plans[i], runs[i], failures[i], disturbed[i] > rounds / 2);
    std::fflush(stdout);
  }

  bool failed() const { return failed_; }

 private:
  static constexpr double kForeignMax = 0.05;

  ChildResult run_once(const Plan& plan) const {
    const std::string folder =
        options_.dir + "/bench_broker." + std::to_string(static_cast<long>(::getpid()));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    ChildResult child =
        run_child({"/proc/self/exe", "--run", plan.text(), folder}, std::chrono::seconds(60));
    std::filesystem::remove_all(folder);
    return child;
  }

  void report(const Plan& plan, const std::vector<Measures>& runs, const std::string& failure,
              bool disturbed) {
    const Measures median = Measures::medians(runs);
    std::printf("  %-22s %5zu outstanding%s", plan.title().c_str(), plan.outstanding,
                disturbed ? "  disturbed" : "");
    JsonLine line;
    line.text("kind", "broker").text("group", plan.group);
    line.text("contender", plan.contender).text("title", plan.title()).text("sync", plan.sync);
    line.number("size", static_cast<double>(plan.size));
    line.number("batch", static_cast<double>(plan.batch));
    line.number("outstanding", static_cast<double>(plan.outstanding));
    line.number("keys", static_cast<double>(plan.keys));
    line.number("rounds", static_cast<double>(runs.size())).number("disturbed", disturbed ? 1 : 0);
    for (const auto& [name, value] : median.entries()) {
      line.number(name, value);
      std::printf("  %s=%.6g", name.c_str(), value);
    }
    std::printf("\n");
    if (median.has("us_per_message")) set_spread(line, runs);
    if (!failure.empty()) {
      line.text("failure", failure);
      std::fprintf(stderr, "bench_broker: FAILED: %s, %s: %s\n", plan.heat().c_str(),
                   plan.title().c_str(), failure.c_str());
      failed_ = true;
    }
    results_ << line.str() << "\n" << std::flush;
  }

  static void set_spread(JsonLine& line, const std::vector<Measures>& runs) {
    std::vector<double> costs;
    for (const Measures& run : runs)
      costs.push_back(run.get("us_per_message"));
    line.number("us_per_message_min", *std::min_element(costs.begin(), costs.end()));
    line.number("us_per_message_max", *std::max_element(costs.begin(), costs.end()));
  }

  const Options& options_;
  const std::size_t rounds_;
  bool failed_ = false;
  std::ofstream results_{};
};

// --run PLAN FOLDER
int run_one(const std::vector<std::string>& arguments) {
  const auto plan = arguments.size() == 3 ? Plan::from_text(arguments[1]) : std::nullopt;
  if (!plan) return 2;
  const std::string& folder = arguments[2];
  Measures measures;
  if (plan->group == "publish" || plan->group == "latency") measures = run_publish(*plan, folder);
  if (plan->group == "consume") measures = run_consume(*plan, folder);
  if (plan->group == "flow" || plan->group == "blocked") measures = run_flow(*plan, folder);
  if (plan->group == "fill") run_fill(*plan, folder);
  if (plan->group == "backlog") measures = run_backlog(*plan, folder);
  std::fputs(measures.to_lines().c_str(), stdout);
  return 0;
}

int run_all(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--quick") {
      options.quick = true;
    } else if (arguments[i] == "--out" && has_value) {
      options.out = arguments[++i];
    } else if (arguments[i] == "--only" && has_value) {
      options.only = arguments[++i];
    } else if (arguments[i] == "--dir" && has_value) {
      options.dir = arguments[++i];
    } else if (arguments[i] == "--rounds" && has_value) {
      const std::string& text = arguments[++i];
      std::from_chars(text.data(), text.data() + text.size(), options.rounds);
    } else {
      std::fputs(
          "usage: bench_broker [--quick] [--out FILE] [--only HEAT] [--rounds N] [--dir FOLDER]\n"
          "  heats: GROUP/SYNC/SIZE/BATCH/KEYS, or the beginning of such a name;\n"
          "         groups: publish latency consume flow backlog blocked\n"
          "  --dir: where the files go, on the disk to be measured\n",
          stderr);
      return 2;
    }
  }
  Session session(options);
  const std::vector<Plan> plans = all_plans(options.quick);
  for (std::size_t at = 0; at < plans.size();) {
    std::vector<Plan> heat;
    const std::string name = plans[at].heat();
    while (at < plans.size() && plans[at].heat() == name)
      heat.push_back(plans[at++]);
    if (name.starts_with(options.only)) session.run(heat);
  }
  return session.failed() ? 1 : 0;
}

}  // namespace
}  // namespace ordo::bench

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "--run") return ordo::bench::run_one(arguments);
  return ordo::bench::run_all(arguments);
}
