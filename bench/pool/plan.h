// The plan of bench_pool: which contenders meet on which load, how often.
//
// A heat is one load at one size; all its contenders run back to back, in an order that is rotated
// from round to round, so that whatever drifts on the machine meets them all alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ordo::bench {

inline constexpr const char* kIdeal = "ideal";  // Stands in a heat for the computed ideal.

struct Heat {
  std::string group;  // "throughput", "latency", "sleep" or "memory".
  std::string workload;
  std::size_t workers = 1;
  std::size_t window = 1024;
  std::uint64_t items = 0;  // 0: as many as each contender does in `seconds`, found by a first try.
  double seconds = 0;
  std::size_t rounds = 1;
  bool sample_latency = true;
  std::vector<std::string> contenders{};
};

enum class Extent { kFull, kQuick };

// Full: every figure, some four minutes. Quick: every contender and workload once, a few seconds.
std::vector<Heat> make_plan(Extent extent);

// The part of the plan whose "group/workload/workers" starts with `prefix`.
std::vector<Heat> filter_plan(std::vector<Heat> plan, const std::string& prefix,
                              const std::vector<std::string>& contenders);

}  // namespace ordo::bench
