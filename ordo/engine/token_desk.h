// TokenDesk: the tokens of one partition, and the list of those that were used.
//
//   TokenName name = desk->open(lane);            // the partition gives one out
//   desk->use(name, error);                       // any thread, through TaskToken
//   desk->take_used([&](Used used) { ... });      // the partition applies them, oldest use first
//   desk->release(name);                          // and its cell is free for another task
//
// Invariants. A cell belongs to one task in flight, so there are never more than the budget. Its
// word says which token it is (generation), how many copies there are, and whether it is open. A
// token whose name does not fit the word any more is over, and nothing it does has an effect.
// Exactly one call moves a word from open to used; that one writes the error, and puts the cell on
// the list, which needs no memory and cannot be full.
//
// Threads: hold(), drop(), use(), has_used(), late_count(), parker().wake(): any. The others: the
//          owner of the partition; open(), claim() and release() under the lock of its lanes.
// Bounds:  `cell_count_max` tokens. A token may outlive the partition: it keeps the desk alive.
// Cost:    a compare-and-swap for each change of a word, one more to put it on the list.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "ordo/core/clock.h"
#include "ordo/engine/token.h"
#include "ordo/lane/lane.h"
#include "ordo/runtime/atomics.h"
#include "ordo/runtime/parker.h"

namespace ordo::engine {

// Which task a token belongs to.
struct TaskPlace {
  LaneHandle lane;
  bool correlated = false;
};

class TokenDesk {
 public:
  TokenDesk(std::size_t cell_count_max, Clock& clock);

  // A new token with two copies: the handler's, and the partition's own, which it drops when the
  // handler has returned. So a handler that throws is heard before the token it let go of.
  TokenName open(TaskPlace place);
  // Ends the token without putting it on the list. False when it was used already.
  bool claim(TokenName name);
  // The cell is free again. REQUIRES: its token was used or claimed, and is not on the list.
  void release(TokenName name);

  void hold(TokenName name);
  void drop(TokenName name) noexcept;
  bool use(TokenName name, std::exception_ptr error);

  struct Used {
    TokenName name;
    TaskPlace place;
    std::exception_ptr error;
  };
  // Calls apply(Used&&) for each token used since, oldest use first; apply may release it.
  template <class Apply>
  void take_used(Apply&& apply) {
    for (std::uint32_t cell = detach_used(); cell != kNoIndex;) {
      Cell& used = cells_[cell];
      const std::uint32_t next = used.next;
      const std::uint64_t generation = generation_of(used.word.load(std::memory_order_relaxed));
      apply(Used{{cell, generation}, used.place, std::exchange(used.error, nullptr)});
      cell = next;
    }
  }
  bool has_used() const { return first_used_.load(std::memory_order_acquire) != kNoIndex; }

  // Uses that came after the end of their task.
  std::uint64_t late_count() const { return late_count_.load(std::memory_order_relaxed); }

  // Where the partition's own thread sleeps.
  Parker& parker() { return parker_; }

 private:
  using Word = std::uint64_t;
  static constexpr Word kFree = 0;
  static constexpr Word kOpen = 1;
  static constexpr Word kUsed = 2;
  static constexpr Word kStateMask = 3;
  static constexpr Word kOneCopy = Word{1} << 2;
  static constexpr Word kTwoCopies = kOneCopy * 2;
  static constexpr int kGenerationShift = 24;
  static constexpr Word kCopiesMask = (Word{1} << kGenerationShift) - kOneCopy;

  struct Cell {
    std::atomic<Word> word{0};
    TaskPlace place;
    std::exception_ptr error;
    std::uint32_t next = kNoIndex;  // In the list of the used, or of the free.
  };

  static std::uint64_t generation_of(Word word) { return word >> kGenerationShift; }
  static bool is_open(Word word, TokenName name) {
    return (word & kStateMask) == kOpen && generation_of(word) == name.generation;
  }

  void put_on_list(std::uint32_t cell);
  std::uint32_t detach_used();  // The oldest first.

  Parker parker_;
  const std::unique_ptr<Cell[]> cells_;
  const std::uint32_t cell_count_max_;
  std::uint32_t cells_opened_ = 0;  // Cells above this were never used.
  std::uint32_t first_free_ = kNoIndex;
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> first_used_{kNoIndex};  // The latest first.
  std::atomic<std::uint64_t> late_count_{0};
};

}  // namespace ordo::engine
