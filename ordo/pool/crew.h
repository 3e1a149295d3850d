// Crew: the threads of one pool: started, grown, shrunk, asked to leave, joined.
//
// Every worker has a post, with a number below workers_max. The crew decides how many should be
// manned (min at first, more or fewer as the scaling policy says), and sends idle ones home first;
// a worker asks is_leaving() between items and goes. A post is free again only when its thread has
// really ended, so the handlers that run can never be more than workers_max.
//
// The supervisor thread exists only where something happens by time: autoscaling, timeouts.
//
// Threads: any, except where said. Owns the workers and the supervisor.
// Bounds:  workers_max + 1 threads.
// Cost:    is_leaving() is one load; an idle crew costs nothing between two scaling checks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "ordo/core/clock.h"
#include "ordo/pool/settings.h"
#include "ordo/runtime/atomics.h"
#include "ordo/runtime/event_count.h"
#include "ordo/runtime/scaling_policy.h"
#include "ordo/runtime/threads.h"

namespace ordo::pool {

// What an engine could give more workers to do.
struct Demand {
  std::size_t runnable = 0;    // Admitted, not started, and free to start.
  std::size_t free_slots = 0;  // Of the window, those that more work could use.
  bool stalled = false;        // Everything admitted waits for one that runs.
};

class Crew {
 public:
  struct Hooks {
    std::function<void(std::size_t worker)> work;    // Runs until is_leaving(worker).
    std::function<void()> wake;                      // Wakes all that wait for work.
    std::function<Demand()> demand;                  // For the scaling policy.
    std::function<TimePoint(TimePoint now)> expire;  // Ends what is overdue; when to come again.
    std::function<void()> settle;                    // The supervisor has nothing in hand.
  };

  Crew(const Settings& settings, Hooks hooks);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void start();

  // All workers leave after the item they are at; the supervisor ends.
  void dismiss();
  // Joins them. Blocks for as long as a handler runs.
  void join();

  bool is_leaving(std::size_t worker) const {
    return posts_[worker].leaving.load(std::memory_order_acquire);
  }

  // A post is used by one at a time, so that the handlers that run are never more than the posts:
  // by its worker, or, while that has nothing to run, by a borrower. A worker begins at its post,
  // leaves it when it has nothing to run, and takes it again before it runs something. The first
  // two and await_post() from its own thread only. take_post(): false if it is borrowed.
  bool take_post(std::size_t worker) {
    Use seen = Use::none;
    return posts_[worker].use.compare_exchange_strong(seen, Use::worker) || seen == Use::worker;
  }
  void leave_post(std::size_t worker) {
    Use seen = Use::worker;
    posts_[worker].use.compare_exchange_strong(seen, Use::none);
  }
  bool await_post(std::size_t worker);  // Takes it; false: the worker is leaving.
  bool try_borrow_post(std::size_t worker) {
    Use seen = posts_[worker].use.load(std::memory_order_relaxed);
    return seen == Use::none && posts_[worker].use.compare_exchange_strong(seen, Use::borrower);
  }
  void return_post(std::size_t worker) {
    posts_[worker].use.store(Use::none, std::memory_order_release);
    post_returned_.notify_all();
  }
  bool is_busy(std::size_t worker) const {
    return posts_[worker].use.load(std::memory_order_seq_cst) != Use::none;
  }
  bool is_quiet() const;  // Nobody is busy, the supervisor neither.

  // When the items that `worker` is at began. note_start() from its own thread only.
  void note_start(std::size_t worker, TimePoint time) {
    posts_[worker].since.store(time.time_since_epoch().count(), std::memory_order_relaxed);
  }
  TimePoint started_at(std::size_t worker) const {
    return TimePoint(std::chrono::nanoseconds(posts_[worker].since.load()));
  }

  // The token that handlers of `worker` get, and what fires all of them.
  const std::stop_token& token(std::size_t worker) const { return posts_[worker].token; }
  void request_stop();

  // Something may be due earlier than the supervisor thinks.
  void poke_supervisor();

  void add_to(PoolStats& stats) const;

 private:
  // A worker's place; on its own cache line, as busy workers touch theirs all the time.
  enum class Use : std::uint8_t { none, worker, borrower };
  struct alignas(kCacheLineBytes) Post {
    std::atomic<Use> use{Use::none};
    std::atomic<std::int64_t> since{0};
    std::stop_source stop;
    std::stop_token token = stop.get_token();
    std::optional<Thread> thread;      // Under mutex_.
    std::atomic<bool> alive{false};    // Its thread has been started and has not ended.
    std::atomic<bool> leaving{false};  // It is to leave after the item it is at.
  };

  void man(std::size_t worker);  // Starts a thread on a post that has none.
  bool grow();
  void shrink();
  bool try_leave(std::size_t worker);
  void supervise();
  void scale(TimePoint now);

  const Settings settings_;
  const Hooks hooks_;
  std::unique_ptr<Post[]> posts_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool dismissed_ = false;
  bool poked_ = false;
  std::atomic<bool> supervising_{false};  // The supervisor may be calling out.
  ScalingState scaling_;                  // The supervisor's.
  std::uint64_t scale_ups_ = 0;
  std::uint64_t scale_downs_ = 0;
  EventCount post_returned_;
  std::optional<Thread> supervisor_;
};

}  // namespace ordo::pool
