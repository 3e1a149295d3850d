// Every schedule of small cases of the hand-over of a partition, and the faults that must be found.
//
// Callers add a task each, raise the flag and try to run the partition; its own thread sleeps until
// it is needed, as in Partition. A caller runs one task at most and leaves the rest to the thread.
// A lost wake-up shows as a deadlock: a task is left, and the own thread sleeps.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/engine/baton.h"
#include "ordo/runtime/event_count.h"
#include "tests/support/expect_schedules.h"

namespace ordo::engine {
namespace {

using test::explored_checkpoint;
using test::explored_failure;
using test::ExploredAtomic;
using test::ExploredAtomics;
using Bodies = std::vector<std::function<void()>>;

template <std::size_t kCallers, class TheBaton = BasicBaton<ExploredAtomics>,
          class TheFlag = BasicFlag<ExploredAtomics>>
struct Relay {
  TheBaton baton;
  TheFlag flag;
  BasicEventCount<ExploredAtomics> bell;
  std::array<ExploredAtomic<int>, kCallers> tasks;  // 0: not there; 1: submitted; 2: done.
  ExploredAtomic<bool> left{false};
  ExploredAtomic<bool> stopped{false};
  ExploredAtomic<int> owners{0};

  bool has_work() const { return flag.is_up() || left.load(std::memory_order_acquire); }

  // A turn of the owner: runs up to `count_max` tasks and says whether there are more.
  void run(std::size_t count_max) {
    if (owners.fetch_add(1) != 0) explored_failure("two owners at the same time");
    if (flag.take() || left.load(std::memory_order_relaxed)) {
      std::size_t count = 0;
      std::size_t done = 0;
      bool more = false;
      for (auto& task : tasks) {
        const int state = task.load(std::memory_order_acquire);
        if (state == 1 && count == count_max) more = true;
        if (state == 1 && count < count_max) {
          task.store(2, std::memory_order_relaxed);
          ++count;
          ++done;
        } else if (state == 2) {
          ++done;
        }
      }
      left.store(more, std::memory_order_release);
      if (done == kCallers) {
        stopped.store(true, std::memory_order_seq_cst);
        bell.notify_all();
      }
    }
    owners.fetch_sub(1);
  }

  void call(std::size_t number) {
    tasks[number].store(1, std::memory_order_release);
    flag.raise();
    const Pass pass = baton.pass(
        1, [this] { run(1); }, [this] { return has_work(); });
    explored_checkpoint(100 + static_cast<std::uint64_t>(pass));
    if (pass == Pass::left) bell.notify_one();
    explored_checkpoint(200);
  }

  // One who may not run the partition: a token that is used, or a handler of another partition.
  void post(std::size_t number) {
    tasks[number].store(1, std::memory_order_release);
    flag.raise();
    bell.notify_one();
    explored_checkpoint(300);
  }

  void serve() {
    while (true) {
      explored_checkpoint(1);
      if (stopped.load(std::memory_order_acquire)) break;
      const Pass pass = baton.pass(
          1, [this] { run(kCallers); }, [this] { return has_work(); });
      explored_checkpoint(10 + static_cast<std::uint64_t>(pass));
      if (pass == Pass::left) continue;
      const auto ticket = bell.prepare();
      explored_checkpoint(100 + ticket);
      if (stopped.load(std::memory_order_acquire) || (has_work() && !baton.held())) {
        explored_checkpoint(2);
        bell.cancel();
        continue;
      }
      explored_checkpoint(1000 + ticket);
      bell.wait(ticket);
    }
    explored_checkpoint(3);
  }

  Bodies threads() {
    Bodies all{[this] { serve(); }};
    for (std::size_t number = 0; number < kCallers; ++number)
      all.emplace_back([this, number] { call(number); });
    return all;
  }
  std::string check() {
    for (auto& task : tasks) {
      if (task.load() != 2) return "a task was not run";
    }
    return "";
  }
};

TEST(BatonSchedules, OneCallerAndTheOwnThreadForgetNothing) {
  ORDO_EXPECT_RIGHT(Relay<1>, {});
  ORDO_EXPECT_RIGHT(Relay<1>, {.store_buffers = true});
}

TEST(BatonSchedules, TwoCallersAndTheOwnThreadForgetNothing) {
  ORDO_EXPECT_RIGHT(Relay<2>, {});
}

TEST(BatonSchedules, TwoCallersWithStoreBuffersForgetNothing) {
  ORDO_EXPECT_RIGHT(Relay<2>, {.store_buffers = true});
}

// The last of the callers only posts.
struct PostedRelay : Relay<2> {
  Bodies threads() {
    return {[this] { serve(); }, [this] { call(0); }, [this] { post(1); }};
  }
};

TEST(BatonSchedules, WhatIsPostedWhileACallerRunsIsNotForgotten) {
  ORDO_EXPECT_RIGHT(PostedRelay, {});
  ORDO_EXPECT_RIGHT(PostedRelay, {.store_buffers = true});
}

// Planted faults. Each is one line of BasicBaton or BasicFlag, changed.
enum class Fault { look_before_swap, plain_let_go, no_look_after };

template <Fault kFault>
class FaultyBaton {
 public:
  template <class Work, class HasWork>
  Pass pass(int /*rounds*/, Work&& work, HasWork&& has_work) {
    // A look that is not a read-modify-write saves an exchange, and loses the task.
    if (kFault == Fault::look_before_swap && held_.load()) return Pass::elsewhere;
    if (held_.exchange(true)) return Pass::elsewhere;
    work();
    if (kFault == Fault::plain_let_go) {
      held_.store(false, std::memory_order_release);
    } else {
      held_.exchange(false);
    }
    if (kFault == Fault::no_look_after) return Pass::done;
    return has_work() ? Pass::left : Pass::done;
  }
  bool held() { return held_.load(); }

 private:
  ExploredAtomic<bool> held_{false};
};

class FaultyFlag : public BasicFlag<ExploredAtomics> {
 public:
  void raise() { up_.store(true, std::memory_order_release); }
  bool take() {
    if (!up_.load()) return false;
    up_.store(false, std::memory_order_release);
    return true;
  }
  bool is_up() const { return up_.load(); }

 private:
  ExploredAtomic<bool> up_{false};
};

using LookBeforeSwap = Relay<2, FaultyBaton<Fault::look_before_swap>>;
using PlainLetGo = Relay<2, FaultyBaton<Fault::plain_let_go>>;
using NoLookAfter = Relay<2, FaultyBaton<Fault::no_look_after>>;
using PlainTake = Relay<2, BasicBaton<ExploredAtomics>, FaultyFlag>;

TEST(BatonSchedules, AnAttemptThatOnlyLooksLosesATask) {
  ORDO_EXPECT_WRONG(LookBeforeSwap, {.store_buffers = true}, "deadlock");
}

TEST(BatonSchedules, LettingGoByAPlainStoreLosesATask) {
  ORDO_EXPECT_WRONG(PlainLetGo, {.store_buffers = true}, "deadlock");
}

TEST(BatonSchedules, NotLookingAfterLettingGoLosesATask) {
  ORDO_EXPECT_WRONG(NoLookAfter, {}, "deadlock");
}

TEST(BatonSchedules, TakingTheFlagDownByAPlainStoreLosesATask) {
  ORDO_EXPECT_WRONG(PlainTake, {.store_buffers = true}, "deadlock");
}

}  // namespace
}  // namespace ordo::engine
