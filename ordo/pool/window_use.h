// window_use(): how much of a window is in use, for one who looks on while both its ends move.
//
//   const WindowUse use = window_use([&] { return line.head(); }, tail);
//   stats.window_used = use.used;   // Never above the window.
//
// The two ends cannot be read at once. Read the other way round, whatever is released and admitted
// again between the two looks is counted on top of a full window; read this way, it is not counted.
//
// Threads: any.
// Cost:    two loads.
#pragma once

#include <atomic>
#include <cstdint>

namespace ordo::pool {

struct WindowUse {
  std::uint64_t tail = 0;  // The first item that was not released,
  std::uint64_t used = 0;  // and how many from there on had been admitted a moment before.
};

// `head()` is the number of items admitted, `tail` of those released.
template <class Head, class Tail>
WindowUse window_use(Head head, const Tail& tail) {
  const std::uint64_t admitted = head();
  const std::uint64_t released = tail.load(std::memory_order_acquire);
  return {released, admitted > released ? admitted - released : 0};
}

}  // namespace ordo::pool
