// PartitionEngine: tasks of one correlation id one after the other, ids in parallel, one writer
// per partition, and a refusal at once when there is no room.
//
//   struct Handler {
//     std::map<CorrelationId, Position> positions;          // the partition's own: no lock
//     void handle(const Trade& trade, const TaskTurn& turn) { positions[turn.id].add(trade); }
//     void finished(Trade&, const TaskTurn&) noexcept {}
//     void failed(Trade&, const TaskTurn&, std::exception_ptr) noexcept {}
//   };
//   PartitionEngine<Trade, Handler> engine({}, [](std::size_t) { return Handler(); });
//   if (engine.post(account, std::move(trade)).entry != Entry::admitted) try_again_later();
//   auto left = engine.drain(5s);                           // what could not be done in time
//
// A correlation id above zero belongs to one partition for ever: the hash of the id decides. Its
// tasks run in the order of their submit() calls, and no two of them at the same time. Ids up to
// zero are uncorrelated: they go round the partitions, in no order, and wait for nobody. What a
// handler may have is in handler.h, how it can end a task later in token.h.
//
// Submit many, flush once: submit() only takes in; flush() lets run what this thread submitted.
// post() is both for one task. With callers_run the thread in flush() runs idle partitions itself,
// which saves waking another thread and moving the tasks to another core.
//
// Refusals are decided in submit(), exactly, also while a handler is stuck. The budget of a task is
// given back before its batch ends, hence before its answer can reach anybody.
//
// Threads: `partitions` of its own. All calls: any thread, also from handlers, but drain() and the
//          destructor not from a handler.
//          Tasks are moved and destroyed under its locks: what a Task does then must be short and
//          must not call the engine.
// Bounds:  EngineOptions; docs/limits.md. A refused task is not kept.
// Cost:    engine_bench.cc.
// Errors:  bad options: std::invalid_argument, naming the field. Nothing else throws.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "ordo/core/clock.h"
#include "ordo/core/hash.h"
#include "ordo/engine/caller.h"
#include "ordo/engine/handler.h"
#include "ordo/engine/options.h"
#include "ordo/engine/partition.h"
#include "ordo/engine/report.h"
#include "ordo/engine/settings.h"
#include "ordo/engine/token.h"

namespace ordo {

template <class Task, class Handler>
class PartitionEngine {
  static_assert(std::is_nothrow_move_constructible_v<Task>);
  static_assert(std::is_nothrow_destructible_v<Task>);
  static_assert(engine::TaskHandler<Handler, Task>,
                "handle(), and finished() and failed() that are noexcept: see handler.h");

 public:
  // make_handler(partition) gives the handler of each partition, as a Handler or a unique_ptr.
  template <class MakeHandler>
  requires std::invocable<MakeHandler&, std::size_t> PartitionEngine(const EngineOptions& options,
                                                                     MakeHandler&& make_handler)
      : clock_(options.clock != nullptr ? *options.clock : system_clock()),
        round_(options.round_first) {
    engine::check_options(options);
    for (std::size_t index = 0; index < options.partitions; ++index) {
      partitions_.push_back(std::make_unique<Partition>(static_cast<std::uint32_t>(index), options,
                                                        clock_, made(make_handler, index), bell_));
    }
    for (auto& partition : partitions_)
      partition->start(options.name);
  }
  PartitionEngine(const PartitionEngine&) = delete;
  PartitionEngine& operator=(const PartitionEngine&) = delete;

  // Waits for handlers that have begun, for as long as they take; what has not begun is dropped.
  // Call drain() before, to have it done or listed.
  ~PartitionEngine() {
    (void)drain(clock_.now());
    for (auto& partition : partitions_)
      partition->request_stop();
  }

  // Takes `task` in behind earlier ones of its id; never blocks. Refused: `task` is whole. It may
  // run at once and need not before flush().
  Submitted submit(CorrelationId id, Task&& task) {
    engine::Caller& caller = this_caller();
    const Submitted submitted = id > 0
                                    ? submit_correlated(id, std::move(task), caller.now(clock_))
                                    : submit_uncorrelated(id, std::move(task), caller.now(clock_));
    // Where there was no room, flush() looks too: those who took it may never flush.
    if (submitted.entry == Entry::admitted || submitted.entry == Entry::busy) [[likely]]
      caller.mark(submitted.partition);
    if (submitted.entry != Entry::admitted) [[unlikely]]
      partitions_[submitted.partition]->refuse(submitted.entry);
    return submitted;
  }

  // Lets all run that this thread has submitted, and what was in its way where its partition was
  // busy: wakes their partitions, or runs them here.
  void flush() {
    engine::Caller& caller = this_caller();
    caller.end_burst();
    caller.take_marks([this](std::size_t partition) { partitions_[partition]->flush(); });
  }

  // As flush(), but never runs anything here, for a caller that has something better to do.
  void wake() {
    engine::Caller& caller = this_caller();
    caller.end_burst();
    caller.take_marks([this](std::size_t partition) { partitions_[partition]->wake(); });
  }

