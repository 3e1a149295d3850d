// Driver: runs the heats of a plan, each run in a process of its own, and writes what it found.
//
//   Driver driver({.results_path = "pool.json"});
//   for (const Heat& heat : make_plan(Extent::kFull)) driver.run(heat);
//   return driver.failures() == 0 ? 0 : 1;
//
// A run during which other processes took more than foreign_share_max of the processors is
// repeated, up to attempts_max times and while the time budget lasts; the least disturbed counts.
//
// Threads: one owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/pool/plan.h"
#include "bench/support/measures.h"

namespace ordo::bench {

struct DriverOptions {
  std::string results_path;  // JSON lines; empty: none.
  std::string mode;          // "full" or "quick"; noted in the results.
  double foreign_share_max = 0.05;
  std::size_t attempts_max = 3;
  std::chrono::seconds repeat_budget{300};  // After this long nothing is repeated any more.
  std::chrono::seconds run_timeout{120};
};

class Driver {
 public:
  explicit Driver(DriverOptions options);

  // Runs all rounds of the heat, prints its table and writes its results.
  void run(const Heat& heat);

  std::size_t failures() const { return failures_; }

 private:
  struct Entry {  // One contender of a heat.
    std::string name;
    std::uint64_t items = 0;
    std::vector<Measures> rounds{};
    std::size_t disturbed = 0;
    std::string failure{};
  };

  std::vector<Entry> prepare(const Heat& heat);
  std::uint64_t find_item_count(const Heat& heat, const std::string& contender);
  void run_round(const Heat& heat, Entry& entry);
  // One run in a child process. Returns false, and says why in `entry`, when it does not count.
  bool run_once(const Heat& heat, Entry& entry, Measures& measures);
  void print_table(const Heat& heat, const std::vector<Entry>& entries) const;
  void write_result(const Heat& heat, const Entry& entry);
  void write_machine();
  bool may_repeat() const;

  DriverOptions options_;
  std::ofstream results_;
  double burn_rounds_per_ns_;
  std::uint64_t begin_ns_;
  std::size_t failures_ = 0;
  std::set<std::string> skipped_;  // Contenders this build lacks, told once.
};

// What a child process is told to do on its command line, and does.
// Returns the exit status: 0 when every message came, once and in order.
int run_case(const std::vector<std::string>& arguments);

}  // namespace ordo::bench
