// LedgerEngine: the engine for everything but plain total order: a Ledger, a lock and the threads.
//
// All decisions are the Ledger's. Here is only who waits for what, and that nothing of the user's
// is called with the lock held.
//
// Threads: push, pop, stop from any thread; see Engine for the workers.
// Bounds:  the Ledger's.
// Cost:    one lock for each of push, start, end and pop. No allocation once the peak was reached,
//          except a stop state per item where timeouts are set.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "ordo/pool/engine.h"
#include "ordo/pool/ledger.h"
#include "ordo/pool/stalls.h"

namespace ordo::pool {

template <class In, class Out>
class LedgerEngine final : public Engine<In, Out> {
  using Base = Engine<In, Out>;
  using Item = LedgerItem<In, Out>;
  using Expiry = typename Item::Expiry;
  using Lock = std::unique_lock<std::mutex>;
  using Base::callbacks_;
  using Base::crew;
  using Base::is_closed;
  using Base::is_stopping;
  using Base::process_;
  using Base::settings_;

 public:
  explicit LedgerEngine(Parts<In, Out> parts)
      : Base(std::move(parts)),
        ledger_(settings_),
        stalls_(settings_.clock) {}
  ~LedgerEngine() override { this->shut_down(); }

  bool push(const Input<In>& input, bool may_wait) override {
    const std::uint64_t key =
        settings_.order == Order::per_key ? callbacks_.key_of(input.value()) : 0;
    Lock lock(mutex_);
    while (!admission_closed_ && !ledger_.has_room()) {
      if (!may_wait) return false;
      ++pushers_waiting_;
      room_.wait(lock);
      --pushers_waiting_;
    }
    if (admission_closed_) return false;
    ledger_.admit(input, key, now());
    wake_others();
    supervise_until_deadline(lock);
    return true;
  }

  std::optional<Out> pop(TimePoint deadline) override {
    Lock lock(mutex_);
    if (!callbacks_.has_emit()) {
      for (;;) {
        if (is_stopping()) break;
        if (ledger_.has_output()) {
          std::optional<Out> output(ledger_.take_output(now()));
          wake_others();
          supervise_until_deadline(lock);
          const bool was_last = is_closed() && ledger_.is_finished();
          lock.unlock();
          if (was_last) this->try_conclude();
          return output;
        }
        if (ledger_.line_ended() || (is_closed() && ledger_.is_finished())) break;
        note_stall();
        if (deadline == Base::kNever) return std::nullopt;
        ++poppers_waiting_;
        const bool late = settings_.clock->wait_until(lock, output_, deadline);
        --poppers_waiting_;
        if (late && !ledger_.has_output()) return std::nullopt;
      }
    }
    const bool line_ended = at_end_of_line();
    lock.unlock();
    if (line_ended) this->halt();
    this->await_end(deadline);
    return std::nullopt;
  }

 private:
  TimePoint now() const { return settings_.clock->now(); }

  // ---- Work, on a worker's thread ----

  void work(std::size_t worker) override {
    Lock lock(mutex_);
    while (!crew().is_leaving(worker) && !is_stopping()) {
      Item* item = ledger_.line_ended() ? nullptr : ledger_.start(now());
      if (item == nullptr) {
        crew().leave_post(worker);
        ++workers_waiting_;
        work_.wait(lock);
        --workers_waiting_;
        crew().take_post(worker);
        continue;
      }
      run_item(*item, worker, lock);
    }
    wake_worker();  // If it was this one that was woken for an item.
  }

