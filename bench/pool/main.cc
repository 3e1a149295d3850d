// bench_pool: what an item costs in an order-preserving parallel pool, ours and others, side by
// side.
//
// Questions it answers: how much dearer than the work itself is order at 2 to 32 workers? How long
// does an item wait for its turn at a steady rate? Does memory stay flat, does the steady state
// allocate? Every run checks that all messages came, once and in order.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "bench/pool/contenders.h"
#include "bench/pool/driver.h"
#include "bench/pool/ideal.h"
#include "bench/pool/load.h"

namespace ordo::bench {
namespace {

constexpr const char* kUsage =
    "usage: bench_pool [--quick] [--out FILE] [--only GROUP[/WORKLOAD[/WORKERS/]]]\n"
    "                  [--contenders NAME,NAME,...] [--rounds N]\n"
    "  groups: throughput latency sleep memory\n"
    "  workloads: empty 1us 10us skewed (throughput), paced (latency), random (sleep)\n";

template <class Number>
bool parse(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct Request {
  Extent extent = Extent::kFull;
  std::string results_path;
  std::string only;
  std::vector<std::string> contenders;
  std::size_t rounds = 0;  // 0: as planned.
};

bool read_request(const std::vector<std::string>& arguments, Request& request) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--quick") {
      request.extent = Extent::kQuick;
      continue;
    }
    if (i + 1 == arguments.size()) return false;
    const std::string& value = arguments[++i];
    if (name == "--out") {
      request.results_path = value;
    } else if (name == "--only") {
      request.only = value;
    } else if (name == "--contenders") {
      request.contenders = split(value);
    } else if (name != "--rounds" || !parse(value, request.rounds)) {
      return false;
    }
  }
  return true;
}

int run_plan(const Request& request) {
  std::vector<Heat> plan = filter_plan(make_plan(request.extent), request.only, request.contenders);
  if (plan.empty()) {
    std::fprintf(stderr, "bench_pool: nothing in the plan is called %s\n", request.only.c_str());
    return 2;
  }
  DriverOptions options;
  options.results_path = request.results_path;
  options.mode = request.extent == Extent::kQuick ? "quick" : "full";
  if (request.extent == Extent::kQuick) {
    options.attempts_max = 1;
    options.run_timeout = std::chrono::seconds(20);
  }
  Driver driver(options);
  for (Heat& heat : plan) {
    if (request.rounds != 0) heat.rounds = request.rounds;
    driver.run(heat);
  }
  return driver.failures() == 0 ? 0 : 1;
}

}  // namespace

int run_case(const std::vector<std::string>& arguments) {
  LoadSettings settings;
  if (arguments.size() != 7 || !parse(arguments[2], settings.workers) ||
      !parse(arguments[3], settings.window) || !parse(arguments[4], settings.items) ||
      !parse(arguments[5], settings.burn_rounds_per_ns) || settings.items == 0) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  settings.workload = find_workload(arguments[1]);
  settings.sample_latency = arguments[6] == "latency";
  const Contender* contender = find_contender(arguments[0]);
  const bool ideal = arguments[0] == kIdeal;
  if (settings.workload == nullptr || (!ideal && (contender == nullptr || !contender->run))) {
    std::fprintf(stderr, "bench_pool: no contender %s or no workload %s\n", arguments[0].c_str(),
                 arguments[1].c_str());
    return 2;
  }
  Measures measures;
  if (ideal) {
    measures = measure_ideal(settings, settings.items < 5'000 ? 10 : 200);
  } else {
    Load load(settings);
    contender->run(load);
    measures = load.finish();
  }
  std::fputs(measures.to_lines().c_str(), stdout);
  return measures.get("errors") == 0 ? 0 : 1;
}

}  // namespace ordo::bench

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "--run") {
    arguments.erase(arguments.begin());
    return ordo::bench::run_case(arguments);
  }
  ordo::bench::Request request;
  if (!ordo::bench::read_request(arguments, request)) {
    std::fputs(ordo::bench::kUsage, stderr);
    return 2;
  }
  return ordo::bench::run_plan(request);
}
