// bench_gateway: requests over TCP to `ordo gateway`, to redis-server and to a bare epoll echo
// server, side by side from the same client.
//
// Questions it answers: how many orders a second does the gateway take from 50 connections, when
// each waits for its answer and when requests are pipelined? How long does an answer take at 10 %,
// 50 % and 90 % of that? What of it is the network (echo), and what does redis take for a key?
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "bench/gateway/contenders.h"
#include "bench/gateway/server_process.h"
#include "bench/support/child.h"
#include "bench/support/measures.h"
#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::size_t kPeakPipelining = 16;

struct Heat {
  std::string group;           // closed or open.
  std::size_t pipelining = 1;  // Requests sent together.
  double load = 0;             // Open: the share of the contender's own peak.

  std::string name() const {
    return group == "closed" ? "closed/" + std::to_string(pipelining)
                             : "open/" + std::to_string(static_cast<int>(load * 100 + 0.5));
  }
};

const std::vector<Heat> kHeats = {{"closed", 1},
                                  {"closed", kPeakPipelining},
                                  {"closed", 64},
                                  {"open", kPeakPipelining, 0.1},
                                  {"open", kPeakPipelining, 0.5},
                                  {"open", kPeakPipelining, 0.9}};

struct Options {
  bool quick = false;
  std::string out{};
  std::string only{};                     // A heat, or a group of them.
  std::vector<std::string> contenders{};  // Empty: all.
  std::string ordo{};
  std::string peaks{};  // A result file whose peaks count, instead of measuring them again.
  std::size_t rounds = 0;
};

