// SlotRing: the engine for plain total order. An item stays in one slot from push to release.
//
// The place in the ring is the sequence number, so there is no sequencer to pass, no map to look
// results up in, nothing to allocate, and no thread that only reorders:
//
//   push:   build the input in slot s, publish s + 1
//   worker: run what the WorkLine hands out, in order, mark its slot done
//   pop:    look at the slot at tail_; when it is done, take its output and move tail_ on; when
//           nobody has started it, and items are short, run it
//
// Invariants.
//   1. tail_ <= every slot in use < head. A slot is the pusher's until its number is published,
//      then the worker's that was handed the number, then, from its done mark on, the releaser's
//      until tail_ has passed it.
//   2. Admission: head < tail_ + window, and there are at least `window` slots. So the head of the
//      line always has its slot, and a full window cannot deadlock.
//   3. With emit, the right to release item i is won by exchanging its done mark for `taken`. At
//      most two ask for it: who finishes i and then sees tail_ at i, and who moves tail_ to i and
//      then sees i done. Both orders are sequentially consistent, so one of them sees it.
//   4. stop() seals the ring, then takes away what is done by the same exchange: an item is
//      delivered or undone, never both and never neither.
//   5. A popper runs only the item at tail_, which it waits for anyway, and only in the post of
//      worker kHelperPost while that is idle: so not more handlers run than there are workers.
//
// Threads: push, pop, stop from any thread; see Engine for the workers.
// Bounds:  `window` items, in a power of two of slots.
// Cost:    push by one thread: no read-modify-write. A worker: one per item, on a line it has
//          anyway. pop by one thread: none; two if it runs the item. No allocation.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "ordo/pool/engine.h"
#include "ordo/pool/slots.h"
#include "ordo/pool/stalls.h"
#include "ordo/pool/wait_point.h"
#include "ordo/pool/window_use.h"
#include "ordo/pool/work_line.h"
#include "ordo/runtime/asymmetric_fence.h"
#include "ordo/runtime/biased_lock.h"

namespace ordo::pool {

template <class In, class Out>
class SlotRing final : public Engine<In, Out> {
  using Base = Engine<In, Out>;
  using Places = Slots<In, Out>;
  using Mark = typename Places::Mark;
  using Base::callbacks_;
  using Base::crew;
  using Base::is_closed;
  using Base::is_stopping;
  using Base::process_;
  using Base::settings_;

 public:
  explicit SlotRing(Parts<In, Out> parts)
      : Base(std::move(parts)),
        slots_(std::bit_ceil(settings_.window)),
        line_(settings_.workers_max),
        stalls_(settings_.clock) {
    if (!callbacks_.has_emit()) line_.expect_helpers(tail_, settings_.window);
  }

  ~SlotRing() override {
    this->shut_down();
    const std::uint64_t head = line_.head();
    for (std::uint64_t item = tail_.load(); item < head; ++item) {
      slots_.destroy(item, slots_.produced(item));
    }
  }

  bool push(const Input<In>& input, bool may_wait) override {
    std::unique_lock lock(push_lock_);
    while (!admission_closed_ && !has_room()) {
      if (!may_wait) return false;
      lock.unlock();
      await_room();
      lock.lock();
    }
    if (admission_closed_) return false;
    slots_.build_input(next_, input);
    line_.publish(++next_);
    // A popper asleep runs it as soon as a worker would, and then has it.
    if (output_.has_waiters() && line_.wants_help() && line_.is_unstarted(tail_.load())) {
      output_.notify();
    }
    return true;
  }

  std::optional<Out> pop(TimePoint deadline) override {
    if (!callbacks_.has_emit()) {
      std::unique_lock lock(pop_lock_);
      bool waited = false;
      for (;;) {
        const Found found = look();
        if (found == Found::output) {
          if (waited) line_.look_behind();
          return take_output(lock);
        }
        if (found == Found::end) break;
        if (found == Found::unfinished && deadline == Base::kForever && help(lock, waited)) {
          waited = false;
          continue;
        }
        if (found == Found::unfinished) {
          waited ? line_.look_behind() : line_.call_for_work();
          stalls_.begin();
        }
        if (deadline == Base::kNever) return std::nullopt;
        ++poppers_waiting_;
        lock.unlock();
        waited = await_output(deadline);
        lock.lock();
        --poppers_waiting_;
        if (!waited) return std::nullopt;
      }
      lock.unlock();
      if (line_ended_.load(std::memory_order_relaxed)) this->halt();
    }
    this->await_end(deadline);
    return std::nullopt;
  }

 private:
  enum class Found : std::uint8_t { output, unfinished, nothing, end };

