// What people write themselves: a ring or a locked deque per subscriber, and a loop over them.
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "bench/bus/fan_out.h"
#include "ordo/runtime/spsc_ring.h"

namespace ordo::bench {
namespace {

using Frame = std::shared_ptr<const Payload>;

class Rings final : public FanOut {
 public:
  explicit Rings(std::size_t subscribers) {
    for (std::size_t i = 0; i < subscribers; ++i)
      rings_.push_back(std::make_unique<SpscRing<Frame>>(kCapacity));
  }

  std::size_t publish(const Payload& payload) override {
    const Frame frame = std::make_shared<const Payload>(payload);
    std::size_t sent = 0;
    for (auto& ring : rings_)
      sent += ring->try_push(Frame(frame)) ? 1 : 0;
    return sent;
  }
  std::size_t drain(std::size_t subscriber) override {
    std::size_t count = 0;
    while (rings_[subscriber]->try_pop())
      ++count;
    return count;
  }
  bool pop(std::size_t subscriber) override { return rings_[subscriber]->pop().has_value(); }
  void close() override {
    for (auto& ring : rings_)
      ring->close();
  }

 private:
  std::vector<std::unique_ptr<SpscRing<Frame>>> rings_;
};

class Locks final : public FanOut {
 public:
  explicit Locks(std::size_t subscribers) {
    for (std::size_t i = 0; i < subscribers; ++i)
      queues_.push_back(std::make_unique<Queue>());
  }

  std::size_t publish(const Payload& payload) override {
    const Frame frame = std::make_shared<const Payload>(payload);
    std::size_t sent = 0;
    for (auto& queue : queues_) {
      const std::lock_guard lock(queue->mutex);
      if (queue->frames.size() >= kCapacity) continue;
      queue->frames.push_back(frame);
      queue->filled.notify_one();
      ++sent;
    }
    return sent;
  }
  std::size_t drain(std::size_t subscriber) override {
    std::deque<Frame> taken;
    const std::lock_guard lock(queues_[subscriber]->mutex);
    taken.swap(queues_[subscriber]->frames);
    return taken.size();
  }
  bool pop(std::size_t subscriber) override {
    Queue& queue = *queues_[subscriber];
    std::unique_lock lock(queue.mutex);
    queue.filled.wait(lock, [&] { return !queue.frames.empty() || queue.closed; });
    if (queue.frames.empty()) return false;
    const Frame frame = std::move(queue.frames.front());
    queue.frames.pop_front();
    lock.unlock();
    return true;
  }
  void close() override {
    for (auto& queue : queues_) {
      const std::lock_guard lock(queue->mutex);
      queue->closed = true;
      queue->filled.notify_all();
    }
  }

 private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<Frame> frames;
    bool closed = false;
  };
  std::vector<std::unique_ptr<Queue>> queues_;
};

}  // namespace

std::unique_ptr<FanOut> make_rings(std::size_t subscribers) {
  return std::make_unique<Rings>(subscribers);
}
std::unique_ptr<FanOut> make_locks(std::size_t subscribers) {
  return std::make_unique<Locks>(subscribers);
}

}  // namespace ordo::bench
