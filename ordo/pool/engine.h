// Engine: what the two ways to run a pool have in common: how it starts, scales, stops and ends.
//
// A Pool is one of two engines behind the same door: SlotRing (total order, lock-free between push
// and pop) and Ledger (everything else: no order, order per key, timeouts; one lock). They differ
// in how an item travels. They share the life of a pool, which is here:
//
//   running --close()--> draining --last output taken--> concluding --on_cleanup--> ended
//      |                    |                               ^
//      +------stop()--------+-----> stopping ---------------+   no handler runs, or grace is over
//      +---fail_stop's first failure-> stopping
//
// Threads: public calls from any thread. Owns its workers (named ordo-pool-N) and, if it needs one,
//          a supervisor thread (ordo-pool).
// Bounds:  workers_max threads; the items are bounded by the engine.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "ordo/core/clock.h"
#include "ordo/pool/callbacks.h"
#include "ordo/pool/crew.h"
#include "ordo/pool/input.h"
#include "ordo/pool/options.h"
#include "ordo/pool/process.h"
#include "ordo/pool/settings.h"
#include "ordo/runtime/asymmetric_fence.h"

namespace ordo::pool {

// What a Pool is made of.
template <class In, class Out>
struct Parts {
  std::unique_ptr<Process<In, Out>> process;
  std::function<void(Out&&)> emit;  // None: outputs wait for pop().
  PoolOptions<In> options;
};

template <class In, class Out>
class Engine {
 public:
  explicit Engine(Parts<In, Out> parts)
      : settings_(make_settings(parts.options)),
        process_(std::move(parts.process)),
        callbacks_(std::move(parts.options), std::move(parts.emit), settings_.clock),
        crew_(settings_, {.work = [this](std::size_t worker) { work_until_leaving(worker); },
                          .wake = [this] { wake_everybody(); },
                          .demand = [this] { return demand(); },
                          .expire = [this](TimePoint now) { return expire(now); },
                          .settle = [this] { try_conclude(); }}) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // False, and nothing is taken: closed or stopped, or it would have to wait.
  virtual bool push(const Input<In>& input, bool may_wait) = 0;

  // The next output; none at the end, or when it would have to wait beyond `deadline` of the clock:
  // kNever and kForever wait not at all and without limit.
  static constexpr TimePoint kNever = TimePoint::min();
  static constexpr TimePoint kForever = TimePoint::max();
  virtual std::optional<Out> pop(TimePoint deadline) = 0;

  TimePoint deadline_in(std::chrono::nanoseconds span) const {
    return span.count() <= 0 ? kNever : saturating_add(settings_.clock->now(), span);
  }

  void close() {
    close_admission();
    closed_.store(true, std::memory_order_seq_cst);
    heavy_fence();  // Who released the last item sees it closed, or is seen here.
    wake_everybody();
    try_conclude();
  }

  std::vector<In> stop(std::chrono::nanoseconds grace) {
    std::unique_lock lock(end_mutex_);
    if (std::exchange(stop_called_, true)) {
      end_changed_.wait(lock, [this] { return ended(); });
      return {};
    }
    end_changed_.notify_all();  // Who waits in pop() does not wait for the grace.
    lock.unlock();
    halt();
    lock.lock();
    const TimePoint deadline = saturating_add(settings_.clock->now(), grace);
    while (!concluding_ && !crew_.is_quiet()) {
      if (settings_.clock->wait_until(lock, end_changed_, deadline)) break;
    }
    if (!std::exchange(concluding_, true)) {
      conclude(lock);
    } else {
      end_changed_.wait(lock, [this] { return ended(); });
    }
    return std::exchange(undone_, {});
  }

  // Blocks until the end is visible: everything delivered, or stopped.
  void wait() {
    try_conclude();
    std::unique_lock lock(end_mutex_);
    end_changed_.wait(lock, [this] { return ended(); });
  }