  static constexpr std::chrono::nanoseconds kNap = std::chrono::microseconds(200);
  static constexpr std::size_t kHelperPost = 0;
  static constexpr std::uint64_t kItemsPerSample = 32;  // Of those that helpers run.
  static constexpr std::uint64_t kItemsPerNote = 8;     // The same.

  // ---- Admission, under push_lock_ ----

  bool has_room() {
    // tail_seen_ lags behind, so no more than this is really in use.
    if (next_ - tail_seen_ < peak_.load(std::memory_order_relaxed)) return true;
    tail_seen_ = tail_.load(std::memory_order_acquire);
    const std::uint64_t used = next_ - tail_seen_;
    if (used >= settings_.window) return false;
    if (used >= peak_.load(std::memory_order_relaxed)) {
      peak_.store(used + 1, std::memory_order_relaxed);
    }
    return true;
  }

  void await_room() {
    const auto ready = [this] {
      std::lock_guard lock(push_lock_);
      return admission_closed_ || has_room();
    };
    const auto plenty = [this] {
      return is_closed() ||
             2 * (line_.head() - tail_.load(std::memory_order_acquire)) <= settings_.window;
    };
    room_.await(ready, plenty, kNap);
  }

  // Tells a waiting pusher; not for every slot while the line flows.
  void note_room(std::uint64_t tail) {
    if (!room_.has_waiters()) return;
    const bool plenty = 2 * (line_.head() - tail) <= settings_.window;
    if (plenty || room_.has_waiters(true)) room_.notify();
  }

  void close_admission() override {
    std::lock_guard lock(push_lock_);
    admission_closed_ = true;
  }

  // ---- Work, on a worker's thread ----

  void work(std::size_t worker) override {
    const std::function<bool()> leaving = [&] { return crew().is_leaving(worker); };
    while (!leaving()) {
      if (!crew().take_post(worker)) {
        line_.pass_on(worker);
        if (!crew().await_post(worker)) break;
      }
      run_what_is_there(worker);
      crew().leave_post(worker);
      if (leaving()) break;
      line_.await_work(worker, leaving);
    }
    line_.pass_on(worker);
  }

  // Runs items until there are none, or until others will, or this worker is to leave.
  void run_what_is_there(std::size_t worker) {
    // Pace is judged by real time, whatever the pool's clock shows, and not after every item.
    TimePoint before = system_clock().now();
    note_start(worker, before);
    for (;;) {
      const std::size_t limit = line_.items_per_look(worker);
      std::size_t count = 0;
      std::uint64_t item = WorkLine::kNone;
      std::uint64_t finished = 0;
      while (count < limit) {
        item = line_.next(worker);
        if (is_stopping()) return;  // Taken and not started: stop() lists it.
        if (item == WorkLine::kNone) break;
        run_item(item, worker);
        finished = item;
        ++count;
      }
      if (count > 0) {
        const TimePoint now = system_clock().now();
        line_.note_pace(worker, count, now - before);
        note_start(worker, now);
        note_head(finished);
        before = now;
      }
      if (item == WorkLine::kNone || crew().is_leaving(worker)) return;
      if (line_.may_stand_down(worker)) return;
    }
  }

  void note_start(std::size_t worker, TimePoint now) {
    crew().note_start(worker, settings_.clock == &system_clock() ? now : settings_.clock->now());
  }

  // Notes since when the item at tail_ is the head of the line, if it is not done, and that the
  // line stands still if what is behind it, `finished` for one, is. To be called when either may
  // have come about.
  void note_head(std::uint64_t finished) {
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    if (slots_.is_done(tail)) return;
    if (head_noted_.exchange(tail, std::memory_order_relaxed) != tail) {
      head_since_.store(settings_.clock->now().time_since_epoch().count(),
                        std::memory_order_relaxed);
    }
    if (finished > tail || slots_.is_done(tail + 1)) stalls_.begin();
  }

  void run_item(std::uint64_t item, std::size_t worker) {
    In& input = slots_.input(item);
    Produced produced = Produced::failed;
    try {
      produced = process_->call(input, crew().token(worker), slots_.outputs(item));
    } catch (...) {
      if (!win_failure(item)) return;
      callbacks_.tell_failure(input, std::current_exception());
    }
    const Mark done = Places::make_mark(item, produced);
    if (callbacks_.has_emit()) {
      slots_.mark(item).store(done, std::memory_order_seq_cst);
      release_from(item);
      return;
    }
    slots_.mark(item).store(done, std::memory_order_release);
    if (produced == Produced::nothing || produced == Produced::failed) pass_items_without_output();
    if (output_.has_waiters()) tell_poppers(worker);
  }

