// explore<World>(): runs a small concurrent case under EVERY schedule, and says which one breaks
// it.
//
// The code under test takes its atomics from a policy (ordo/runtime/atomics.h). Given
// ExploredAtomics, its threads become fibers of one real thread that stop before each atomic
// operation; the explorer decides who goes on, runs the case to its end, and begins again with
// another decision, depth first, until all are tried.
//
//   struct World {                                      // built afresh for each schedule
//     MpscRing<int, BlockWait, ExploredAtomics> ring{2};
//     std::vector<std::function<void()>> threads();     // what runs in parallel
//     std::string check();                              // after the last step; empty = right
//   };
//   Exploration found = explore<World>({.store_buffers = true});
//   EXPECT_EQ(found.failure, "");
//
// What it finds: a failed check(), a call of explored_failure(), and every state in which threads
// are left but none can go on (a lost wake-up shows as such a deadlock).
//
// store_buffers adds what x86 really does (total store order): a store that is not seq_cst waits in
// its thread's buffer, seen by that thread only, until the explorer lets the oldest one out. A
// read-modify-write or a futex call waits for an empty buffer; heavy_fence() empties all buffers
// (membarrier); light_fence() does nothing at all. Weaker orders than x86's are not explored.
//
// Why it ends: threads are deterministic, so a state is what the atomics hold, what the buffers
// hold, and what each thread has read so far. A state met before is not entered again; `schedules`
// counts the complete schedules this covers. A loop that waits must call pause() or yield(): the
// fiber then rests until another one has changed something.
//
// Rules for a World: threads share atomics only (give payloads an ExploredAtomic to make their
// writing visible to the explorer), do not depend on addresses or time, and own no heap memory
// on their stack (a schedule that leads to a known state is dropped in the middle).
//
// Threads: none; one exploration at a time.
// Bounds:  state_limit states; beyond it the exploration stops and is not `complete`.
// Cost:    5 to 10 us for each execution in a release build.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace ordo::test {

struct ExploreOptions {
  bool store_buffers = false;             // Total store order instead of sequential consistency.
  bool membarrier = true;                 // false: heavy_fence() does nothing (a planted fault).
  std::uint64_t state_limit = 2'000'000;  // Distinct states.
};

struct Exploration {
  std::string failure;             // Empty when every schedule was right.
  std::vector<std::string> trace;  // The steps of the failing schedule.
  bool complete = false;           // All schedules are covered.
  std::uint64_t states = 0;        // Distinct states entered.
  std::uint64_t executions = 0;    // Runs from the beginning.
  double schedules = 0;            // Complete schedules these states stand for.
};

// Ends this schedule and the exploration with `message`. Call it from a thread of a World, which
// goes no further: a text that owns no memory, as the thread's stack is dropped.
void explored_failure(const char* message);

// Says that all this thread remembers is `local_state`: what it has read before does not matter any
// more, so that states differing only in that are one. Call it at the top of a loop or at the end
// of a thread. REQUIRES: what the thread and its World will do depends on local_state and atomics.
void explored_checkpoint(std::uint64_t local_state);

namespace explorer {

// One atomic variable: its value in memory, and who made it (its name in states and traces).
struct Location {
  explicit Location(std::uint64_t initial);
  ~Location();
  Location(const Location&) = delete;
  Location& operator=(const Location&) = delete;

  std::uint64_t value;
  std::uint32_t creator;
  std::uint32_t number;
};

enum class RmwKind : std::uint8_t { exchange, add, bit_or, compare_exchange };

std::uint64_t load(const Location& location);
void store(Location& location, std::uint64_t value, bool sequential);
struct Rmw {
  RmwKind kind;
  std::uint64_t operand;
  std::uint64_t expected = 0;              // compare_exchange stores `operand` only over this.
  std::uint64_t mask = ~std::uint64_t{0};  // The bits the variable has.
};
// Returns the old value.
std::uint64_t modify(Location& location, const Rmw& rmw);
enum class FutexOutcome : std::uint8_t { woken, changed, timed_out };
FutexOutcome futex_wait(Location& location, std::uint64_t expected, bool may_time_out);
void futex_wake(Location& location, std::uint32_t count);
void heavy_fence();
void rest();

// A case with its type forgotten.
struct Case {
  virtual ~Case() = default;
  virtual std::vector<std::function<void()>> threads() = 0;
  virtual std::string check() = 0;
};
Exploration explore(const ExploreOptions& options,
                    const std::function<std::unique_ptr<Case>()>& make_case);

}  // namespace explorer

