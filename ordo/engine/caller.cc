#include "ordo/engine/caller.h"

#include <algorithm>
#include <atomic>
#include <pthread.h>
#include <utility>
#include <vector>

#include "ordo/core/check.h"

namespace ordo::engine {
namespace {

struct KeptMarks {
  PartitionMarks marks;
  std::weak_ptr<const void> alive;
};

struct Memory {
  std::vector<KeptMarks> kept;       // On engines other than the one in use.
  std::weak_ptr<const void> in_use;  // For which engine the marks in use are, while it lives.
};

// What the slow path remembers for this thread. It belongs to a key of the thread and not to a
// thread_local with a destructor, since the destructors of other thread_locals may call engines.
Memory& this_memory() {
  static thread_local constinit Memory* mine = nullptr;
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    ORDO_CHECK(pthread_key_create(&made, [](void*) { delete std::exchange(mine, nullptr); }) == 0);
    return made;
  }();
  if (mine == nullptr) {
    mine = new Memory;
    ORDO_CHECK(pthread_setspecific(key, mine) == 0);
  }
  return *mine;
}

}  // namespace

void Caller::switch_slowly(std::uint64_t engine, const std::shared_ptr<const void>& alive) {
  Memory& memory = this_memory();
  std::vector<KeptMarks>& kept = memory.kept;
  std::erase_if(kept, [](const KeptMarks& other) { return other.alive.expired(); });
  if (marks_.any() && !memory.in_use.expired()) kept.push_back({marks_, memory.in_use});
  marks_ = PartitionMarks{.engine = engine};
  const auto found = std::find_if(kept.begin(), kept.end(), [&](const KeptMarks& other) {
    return other.marks.engine == engine;
  });
  if (found != kept.end()) {
    marks_ = found->marks;
    kept.erase(found);
  }
  memory.in_use = alive;
  submits_left_ = 0;
}

std::uint64_t next_engine_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace ordo::engine
