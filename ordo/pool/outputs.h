// Outputs: room for what one item produced: nothing, one value in place, or a vector.
//
// A process function may return an Out, an optional, a vector or nothing. The pool must keep any
// of them until it is released, without allocating, so the three share one place. Which of them is
// there, the owner of the place remembers (Produced), next to what else it knows of the item.
//
// Threads: one owner at a time.
// Bounds:  the larger of an Out and a vector; the vector's own storage is the process function's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "ordo/core/check.h"

namespace ordo::pool {

// How an item ended, and what its place therefore holds.
enum class Produced : std::uint8_t {
  nothing = 1,  // Done without output.
  one,
  many,
  failed,
};

template <class Out>
class Outputs {
 public:
  Outputs() = default;
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  // Each put builds what a process function returned. REQUIRES: the place is empty.
  Produced put_one(Out&& value) {
    ::new (static_cast<void*>(&place_)) Out(std::move(value));
    return Produced::one;
  }
  Produced put_optional(std::optional<Out>&& value) {
    if (!value) return Produced::nothing;
    return put_one(std::move(*value));
  }
  Produced put_many(std::vector<Out>&& values) {
    if (values.empty()) return Produced::nothing;
    ::new (static_cast<void*>(&place_)) std::vector<Out>(std::move(values));
    return Produced::many;
  }

  // REQUIRES: the last put returned the Produced that belongs to the name.
  Out& one() { return *std::launder(reinterpret_cast<Out*>(&place_)); }
  std::vector<Out>& many() { return *std::launder(reinterpret_cast<std::vector<Out>*>(&place_)); }

  const std::vector<Out>& many() const {
    return *std::launder(reinterpret_cast<const std::vector<Out>*>(&place_));
  }

  std::size_t count(Produced produced) const {
    if (produced == Produced::one) return 1;
    return produced == Produced::many ? many().size() : 0;
  }

  // Takes output number `index`. REQUIRES: index < count(produced), and each is taken once.
  Out take(Produced produced, std::size_t index) {
    if (produced == Produced::one) return std::move(one());
    ORDO_CHECK(produced == Produced::many);
    return std::move(many()[index]);
  }

  // Empties the place.
  void clear(Produced produced) {
    if (produced == Produced::one) std::destroy_at(&one());
    if (produced == Produced::many) std::destroy_at(&many());
  }

 private:
  // For its size and alignment; never made.
  union Either {
    Out one;
    std::vector<Out> many;
  };

  alignas(Either) std::byte place_[sizeof(Either)];
};

}  // namespace ordo::pool