// The text of a field of a line of a result file; empty when it has none.
std::string field_of(const std::string& line, const std::string& name) {
  const std::string start = '"' + name + "\": ";
  const std::size_t place = line.find(start);
  if (place == std::string::npos) return {};
  const std::size_t begin = place + start.size();
  std::string text = line.substr(begin, line.find_first_of(",}", begin) - begin);
  std::erase(text, '"');
  return text;
}

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options),
        rounds_(options.rounds != 0 ? options.rounds
                : options.quick     ? 1
                                    : 7) {
    if (!options.out.empty()) results_.open(options.out);
    results_ << machine_line(options.quick ? "quick" : "full").str() << "\n";
    for (const GatewayContender& contender : kGatewayContenders) {
      if (is_wanted(contender)) chosen_.push_back(&contender);
    }
    std::ifstream earlier(options.peaks);
    for (std::string result; std::getline(earlier, result);) {
      if (field_of(result, "group") == "closed" && field_of(result, "pipelining") == "16")
        peaks_[field_of(result, "contender")] = std::stod(field_of(result, "requests_per_s"));
    }
  }

  void run(const Heat& heat) {
    std::vector<const GatewayContender*> racing;
    for (const GatewayContender* contender : chosen_) {
      if (heat.group == "closed" || contender->own_client) racing.push_back(contender);
    }
    std::vector<std::vector<Measures>> runs(racing.size());
    std::vector<std::string> failures(racing.size());
    std::vector<std::size_t> disturbed(racing.size());
    for (std::size_t round = 0; round < rounds_; ++round) {
      for (std::size_t i = 0; i < racing.size(); ++i) {
        const std::size_t index = (i + round) % racing.size();
        const ChildResult child = run_least_disturbed(*racing[index], heat);
        if (!child.failure.empty()) failures[index] = child.failure;
        if (child.foreign_share > kForeignMax) ++disturbed[index];
        runs[index].push_back(Measures::from_lines(child.output));
      }
    }
    std::printf("\n%-30s %12s %9s %9s %9s %7s %7s\n", heat.name().c_str(), "requests/s", "p50 us",
                "p99 us", "p99.9 us", "server", "client");
    for (std::size_t i = 0; i < racing.size(); ++i)
      report(heat, *racing[i], runs[i], failures[i], disturbed[i] > rounds_ / 2);
    std::fflush(stdout);
  }

  // Whether the gateway's memory grows with ids that are used once.
  void run_ids_heat() {
    if (std::none_of(chosen_.begin(), chosen_.end(),
                     [](const auto* one) { return one->name == "ordo_binary"; }))
      return;
    const ChildResult child =
        run_child({"/proc/self/exe", "--ids", options_.quick ? "10000" : "1000000", options_.ordo},
                  std::chrono::seconds(60));
    const Measures measures = Measures::from_lines(child.output);
    std::printf("\n%.0f ids used once each: %.0f KiB more\n", measures.get("requests"),
                measures.get("rss_growth_bytes") / 1024);
    JsonLine line;
    line.text("kind", "gateway").text("group", "ids");
    line.text("contender", "ordo_binary").text("title", "Ordo, binary");
    finish(line, measures, child.failure, "ids");
  }

  bool failed() const { return failed_; }

 private:
  static constexpr double kForeignMax = 0.05;

  bool is_wanted(const GatewayContender& contender) const {
    const auto& names = options_.contenders;
    if (!names.empty() && std::count(names.begin(), names.end(), contender.name) == 0) return false;
    const bool needs_redis = contender.name.find("redis") == 0 || !contender.own_client;
    if (!needs_redis || !find_redis("redis-server").empty()) return true;
    std::fprintf(stderr, "bench_gateway: SKIPPED: %s: redis-server is not installed\n",
                 std::string(contender.title).c_str());
    return false;
  }

  // A run during which others took much of the processors is repeated, twice at most.
  ChildResult run_least_disturbed(const GatewayContender& contender, const Heat& heat) {
    const double rate = heat.group == "open" ? heat.load * peak_of(contender) : 0;
    ChildResult best = run_once(contender, heat.pipelining, rate);
    for (int again = 0; again < 2 && rounds_ > 1 && best.foreign_share > kForeignMax; ++again) {
      ChildResult other = run_once(contender, heat.pipelining, rate);
      if (other.foreign_share < best.foreign_share) best = std::move(other);
    }
    return best;
  }

  ChildResult run_once(const GatewayContender& contender, std::size_t pipelining, double rate) {
    return run_child(
        {"/proc/self/exe", "--run", std::string(contender.name), std::to_string(pipelining),
         std::to_string(rate), options_.quick ? "60" : "500", options_.ordo},
        std::chrono::seconds(60));
  }

  // Requests/s at pipelining 16, measured now if no heat of this session has.
  double peak_of(const GatewayContender& contender) {
    double& peak = peaks_[std::string(contender.name)];
    if (peak == 0) {
      std::vector<Measures> runs;
      for (std::size_t i = 0; i < (options_.quick ? 1 : 3); ++i)
        runs.push_back(Measures::from_lines(run_once(contender, kPeakPipelining, 0).output));
      peak = std::max(1000.0, Measures::medians(runs).get("requests_per_s"));
    }
    return peak;
  }

  void report(const Heat& heat, const GatewayContender& contender,
              const std::vector<Measures>& runs, const std::string& failure, bool disturbed) {
    const Measures median = Measures::medians(runs);
    const double per_s = median.get("requests_per_s");
    if (heat.group == "closed" && heat.pipelining == kPeakPipelining)
      peaks_[std::string(contender.name)] = per_s;
    std::printf("  %-28s %12.0f %9.1f %9.1f %9.1f %7.2f %7.2f%s\n",
                std::string(contender.title).c_str(), per_s, median.get("p50_us"),
                median.get("p99_us"), median.get("p999_us"), median.get("server_cores"),
                median.get("client_cores"), disturbed ? "  disturbed" : "");
    JsonLine line;
    line.text("kind", "gateway").text("group", heat.group);
    line.text("contender", contender.name).text("title", contender.title);
    line.number("pipelining", static_cast<double>(heat.pipelining));
    line.number("connections", static_cast<double>(LoadPlan{}.connections));
    if (heat.group == "open") {
      line.number("load", heat.load);
      line.number("rate", heat.load * peaks_[std::string(contender.name)]);
    }
    line.number("rounds", static_cast<double>(rounds_)).number("disturbed", disturbed ? 1 : 0);
    std::vector<double> costs;
    for (const Measures& run : runs)
      costs.push_back(run.get("us_per_request"));
    line.number("us_per_request_min", *std::min_element(costs.begin(), costs.end()));
    line.number("us_per_request_max", *std::max_element(costs.begin(), costs.end()));
    finish(line, median, failure, heat.name() + ", " + std::string(contender.title));
  }

  void finish(JsonLine& line, const Measures& measures, const std::string& failure,
              const std::string& what) {
    for (const auto& [name, value] : measures.entries())
      line.number(name, value);
    if (!failure.empty()) {
      line.text("failure", failure);
      std::fprintf(stderr, "bench_gateway: FAILED: %s: %s\n", what.c_str(), failure.c_str());
      failed_ = true;
    }
    results_ << line.str() << "\n" << std::flush;
  }

  const Options& options_;
  const std::size_t rounds_;
  std::vector<const GatewayContender*> chosen_{};
  std::map<std::string, double> peaks_{};
  bool failed_ = false;
  std::ofstream results_{};
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

