// Callbacks: what a pool calls of its user's, one at a time, and the count of what failed.
//
// on_error, on_late and emit never overlap one another, so that they may share state without a
// lock of their own. Whatever they throw ends here: an emit that throws makes its item fail; what
// on_error, on_late or on_cleanup throws is logged, as there is nobody left to tell.
//
// Threads: any. One callback runs at a time; a callback that blocks holds up the pool, and one that
//          waits for the pool itself (push() on a full one) waits for ever.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

#include "ordo/core/clock.h"
#include "ordo/pool/error_log.h"
#include "ordo/pool/options.h"

namespace ordo::pool {

template <class In, class Out>
class Callbacks {
 public:
  Callbacks(PoolOptions<In> options, std::function<void(Out&&)> emit, Clock* clock)
      : on_error_(std::move(options.on_error)),
        on_late_(std::move(options.on_late)),
        on_cleanup_(std::move(options.on_cleanup)),
        partition_key_(std::move(options.partition_key)),
        emit_(std::move(emit)),
        log_(clock) {}

  bool has_emit() const { return static_cast<bool>(emit_); }
  std::uint64_t key_of(const In& input) const { return partition_key_(input); }

  // An item failed with `error`.
  void report_failure(const In& input, const std::exception_ptr& error) {
    failed_.fetch_add(1, std::memory_order_relaxed);
    tell_failure(input, error);
  }

  // The two halves of report_failure(), for who must count under a lock and tell without.
  void count_failure() { failed_.fetch_add(1, std::memory_order_relaxed); }
  void tell_failure(const In& input, const std::exception_ptr& error) {
    std::lock_guard one_at_a_time(mutex_);
    if (!on_error_) {
      log_.item_failed(error);
    } else {
      guard("on_error", [&] { on_error_(input, error); });
    }
  }

  void count_late() { late_.fetch_add(1, std::memory_order_relaxed); }
  void tell_late(const In& input) {
    std::lock_guard one_at_a_time(mutex_);
    if (on_late_) guard("on_late", [&] { on_late_(input); });
  }

  // Emits `count` outputs in turn. Returns what emit threw, if it did; the rest is then not
  // emitted.
  template <class Take>
  std::exception_ptr emit(std::size_t count, Take take) {
    std::lock_guard one_at_a_time(mutex_);
    try {
      for (std::size_t index = 0; index < count; ++index)
        emit_(take(index));
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  void clean_up() {
    if (on_cleanup_) guard("on_cleanup", on_cleanup_);
  }

  std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }
  std::uint64_t late() const { return late_.load(std::memory_order_relaxed); }

 private:
  template <class Call>
  void guard(const char* name, Call&& call) {
    try {
      call();
    } catch (...) {
      log_.callback_threw(name, std::current_exception());
    }
  }

  std::function<void(const In&, std::exception_ptr)> on_error_;
  std::function<void(const In&)> on_late_;
  std::function<void()> on_cleanup_;
  PartitionKey<In> partition_key_;
  std::function<void(Out&&)> emit_;
  std::mutex mutex_;  // Held while calling out: that is its meaning.
  ErrorLog log_;
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> late_{0};
};

}  // namespace ordo::pool
