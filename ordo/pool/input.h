// Input: what push() was given, to be copied or moved into its place once it is admitted.
//
// An input is built exactly once, in the place where it stays, and only if it is taken: a refused
// one is still whole.
//
// Threads: one owner. Refers to the caller's object.
#pragma once

#include <concepts>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace ordo::pool {

// What stop() found admitted and not delivered.
template <class In>
struct Undone {
  std::vector<In> inputs;   // Those that could be copied or moved.
  std::uint64_t count = 0;  // All of them.

  // Counts one, and lists what `input()` refers to.
  template <class Refer>
  void list(Refer input) {
    ++count;
    try {
      inputs.push_back(input());
    } catch (...) {
      return;
    }
  }
};

template <class In>
class Input {
 public:
  static Input moved(In& value) { return Input(&value, nullptr); }
  static Input copied(const In& value) { return Input(nullptr, &value); }

  const In& value() const { return moved_ != nullptr ? *moved_ : *copied_; }

  // The input itself. REQUIRES: neither this nor build() was called before.
  In make() const {
    if constexpr (std::copy_constructible<In>) {
      return moved_ != nullptr ? In(std::move(*moved_)) : In(*copied_);
    } else {
      return std::move(*moved_);
    }
  }

  // Builds the input at `place`. REQUIRES: room for an In and nothing there; as make().
  void build(void* place) const { ::new (place) In(make()); }

 private:
  Input(In* moved, const In* copied) : moved_(moved), copied_(copied) {}

  In* moved_;
  const In* copied_;
};

}  // namespace ordo::pool
