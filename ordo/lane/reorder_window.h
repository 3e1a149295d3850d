// ReorderWindow: results come in any order and leave in the order in which they were admitted.
//
//   ReorderWindow<Output> window(64);
//   if (auto sequence = window.admit()) start(*sequence, input);   // nothing: full, wait
//   ...
//   window.complete(sequence, output);                             // in any order
//   window.skip(sequence);                                         // no result: fail, timeout
//   while (auto ready = window.pop_ready()) emit(ready->value);    // in order
//
// The bound is kept at admission: a sequence number is given out only while it is less than that
// of the head plus the window. So the head always has its slot, and a full window can never be
// waiting for something that it has no room for.
//
// Threads: none of its own, no locks; call it from the one thread that owns it.
// Bounds:  `window` numbers between admission and release, completed or not.
// Cost:    O(1) (releasing: O(skipped numbers passed)); one slot for each number of the window,
//          allocated at the start and never again.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ordo/core/check.h"
#include "ordo/core/clock.h"

namespace ordo {

template <class T>
class ReorderWindow {
 public:
  struct Ready {
    std::uint64_t sequence;
    T value;
  };

  // The number that everything behind it waits for.
  struct Head {
    std::uint64_t sequence;
    TimePoint since;            // It has been the head since then.
    bool is_completed;          // Then it waits for pop_ready(); else for complete() or skip().
    std::size_t behind_count;   // Admitted after it.
    std::size_t waiting_count;  // Of these, completed and held back by it.
  };

  // REQUIRES: window >= 1.
  explicit ReorderWindow(std::size_t window, std::uint64_t first_sequence = 0)
      : window_(window),
        next_(first_sequence),
        end_(first_sequence) {
    ORDO_CHECK(window > 0);
    slots_.resize(std::bit_ceil(window));
  }

  // The next sequence number, or nothing while the window is full.
  std::optional<std::uint64_t> admit(TimePoint now = {}) {
    if (is_full()) return std::nullopt;
    if (next_ == end_) head_since_ = now;
    slot(end_).state = State::open;
    return end_++;
  }

  // Keeps `value` until it is its turn. Returns false, and ignores the value, when it is late: the
  // number was skipped.
  // REQUIRES: `sequence` was admitted and not completed before.
  bool complete(std::uint64_t sequence, T value) {
    ORDO_CHECK(sequence < end_);
    if (sequence < next_ || slot(sequence).state == State::skipped) return false;
    ORDO_CHECK(slot(sequence).state == State::open);
    slot(sequence).value.emplace(std::move(value));
    slot(sequence).state = State::completed;
    ++completed_count_;
    return true;
  }

  // Completes `sequence` with nothing: it no longer holds the line, and a value that comes later
  // is late. Returns false when there is nothing to skip: it was completed or skipped before.
  // REQUIRES: `sequence` was admitted.
  bool skip(std::uint64_t sequence, TimePoint now = {}) {
    ORDO_CHECK(sequence < end_);
    if (sequence < next_ || slot(sequence).state != State::open) return false;
    slot(sequence).state = State::skipped;
    if (sequence == next_) pass_skipped(now);
    return true;
  }

  // Takes out the value of the head if it is completed; the next number becomes the head.
  std::optional<Ready> pop_ready(TimePoint now = {}) {
    if (!has_ready()) return std::nullopt;
    Slot& head = slot(next_);
    std::optional<Ready> ready(Ready{next_, std::move(*head.value)});
    head.value.reset();
    --completed_count_;
    ++next_;
    pass_skipped(now);
    return ready;
  }

  // Calls emit(sequence, T&&) for all that can be released, in order. Returns how many.
  template <class Emit>
  std::size_t release(Emit&& emit, TimePoint now = {}) {
    std::size_t count = 0;
    for (; has_ready(); ++count) {
      std::optional<Ready> ready = pop_ready(now);
      emit(ready->sequence, std::move(ready->value));
    }
    return count;
  }

  bool has_ready() const { return next_ != end_ && slot(next_).state == State::completed; }
  bool is_full() const { return end_ - next_ == window_; }
  bool empty() const { return next_ == end_; }

  std::size_t window() const { return window_; }
  std::size_t count() const { return static_cast<std::size_t>(end_ - next_); }
  std::size_t free_count() const { return window_ - count(); }
  std::size_t completed_count() const { return completed_count_; }  // And not released.
  std::uint64_t next_sequence() const { return next_; }             // To be released.
  std::uint64_t end_sequence() const { return end_; }               // To be admitted.

  // Nothing when the window is empty.
  std::optional<Head> head() const {
    if (empty()) return std::nullopt;
    const bool is_completed = has_ready();
    return Head{next_, head_since_, is_completed, count() - 1,
                completed_count_ - (is_completed ? 1 : 0)};
  }

  // Calls visit(sequence, T*) for each number not released, in order; null when it has no value
  // yet. Skipped ones are left out. The account of what is left at shutdown.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::uint64_t sequence = next_; sequence != end_; ++sequence) {
      Slot& each = slot(sequence);
      if (each.state == State::skipped) continue;
      visit(sequence, each.value ? &*each.value : nullptr);
    }
  }

 private:
  enum class State : std::uint8_t { open, completed, skipped };

  struct Slot {
    std::optional<T> value;
    State state = State::open;
  };

  Slot& slot(std::uint64_t sequence) { return slots_[sequence & (slots_.size() - 1)]; }
  const Slot& slot(std::uint64_t sequence) const { return slots_[sequence & (slots_.size() - 1)]; }

  // The head is never a skipped number: skipping gives room even if nobody releases.
  void pass_skipped(TimePoint now) {
    while (next_ != end_ && slot(next_).state == State::skipped)
      ++next_;
    head_since_ = now;
  }

  const std::size_t window_;
  std::uint64_t next_;  // The head: the lowest number not released.
  std::uint64_t end_;   // One more than the highest number admitted.
  std::size_t completed_count_ = 0;
  TimePoint head_since_;
  std::vector<Slot> slots_;  // A power of two of them; each belongs to one number of the window.
};

}  // namespace ordo
