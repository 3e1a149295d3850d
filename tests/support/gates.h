// Gates: every handler stops at the gate of its item until the test says how it shall go on.
//
//   Gates<int> gates;
//   Pool<int, int> pool([&](int n) { return gates.enter(n); }, {.workers = 4});
//   gates.await(0);        // item 0 has started and waits
//   gates.open(0, 7);      // its handler goes on with 7
//   gates.open_all(0);     // and so does everybody else, now and later
//
// Threads: any thread may call any function.
// Bounds:  one entry per item.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "tests/support/waiting.h"

namespace ordo::testing_support {

template <class Verdict = bool>
class Gates {
 public:
  // The handler's side: notes that `item` has started and blocks until its gate is open.
  Verdict enter(std::uint64_t item, std::stop_token token = {}) {
    std::unique_lock lock(mutex_);
    Gate& gate = gates_[item];
    gate.started = true;
    gate.token = std::move(token);
    started_.push_back(item);
    ++inside_;
    if (inside_ > inside_peak_) inside_peak_ = inside_;
    condition_.notify_all();
    condition_.wait(lock, [&] { return gate.verdict || for_all_; });
    Verdict verdict = gate.verdict ? *gate.verdict : *for_all_;
    gate.left = true;
    --inside_;
    ++left_count_;
    condition_.notify_all();
    return verdict;
  }

  // May come before the handler does.
  void open(std::uint64_t item, Verdict verdict = {}) {
    std::lock_guard guard(mutex_);
    gates_[item].verdict = std::move(verdict);
    condition_.notify_all();
  }
  void open_all(Verdict verdict = {}) {
    std::lock_guard guard(mutex_);
    for_all_ = std::move(verdict);
    condition_.notify_all();
  }

  // Block until the condition holds; false when it does not come true within the limit.
  bool await(std::uint64_t item) {
    return wait([&] { return gates_[item].started; });
  }
  bool await_left(std::uint64_t item) {
    return wait([&] { return gates_[item].left; });
  }
  bool await_started_count(std::size_t count) {
    return wait([&] { return started_.size() >= count; });
  }
  bool await_left_count(std::size_t count) {
    return wait([&] { return left_count_ >= count; });
  }
  bool await_inside(std::size_t count) {
    return wait([&] { return inside_ == count; });
  }

  bool has_started(std::uint64_t item) const {
    std::lock_guard guard(mutex_);
    auto found = gates_.find(item);
    return found != gates_.end() && found->second.started;
  }
  bool is_inside(std::uint64_t item) const {
    std::lock_guard guard(mutex_);
    auto found = gates_.find(item);
    return found != gates_.end() && found->second.started && !found->second.left;
  }
  bool stop_requested(std::uint64_t item) const {
    std::lock_guard guard(mutex_);
    auto found = gates_.find(item);
    return found != gates_.end() && found->second.token.stop_requested();
  }
  // In the order in which they came.
  std::vector<std::uint64_t> started() const {
    std::lock_guard guard(mutex_);
    return started_;
  }
  std::size_t started_count() const {
    std::lock_guard guard(mutex_);
    return started_.size();
  }
  std::size_t left_count() const {
    std::lock_guard guard(mutex_);
    return left_count_;
  }
  std::size_t inside() const {
    std::lock_guard guard(mutex_);
    return inside_;
  }
  std::size_t inside_peak() const {
    std::lock_guard guard(mutex_);
    return inside_peak_;
  }

 private:
  struct Gate {
    bool started = false;
    bool left = false;
    std::optional<Verdict> verdict;
    std::stop_token token;
  };

  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return condition_.wait_for(lock, kPatience, condition);
  }

  mutable std::mutex mutex_;
  std::condition_variable condition_;
  std::map<std::uint64_t, Gate> gates_;  // References to entries stay valid.
  std::vector<std::uint64_t> started_;
  std::optional<Verdict> for_all_;
  std::size_t inside_ = 0;
  std::size_t inside_peak_ = 0;
  std::size_t left_count_ = 0;
};

}  // namespace ordo::testing_support
