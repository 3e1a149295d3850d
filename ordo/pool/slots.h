// Slots: the places of a SlotRing, where an item stays from push to release.
//
// A place has three parts, in three arrays, so that whoever looks only at marks touches few cache
// lines: the mark, the input, the outputs. The mark says whose the place is: it holds the number of
// the item that last ended there and how it ended, so a place is never reset, only overtaken by the
// next item that ends in it.
//
// Threads: marks from any; input and outputs of a place belong to one at a time (see SlotRing).
// Bounds:  `capacity` items. REQUIRES: a power of two.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ordo/core/check.h"
#include "ordo/pool/input.h"
#include "ordo/pool/outputs.h"

namespace ordo::pool {

template <class In, class Out>
class Slots {
 public:
  using Mark = std::uint64_t;  // The item's number, and in the low bits how far it is.
  static constexpr Mark kPhaseBits = 3;
  static constexpr Mark kTaken = 5;      // Beyond Produced: its outputs are somebody's already.
  static constexpr Mark kAbandoned = 6;  // stop() listed it while its handler ran.
  static constexpr Mark kReporting = 7;  // It failed, and is being reported.

  explicit Slots(std::size_t capacity)
      : mask_(capacity - 1),
        marks_(new std::atomic<Mark>[capacity] {}),
        inputs_(new Room[capacity]),
        outputs_(new Outputs<Out>[capacity]) {
    ORDO_CHECK(std::has_single_bit(capacity));
  }

  static Mark make_mark(std::uint64_t item, Mark phase) { return (item << kPhaseBits) | phase; }
  static Mark make_mark(std::uint64_t item, Produced produced) {
    return make_mark(item, static_cast<Mark>(produced));
  }
  // How `item` ended, if it did and its outputs are still there; Produced{} otherwise.
  static Produced produced(std::uint64_t item, Mark value) {
    const Mark phase = value - (item << kPhaseBits);  // Large if it is another item's.
    return phase < kTaken ? static_cast<Produced>(phase) : Produced{};
  }
  Produced produced(std::uint64_t item) const {
    return produced(item, mark(item).load(std::memory_order_seq_cst));
  }
  bool is_done(std::uint64_t item) const { return produced(item) != Produced{}; }

  std::atomic<Mark>& mark(std::uint64_t item) { return marks_[item & mask_]; }
  const std::atomic<Mark>& mark(std::uint64_t item) const { return marks_[item & mask_]; }
  In& input(std::uint64_t item) { return inputs_[item & mask_].value; }
  Outputs<Out>& outputs(std::uint64_t item) { return outputs_[item & mask_]; }
  const Outputs<Out>& outputs(std::uint64_t item) const { return outputs_[item & mask_]; }

  std::size_t capacity() const { return mask_ + 1; }

  void build_input(std::uint64_t item, const Input<In>& input) {
    input.build(&inputs_[item & mask_]);
  }
  void destroy(std::uint64_t item, Produced produced) {
    outputs(item).clear(produced);
    std::destroy_at(&input(item));
  }

 private:
  union Room {
    Room() {}   // Built later, by build_input(),
    ~Room() {}  // and destroyed before, by destroy().
    In value;
  };

  const std::size_t mask_;
  std::unique_ptr<std::atomic<Mark>[]> marks_;
  std::unique_ptr<Room[]> inputs_;
  std::unique_ptr<Outputs<Out>[]> outputs_;
};

}  // namespace ordo::pool
