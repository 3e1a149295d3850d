// Caller: what a thread remembers of its own calls of engines, between submit() and flush().
//
//   Caller& caller = this_caller();
//   caller.switch_to(engine_number, alive);      // free while a thread uses one engine
//   caller.mark(partition);                      // flush() will look there
//   caller.take_marks([&](std::size_t partition) { ... });
//
// Threads: one of each thread.
// Bounds:  one entry for each living engine with marks, beyond the one in use.
// Cost:    no atomics; the thread's own memory.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "ordo/core/clock.h"
#include "ordo/engine/settings.h"

namespace ordo::engine {

struct PartitionMarks {
  std::uint64_t engine = 0;  // Whose; numbers are never used again. 0: nobody's.
  std::array<std::uint64_t, kPartitionsMax / 64> bits{};

  bool any() const {
    for (const std::uint64_t word : bits) {
      if (word != 0) return true;
    }
    return false;
  }
};

class Caller {
 public:
  // Makes the marks of `engine` the ones in use; those of another one are kept while it lives.
  void switch_to(std::uint64_t engine, const std::shared_ptr<const void>& alive) {
    if (marks_.engine != engine) [[unlikely]]
      switch_slowly(engine, alive);
  }

  void mark(std::size_t partition) { marks_.bits[partition / 64] |= bit_of(partition); }
  void unmark(std::size_t partition) { marks_.bits[partition / 64] &= ~bit_of(partition); }

  // Calls visit(partition) for each mark and forgets them all. visit may submit and mark again.
  template <class Visit>
  void take_marks(Visit&& visit) {
    const auto bits = std::exchange(marks_.bits, {});
    for (std::size_t i = 0; i < bits.size(); ++i) {
      for (std::uint64_t word = bits[i]; word != 0; word &= word - 1) {
        visit(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      }
    }
  }

  // The time, read once for a burst of submits.
  TimePoint now(const Clock& clock) {
    if (submits_left_ == 0) {
      now_ = clock.now();
      submits_left_ = kSubmitsPerReading;
    }
    --submits_left_;
    return now_;
  }
  void end_burst() { submits_left_ = 0; }

  // The partition this thread is running just now, or nothing.
  const void* running() const { return running_; }
  void set_running(const void* partition) { running_ = partition; }

 private:
  static std::uint64_t bit_of(std::size_t partition) { return std::uint64_t{1} << partition % 64; }
  void switch_slowly(std::uint64_t engine, const std::shared_ptr<const void>& alive);

  PartitionMarks marks_;
  TimePoint now_;
  unsigned submits_left_ = 0;
  const void* running_ = nullptr;
};

inline Caller& this_caller() {
  static thread_local constinit Caller caller;
  return caller;
}

// A number no other engine of this process has had.
std::uint64_t next_engine_number();

}  // namespace ordo::engine
