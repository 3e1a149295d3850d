// What people write by hand with the standard library, and the floor.
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/pool/contenders.h"

namespace ordo::bench {
namespace {

// A bounded queue with one lock and two conditions, as in every textbook.
template <class Item>
class LockedQueue {
 public:
  explicit LockedQueue(std::size_t item_count_max) : item_count_max_(item_count_max) {}

  void push(Item item) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [this] { return items_.size() < item_count_max_; });
    items_.push_back(std::move(item));
    lock.unlock();
    not_empty_.notify_one();
  }

  // Returns false once the queue is closed and empty.
  bool pop(Item& item) {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (items_.empty()) return false;
    item = std::move(items_.front());
    items_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return true;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    not_empty_.notify_all();
  }

 private:
  const std::size_t item_count_max_;
  std::mutex mutex_;
  std::condition_variable not_empty_, not_full_;
  std::deque<Item> items_;
  bool closed_ = false;
};

// Permits to be in flight, taken when a message is admitted: a bound at the map would deadlock.
class Credits {
 public:
  explicit Credits(std::size_t count) : count_(count) {}

  void take_one() {
    std::unique_lock lock(mutex_);
    some_.wait(lock, [this] { return count_ > 0; });
    --count_;
  }

  void give(std::size_t count) {
    {
      const std::lock_guard lock(mutex_);
      count_ += count;
    }
    some_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable some_;
  std::size_t count_;
};

void reorder(Load& load, LockedQueue<Message>& done, Credits& credits) {
  std::unordered_map<std::uint64_t, Message> early;
  std::uint64_t next = 0;
  Message message;
  while (done.pop(message)) {
    if (message.id != next) {
      early.emplace(message.id, message);
      continue;
    }
    load.take(message);
    std::size_t released = 1;
    for (auto it = early.find(++next); it != early.end(); it = early.find(++next)) {
      load.take(it->second);
      early.erase(it);
      ++released;
    }
    credits.give(released);
  }
}

}  // namespace

void run_one_thread(Load& load) {
  load.begin();
  Message message;
  for (std::uint64_t id = 0; id < load.items(); ++id) {
    load.fill(message, id);
    load.work(message);
    load.take(message);
  }
}

void run_mutex_and_map(Load& load) {
  LockedQueue<Message> waiting(load.window());
  LockedQueue<Message> done(load.window());
  Credits credits(load.window());
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < load.workers(); ++i) {
    workers.emplace_back([&] {
      Message message;
      while (waiting.pop(message)) {
        load.work(message);
        done.push(message);
      }
    });
  }
  std::thread reorderer([&] { reorder(load, done, credits); });

  load.begin();
  Message message;
  for (std::uint64_t id = 0; id < load.items(); ++id) {
    load.fill(message, id);
    credits.take_one();
    waiting.push(message);
  }
  waiting.close();
  for (std::thread& worker : workers) {
    worker.join();
  }
  done.close();
  reorderer.join();
}

void run_futures(Load& load) {
  using Task = std::packaged_task<Message()>;
  LockedQueue<Task> tasks(load.window());
  LockedQueue<std::future<Message>> in_order(load.window());
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < load.workers(); ++i) {
    workers.emplace_back([&tasks] {
      Task task;
      while (tasks.pop(task)) {
        task();
      }
    });
  }
  std::thread consumer([&] {
    std::future<Message> future;
    while (in_order.pop(future)) {
      load.take(future.get());
    }
  });

  load.begin();
  Message message;
  for (std::uint64_t id = 0; id < load.items(); ++id) {
    load.fill(message, id);
    Task task([&load, message]() mutable {
      load.work(message);
      return message;
    });
    in_order.push(task.get_future());
    tasks.push(std::move(task));
  }
  tasks.close();
  in_order.close();
  for (std::thread& worker : workers) {
    worker.join();
  }
  consumer.join();
}

}  // namespace ordo::bench
