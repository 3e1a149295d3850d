// Partition: one ring, one set of lanes, one handler, and one owner at a time.
//
// A loop turn takes what has arrived (up to batch_max), runs ready tasks (up to batch_max of each
// kind, for at most kTurnTimeMax), applies tokens that were used, runs timers that are due, gives
// the budget of what has ended back, and tells the handler that the batch has ended: in that order,
// so that whoever gets an answer can submit again at once.
//
// Three locks, all leaves, none held while a handler runs:
//   the admission's   producers for each task, the owner once for each turn
//   lanes_lock_       the owner before and after each task; stats, longest_blocked() and the end
//                     of drain(), which therefore work while the owner is stuck in a handler
//   the bell's        who drains waits there
//
// Invariants.
//   1. Who holds the baton is the owner: run_turn() and the handler are his alone.
//   2. Consumer side of the ring, lanes, phases and what is counted there: under lanes_lock_.
//   3. A task is in exactly one of: ring, lanes. It leaves the lanes after its answer, or when
//      abandon() has listed it; abandoned_ tells the owner, who then touches no task any more.
//   4. Whoever leaves work behind makes has_work() true first and wakes or looks afterwards
//      (baton.h, parker.h).
//
// Threads: owns one. submit(), flush(), stats() and heads(): any thread.
// Bounds:  `budget` tasks; memory is the ring, and lanes up to the most tasks there ever were.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ordo/core/check.h"
#include "ordo/core/counter.h"
#include "ordo/core/histogram.h"
#include "ordo/engine/admission.h"
#include "ordo/engine/baton.h"
#include "ordo/engine/caller.h"
#include "ordo/engine/handler.h"
#include "ordo/engine/options.h"
#include "ordo/engine/report.h"
#include "ordo/engine/settings.h"
#include "ordo/engine/task_lanes.h"
#include "ordo/engine/token_desk.h"
#include "ordo/runtime/short_lock.h"
#include "ordo/runtime/spsc_ring.h"
#include "ordo/runtime/threads.h"

namespace ordo::engine {

// Where those who drain wait for partitions to become empty.
struct EmptyBell {
  std::mutex mutex;
  std::condition_variable rung;
};

template <class Task, class Handler>
class Partition {
 public:
  Partition(std::uint32_t index, const EngineOptions& options, Clock& clock,
            std::unique_ptr<Handler> handler, EmptyBell& bell)
      : index_(index),
        batch_max_(options.batch_max),
        callers_run_(options.callers_run),
        clock_(clock),
        bell_(bell),
        handler_(std::move(handler)),
        desk_(std::make_shared<TokenDesk>(kWithTokens ? options.budget : 0, clock)),
        admission_(options.budget, options.per_id),
        ring_(std::bit_ceil(options.budget)),
        lanes_(options.budget) {
    gone_.reserve(options.budget);
  }
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;
  // REQUIRES: nobody calls any more, and nothing is left to do (drain, or abandon).
  ~Partition() {
    request_stop();
    thread_.stop();
  }

  void start(const std::string& name) {
    thread_ =
        Thread(name + "-" + std::to_string(index_), [this](const std::stop_token&) { serve(); });
  }
  void request_stop() {
    stopping_.store(true, std::memory_order_release);
    desk_->parker().wake();
  }

  // Takes the task in, or says why not; `task` is whole then.
  Entry submit(CorrelationId id, std::uint64_t hash, Task&& task, TimePoint entered) {
    return admission_.enter(id, hash, [&] {
      const bool pushed = ring_.try_push(Arrival<Task>{std::move(task), id, entered});
      ORDO_CHECK(pushed);  // The ring has room for the whole budget.
    });
  }
  void refuse(Entry entry) { admission_.refuse(entry); }