// std::atomic's interface, one explored step per operation.
template <class T>
class ExploredAtomic {
  static_assert(std::is_integral_v<T>);

 public:
  ExploredAtomic(T initial = T{}) : location_(encode(initial)) {}

  T load(std::memory_order /*order*/ = std::memory_order_seq_cst) const {
    return decode(explorer::load(location_));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    explorer::store(location_, encode(value), order == std::memory_order_seq_cst);
  }
  T exchange(T value, std::memory_order /*order*/ = std::memory_order_seq_cst) {
    return modify(explorer::RmwKind::exchange, value);
  }
  T fetch_add(T value, std::memory_order /*order*/ = std::memory_order_seq_cst) {
    return modify(explorer::RmwKind::add, value);
  }
  T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst) {
    return fetch_add(static_cast<T>(T{0} - value), order);
  }
  T fetch_or(T value, std::memory_order /*order*/ = std::memory_order_seq_cst) {
    return modify(explorer::RmwKind::bit_or, value);
  }
  bool compare_exchange_strong(T& expected, T desired,
                               std::memory_order /*success*/ = std::memory_order_seq_cst,
                               std::memory_order /*failure*/ = std::memory_order_seq_cst) {
    const T old = modify(explorer::RmwKind::compare_exchange, desired, expected);
    if (old == expected) return true;
    expected = old;
    return false;
  }
  bool compare_exchange_weak(T& expected, T desired,
                             std::memory_order success = std::memory_order_seq_cst,
                             std::memory_order failure = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, desired, success, failure);
  }

  explorer::Location& location() { return location_; }

 private:
  static constexpr std::uint64_t kMask = ~std::uint64_t{0} >> (64 - 8 * sizeof(T));
  static std::uint64_t encode(T value) { return static_cast<std::uint64_t>(value) & kMask; }
  static T decode(std::uint64_t value) { return static_cast<T>(value); }

  T modify(explorer::RmwKind kind, T operand, T expected = T{}) {
    return decode(explorer::modify(location_, {kind, encode(operand), encode(expected), kMask}));
  }

  explorer::Location location_;
};

// The atomics policy under exploration.
struct ExploredAtomics {
  template <class T>
  using Atomic = ExploredAtomic<T>;
  using FutexWait = explorer::FutexOutcome;

  static void light_fence() {}
  static void heavy_fence() { explorer::heavy_fence(); }
  static FutexWait futex_wait(Atomic<std::uint32_t>& word, std::uint32_t expected) {
    return explorer::futex_wait(word.location(), expected, false);
  }
  static FutexWait futex_wait_for(Atomic<std::uint32_t>& word, std::uint32_t expected,
                                  std::chrono::nanoseconds /*timeout*/) {
    return explorer::futex_wait(word.location(), expected, true);
  }
  static void futex_wake(Atomic<std::uint32_t>& word, std::uint32_t count) {
    explorer::futex_wake(word.location(), count);
  }
  static void pause() { explorer::rest(); }
  static void pause(int /*times*/) { explorer::rest(); }  // Until others have done something.
  static void yield() { explorer::rest(); }
  static constexpr int kPausesBeforeSleep = 0;
  static constexpr int kYieldsBeforeSleep = 0;
};

// An item whose writing and reading are explored steps, so that an item seen before it is written
// shows as kUnwritten.
class ExploredItem {
 public:
  static constexpr int kUnwritten = -1;
  ExploredItem() = default;
  explicit ExploredItem(int value) noexcept { value_.store(value, std::memory_order_relaxed); }
  ExploredItem(ExploredItem&& other) noexcept : ExploredItem(other.value()) {}
  int value() const { return value_.load(std::memory_order_relaxed); }
  void write(int value) { value_.store(value, std::memory_order_relaxed); }

 private:
  ExploredAtomic<int> value_{kUnwritten};
};

// Tries every schedule of World; see the top of this file.
template <std::default_initializable World>
Exploration explore(const ExploreOptions& options = {}) {
  struct TypedCase final : explorer::Case {
    World world;
    std::vector<std::function<void()>> threads() override { return world.threads(); }
    std::string check() override { return world.check(); }
  };
  return explorer::explore(options, [] { return std::make_unique<TypedCase>(); });
}

}  // namespace ordo::test