  void tell_poppers(std::size_t worker) {
    if (!slots_.is_done(tail_.load(std::memory_order_seq_cst))) return;
    const TimePoint before = system_clock().now();
    output_.notify();
    line_.note_telling(worker, system_clock().now() - before);
  }

  // ---- Help, on a popper's thread ----

  // Runs the item at tail_ if nobody has started it, and lets go of the lock meanwhile. False:
  // nothing was done.
  bool help(std::unique_lock<BiasedLock>& lock, bool waited) {
    const std::uint64_t item = tail_.load(std::memory_order_relaxed);
    if (!line_.wants_help() || !crew().try_borrow_post(kHelperPost)) return false;
    if (!line_.try_take(item, kHelperPost)) {
      crew().return_post(kHelperPost);
      return false;
    }
    lock.unlock();
    if (waited) line_.look_behind();
    if (!is_stopping()) run_as_helper(item, waited);  // Else stop() lists it.
    crew().return_post(kHelperPost);
    light_fence();
    if (is_stopping()) this->try_conclude();
    lock.lock();
    return true;
  }

  void run_as_helper(std::uint64_t item, bool waited) {
    // A popper that comes more seldom than every millisecond or two finds workers at it.
    if (waited || item % kItemsPerNote == 0) {
      crew().note_start(kHelperPost, settings_.clock->rough_now());
    }
    if (item % kItemsPerSample != 0) return run_item(item, kHelperPost);
    const TimePoint before = system_clock().now();
    run_item(item, kHelperPost);
    line_.note_help(system_clock().now() - before);
  }

  // An item that failed is the worker's to report, unless stop() has listed it before. It is
  // counted under the lock that stop() lists under, so that it is in one of the two accounts.
  bool win_failure(std::uint64_t item) {
    std::lock_guard lock(pop_lock_);
    const Mark mark = slots_.mark(item).load(std::memory_order_seq_cst);
    if (mark == Places::make_mark(item, Places::kAbandoned)) return false;
    slots_.mark(item).store(Places::make_mark(item, Places::kReporting), std::memory_order_seq_cst);
    callbacks_.count_failure();
    return true;
  }

  // ---- Release by emit: whoever wins the item at tail_ ----

  void release_from(std::uint64_t item) {
    if (tail_.load(std::memory_order_seq_cst) != item) return;
    // sealed_ is looked at after the done mark was set, as collect_undone() sets it before it
    // looks at marks: one of the two gets the item.
    while (!line_ended_.load(std::memory_order_relaxed) && !sealed_.load()) {
      const Produced produced = win(item);
      if (produced == Produced{}) break;
      stalls_.end();
      const bool failed = produced == Produced::failed || !emit_outputs(item, produced);
      release(item, produced, failed);
      ++item;
    }
    if (line_ended_.load(std::memory_order_relaxed)) this->halt();
    if (is_closed()) this->try_conclude();
  }

  // Takes the outputs of `item` for the caller alone; Produced{} if it is not done, or not free.
  Produced win(std::uint64_t item) {
    Mark mark = slots_.mark(item).load(std::memory_order_seq_cst);
    const Produced produced = Places::produced(item, mark);
    if (produced == Produced{}) return produced;
    const bool won = slots_.mark(item).compare_exchange_strong(
        mark, Places::make_mark(item, Places::kTaken), std::memory_order_seq_cst);
    return won ? produced : Produced{};
  }

  bool emit_outputs(std::uint64_t item, Produced produced) {
    Outputs<Out>& outputs = slots_.outputs(item);
    const std::size_t count = outputs.count(produced);
    const std::exception_ptr thrown =
        callbacks_.emit(count, [&](std::size_t index) { return outputs.take(produced, index); });
    if (thrown) callbacks_.report_failure(slots_.input(item), thrown);
    outputs_taken_.store(outputs_taken_.load(std::memory_order_relaxed) + count,
                         std::memory_order_relaxed);
    return !thrown;
  }

  // ---- Release by pop, under pop_lock_ ----

  // Moves tail_ past what has no output to wait for. Whoever finishes such an item calls it, so
  // that the line does not need a popper to get past them.
  void pass_items_without_output() {
    {
      std::lock_guard lock(pop_lock_);
      advance();
    }
    if (line_ended_.load(std::memory_order_relaxed)) this->halt();
    if (is_closed()) this->try_conclude();
  }

