// bench_bus: what it costs to publish one frame to 10 and to 100 subscribers, ours and others; and
// who loses how much under overload.
//
// Questions it answers: does the number of subscribers matter to the publisher? What do priorities
// cost? Do critical subscribers get their frames when the machine is asked for more than it has?
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bus/fan_out.h"
#include "bench/bus/heats.h"
#include "bench/support/child.h"
#include "bench/support/measures.h"
#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr BusContender kContenders[] = {
    {"ordo", "Ordo, mixed priorities", &make_ordo},
    {"ordo_equal", "Ordo, one priority", &make_ordo_equal},
    {"rings", "bare loop over rings", &make_rings},
    {"locks", "mutex and deque for each", &make_locks},
#ifdef ORDO_BENCH_SIGNALS
    {"signals", "Boost.Signals2 into rings", &make_signals},
#endif
#ifdef ORDO_BENCH_GO
    {"go_cached", "Go channels, order cached", nullptr},
    {"go_sorted", "Go channels, sorted each time", nullptr},
#endif
};

constexpr double kLoads[] = {0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0};

class Session {
 public:
  Session(bool quick, const std::string& path) : quick_(quick) {
    if (!path.empty()) results_.open(path);
    results_ << machine_line(quick ? "quick" : "full").str() << "\n";
  }

  void publish_heat(const std::string& mode, std::size_t subscribers) {
    const std::size_t rounds = quick_ ? 1 : 7;
    const std::size_t count = std::size(kContenders);
    std::vector<std::vector<Measures>> runs(count);
    std::vector<std::string> failures(count);
    std::vector<std::size_t> disturbed(count);
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t index = (i + round) % count;
        const ChildResult child = run(kContenders[index], mode, subscribers);
        if (!child.failure.empty()) failures[index] = child.failure;
        if (child.foreign_share > 0.05) ++disturbed[index];
        runs[index].push_back(Measures::from_lines(child.output));
      }
    }
    std::printf("\n%s, %zu subscribers\n", mode.c_str(), subscribers);
    for (std::size_t i = 0; i < count; ++i) {
      const Measures median = Measures::medians(runs[i]);
      std::printf("  %-32s %10.1f ns%s\n", std::string(kContenders[i].title).c_str(),
                  median.get("ns_per_publish"), disturbed[i] > rounds / 2 ? "  disturbed" : "");
      JsonLine line;
      line.text("kind", "bus").text("group", "publish").text("mode", mode);
      line.text("contender", kContenders[i].name).text("title", kContenders[i].title);
      line.number("subscribers", static_cast<double>(subscribers));
      line.number("rounds", static_cast<double>(rounds));
      line.number("disturbed", disturbed[i] > rounds / 2 ? 1 : 0);
      for (const auto& [name, value] : median.entries())
        line.number(name, value);
      report(line, failures[i], std::string(kContenders[i].title) + ", " + mode);
    }
    std::fflush(stdout);
  }

  void overload_heat() {
    std::printf("\npercent dropped by load\n%8s %10s %10s %10s %12s\n", "load", "critical", "high",
                "normal", "best_effort");
    for (const double load : kLoads) {
      std::vector<Measures> runs;
      std::string failure;
      bool disturbed = false;
      for (int round = 0; round < (quick_ ? 1 : 3); ++round) {
        const ChildResult child = run_child(
            {"/proc/self/exe", "--overload", std::to_string(load), quick_ ? "100" : "1500"},
            std::chrono::seconds(30));
        if (!child.failure.empty()) failure = child.failure;
        disturbed = disturbed || child.foreign_share > 0.05;
        runs.push_back(Measures::from_lines(child.output));
      }
      const Measures measures = Measures::medians(runs);
      JsonLine line;
      line.text("kind", "bus").text("group", "overload");
      line.number("disturbed", disturbed ? 1 : 0);
      for (const auto& [name, value] : measures.entries())
        line.number(name, value);
      std::printf("%8.2f %9.2f%% %9.2f%% %9.2f%% %11.2f%%\n", load,
                  measures.get("dropped_critical"), measures.get("dropped_high"),
                  measures.get("dropped_normal"), measures.get("dropped_best_effort"));
      report(line, failure, "overload");
    }
  }

  bool failed() const { return failed_; }

 private:
  ChildResult run(const BusContender& contender, const std::string& mode, std::size_t subscribers) {
    std::vector<std::string> command{"/proc/self/exe", "--run"};
#ifdef ORDO_BENCH_GO
    if (contender.make == nullptr) command = {ORDO_BENCH_GO};
#endif
    command.insert(command.end(), {std::string(contender.name), mode, std::to_string(subscribers),
                                   quick_ ? "5" : "300"});
    return run_child(command, std::chrono::seconds(30));
  }

  void report(JsonLine& line, const std::string& failure, const std::string& what) {
    if (!failure.empty()) {
      line.text("failure", failure);
      std::fprintf(stderr, "bench_bus: FAILED: %s: %s\n", what.c_str(), failure.c_str());
      failed_ = true;
    }
    results_ << line.str() << "\n" << std::flush;
  }

  bool quick_;
  bool failed_ = false;
  std::ofstream results_;
};

template <class Number>
Number number_of(const std::string& text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int print(const Measures& measures) {
  std::fputs(measures.to_lines().c_str(), stdout);
  return measures.get("errors") == 0 ? 0 : 1;
}

int run_one(const std::vector<std::string>& arguments) {
  const auto found =
      std::find_if(std::begin(kContenders), std::end(kContenders),
                   [&](const BusContender& contender) { return contender.name == arguments[1]; });
  if (found == std::end(kContenders) || found->make == nullptr) return 2;
  return print(measure_publish(*found, arguments[2], number_of<std::size_t>(arguments[3]),
                               number_of<std::size_t>(arguments[4])));
}

int run_all(const std::vector<std::string>& arguments) {
  bool quick = false;
  std::string path;
  std::string only;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--quick") {
      quick = true;
    } else if (arguments[i] == "--out" && i + 1 < arguments.size()) {
      path = arguments[++i];
    } else if (arguments[i] == "--only" && i + 1 < arguments.size()) {
      only = arguments[++i];
    } else {
      std::fputs(
          "usage: bench_bus [--quick] [--out FILE] [--only MODE]\n"
          "  modes: full alone polled threads overload\n",
          stderr);
      return 2;
    }
  }
#ifndef ORDO_BENCH_GO
  std::fputs("bench_bus: SKIPPED: the Go channel bus: this build has no go\n", stderr);
#endif
#ifndef ORDO_BENCH_SIGNALS
  std::fputs("bench_bus: SKIPPED: Boost.Signals2: this build has no Boost\n", stderr);
#endif
  Session session(quick, path);
  for (const std::string mode : {"full", "alone", "polled", "threads"}) {
    if (!only.empty() && only != mode) continue;
    for (const std::size_t subscribers : {std::size_t{10}, std::size_t{100}})
      session.publish_heat(mode, subscribers);
  }
  if (only.empty() || only == "overload") session.overload_heat();
  return session.failed() ? 1 : 0;
}

}  // namespace
}  // namespace ordo::bench

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 5 && arguments[0] == "--run") return ordo::bench::run_one(arguments);
  if (arguments.size() == 3 && arguments[0] == "--overload") {
    return ordo::bench::print(
        ordo::bench::measure_overload(ordo::bench::number_of<double>(arguments[1]),
                                      ordo::bench::number_of<std::size_t>(arguments[2])));
  }
  return ordo::bench::run_all(arguments);
}
