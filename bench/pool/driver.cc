#include "bench/pool/driver.h"

#include <algorithm>
#include <cstdio>

#include "bench/pool/contenders.h"
#include "bench/pool/load.h"
#include "bench/support/child.h"
#include "bench/support/usage.h"

#ifdef ORDO_BENCH_TBB
#include <oneapi/tbb/version.h>
#endif

namespace ordo::bench {
namespace {

std::string title_of(const std::string& name) {
  const Contender* contender = find_contender(name);
  return contender == nullptr ? "ideal, computed" : std::string(contender->title);
}

}  // namespace

Driver::Driver(DriverOptions options)
    : options_(std::move(options)),
      burn_rounds_per_ns_(measure_burn_rounds_per_ns()),
      begin_ns_(now_ns()) {
  if (options_.results_path.empty()) return;
  results_.open(options_.results_path);
  if (!results_) {
    std::fprintf(stderr, "bench_pool: cannot write %s\n", options_.results_path.c_str());
    ++failures_;
  }
  write_machine();
}

void Driver::write_machine() {
  JsonLine line = machine_line(options_.mode);
#ifdef ORDO_BENCH_TBB
  line.text("tbb", TBB_VERSION_STRING).text("tbb_feed", tbb_feed_queue());
#else
  line.text("tbb", "none");
#endif
  line.number("burn_rounds_per_ns", burn_rounds_per_ns_);
  results_ << line.str() << "\n" << std::flush;
}

bool Driver::may_repeat() const {
  return now_ns() - begin_ns_ <
         static_cast<std::uint64_t>(options_.repeat_budget.count()) * 1'000'000'000;
}

void Driver::run(const Heat& heat) {
  std::vector<Entry> entries = prepare(heat);
  for (std::size_t round = 0; round < heat.rounds; ++round) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Entry& entry = entries[(i + round) % entries.size()];
      if (entry.failure.empty() && (entry.name != kIdeal || round == 0)) run_round(heat, entry);
    }
  }
  print_table(heat, entries);
  for (const Entry& entry : entries) {
    write_result(heat, entry);
    if (entry.failure.empty()) continue;
    ++failures_;
    std::fprintf(stderr, "bench_pool: FAILED: %s, %s, %zu workers: %s\n", entry.name.c_str(),
                 heat.workload.c_str(), heat.workers, entry.failure.c_str());
  }
}

std::vector<Driver::Entry> Driver::prepare(const Heat& heat) {
  std::vector<Entry> entries;
  for (const std::string& name : heat.contenders) {
    const Contender* contender = find_contender(name);
    if (contender != nullptr && contender->run == nullptr) {
      if (skipped_.insert(name).second) {
        std::fprintf(stderr, "bench_pool: SKIPPED: %s: this build has no TBB\n", name.c_str());
      }
      continue;
    }
    Entry entry{.name = name};
    entry.items = heat.items != 0 ? heat.items : find_item_count(heat, name);
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::uint64_t Driver::find_item_count(const Heat& heat, const std::string& contender) {
  constexpr std::uint64_t kFewest = 2'000;
  Entry probe{.name = contender};
  probe.items = kFewest;
  Measures measures;
  if (heat.seconds < 0.05 || !run_once(heat, probe, measures)) return kFewest;
  probe.items = std::max(kFewest, static_cast<std::uint64_t>(0.02 * measures.get("items_per_s")));
  if (!run_once(heat, probe, measures)) return kFewest;
  return std::max(kFewest, static_cast<std::uint64_t>(heat.seconds * measures.get("items_per_s")));
}

void Driver::run_round(const Heat& heat, Entry& entry) {
  Measures best;
  for (std::size_t attempt = 1; attempt <= options_.attempts_max; ++attempt) {
    Measures measures;
    if (!run_once(heat, entry, measures)) return;
    const bool better = attempt == 1 || measures.get("foreign_share") < best.get("foreign_share");
    if (better) best = measures;
    if (best.get("foreign_share") <= options_.foreign_share_max || !may_repeat()) break;
  }
  if (best.get("foreign_share") > options_.foreign_share_max) ++entry.disturbed;
  entry.rounds.push_back(best);
}

bool Driver::run_once(const Heat& heat, Entry& entry, Measures& measures) {
  std::vector<std::string> command{"/proc/self/exe",
                                   "--run",
                                   entry.name,
                                   heat.workload,
                                   std::to_string(heat.workers),
                                   std::to_string(heat.window),
                                   std::to_string(entry.items),
                                   std::to_string(burn_rounds_per_ns_),
                                   heat.sample_latency ? "latency" : "memory"};
  const ChildResult child = run_child(command, options_.run_timeout);
  measures = Measures::from_lines(child.output);
  entry.failure = child.failure;
  if (entry.failure.empty() && !measures.has("ns_per_item")) entry.failure = "no result";
  if (measures.get("errors") > 0) {
    entry.failure = std::to_string(static_cast<std::uint64_t>(measures.get("errors"))) +
                    " messages lost or out of order";
  }
  measures.set("foreign_share", child.foreign_share);
  return entry.failure.empty();
}

void Driver::print_table(const Heat& heat, const std::vector<Entry>& entries) const {
  const Workload* workload = find_workload(heat.workload);
  std::printf("\n%s: %s; %zu workers, window %zu\n", heat.group.c_str(),
              std::string(workload->title).c_str(), heat.workers, heat.window);
  std::printf("  %-22s %12s %10s %10s %9s %9s %9s %8s %9s\n", "", "items/s", "ns/item", "cpu ns",
              "p50 us", "p99 us", "p99.9 us", "alloc", "RSS +KiB");
  for (const Entry& entry : entries) {
    if (entry.rounds.empty()) continue;
    const Measures median = Measures::medians(entry.rounds);
    std::printf("  %-22s %12.0f %10.1f %10.1f %9.1f %9.1f %9.1f %8.3f %9.0f%s\n",
                title_of(entry.name).c_str(), median.get("items_per_s"), median.get("ns_per_item"),
                median.get("cpu_ns_per_item"), median.get("p50_us"), median.get("p99_us"),
                median.get("p999_us"), median.get("allocations_per_item"),
                median.get("rss_growth_bytes") / 1024, entry.disturbed != 0 ? "  disturbed" : "");
  }
  std::fflush(stdout);
}

void Driver::write_result(const Heat& heat, const Entry& entry) {
  JsonLine line;
  line.text("kind", "pool").text("group", heat.group).text("workload", heat.workload);
  line.text("contender", entry.name).text("title", title_of(entry.name));
  const Contender* contender = find_contender(entry.name);
  line.text("message", contender == nullptr ? "none" : contender->message);
  line.number("workers", static_cast<double>(heat.workers));
  line.number("window", static_cast<double>(heat.window));
  line.number("items", static_cast<double>(entry.items));
  line.number("rounds", static_cast<double>(entry.rounds.size()));
  line.number("disturbed", static_cast<double>(entry.disturbed));
  if (!entry.failure.empty()) line.text("failure", entry.failure);
  if (!entry.rounds.empty()) {
    const auto [least, most] = std::minmax_element(
        entry.rounds.begin(), entry.rounds.end(), [](const Measures& a, const Measures& b) {
          return a.get("ns_per_item") < b.get("ns_per_item");
        });
    line.number("ns_per_item_min", least->get("ns_per_item"));
    line.number("ns_per_item_max", most->get("ns_per_item"));
    const Measures median = Measures::medians(entry.rounds);
    for (const auto& [name, value] : median.entries()) {
      line.number(name, value);
    }
  }
  results_ << line.str() << "\n" << std::flush;
}

}  // namespace ordo::bench
