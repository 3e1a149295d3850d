#include "ordo/pool/crew.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

namespace ordo::pool {

Crew::Crew(const Settings& settings, Hooks hooks)
    : settings_(settings),
      hooks_(std::move(hooks)),
      posts_(new Post[settings.workers_max]) {}

Crew::~Crew() {
  dismiss();
  join();
}

void Crew::start() {
  std::lock_guard lock(mutex_);
  for (std::size_t worker = 0; worker < settings_.workers_min; ++worker)
    man(worker);
  const bool by_time = settings_.autoscale || settings_.process_timeout || settings_.order_timeout;
  if (by_time) supervisor_.emplace("ordo-pool", [this](const std::stop_token&) { supervise(); });
}

// REQUIRES: mutex_ is held, and the post is not alive.
void Crew::man(std::size_t worker) {
  Post& post = posts_[worker];
  post.thread.reset();  // Joins the one that has ended here before.
  post.leaving.store(false, std::memory_order_release);
  post.alive.store(true, std::memory_order_release);
  take_post(worker);  // Until it has looked and found nothing, it counts as having work.
  post.thread.emplace("ordo-pool-" + std::to_string(worker),
                      [this, worker](const std::stop_token&) {
                        do {
                          hooks_.work(worker);
                        } while (!try_leave(worker));
                      });
}

// A worker on its way out may have become wanted again; one that leaves does so for good.
bool Crew::try_leave(std::size_t worker) {
  std::lock_guard lock(mutex_);
  if (!is_leaving(worker)) {
    take_post(worker);
    return false;
  }
  posts_[worker].alive.store(false, std::memory_order_release);
  return true;
}

bool Crew::await_post(std::size_t worker) {
  while (!take_post(worker)) {
    const EventCount::Ticket ticket = post_returned_.prepare();
    if (is_leaving(worker)) {
      post_returned_.cancel();
      return false;
    }
    if (is_busy(worker)) {
      post_returned_.wait(ticket);
    } else {
      post_returned_.cancel();
    }
  }
  return true;
}

// One more: somebody who has not left yet stays, or a free post is manned. Under mutex_.
bool Crew::grow() {
  std::size_t free_post = settings_.workers_max;
  for (std::size_t worker = settings_.workers_max; worker-- > 0;) {
    Post& post = posts_[worker];
    if (!post.alive.load(std::memory_order_acquire)) {
      free_post = worker;
    } else if (post.leaving.load(std::memory_order_relaxed)) {
      post.leaving.store(false, std::memory_order_release);
      return true;
    }
  }
  if (free_post == settings_.workers_max) return false;
  try {
    man(free_post);
  } catch (const std::system_error&) {
    // No thread is to be had; the pool stays as it is.
    leave_post(free_post);
    posts_[free_post].alive.store(false, std::memory_order_release);
    return false;
  }
  return true;
}

// One fewer: an idle one if there is one. Under mutex_.
void Crew::shrink() {
  std::size_t chosen = settings_.workers_max;
  for (std::size_t worker = 0; worker < settings_.workers_max; ++worker) {
    const Post& post = posts_[worker];
    if (!post.alive.load(std::memory_order_acquire)) continue;
    if (post.leaving.load(std::memory_order_relaxed)) continue;
    if (chosen == settings_.workers_max || !is_busy(worker)) chosen = worker;
  }
  if (chosen < settings_.workers_max) {
    posts_[chosen].leaving.store(true, std::memory_order_release);
  }
}

void Crew::dismiss() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(dismissed_, true)) return;
    for (std::size_t worker = 0; worker < settings_.workers_max; ++worker) {
      posts_[worker].leaving.store(true, std::memory_order_release);
    }
    changed_.notify_all();
  }
  post_returned_.notify_all();
  hooks_.wake();
}

void Crew::join() {
  if (supervisor_) supervisor_->join();
  for (std::size_t worker = 0; worker < settings_.workers_max; ++worker) {
    if (posts_[worker].thread) posts_[worker].thread->join();
  }
}

bool Crew::is_quiet() const {
  if (supervising_.load(std::memory_order_seq_cst)) return false;
  for (std::size_t worker = 0; worker < settings_.workers_max; ++worker) {
    if (is_busy(worker)) return false;
  }
  return true;
}

void Crew::request_stop() {
  for (std::size_t worker = 0; worker < settings_.workers_max; ++worker) {
    posts_[worker].stop.request_stop();
  }
}

void Crew::poke_supervisor() {
  std::lock_guard lock(mutex_);
  poked_ = true;
  changed_.notify_all();
}

void Crew::supervise() {
  TimePoint next_check = TimePoint::max();
  if (settings_.autoscale) {
    next_check = saturating_add(settings_.clock->now(), settings_.autoscale->check_interval);
  }
  std::unique_lock lock(mutex_);
  while (!dismissed_) {
    poked_ = false;
    const TimePoint now = settings_.clock->now();
    lock.unlock();
    if (now >= next_check) {
      scale(now);
      next_check = saturating_add(now, settings_.autoscale->check_interval);
    }
    supervising_.store(true, std::memory_order_seq_cst);
    const TimePoint due = std::min(next_check, hooks_.expire(now));
    supervising_.store(false, std::memory_order_seq_cst);
    hooks_.settle();
    lock.lock();
    if (!dismissed_ && !poked_) settings_.clock->wait_until(lock, changed_, due);
  }
}

void Crew::scale(TimePoint now) {
  const Demand demand = hooks_.demand();
  ScalingObservation seen;
  seen.now = now;
  seen.runnable = demand.runnable;
  seen.window_slots_free = demand.free_slots;
  seen.stalled_on_head = demand.stalled;
  for (std::size_t worker = 0; worker < settings_.workers_max; ++worker) {
    if (!posts_[worker].alive.load(std::memory_order_acquire)) continue;
    ++seen.workers;
    if (is_leaving(worker)) {
      ++seen.leaving;
    } else if (is_busy(worker)) {
      ++seen.busy;
    }
  }
  const Autoscale& scale = *settings_.autoscale;
  const ScalingSettings settings{.min = settings_.workers_min,
                                 .max = settings_.workers_max,
                                 .up_cooldown = scale.scale_up_cooldown,
                                 .down_cooldown = scale.scale_down_cooldown,
                                 .down_after = scale.scale_down_after,
                                 .step = scale.step};
  const ScalingDecision decision = decide_scaling(settings, scaling_, seen);
  scaling_ = decision.next;
  {
    std::lock_guard lock(mutex_);
    if (dismissed_) return;
    bool grown = false;
    for (std::size_t count = 0; count < decision.grow; ++count)
      grown = grow() || grown;
    for (std::size_t count = 0; count < decision.shrink; ++count)
      shrink();
    if (grown) ++scale_ups_;
    if (decision.shrink > 0) ++scale_downs_;
  }
  if (decision.shrink > 0) {
    post_returned_.notify_all();
    hooks_.wake();
  }
}

void Crew::add_to(PoolStats& stats) const {
  for (std::size_t worker = 0; worker < settings_.workers_max; ++worker) {
    if (posts_[worker].alive.load(std::memory_order_acquire)) ++stats.workers;
  }
  stats.workers_min = settings_.workers_min;
  stats.workers_max = settings_.workers_max;
  std::lock_guard lock(mutex_);
  stats.scale_ups = scale_ups_;
  stats.scale_downs = scale_downs_;
}

}  // namespace ordo::pool
