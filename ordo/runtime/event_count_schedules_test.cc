// Every schedule of small cases of EventCount, and the faults that must be found.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/runtime/event_count.h"
#include "tests/support/expect_schedules.h"

namespace ordo {
namespace {

using test::explored_checkpoint;
using test::ExploredAtomic;
using test::ExploredAtomics;
using test::ExploreOptions;
using ExploredEventCount = BasicEventCount<ExploredAtomics>;
using Bodies = std::vector<std::function<void()>>;

// Sleeps until ready(), as users of an event count must. The checkpoints name all it remembers.
template <class Ready>
void await(ExploredEventCount& event, Ready ready) {
  while (true) {
    explored_checkpoint(1);
    if (ready()) break;
    const auto ticket = event.prepare();
    explored_checkpoint(10 + 2 * ticket);
    if (ready()) {
      explored_checkpoint(2);
      event.cancel();
      break;
    }
    explored_checkpoint(11 + 2 * ticket);
    event.wait(ticket);
  }
  explored_checkpoint(3);
}

// One thread waits for the flags of kNotifierCount others.
template <int kNotifierCount>
struct OneWaiter {
  ExploredEventCount event;
  std::array<ExploredAtomic<int>, kNotifierCount> flags;

  bool ready() const {
    for (const auto& flag : flags) {
      if (flag.load(std::memory_order_acquire) == 0) return false;
    }
    return true;
  }
  Bodies threads() {
    Bodies all{[this] { await(event, [this] { return ready(); }); }};
    for (auto& flag : flags) {
      all.emplace_back([this, &flag] {
        flag.store(1, std::memory_order_release);
        event.notify_one();
      });
    }
    return all;
  }
  std::string check() { return event.has_waiters() ? "a waiter is left over" : ""; }
};

// Two threads each take one item; a third adds two, with a notify_one() for each.
struct Handover {
  ExploredEventCount event;
  ExploredAtomic<int> items{0};

  bool take() {
    int seen = items.load(std::memory_order_acquire);
    while (seen > 0) {
      if (items.compare_exchange_strong(seen, seen - 1)) return true;
    }
    return false;
  }
  void add_two() {
    for (unsigned item = 0; item < 2; ++item) {
      items.fetch_add(1);
      explored_checkpoint(10 + 2 * item);
      event.notify_one();
      explored_checkpoint(11 + 2 * item);
    }
  }
  Bodies threads() {
    auto consumer = [this] { await(event, [this] { return take(); }); };
    return {consumer, consumer, [this] { add_two(); }};
  }
  std::string check() { return items.load() == 0 ? "" : "an item is left over"; }
};

// Two threads wait for one flag, one notify_all() serves both.
struct Broadcast {
  ExploredEventCount event;
  ExploredAtomic<int> flag{0};

  Bodies threads() {
    auto waiter = [this] { await(event, [this] { return flag.load() != 0; }); };
    return {waiter, waiter, [this] {
              flag.store(1, std::memory_order_release);
              event.notify_all();
            }};
  }
  std::string check() { return event.has_waiters() ? "a waiter is left over" : ""; }
};

// One impatient consumer beside a patient one: giving up must not swallow the other's wake-up.
struct Impatient : Handover {
  bool impatient_took = false;

  Bodies threads() {
    return {[this] { await(event, [this] { return take(); }); }, [this] { wait_once(); },
            [this] { add_two(); }};
  }
  void wait_once() {
    const auto ticket = event.prepare();
    explored_checkpoint(10 + 2 * ticket);
    impatient_took = take();
    if (impatient_took) {
      explored_checkpoint(1);
      event.cancel();
      explored_checkpoint(2);
      return;
    }
    explored_checkpoint(11 + 2 * ticket);
    (void)event.wait_for(ticket, std::chrono::seconds(1));
    explored_checkpoint(3);
    impatient_took = take();
    explored_checkpoint(impatient_took ? 4 : 5);
  }
  std::string check() {
    const int expected = impatient_took ? 0 : 1;
    return items.load() == expected ? "" : "an item was lost or taken twice";
  }
};

TEST(EventCountSchedules, OneWaiterOneNotifierNeverSleepForEver) {
  ORDO_EXPECT_RIGHT(OneWaiter<1>, {});
  ORDO_EXPECT_RIGHT(OneWaiter<1>, {.store_buffers = true});
}

TEST(EventCountSchedules, OneWaiterTwoNotifiersNeverSleepForEver) {
  ORDO_EXPECT_RIGHT(OneWaiter<2>, {});
  ORDO_EXPECT_RIGHT(OneWaiter<2>, {.store_buffers = true});
}

TEST(EventCountSchedules, OneNotificationPerItemServesTwoConsumers) {
  ORDO_EXPECT_RIGHT(Handover, {});
}

TEST(EventCountSchedules, NotifyAllReachesBothWaiters) {
  ORDO_EXPECT_RIGHT(Broadcast, {});
  ORDO_EXPECT_RIGHT(Broadcast, {.store_buffers = true});
}

TEST(EventCountSchedules, AWaiterThatTimesOutTakesNobodysWakeUp) {
  ORDO_EXPECT_RIGHT(Impatient, {});
}

TEST(EventCountSchedules, WithoutTheHeavyFenceAStoreBufferLosesTheWakeUp) {
  ORDO_EXPECT_WRONG(OneWaiter<1>, (ExploreOptions{.store_buffers = true, .membarrier = false}),
                    "deadlock");
}

TEST(EventCountSchedules, WithoutStoreBuffersTheMissingFenceWouldGoUnseen) {
  ORDO_EXPECT_RIGHT(OneWaiter<1>, {.membarrier = false});
}

// Planted fault: the waiter sleeps without looking at its condition after prepare().
struct NoSecondLook : OneWaiter<1> {
  Bodies threads() {
    Bodies all = OneWaiter<1>::threads();
    all[0] = [this] {
      while (!ready())
        event.wait(event.prepare());
    };
    return all;
  }
};

TEST(EventCountSchedules, WaitingWithoutASecondLookLosesTheWakeUp) {
  ORDO_EXPECT_WRONG(NoSecondLook, {}, "deadlock");
}

// Planted fault: the notifier tells first and acts afterwards.
struct NotifyBeforeAct : OneWaiter<1> {
  Bodies threads() {
    Bodies all = OneWaiter<1>::threads();
    all[1] = [this] {
      event.notify_one();
      flags[0].store(1, std::memory_order_release);
    };
    return all;
  }
};

TEST(EventCountSchedules, NotifyingBeforeActingLosesTheWakeUp) {
  ORDO_EXPECT_WRONG(NotifyBeforeAct, {}, "deadlock");
}

}  // namespace
}  // namespace ordo
