#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/dispatcher/keyed_load.h"

namespace ordo::bench {

// One queue for all; who takes an event locks the stripe of its key before others may take the
// next. So order holds, and a worker whose stripe is taken holds up everybody.
void run_striped_mutex(KeyedLoad& load) {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<Message> queue;
  bool closed = false;
  std::array<std::mutex, 1024> stripes;
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < load.settings().workers; ++i) {
    workers.emplace_back([&] {
      std::unique_lock lock(mutex);
      for (;;) {
        arrived.wait(lock, [&] { return closed || !queue.empty(); });
        if (queue.empty()) return;
        const Message message = queue.front();
        queue.pop_front();
        // Locked before the queue is let go, so that the order within a key holds.
        std::unique_lock stripe(stripes[message.key % stripes.size()]);
        lock.unlock();
        load.handle(message);
        stripe.unlock();
        lock.lock();
      }
    });
  }
  load.begin();
  Message message;
  while (load.next(message)) {
    {
      std::lock_guard guard(mutex);
      queue.push_back(message);
    }
    arrived.notify_one();
  }
  load.await();
  {
    std::lock_guard guard(mutex);
    closed = true;
  }
  arrived.notify_all();
  for (std::thread& worker : workers)
    worker.join();
}

void run_one_mutex(KeyedLoad& load) {
  struct Lane {
    std::deque<Message> events;
    bool is_active = false;
  };
  std::mutex mutex;
  std::condition_variable arrived;
  std::unordered_map<std::uint64_t, Lane> lanes;
  std::deque<std::uint64_t> ready;
  bool closed = false;
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < load.settings().workers; ++i) {
    workers.emplace_back([&] {
      std::unique_lock lock(mutex);
      for (;;) {
        arrived.wait(lock, [&] { return closed || !ready.empty(); });
        if (ready.empty()) return;
        const std::uint64_t key = ready.front();
        ready.pop_front();
        const Message message = lanes[key].events.front();
        lanes[key].events.pop_front();
        lock.unlock();
        load.handle(message);
        lock.lock();
        if (lanes[key].events.empty()) {
          lanes.erase(key);
        } else {
          ready.push_back(key);
        }
      }
    });
  }
  load.begin();
  Message message;
  while (load.next(message)) {
    bool wakes = false;
    {
      std::lock_guard guard(mutex);
      Lane& lane = lanes[message.key];
      lane.events.push_back(message);
      wakes = !std::exchange(lane.is_active, true);
      if (wakes) ready.push_back(message.key);
    }
    if (wakes) arrived.notify_one();
  }
  load.await();
  {
    std::lock_guard guard(mutex);
    closed = true;
  }
  arrived.notify_all();
  for (std::thread& worker : workers)
    worker.join();
}

}  // namespace ordo::bench