  // Lets what was submitted run: here, if that is allowed, or on the partition's own thread.
  void flush() {
    const void* running = this_caller().running();
    look_.raise();
    if (running == desk_.get()) return;  // The caller will look for work when this turn ends.
    if (!callers_run_ || running != nullptr) return desk_->parker().wake();
    bool due_is_earlier = false;
    const Pass pass = baton_.pass(
        kCallerRounds, [&] { due_is_earlier |= run_turns(kCallerTurnsMax, &turns_of_callers_); },
        [this] { return has_work(); });
    if (pass == Pass::left || due_is_earlier) desk_->parker().wake();
  }

  // The same on the partition's own thread, whoever may run it.
  void wake() {
    look_.raise();
    // A caller that runs it will look for work when this turn ends.
    if (this_caller().running() != desk_.get()) desk_->parker().wake();
  }

  // Nobody comes in any more; what is in, is run.
  void close() {
    admission_.close();
    closing_.store(true, std::memory_order_release);
    look_.raise();
    desk_->parker().wake();
  }
  // Closed, all tasks ended, and the batch of the last one has ended too; or abandoned.
  bool is_empty() const { return is_empty_.load(std::memory_order_acquire); }

  // Adds all that is not done to `undone` and never touches it again. REQUIRES: closed.
  void abandon(std::vector<UndoneTask<Task>>& undone) {
    undone.reserve(undone.size() + admission_.counts().present);
    {
      const std::lock_guard lock(lanes_lock_);
      if (is_empty() || abandoned_) return;
      abandoned_ = true;
      take_arrivals(std::numeric_limits<std::size_t>::max());
      left_.store(false, std::memory_order_release);
      lanes_.for_each([&](HeldTask<Task>& held) { list(held, undone); });
    }
    admission_.abandon();
    report_empty();
  }

  PartitionStats stats() const;

  // Adds the head of each correlation id.
  void heads(std::vector<BlockedId>& blocked);

  Handler& handler() { return *handler_; }

 private:
  static constexpr bool kWithTokens = HandlesWithToken<Handler, Task>;
  static constexpr int kCallerRounds = 2;

  void serve();
  bool look_for_a_while() const;
  bool has_work() const {
    return look_.is_up() || left_.load(std::memory_order_acquire) || desk_->has_used();
  }

  // The owner's.
  bool run_turns(int turns_max, Counter* turns) noexcept;
  bool run_turn();
  void apply_tokens(TimePoint now);
  void run_tasks(TimePoint now);
  bool handle(InTurn<Task>& turn, TaskTurn& told, std::exception_ptr& error);
  bool answer(HeldTask<Task>& held, TaskTurn& told, std::exception_ptr error);
  bool run_timers(TimePoint now);
  std::optional<TimePoint> next_due();
  bool set_due();
  TaskTurn told_about(const HeldTask<Task>& held) const {
    return {held.id, index_, held.entered, held.began, {}};
  }

  // REQUIRES: lanes_lock_ is held, for these.
  void take_arrivals(std::size_t count_max) {
    // The ring may show a part first, so only nothing means that there was nothing.
    std::size_t count = 0;
    for (std::size_t part = 1; part > 0 && count < count_max; count += part) {
      part = ring_.try_consume(count_max - count,
                               [this](Arrival<Task>& arrival) { lanes_.add(std::move(arrival)); });
    }
    arrivals_left_ = count == count_max;
  }
  void set_left() { left_.store(arrivals_left_ || lanes_.has_ready(), std::memory_order_release); }
  InTurn<Task> take(TimePoint now, TimePoint turn_began);
  void record(const HeldTask<Task>& held, TimePoint ended, bool failed);
  void list(HeldTask<Task>& held, std::vector<UndoneTask<Task>>& undone);

  void report_empty() {
    is_empty_.store(true, std::memory_order_release);
    const std::lock_guard lock(bell_.mutex);
    bell_.rung.notify_all();
  }

  const std::uint32_t index_;
  const std::size_t batch_max_;
  const bool callers_run_;
  Clock& clock_;
  EmptyBell& bell_;
  const std::unique_ptr<Handler> handler_;
  const std::shared_ptr<TokenDesk> desk_;  // Tokens may keep it longer.

  TaskAdmission admission_;
  SpscRing<Arrival<Task>, SpinWait> ring_;  // Pushed to under the admission's lock.

