// Gathering: one answer from each of several partitions, waited for together.
//
//   std::vector<StatsReply> replies = ask_all<StatsReply>(hosts, [] { return AskStats{}; });
//
// Every answer comes: a host answers what it is asked, or refuses when the broker ends.
//
// Threads: the caller's; not from a partition's thread, which would wait for itself.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "ordo/broker/consumer_desk.h"
#include "ordo/broker/host.h"
#include "ordo/core/clock.h"

namespace ordo::broker {

// A call that is answered later, waited for. May be answered by any thread.
template <class Value>
class Reply {
 public:
  void set(Value value) {
    const std::lock_guard lock(mutex_);
    value_.emplace(std::move(value));
    ready_.notify_all();
  }
  Value wait() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return value_.has_value(); });
    return std::move(*value_);
  }
  // Nothing: it was not answered by the deadline.
  std::optional<Value> wait_until(Clock& clock, TimePoint deadline) {
    std::unique_lock lock(mutex_);
    while (!value_) {
      if (clock.wait_until(lock, ready_, deadline)) break;
    }
    return std::move(value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::optional<Value> value_;
};

template <class Answer, class MakeInput>
std::vector<Answer> ask_all(const Hosts& hosts, const MakeInput& make_input) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable ready;
    std::vector<Answer> answers;
    std::size_t left = 0;
  };
  auto shared = std::make_shared<Shared>();
  shared->answers.resize(hosts.size());
  shared->left = hosts.size();
  for (std::size_t index = 0; index < hosts.size(); ++index) {
    Posted posted{Input(make_input())};
    posted.on_answer = [shared, index](Effect&& effect) {
      const std::lock_guard lock(shared->mutex);
      shared->answers[index] = std::get<Answer>(std::move(effect));
      if (--shared->left == 0) shared->ready.notify_all();
    };
    hosts[index]->post(std::move(posted));
  }
  std::unique_lock lock(shared->mutex);
  shared->ready.wait(lock, [&] { return shared->left == 0; });
  return std::move(shared->answers);
}

}  // namespace ordo::broker