  // submit(), and a flush() of that partition alone.
  Submitted post(CorrelationId id, Task&& task) {
    const Submitted submitted = submit(id, std::move(task));
    engine::Caller& caller = this_caller();
    caller.end_burst();
    if (submitted.entry == Entry::admitted || submitted.entry == Entry::busy) {
      caller.unmark(submitted.partition);
      partitions_[submitted.partition]->flush();
    }
    return submitted;
  }

  // Where tasks of `id` go. REQUIRES: id > 0.
  std::uint32_t partition_of(CorrelationId id) const { return partition_of_hash(hash_of(id)); }
  std::size_t partition_count() const { return partitions_.size(); }

  // Refuses new tasks from now on, runs what was admitted, submitted without a flush() included,
  // and returns when all is done, or at the deadline with what is not: that is never run, answered
  // or finished afterwards, and its tokens are over. May be called again, and by several threads;
  // each task is listed once.
  EngineDrain<Task> drain(TimePoint deadline) {
    for (auto& partition : partitions_)
      partition->close();
    {
      std::unique_lock lock(bell_.mutex);
      while (!is_empty() && !clock_.wait_until(lock, bell_.rung, deadline)) {
      }
    }
    EngineDrain<Task> drained;
    for (auto& partition : partitions_) {
      if (!partition->is_empty()) partition->abandon(drained.undone);
    }
    return drained;
  }
  EngineDrain<Task> drain(std::chrono::nanoseconds grace) {
    return drain(engine::saturating_add(clock_.now(), grace));
  }

  EngineStats stats() const {
    EngineStats stats;
    for (const auto& partition : partitions_)
      stats.partitions.push_back(partition->stats());
    return stats;
  }

  // The `n` correlation ids whose heads have been heads for the longest time, those first.
  std::vector<BlockedId> longest_blocked(std::size_t n) const {
    std::vector<BlockedId> blocked;
    for (const auto& partition : partitions_)
      partition->heads(blocked);
    const auto middle = blocked.begin() + static_cast<std::ptrdiff_t>(std::min(n, blocked.size()));
    std::partial_sort(blocked.begin(), middle, blocked.end(),
                      [](const BlockedId& a, const BlockedId& b) {
                        return a.since != b.since ? a.since < b.since : a.id < b.id;
                      });
    blocked.erase(middle, blocked.end());
    return blocked;
  }

  // The handler of a partition, which belongs to that partition: use what it lets others use.
  Handler& handler(std::size_t partition) { return partitions_[partition]->handler(); }

 private:
  using Partition = engine::Partition<Task, Handler>;

  template <class MakeHandler>
  static std::unique_ptr<Handler> made(MakeHandler& make_handler, std::size_t index) {
    if constexpr (std::convertible_to<std::invoke_result_t<MakeHandler&, std::size_t>,
                                      std::unique_ptr<Handler>>) {
      return make_handler(index);
    } else {
      return std::unique_ptr<Handler>(new Handler(make_handler(index)));
    }
  }

  engine::Caller& this_caller() {
    engine::Caller& caller = engine::this_caller();
    caller.switch_to(number_, alive_);
    return caller;
  }

  std::uint32_t partition_of_hash(std::uint64_t hash) const {
    return static_cast<std::uint32_t>(hash_to_bucket(hash, partitions_.size()));
  }

  Submitted submit_correlated(CorrelationId id, Task&& task, TimePoint entered) {
    const std::uint64_t hash = hash_of(id);
    const std::uint32_t partition = partition_of_hash(hash);
    return {partitions_[partition]->submit(id, hash, std::move(task), entered), partition};
  }

  // Round the partitions; one that has no room is passed over, and only if none has, it is busy.
  Submitted submit_uncorrelated(CorrelationId id, Task&& task, TimePoint entered) {
    const std::size_t count = partitions_.size();
    const std::uint64_t turn = round_.fetch_add(1, std::memory_order_relaxed);
    const auto first = static_cast<std::size_t>(turn % count);
    for (std::size_t step = 0; step < count; ++step) {
      const auto partition = static_cast<std::uint32_t>((first + step) % count);
      // NOLINTNEXTLINE(bugprone-use-after-move): a refused task is whole.
      const Entry entry = partitions_[partition]->submit(id, 0, std::move(task), entered);
      if (entry != Entry::busy) return {entry, partition};
    }
    return {Entry::busy, static_cast<std::uint32_t>(first)};
  }

  bool is_empty() const {
    return std::all_of(partitions_.begin(), partitions_.end(),
                       [](const auto& partition) { return partition->is_empty(); });
  }

  Clock& clock_;
  const std::uint64_t number_ = engine::next_engine_number();
  const std::shared_ptr<const void> alive_ = std::make_shared<char>();
  engine::EmptyBell bell_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> round_;
};

}  // namespace ordo