  alignas(kCacheLineBytes) Flag look_;  // Somebody wants the partition to run.
  alignas(kCacheLineBytes) Baton baton_;
  std::atomic<bool> left_{false};  // A turn left tasks behind. Written under lanes_lock_.
  std::atomic<TimePoint> due_{TimePoint::max()};  // When the own thread must run timers.
  std::atomic<bool> closing_{false};
  std::atomic<bool> is_empty_{false};
  std::atomic<bool> stopping_{false};

  // The owner's.
  std::vector<CorrelationId> gone_;  // Ended in this turn, budget not yet given back.
  TimePoint timers_not_before_ = TimePoint::min();
  Counter timers_threw_;
  Counter turns_of_callers_;

  alignas(kCacheLineBytes) mutable ShortLock lanes_lock_;  // Guards all below.
  bool abandoned_ = false;
  bool arrivals_left_ = false;  // The ring may have more than the last turn took.
  TaskLanes<Task> lanes_;
  Counter processed_;
  Counter failed_;
  Counter undone_;
  Histogram wait_ns_;
  Histogram handler_ns_;

  Thread thread_;
};

template <class Task, class Handler>
void Partition<Task, Handler>::serve() {
  while (!stopping_.load(std::memory_order_acquire)) {
    const Pass pass = baton_.pass(
        1, [this] { run_turns(std::numeric_limits<int>::max(), nullptr); },
        [this] { return has_work(); });
    if (pass == Pass::left || look_for_a_while()) continue;
    if (pass == Pass::elsewhere) StdAtomics::yield();  // A timer may be due that the other runs.
    const TimePoint due = due_.load(std::memory_order_acquire);
    desk_->parker().park_until(due, [&] {
      return stopping_.load(std::memory_order_acquire) ||
             due_.load(std::memory_order_acquire) != due || (has_work() && !baton_.held());
    });
  }
}

// Threads that keep pace never enter the kernel. Where callers run, the own thread is not in a
// hurry: it would only take the work away from those who have it in their cache.
template <class Task, class Handler>
bool Partition<Task, Handler>::look_for_a_while() const {
  if (callers_run_) return false;
  for (int i = 0; i < StdAtomics::kPausesBeforeSleep; ++i) {
    if (has_work()) return true;
    StdAtomics::pause();
  }
  for (int i = 0; i < StdAtomics::kYieldsBeforeSleep; ++i) {
    if (has_work()) return true;
    StdAtomics::yield();
  }
  return false;
}

// Returns whether timers are due earlier than the own thread knows.
template <class Task, class Handler>
bool Partition<Task, Handler>::run_turns(int turns_max, Counter* turns) noexcept {
  Caller& caller = this_caller();
  caller.set_running(desk_.get());
  // The ends are looked for in each turn: a handler whose timer is always due has no last turn.
  for (int turn = 0; turn < turns_max && !stopping_.load(std::memory_order_acquire) && run_turn();
       ++turn) {
    if (turns != nullptr) turns->add();
    if (closing_.load(std::memory_order_acquire) && !is_empty() && admission_.closed_and_empty()) {
      report_empty();
    }
  }
  const bool due_is_earlier = set_due();
  caller.set_running(nullptr);
  return due_is_earlier;
}

template <class Task, class Handler>
bool Partition<Task, Handler>::run_turn() {
  const bool has_used = kWithTokens && desk_->has_used();
  const bool is_asked = look_.take();
  const bool has_tasks = is_asked || left_.load(std::memory_order_relaxed);
  if (!has_used && !has_tasks && !HasTimers<Handler>) return false;
  const TimePoint now = clock_.now();
  gone_.clear();
  if (has_used) apply_tokens(now);
  if (has_tasks) run_tasks(now);
  const bool ran_timers = run_timers(now);
  if (!has_used && !has_tasks && !ran_timers) return false;
  if (!gone_.empty()) admission_.leave(gone_);
  if constexpr (EndsBatches<Handler>) {
    static_assert(noexcept(handler_->batch_end()), "batch_end() must be noexcept");
    handler_->batch_end();
  }
  return true;
}

template <class Task, class Handler>
void Partition<Task, Handler>::apply_tokens(TimePoint now) {
  desk_->take_used([&](TokenDesk::Used&& used) {
    HeldTask<Task>* held = nullptr;
    {
      const std::lock_guard lock(lanes_lock_);
      if (abandoned_) return;
      held = &lanes_.held_at(used.place);
    }
    TaskTurn told = told_about(*held);
    told.ended = std::max(now, told.began);
    if (!answer(*held, told, std::move(used.error))) return;
    const std::lock_guard lock(lanes_lock_);
    if (abandoned_) return;
    desk_->release(used.name);
    lanes_.end(used.place, told.ended);
    set_left();
  });
}

template <class Task, class Handler>
void Partition<Task, Handler>::run_tasks(TimePoint now) {
  const TimePoint turn_began = now;
  InTurn<Task> turn;
  {
    const std::lock_guard lock(lanes_lock_);
    if (abandoned_) return;
    take_arrivals(batch_max_);
    lanes_.begin_turn(batch_max_);
    turn = take(now, turn_began);
  }
  while (turn) {
    TaskTurn told = told_about(*turn.held);
    std::exception_ptr error;
    const bool is_over = handle(turn, told, error);
    told.ended = now = std::max(clock_.now(), told.began);
    if (is_over && !answer(*turn.held, told, std::move(error))) return;
    const std::lock_guard lock(lanes_lock_);
    if (abandoned_) return;
    if (is_over) {
      if constexpr (kWithTokens) desk_->release(turn.held->token);
      lanes_.end(turn.place, now);
    } else {
      turn.held->phase = Phase::in_flight;
    }
    turn = take(now, turn_began);
  }
}

// Returns whether the task is over; with a token that is still out, or was used, it is not yet.
template <class Task, class Handler>
bool Partition<Task, Handler>::handle(InTurn<Task>& turn, TaskTurn& told,
                                      std::exception_ptr& error) {
  HeldTask<Task>& held = *turn.held;
  try {
    if constexpr (kWithTokens) {
      handler_->handle(held.task, std::as_const(told), TaskToken(desk_, held.token));
      desk_->drop(held.token);
      return false;
    } else {
      handler_->handle(held.task, std::as_const(told));
      return true;
    }
  } catch (...) {
    if (kWithTokens && !desk_->claim(held.token)) return false;
    error = std::current_exception();
    return true;
  }
}

// Returns false, and tells nobody, when the task was listed as undone meanwhile.
template <class Task, class Handler>
bool Partition<Task, Handler>::answer(HeldTask<Task>& held, TaskTurn& told,
                                      std::exception_ptr error) {
  {
    const std::lock_guard lock(lanes_lock_);
    if (abandoned_) return false;
    held.phase = Phase::answering;
    record(held, told.ended, error != nullptr);
  }
  gone_.push_back(held.id);
  if (error == nullptr) {
    handler_->finished(held.task, std::as_const(told));
  } else {
    handler_->failed(held.task, std::as_const(told), std::move(error));
  }
  return true;
}

template <class Task, class Handler>
bool Partition<Task, Handler>::run_timers(TimePoint now) {
  if constexpr (HasTimers<Handler>) {
    const std::optional<TimePoint> due = next_due();
    if (!due || *due > now || timers_not_before_ > now) return false;
    try {
      handler_->run_due(now);
    } catch (...) {
      timers_threw_.add();
    }
    const std::optional<TimePoint> next = next_due();
    const bool is_overdue = next && *next <= now;
    timers_not_before_ = is_overdue ? saturating_add(now, kOverduePause) : TimePoint::min();
    return true;
  } else {
    (void)now;
    return false;
  }
}

// What the handler says; nothing if it throws, until it is asked again.
template <class Task, class Handler>
std::optional<TimePoint> Partition<Task, Handler>::next_due() {
  try {
    return std::as_const(*handler_).next_due();
  } catch (...) {
    timers_threw_.add();
    return std::nullopt;
  }
}

template <class Task, class Handler>
bool Partition<Task, Handler>::set_due() {
  if constexpr (HasTimers<Handler>) {
    const TimePoint next = next_due().value_or(TimePoint::max());
    const TimePoint due = std::max(next, timers_not_before_);
    const TimePoint due_before = due_.load(std::memory_order_relaxed);
    if (due != due_before) due_.store(due, std::memory_order_release);
    return due < due_before;
  } else {
    return false;
  }
}

template <class Task, class Handler>
InTurn<Task> Partition<Task, Handler>::take(TimePoint now, TimePoint turn_began) {
  InTurn<Task> turn;
  if (now - turn_began < kTurnTimeMax) turn = lanes_.take(now);
  if (!turn) {
    set_left();
  } else if constexpr (kWithTokens) {
    turn.held->token = desk_->open(turn.place);
  }
  return turn;
}

template <class Task, class Handler>
void Partition<Task, Handler>::record(const HeldTask<Task>& held, TimePoint ended, bool failed) {
  (failed ? failed_ : processed_).add();
  wait_ns_.record(static_cast<std::uint64_t>((held.began - held.entered).count()));
  handler_ns_.record(static_cast<std::uint64_t>((ended - held.began).count()));
}

// A task that its handler has begun may be in use by others, until its token is used: it is copied
// if all of them only read it.
template <class Task, class Handler>
void Partition<Task, Handler>::list(HeldTask<Task>& held, std::vector<UndoneTask<Task>>& undone) {
  if (held.phase == Phase::answering) return;
  undone_.add();
  UndoneTask<Task>& listed = undone.emplace_back();
  listed.id = held.id;
  listed.partition = index_;
  listed.entered = held.entered;
  listed.in_flight = held.phase != Phase::waiting;
  if (listed.in_flight) {
    if constexpr (HandlesConst<Handler, Task>) listed.task.emplace(std::as_const(held.task));
    if constexpr (kWithTokens) desk_->claim(held.token);
  } else {
    listed.task.emplace(std::move(held.task));
  }
}

template <class Task, class Handler>
PartitionStats Partition<Task, Handler>::stats() const {
  PartitionStats stats;
  {
    const std::lock_guard lock(lanes_lock_);
    stats.in_flight = abandoned_ ? 0 : lanes_.in_flight_count();
    stats.ready_lanes = abandoned_ ? 0 : lanes_.ready_count();
    stats.lanes = abandoned_ ? 0 : lanes_.lane_count();
    stats.processed = processed_.value();
    stats.failed = failed_.value();
    stats.undone = undone_.value();
    stats.wait_ns = wait_ns_;
    stats.handler_ns = handler_ns_;
  }
  const AdmissionCounts counts = admission_.counts();
  stats.depth = counts.present;
  stats.admitted = counts.admitted;
  stats.rejected_busy = counts.busy;
  stats.rejected_id_busy = counts.id_busy;
  stats.rejected_closing = counts.closing;
  stats.tokens_late = desk_->late_count();
  stats.timers_threw = timers_threw_.value();
  stats.turns_of_callers = turns_of_callers_.value();
  return stats;
}

template <class Task, class Handler>
void Partition<Task, Handler>::heads(std::vector<BlockedId>& blocked) {
  blocked.reserve(blocked.size() + admission_.counts().present);
  bool took_arrivals = false;
  {
    // What waits in the ring is put in its lanes first, as its owner may be stuck.
    const std::lock_guard lock(lanes_lock_);
    if (abandoned_) return;
    if (!ring_.empty()) {
      left_.store(true, std::memory_order_release);
      take_arrivals(std::numeric_limits<std::size_t>::max());
      took_arrivals = true;
    }
    lanes_.for_each_head(
        [&](CorrelationId id, TimePoint since, std::size_t behind, bool in_flight) {
          blocked.push_back({id, index_, since, behind, in_flight});
        });
  }
  if (took_arrivals) desk_->parker().wake();
}

}  // namespace ordo::engine