  PoolStats stats() const {
    PoolStats stats;
    const bool at_end = ended();
    stats.failed = callbacks_.failed();  // Before admitted, which is then not less.
    stats.late = callbacks_.late();
    add_to(stats);
    crew_.add_to(stats);
    stats.window = settings_.window;
    if (at_end) {
      // What was being emitted when stop() gave up waiting counts as delivered, unless it fails.
      stats.undone = undone_count_.load(std::memory_order_relaxed);
      stats.delivered = stats.admitted - stats.failed - stats.late - stats.undone;
    }
    return stats;
  }

  // Starts the workers; the derived engine is complete by then.
  void start() { crew_.start(); }

  // Ends everything and waits for handlers that still run. The derived destructor calls it, while
  // there is still something to run.
  void shut_down() {
    stop(std::chrono::nanoseconds(0));
    crew_.join();
  }

 protected:
  // What the derived engine does.
  virtual void work(std::size_t worker) = 0;        // Runs items until crew().is_leaving(worker).
  virtual void close_admission() = 0;               // After it, push() admits nothing.
  virtual bool all_released() const = 0;            // Nothing is admitted and not released.
  virtual void wake_everybody() = 0;                // All that block look at their state again.
  virtual Undone<In> collect_undone() = 0;          // Called once, after close_admission().
  virtual Demand demand() const = 0;                // For scaling.
  virtual void add_to(PoolStats& stats) const = 0;  // admitted, delivered, outputs, window, head.
  virtual TimePoint expire(TimePoint) { return TimePoint::max(); }  // Ends what is overdue.

  bool is_stopping() const { return stopping_.load(std::memory_order_seq_cst); }
  bool is_closed() const { return closed_.load(std::memory_order_seq_cst); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  // No item is started any more; handlers that run are asked to end.
  void halt() {
    close_admission();
    stopping_.store(true, std::memory_order_seq_cst);
    closed_.store(true, std::memory_order_seq_cst);
    heavy_fence();  // Who was at work sees it stopping, or is seen afterwards to have been at work.
    crew_.dismiss();
    ask_handlers_to_end();
    wake_everybody();
  }
  virtual void ask_handlers_to_end() { crew_.request_stop(); }

  // Ends the pool if there is nothing left to do. Call after anything that may have been the last.
  void try_conclude() {
    if (!is_closed() || ended()) return;
    std::unique_lock lock(end_mutex_);
    if (concluding_) return;
    if (is_stopping() ? !crew_.is_quiet() || stop_called_ : !all_released()) {
      end_changed_.notify_all();  // stop() waits for quiet.
      return;
    }
    concluding_ = true;
    conclude(lock);
  }

  // For pop() at the end: the end is visible when this returns, or stop() was called, or `deadline`
  // has come.
  void await_end(TimePoint deadline) {
    try_conclude();
    if (deadline == kNever) return;
    std::unique_lock lock(end_mutex_);
    while (!ended() && !stop_called_) {
      if (settings_.clock->wait_until(lock, end_changed_, deadline)) return;
    }
  }

  const Settings settings_;
  const std::unique_ptr<Process<In, Out>> process_;
  Callbacks<In, Out> callbacks_;

  Crew& crew() { return crew_; }
  const Crew& crew() const { return crew_; }

 private:
  void work_until_leaving(std::size_t worker) {
    work(worker);
    crew_.leave_post(worker);
    if (is_stopping()) try_conclude();
  }

  // REQUIRES: `lock` holds end_mutex_, and the caller has set concluding_.
  void conclude(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    Undone<In> undone = collect_undone();
    callbacks_.clean_up();
    crew_.dismiss();
    lock.lock();
    undone_count_.store(undone.count, std::memory_order_relaxed);
    undone_ = std::move(undone.inputs);
    ended_.store(true, std::memory_order_release);
    end_changed_.notify_all();
    lock.unlock();
    wake_everybody();
    lock.lock();
  }

  std::atomic<bool> closed_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> undone_count_{0};
  mutable std::mutex end_mutex_;
  std::condition_variable end_changed_;
  bool concluding_ = false;  // Under end_mutex_, as the next two.
  bool stop_called_ = false;
  std::vector<In> undone_;
  Crew crew_;  // Last: its threads use all of the above.
};

}  // namespace ordo::pool
