// Waiting in tests without sleeping: conditions with a generous limit, and a guard against hangs.
//
//   Watchdog watchdog("PoolTest");  // Aborts, and says where, when it hangs.
//   ASSERT_TRUE(eventually([&] { return pool.stats().failed == 1; }));
//   Background waiter([&] { pool.push(3); });  // A caller that is expected to block.
//   ASSERT_TRUE(waiter.finished());            // It came back, within the limit.
//
// The limits are failure guards only: no test passes because enough time went by.
//
// Threads: each object belongs to the test that made it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

#include "ordo/core/clock.h"

namespace ordo::testing_support {

constexpr std::chrono::seconds kPatience{30};

// Sanitizers slow everything down: what takes long does less of it with them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

// Below ctest's limit, which does not say what hangs.
constexpr std::chrono::seconds kHangs{kIsSanitized ? 250 : 100};

// True as soon as `condition()` is true; false when it still is not after `limit`.
template <class Condition>
bool eventually(Condition&& condition, std::chrono::nanoseconds limit = kPatience) {
  const TimePoint deadline = system_clock().now() + limit;
  std::mutex mutex;
  std::condition_variable never;
  for (int round = 0;; ++round) {
    if (condition()) return true;
    if (system_clock().now() >= deadline) return condition();
    if (round < 64) {
      std::this_thread::yield();
    } else {
      std::unique_lock lock(mutex);
      never.wait_for(lock, std::chrono::microseconds(50));
    }
  }
}

// How often each other thread of this process has gone to sleep, if all of them sleep.
inline std::optional<std::map<std::string, std::string>> sleepers() {
  const std::string self = std::to_string(::gettid());
  const std::string counter = "voluntary_ctxt_switches:";
  std::map<std::string, std::string> counts;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string thread = task.path().filename();
    if (thread == self) continue;
    std::ifstream file(task.path() / "status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("State:") && !line.starts_with("State:\tS")) return std::nullopt;
      if (line.starts_with(counter)) counts[thread] = line.substr(counter.size());
    }
  }
  return counts;
}

// Whether there was a moment at which every other thread of this process slept. They are looked at
// one after the other, and one may wake another that was seen asleep. So: all sleep, and when they
// are looked at once more none of them has been awake meanwhile.
inline bool others_sleep() {
  const auto before = sleepers();
  return before && sleepers() == before;
}

// What a thread does after the last step that can be seen from outside (it notes the time, it
// leaves its post) is over when it sleeps. Call this before moving the clock past such a moment.
inline void let_others_fall_asleep() {
  eventually(others_sleep, std::chrono::seconds(5));
}

// Ends the whole process with a message when it is not destroyed in time: a blocked call cannot be
// abandoned in any other way, and a hang without a name tells nothing.
class Watchdog {
 public:
  explicit Watchdog(std::string what, std::chrono::seconds limit = kHangs)
      : what_(std::move(what)),
        thread_([this, limit] { watch(limit); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      std::lock_guard guard(mutex_);
      done_ = true;
    }
    condition_.notify_all();
    thread_.join();
  }

  // Says what runs now, and starts the time again.
  void rename(std::string what) {
    std::lock_guard guard(mutex_);
    what_ = std::move(what);
    renamed_ = true;
    condition_.notify_all();
  }

 private:
  void watch(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    for (;;) {
      renamed_ = false;
      const bool woken = condition_.wait_for(lock, limit, [&] { return done_ || renamed_; });
      if (done_) return;
      if (woken) continue;
      std::fprintf(stderr, "hangs: %s\n", what_.c_str());
      std::fflush(stderr);
      std::abort();
    }
  }

  std::mutex mutex_;
  std::condition_variable condition_;
  std::string what_;
  bool done_ = false;
  bool renamed_ = false;
  std::thread thread_;
};

// Runs one call on a thread of its own; the destructor waits for it.
class Background {
 public:
  template <class Function>
  explicit Background(Function function)
      : thread_([this, call = std::move(function)]() mutable {
          call();
          finished_.store(true);
        }) {}
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() { thread_.join(); }

  bool is_finished() const { return finished_.load(); }
  bool finished() {
    return eventually([&] { return is_finished(); });
  }

 private:
  std::atomic<bool> finished_ = false;
  std::thread thread_;
};

}  // namespace ordo::testing_support
