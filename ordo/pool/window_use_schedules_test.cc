// Every schedule of a small window whose ends move while somebody looks on, and the fault that must
// be found.
//
// The pusher admits while there is room, the popper releases what is there, as in SlotRing; neither
// waits, so that every case ends. The onlooker looks once.
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/pool/window_use.h"
#include "tests/support/expect_schedules.h"

namespace ordo::pool {
namespace {

using test::explored_failure;
using test::ExploredAtomic;

struct HeadFirst {
  template <class Head, class Tail>
  static WindowUse look(Head head, const Tail& tail) {
    return window_use(head, tail);
  }
};

// The planted fault: what a full window lets in between the two looks is counted on top of it.
struct TailFirst {
  template <class Head, class Tail>
  static WindowUse look(Head head, const Tail& tail) {
    const std::uint64_t released = tail.load(std::memory_order_acquire);
    return {released, head() - released};
  }
};

template <class Order, std::uint64_t kWindow>
struct Window {
  static constexpr int kTries = 3;
  ExploredAtomic<std::uint64_t> head{0};
  ExploredAtomic<std::uint64_t> tail{0};

  void push() {
    for (int i = 0; i < kTries; ++i) {
      const std::uint64_t next = head.load(std::memory_order_relaxed);
      if (next - tail.load(std::memory_order_acquire) < kWindow) {
        head.store(next + 1, std::memory_order_release);
      }
    }
  }
  void pop() {
    for (int i = 0; i < kTries; ++i) {
      const std::uint64_t item = tail.load(std::memory_order_relaxed);
      if (head.load(std::memory_order_acquire) > item) {
        tail.store(item + 1, std::memory_order_release);
      }
    }
  }
  void look() {
    const auto admitted = [this] { return head.load(std::memory_order_acquire); };
    const WindowUse use = Order::look(admitted, tail);
    if (use.used > kWindow) explored_failure("more in use than the window holds");
    if (use.tail + use.used > head.load()) explored_failure("more in use than was admitted");
  }

  std::vector<std::function<void()>> threads() {
    return {[this] { push(); }, [this] { pop(); }, [this] { look(); }};
  }
  std::string check() { return ""; }
};

using NarrowWindow = Window<HeadFirst, 1>;
using WideWindow = Window<HeadFirst, 2>;
using NarrowWindowTailFirst = Window<TailFirst, 1>;

TEST(WindowUseSchedules, WhoLooksOnSeesNoMoreInUseThanTheWindowHolds) {
  ORDO_EXPECT_RIGHT(NarrowWindow, {});
  ORDO_EXPECT_RIGHT(NarrowWindow, {.store_buffers = true});
  ORDO_EXPECT_RIGHT(WideWindow, {});
}

TEST(WindowUseSchedules, LookingAtTheTailFirstShowsMoreThanTheWindowHolds) {
  ORDO_EXPECT_WRONG(NarrowWindowTailFirst, {}, "more in use than the window holds");
}

}  // namespace
}  // namespace ordo::pool
