// ScriptedPort: a TaskPort that does with each request what the test says.
//
//   ScriptedPort port;
//   Server server(options);
//   port.reply_to(server);
//   port.admit_at_most(64);                      // more are busy
//   port.answer_in_flush(false);                 // admitted ones wait ...
//   port.answer_all();                           // ... until now
//
// Partition 3 answers everything with the decision `did:<payload>`.
//
// Threads: any thread may call any function.
// Bounds:  keeps all requests that were not answered.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ordo/gateway/ports.h"

namespace ordo::testing_support {

class ScriptedPort final : public gateway::TaskPort {
 public:
  static constexpr std::int32_t kPartition = 3;

  void reply_to(gateway::ReplyPort& replies) { replies_ = &replies; }
  // Called in each flush, first. REQUIRES: nobody uses the port yet.
  void before_flush(std::function<void()> function) { before_flush_ = std::move(function); }
  void answer_in_flush(bool does) { answers_in_flush_.store(does); }
  // Decides on each request, before it is admitted.
  void decide(std::function<gateway::Refusal(const gateway::Request&)> decision) {
    std::lock_guard guard(mutex_);
    decision_ = std::move(decision);
  }
  void admit_at_most(std::size_t count) {
    std::lock_guard guard(mutex_);
    waiting_max_ = count;
  }

  gateway::Admitted submit(gateway::Request&& request) override {
    std::lock_guard guard(mutex_);
    ++submitted_;
    if (waiting_.size() >= waiting_max_) return {gateway::Refusal::busy, kPartition};
    if (decision_) {
      const gateway::Refusal refusal = decision_(request);
      if (refusal != gateway::Refusal::none) return {refusal, kPartition};
    }
    waiting_.push_back(std::move(request));
    most_waiting_ = std::max(most_waiting_, waiting_.size());
    return {gateway::Refusal::none, kPartition};
  }
  void flush() override {
    flushes_.fetch_add(1);
    if (before_flush_) before_flush_();
    if (answers_in_flush_.load()) answer_all();
  }
  std::string stats_line() const override { return R"({"scripted":true})"; }

  std::size_t waiting() const {
    std::lock_guard guard(mutex_);
    return waiting_.size();
  }
  std::size_t most_waiting() const {
    std::lock_guard guard(mutex_);
    return most_waiting_;
  }
  std::size_t submitted() const {
    std::lock_guard guard(mutex_);
    return submitted_;
  }
  std::size_t flushes() const { return flushes_.load(); }
  std::deque<gateway::Request> requests() const {
    std::lock_guard guard(mutex_);
    return waiting_;
  }

  void answer_all() { answer(~std::size_t{0}); }
  // The first `count` that wait.
  void answer(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      gateway::Request request;
      {
        std::lock_guard guard(mutex_);
        if (waiting_.empty()) break;
        request = std::move(waiting_.front());
        waiting_.pop_front();
      }
      replies_->reply(reply_to_request(request));
    }
    replies_->flush();
  }

  static gateway::Reply reply_to_request(const gateway::Request& request) {
    const std::string words = "did:" + std::string(request.payload.view());
    return {.to = request.from,
            .id = request.id,
            .correlation_id = request.correlation_id,
            .partition = kPartition,
            .words = std::string_view(words),
            .began_ns = 17,
            .ended_ns = 18};
  }

 private:
  gateway::ReplyPort* replies_ = nullptr;
  std::function<void()> before_flush_;
  std::atomic<bool> answers_in_flush_{true};
  std::atomic<std::size_t> flushes_{0};
  mutable std::mutex mutex_;
  std::function<gateway::Refusal(const gateway::Request&)> decision_;
  std::deque<gateway::Request> waiting_;
  std::size_t waiting_max_ = ~std::size_t{0};
  std::size_t most_waiting_ = 0;
  std::size_t submitted_ = 0;
};

}  // namespace ordo::testing_support
