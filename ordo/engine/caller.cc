#include "ordo/engine/caller.h"

#include <algorithm>
#include <atomic>
#include <vector>

namespace ordo::engine {
namespace {

struct KeptMarks {
  PartitionMarks marks;
  std::weak_ptr<const void> alive;
};

// The marks this thread has set on engines other than the one in use.
std::vector<KeptMarks>& kept_marks() {
  static thread_local std::vector<KeptMarks> kept;
  return kept;
}

// For which engine the marks in use are, as long as it lives.
std::weak_ptr<const void>& engine_in_use() {
  static thread_local std::weak_ptr<const void> alive;
  return alive;
}

}  // namespace

void Caller::switch_slowly(std::uint64_t engine, const std::shared_ptr<const void>& alive) {
  std::vector<KeptMarks>& kept = kept_marks();
  std::erase_if(kept, [](const KeptMarks& other) { return other.alive.expired(); });
  if (marks_.any() && !engine_in_use().expired()) kept.push_back({marks_, engine_in_use()});
  marks_ = PartitionMarks{.engine = engine};
  const auto found = std::find_if(kept.begin(), kept.end(), [&](const KeptMarks& other) {
    return other.marks.engine == engine;
  });
  if (found != kept.end()) {
    marks_ = found->marks;
    kept.erase(found);
  }
  engine_in_use() = alive;
  submits_left_ = 0;
}

std::uint64_t next_engine_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace ordo::engine