  void run_item(Item& item, std::size_t worker, Lock& lock) {
    const bool timed = settings_.process_timeout || settings_.order_timeout;
    if (timed) item.stop = std::stop_source();
    const std::stop_token token = timed ? item.stop.get_token() : std::stop_token();
    supervise_until_deadline(lock);
    lock.unlock();
    Produced produced = Produced::failed;
    std::exception_ptr error;
    try {
      produced = process_->call(*item.input, timed ? token : crew().token(worker), item.outputs);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    const bool counts = ledger_.finish(item, produced);
    if (!counts) error = owed_report(item);
    const bool owes_late =
        !counts && item.expiry == Expiry::order && !process_->input_is_read_only();
    if (counts && error) callbacks_.count_failure();
    if (error) {
      lock.unlock();
      callbacks_.tell_failure(*item.input, error);
      error = nullptr;
      lock.lock();
    }
    if (owes_late) {
      lock.unlock();
      callbacks_.tell_late(*item.input);
      lock.lock();
    }
    if (counts) {
      ledger_.end(item, now());
    } else {
      ledger_.drop(item);
    }
    after_change(lock);
  }

  // An item that timed out while its handler could still write to the input is reported now.
  std::exception_ptr owed_report(const Item& item) const {
    if (item.expiry != Expiry::process || process_->input_is_read_only()) return nullptr;
    return std::make_exception_ptr(ProcessTimeout());
  }

  // Whatever the change made possible: emit, wake, end.
  void after_change(Lock& lock) {
    if (callbacks_.has_emit()) emit_what_is_there(lock);
    note_stall();
    wake_others();
    supervise_until_deadline(lock);
    const bool line_ended = at_end_of_line();
    if (!line_ended && !is_closed()) return;
    lock.unlock();
    if (line_ended) this->halt();
    this->try_conclude();
    lock.lock();
  }

  // fail_stop has come to an end: what was before the failure is out.
  bool at_end_of_line() const { return ledger_.line_ended() && !ledger_.has_output(); }

  // One thread at a time emits; the others leave it what they finish.
  void emit_what_is_there(Lock& lock) {
    if (emitting_) return;
    emitting_ = true;
    while (ledger_.has_output() && !sealed_) {
      Item& item = ledger_.begin_emitting();
      lock.unlock();
      const std::exception_ptr thrown = callbacks_.emit(
          item.outputs.count(item.produced),
          [&](std::size_t index) { return item.outputs.take(item.produced, index); });
      if (thrown) callbacks_.report_failure(*item.input, thrown);
      lock.lock();
      ledger_.finish_emitting(item, thrown != nullptr, now());
      wake_others();
    }
    emitting_ = false;
  }

  // ---- Time, on the supervisor's thread ----

  TimePoint expire(TimePoint now) override {
    Lock lock(mutex_);
    bool changed = false;
    while (Item* item = is_stopping() ? nullptr : ledger_.expire_one(now)) {
      changed = true;
      tell_expired(*item, lock);
    }
    if (changed) after_change(lock);
    return supervised_until_ = ledger_.next_deadline();
  }

  void tell_expired(Item& item, Lock& lock) {
    const bool late = item.expiry == Expiry::order;
    late ? callbacks_.count_late() : callbacks_.count_failure();
    // While a handler may write to its input, nobody else looks at it.
    const bool may_look = process_->input_is_read_only() || item.phase != Item::Phase::running;
    const std::stop_source stop = item.stop;
    lock.unlock();
    stop.request_stop();
    if (may_look && late) callbacks_.tell_late(*item.input);
    if (may_look && !late) {
      callbacks_.tell_failure(*item.input, std::make_exception_ptr(ProcessTimeout()));
    }
    lock.lock();
    ledger_.drop(item);
  }

  // Lets the supervisor come in time for what may be due now.
  void supervise_until_deadline(Lock&) {
    const TimePoint deadline = ledger_.next_deadline();
    if (deadline >= supervised_until_) return;
    supervised_until_ = deadline;
    crew().poke_supervisor();
  }

  // ---- Waking ----

  void wake_worker() {
    if (workers_waiting_ > 0 && ledger_.ready_count() > 0) work_.notify_one();
  }
  void wake_others() {
    wake_worker();
    if (pushers_waiting_ > 0 && ledger_.has_room()) room_.notify_one();
    if (poppers_waiting_ > 0 && (ledger_.has_output() || ledger_.line_ended() || is_closed())) {
      output_.notify_all();
    }
  }
  void wake_everybody() override {
    std::lock_guard lock(mutex_);
    work_.notify_all();
    room_.notify_all();
    output_.notify_all();
  }

  void note_stall() {
    if (settings_.order != Order::total) return;
    const auto* head = ledger_.head();
    head != nullptr && !head->over && ledger_.is_stalled() ? stalls_.begin() : stalls_.end();
  }

  // ---- The end ----

  void close_admission() override {
    std::lock_guard lock(mutex_);
    admission_closed_ = true;
  }

  bool all_released() const override {
    std::lock_guard lock(mutex_);
    return ledger_.is_finished();
  }

  void ask_handlers_to_end() override {
    Base::ask_handlers_to_end();
    Lock lock(mutex_);
    std::vector<std::stop_source> stops;
    ledger_.for_each_running([&](Item& item) { stops.push_back(item.stop); });
    lock.unlock();
    for (const std::stop_source& stop : stops)
      stop.request_stop();
  }

  Undone<In> collect_undone() override {
    std::lock_guard lock(mutex_);
    sealed_ = true;
    return ledger_.collect(process_->input_is_read_only());
  }

  // ---- What it tells ----

  Demand demand() const override {
    std::lock_guard lock(mutex_);
    Demand demand;
    demand.runnable = ledger_.ready_count();
    demand.free_slots = demand.runnable + settings_.window - ledger_.window_used();
    demand.stalled = demand.runnable == 0 && ledger_.is_stalled();
    return demand;
  }

  void add_to(PoolStats& stats) const override {
    std::lock_guard lock(mutex_);
    stats.admitted = ledger_.admitted();
    stats.delivered = ledger_.delivered();
    stats.outputs = ledger_.outputs_taken();
    stats.running = ledger_.handler_count();
    stats.window_used = ledger_.window_used();
    stats.window_peak = ledger_.window_peak();
    stats.stalls = stalls_.histogram();
    if (const Item* waiting = ledger_.waiting_for_pop()) {
      stats.head_of_line = HeadOfLine{waiting->number, std::chrono::nanoseconds(0), true};
    } else if (const Item* head = ledger_.head()) {
      stats.head_of_line = HeadOfLine{head->number, now() - ledger_.head_since(), false};
    }
  }

  mutable std::mutex mutex_;        // Guards all below.
  std::condition_variable work_;    // Workers wait: something is ready, or they are to leave.
  std::condition_variable room_;    // Pushers.
  std::condition_variable output_;  // Poppers.
  Ledger<In, Out> ledger_;
  Stalls stalls_;
  std::size_t workers_waiting_ = 0;
  std::size_t pushers_waiting_ = 0;
  std::size_t poppers_waiting_ = 0;
  TimePoint supervised_until_ = TimePoint::max();
  bool admission_closed_ = false;
  bool emitting_ = false;
  bool sealed_ = false;  // What is left in the ledger is undone.
};

}  // namespace ordo::pool
