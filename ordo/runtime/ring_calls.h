// RingCalls: the calls of a ring that follow from its others, written once for all rings.
//
// A ring derives from it and gives it try_push(), push_some(), try_consume(), consume(), closed()
// and wait_for_room(); it gets the waiting pushes and the pops:
//
//   class SpscRing : public RingCalls<SpscRing, T> { friend class RingCalls<SpscRing, T>; ... };
//
// Threads, bounds, cost: the ring's. It has no state.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

namespace ordo {

template <class Ring, class T>
class RingCalls {
 public:
  // As try_push(), but waits while the ring is full. False, and nothing taken, once closed.
  template <class U>
  bool push(U&& value) {
    // NOLINTNEXTLINE(bugprone-use-after-move): a push that fails takes nothing.
    while (!ring().try_push(std::forward<U>(value))) {
      if (ring().closed()) return false;
      ring().wait_for_room();
    }
    return true;
  }

  // As try_push_n(), but waits for room, so that items of other producers may come between parts.
  // Returns fewer than `count` only when closed.
  template <std::input_iterator Iterator>
  std::size_t push_n(Iterator first, std::size_t count) {
    std::size_t pushed = 0;
    while (pushed < count) {
      pushed += ring().push_some(first, count - pushed);
      if (pushed == count || ring().closed()) break;
      ring().wait_for_room();
    }
    return pushed;
  }

  // The oldest item, or nothing when none is ready at the front.
  std::optional<T> try_pop() {
    std::optional<T> out;
    ring().try_consume(1, [&out](T& value) { out.emplace(std::move(value)); });
    return out;
  }

  // As try_pop(), but waits for an item. Nothing means closed and drained.
  std::optional<T> pop() {
    std::optional<T> out;
    ring().consume(1, [&out](T& value) { out.emplace(std::move(value)); });
    return out;
  }

 private:
  friend Ring;
  RingCalls() = default;

  Ring& ring() { return static_cast<Ring&>(*this); }
};

}  // namespace ordo