  // The same, and how the item at tail_ then stands: Produced{} if it is not done.
  Produced advance() {
    for (;;) {
      if (line_ended_.load(std::memory_order_relaxed) || is_stopping()) return Produced{};
      const std::uint64_t item = tail_.load(std::memory_order_relaxed);
      const Produced produced = slots_.produced(item);
      if (produced != Produced::nothing && produced != Produced::failed) return produced;
      stalls_.end();
      release(item, produced, produced == Produced::failed);
    }
  }

  Found look() {
    if (advance() != Produced{}) {
      stalls_.end();
      return Found::output;
    }
    if (line_ended_.load(std::memory_order_relaxed) || is_stopping()) return Found::end;
    const bool closed = is_closed();  // Before the look at head, which then stays.
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (head_seen_ <= tail) head_seen_ = line_.head();
    if (head_seen_ > tail) return Found::unfinished;
    return closed ? Found::end : Found::nothing;
  }

  std::optional<Out> take_output(std::unique_lock<BiasedLock>& lock) {
    const std::uint64_t item = tail_.load(std::memory_order_relaxed);
    const Produced produced = slots_.produced(item);
    Outputs<Out>& outputs = slots_.outputs(item);
    std::optional<Out> output(outputs.take(produced, taken_));
    outputs_taken_.store(outputs_taken_.load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);
    if (++taken_ == outputs.count(produced)) {
      release(item, produced, false);
      const bool has_ended = slots_.is_done(item + 1) && advance() != Produced{};
      if (!has_ended && !line_.is_unstarted(item + 1)) note_head(item);
    }
    const bool others_wait = poppers_waiting_ > 0;
    lock.unlock();
    if (others_wait) output_.notify();
    light_fence();
    if (is_closed() && all_released()) this->try_conclude();
    if (line_ended_.load(std::memory_order_relaxed)) this->halt();
    return output;
  }