// --run CONTENDER PIPELINING RATE MILLISECONDS ORDO
int run_one(const std::vector<std::string>& arguments) {
  if (arguments.size() != 6) return 2;
  LoadPlan plan;
  plan.pipelining = number_of<std::size_t>(arguments[2]);
  plan.rate = number_of<double>(arguments[3]);
  plan.measured_ns = number_of<std::uint64_t>(arguments[4]) * 1'000'000;
  plan.warm_ns = plan.measured_ns / 4;
  return print(run_contender(arguments[1], plan, arguments[5]));
}

int run_all(const std::vector<std::string>& arguments) {
  Options options;
  options.ordo = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "ordo";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--quick") {
      options.quick = true;
    } else if (arguments[i] == "--out" && has_value) {
      options.out = arguments[++i];
    } else if (arguments[i] == "--only" && has_value) {
      options.only = arguments[++i];
    } else if (arguments[i] == "--contender" && has_value) {
      options.contenders.push_back(arguments[++i]);
    } else if (arguments[i] == "--ordo" && has_value) {
      options.ordo = arguments[++i];
    } else if (arguments[i] == "--peaks" && has_value) {
      options.peaks = arguments[++i];
    } else if (arguments[i] == "--rounds" && has_value) {
      options.rounds = number_of<std::size_t>(arguments[++i]);
    } else {
      std::fputs(
          "usage: bench_gateway [--quick] [--out FILE] [--only HEAT] [--contender NAME]...\n"
          "                     [--rounds N] [--ordo PROGRAM] [--peaks FILE]\n"
          "  heats: closed/1 closed/16 closed/64 open/10 open/50 open/90 ids; or closed, open\n"
          "  --peaks: closed/16 of an earlier result file, instead of measuring it for open\n",
          stderr);
      return 2;
    }
  }
  Session session(options);
  for (const Heat& heat : kHeats) {
    const std::string& only = options.only;
    if (only.empty() || only == heat.name() || only == heat.group) session.run(heat);
  }
  if (options.only.empty() || options.only == "ids") session.run_ids_heat();
  return session.failed() ? 1 : 0;
}

}  // namespace
}  // namespace ordo::bench

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "--echo") return ordo::bench::serve_echo();
  if (!arguments.empty() && arguments[0] == "--run") return ordo::bench::run_one(arguments);
  if (arguments.size() == 3 && arguments[0] == "--ids")
    return ordo::bench::print(
        ordo::bench::run_ids(ordo::bench::number_of<double>(arguments[1]), arguments[2]));
  return ordo::bench::run_all(arguments);
}
