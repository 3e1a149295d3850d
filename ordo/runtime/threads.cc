#include "ordo/runtime/threads.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <pthread.h>

#include "ordo/core/check.h"

namespace ordo {

Thread::Thread(std::string name, Body body) : stop_(std::stop_source{}) {
  thread_ = std::thread(
      [name = std::move(name), body = std::move(body), token = stop_.get_token()]() mutable {
        constexpr std::size_t kNameBytesMax = 15;
        ::pthread_setname_np(::pthread_self(), name.substr(0, kNameBytesMax).c_str());
        body(std::move(token));
      });
}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (this != &other) {
    stop();
    stop_ = std::move(other.stop_);
    thread_ = std::move(other.thread_);
  }
  return *this;
}

void Thread::join() {
  if (!thread_.joinable()) return;
  ORDO_CHECK(thread_.get_id() != std::this_thread::get_id());
  thread_.join();
}

void Thread::stop() {
  request_stop();
  join();
}

void WorkerSet::run(Worker& worker, std::stop_token stop) {
  body_(worker.index, std::move(stop));
  const std::lock_guard lock(mutex_);
  worker.ended = true;
  --living_;
  ended_.notify_all();
}

std::vector<std::unique_ptr<WorkerSet::Worker>> WorkerSet::take_ended() {
  const auto first_ended = std::stable_partition(workers_.begin(), workers_.end(),
                                                 [](const auto& worker) { return !worker->ended; });
  std::vector<std::unique_ptr<Worker>> out(std::make_move_iterator(first_ended),
                                           std::make_move_iterator(workers_.end()));
  workers_.erase(first_ended, workers_.end());
  return out;
}

std::size_t WorkerSet::free_index() const {
  const auto taken = [this](std::size_t index) {
    return std::any_of(workers_.begin(), workers_.end(), [index](const auto& worker) {
      return !worker->ended && worker->index == index;
    });
  };
  std::size_t index = 0;
  while (taken(index))
    ++index;
  return index;
}

std::size_t WorkerSet::grow(std::size_t count) {
  std::vector<std::unique_ptr<Worker>> to_join;  // Destroyed, and so joined, without the lock.
  const std::lock_guard lock(mutex_);
  if (stopping_) return 0;
  to_join = take_ended();
  for (std::size_t i = 0; i < count; ++i) {
    auto worker = std::make_unique<Worker>();
    Worker& self = *worker;
    self.index = free_index();
    self.age = made_++;
    self.thread = Thread(name_ + "-" + std::to_string(self.index),
                         [this, &self](std::stop_token stop) { run(self, std::move(stop)); });
    workers_.push_back(std::move(worker));
    peak_ = std::max(peak_, ++living_);
  }
  return count;
}

std::size_t WorkerSet::shrink(std::size_t count) {
  std::vector<std::stop_source> asked;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Worker*> staying;
    for (const auto& worker : workers_) {
      if (!worker->ended && !worker->leaving) staying.push_back(worker.get());
    }
    std::sort(staying.begin(), staying.end(),
              [](const Worker* a, const Worker* b) { return a->age > b->age; });
    staying.resize(std::min(count, staying.size()));
    for (Worker* worker : staying) {
      worker->leaving = true;
      asked.push_back(worker->thread.stop_source());
    }
  }
  // Stop callbacks are foreign code: they run without the lock.
  for (std::stop_source& source : asked)
    source.request_stop();
  return asked.size();
}

void WorkerSet::request_stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  shrink(static_cast<std::size_t>(-1));
}

void WorkerSet::wait_until_empty() {
  std::vector<std::unique_ptr<Worker>> to_join;  // Destroyed, and so joined, without the lock.
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return living_ == 0; });
  to_join = take_ended();
}

void WorkerSet::stop() {
  request_stop();
  wait_until_empty();
}

std::size_t WorkerSet::count() const {
  const std::lock_guard lock(mutex_);
  return living_;
}

std::size_t WorkerSet::staying_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(workers_.begin(), workers_.end(),
                    [](const auto& worker) { return !worker->ended && !worker->leaving; }));
}

std::size_t WorkerSet::count_peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

}  // namespace ordo