  // Frees the slot of `item`, which is the one at tail_ and the caller's.
  void release(std::uint64_t item, Produced produced, bool failed) {
    slots_.destroy(item, produced);
    taken_ = 0;
    if (!failed) {
      delivered_.store(delivered_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else if (settings_.fail_stop) {
      line_ended_.store(true, std::memory_order_relaxed);
    }
    if (callbacks_.has_emit()) {
      tail_.store(item + 1, std::memory_order_seq_cst);  // Invariant 3.
    } else {
      tail_.store(item + 1, std::memory_order_release);
    }
    note_room(item + 1);
  }

  // False: `deadline` came first.
  bool await_output(TimePoint deadline) {
    const bool may_help = deadline == Base::kForever && line_.wants_help();
    const auto can_help = [&](std::uint64_t tail) {
      return may_help && line_.is_next(tail) && !crew().is_busy(kHelperPost);
    };
    const auto ready = [&] {
      const std::uint64_t tail = tail_.load(std::memory_order_seq_cst);
      if (slots_.is_done(tail) || can_help(tail)) return true;
      return is_closed() && (is_stopping() || line_.head() == tail);
    };
    const auto plenty = [&] {
      const std::uint64_t tail = tail_.load(std::memory_order_seq_cst);
      const std::uint64_t last_of_many = tail + settings_.window / 4;
      if (slots_.is_done(tail) && slots_.is_done(last_of_many)) return true;
      if (can_help(tail) && line_.head() > last_of_many) return true;
      return is_closed() && ready();
    };
    if (deadline != Base::kForever) {
      return output_.await_until(ready, *settings_.clock, deadline);
    }
    if (may_help) line_.begin_looking();
    const bool found = output_.look(ready, plenty);
    if (may_help) line_.end_looking();
    if (found) return true;
    if (may_help) line_.look_behind();  // Pushes relied on this thread until now.
    output_.rest(ready, std::chrono::nanoseconds(0));
    return true;
  }

  // ---- The end ----

  bool all_released() const override {
    return tail_.load(std::memory_order_seq_cst) == line_.head();
  }

  void wake_everybody() override {
    line_.wake_all();
    room_.notify_all();
    output_.notify_all();
  }

  Undone<In> collect_undone() override {
    std::lock_guard push_lock(push_lock_);
    std::lock_guard pop_lock(pop_lock_);
    sealed_.store(true, std::memory_order_seq_cst);
    heavy_fence();  // What was taken and is being run is seen to be.
    Undone<In> undone;
    for (std::uint64_t item = tail_.load(std::memory_order_seq_cst); item < next_; ++item) {
      while (!collect(item, undone)) {
      }
    }
    return undone;
  }

  // Adds `item` to `undone` unless it is accounted for. False: it changed meanwhile; look again.
  bool collect(std::uint64_t item, Undone<In>& undone) {
    Mark mark = slots_.mark(item).load(std::memory_order_seq_cst);
    const Produced produced = Places::produced(item, mark);
    if (produced == Produced::failed) return true;
    if (produced != Produced{}) {
      if (win(item) == Produced{}) return false;
      slots_.outputs(item).clear(produced);
      undone.list([&]() -> In&& { return std::move(slots_.input(item)); });
      return true;
    }
    if (mark == Places::make_mark(item, Places::kReporting)) return true;
    if (mark == Places::make_mark(item, Places::kTaken)) return true;  // It is being emitted.
    if (!runner_of(item)) {
      if (slots_.mark(item).load(std::memory_order_seq_cst) != mark) return false;
      undone.list([&]() -> In&& { return std::move(slots_.input(item)); });
      return true;
    }
    if (!slots_.mark(item).compare_exchange_strong(
            mark, Places::make_mark(item, Places::kAbandoned), std::memory_order_seq_cst)) {
      return false;
    }
    // Its handler still reads it. What it will return, nobody looks for: the ring is sealed.
    if constexpr (std::copy_constructible<In>) {
      if (process_->input_is_read_only()) {
        undone.list([&]() -> const In& { return slots_.input(item); });
        return true;
      }
    }
    ++undone.count;
    return true;
  }

  std::optional<std::size_t> runner_of(std::uint64_t item) const {
    for (std::size_t worker = 0; worker < settings_.workers_max; ++worker) {
      if (crew().is_busy(worker) && line_.last_taken(worker) == item) return worker;
    }
    return std::nullopt;
  }

  // ---- What it tells ----

  Demand demand() const override {
    const WindowUse use = window_use([this] { return line_.head(); }, tail_);
    Demand demand;
    demand.runnable = line_.unstarted();
    demand.free_slots = demand.runnable + settings_.window - use.used;
    demand.stalled = demand.runnable == 0 && use.used > 0 && !slots_.is_done(use.tail);
    return demand;
  }

  void add_to(PoolStats& stats) const override {
    const auto [tail, used] = window_use([this] { return line_.head(); }, tail_);
    stats.window_used = used;
    stats.delivered = delivered_.load(std::memory_order_acquire);
    stats.admitted = line_.head();  // After what it is not to be less than.
    stats.outputs = outputs_taken_.load(std::memory_order_relaxed);
    stats.stalls = stalls_.histogram();
    for (std::size_t worker = 0; worker < settings_.workers_max; ++worker) {
      const std::uint64_t item = line_.last_taken(worker);
      const bool may_run = crew().is_busy(worker) && item != WorkLine::kNone && item >= tail;
      if (may_run && !slots_.is_done(item)) ++stats.running;
    }
    if (stats.window_used > 0) stats.head_of_line = head_of_line(tail);
    stats.window_peak = peak_.load(std::memory_order_relaxed);
  }

  HeadOfLine head_of_line(std::uint64_t item) const {
    HeadOfLine line;
    line.sequence = item;
    line.waits_for_pop = slots_.is_done(item);
    if (line.waits_for_pop) return line;
    if (const auto worker = runner_of(item)) {
      const TimePoint head_since(std::chrono::nanoseconds(head_since_.load()));
      const TimePoint since = std::max(crew().started_at(*worker), head_since);
      line.blocked_for = settings_.clock->now() - since;
    }
    return line;
  }

  Places slots_;
  WorkLine line_;
  Stalls stalls_;
  WaitPoint room_;    // Pushers.
  WaitPoint output_;  // Poppers.

  alignas(kCacheLineBytes) BiasedLock push_lock_;  // Guards admission; before pop_lock_.
  std::uint64_t next_ = 0;                         // The number of the next item.
  std::uint64_t tail_seen_ = 0;                    // tail_, as last read.
  std::atomic<std::uint64_t> peak_{0};             // The most of the window ever in use.
  bool admission_closed_ = false;

  alignas(kCacheLineBytes) BiasedLock pop_lock_;  // Guards release by pop.
  std::atomic<std::uint64_t> tail_{0};            // The item to be released next.
  std::uint64_t head_seen_ = 0;                   // head, as a popper last read it.
  std::size_t taken_ = 0;                         // Outputs already taken of it.
  std::size_t poppers_waiting_ = 0;
  std::atomic<std::uint64_t> outputs_taken_{0};
  std::atomic<std::uint64_t> head_noted_{0};  // The head that head_since_ belongs to.
  std::atomic<std::int64_t> head_since_{INT64_MIN};
  std::atomic<std::uint64_t> delivered_{0};
  std::atomic<bool> line_ended_{false};  // By fail_stop.
  std::atomic<bool> sealed_{false};      // What is left here is undone.
};

}  // namespace ordo::pool
