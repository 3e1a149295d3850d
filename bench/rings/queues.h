// The queues of bench_rings: ours, and those of others behind the same three calls.
//
// Each queue waits in its own way where it has one (Ordo's policies, moodycamel's blocking forms);
// where it has none, the policy says what to do between two tries (hand_over.h).
//
// Threads, bounds: the queue's own; kRingCapacity items, or about as many for those that grow.
#pragma once

#include <blockingconcurrentqueue.h>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <readerwritercircularbuffer.h>
#include <readerwriterqueue.h>

#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>

#include "bench/rings/hand_over.h"
#include "ordo/runtime/mpsc_ring.h"
#include "ordo/runtime/spsc_ring.h"

namespace ordo::bench {

// Ours, with any waiting policy.
template <class Ring>
class OrdoQueue {
 public:
  void push(const Item& item) { ring_.push(item); }
  void push_n(const Item* items, std::size_t count) { ring_.push_n(items, count); }
  template <class Function>
  std::size_t consume(Function&& function) {
    return ring_.consume(kConsumedMax, function);
  }

 private:
  Ring ring_{kRingCapacity};
};

// What one writes without a library.
class LockedQueue {
 public:
  void push(const Item& item) { push_n(&item, 1); }
  void push_n(const Item* items, std::size_t count) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return items_.size() + count <= kRingCapacity; });
    items_.insert(items_.end(), items, items + count);
    lock.unlock();
    not_empty_.notify_one();
  }
  template <class Function>
  std::size_t consume(Function&& function) {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return !items_.empty(); });
    const Item item = items_.front();
    items_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    function(item);
    return 1;
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::deque<Item> items_;
};

template <class Waiting>
class ReaderWriter {
 public:
  void push(const Item& item) {
    while (!queue_.try_enqueue(item))
      Waiting::wait();
  }
  void push_n(const Item* items, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      push(items[i]);
  }
  template <class Function>
  std::size_t consume(Function&& function) {
    Item item;
    while (!queue_.try_dequeue(item))
      Waiting::wait();
    function(item);
    return 1;
  }

 private:
  moodycamel::ReaderWriterQueue<Item> queue_{kRingCapacity};
};

// The bounded one of the same author: it blocks on both sides.
class ReaderWriterBlocking {
 public:
  void push(const Item& item) { queue_.wait_enqueue(item); }
  void push_n(const Item* items, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      push(items[i]);
  }
  template <class Function>
  std::size_t consume(Function&& function) {
    Item item;
    queue_.wait_dequeue(item);
    function(item);
    return 1;
  }

 private:
  moodycamel::BlockingReaderWriterCircularBuffer<Item> queue_{kRingCapacity};
};

// Consumed in bulk, which is what it is made for, with a token for each side. It grows: held to its
// first memory (try_enqueue) it sometimes stood still for ever with two producers.
template <class Waiting>
class Concurrent {
 public:
  void push(const Item& item) { queue_.enqueue(token(), item); }
  void push_n(const Item* items, std::size_t count) { queue_.enqueue_bulk(token(), items, count); }
  template <class Function>
  std::size_t consume(Function&& function) {
    std::size_t count = 0;
    while ((count = queue_.try_dequeue_bulk(consumer_, items_, kConsumedMax)) == 0)
      Waiting::wait();
    for (std::size_t i = 0; i < count; ++i)
      function(items_[i]);
    return count;
  }

 private:
  moodycamel::ProducerToken& token() {
    static thread_local moodycamel::ProducerToken mine(queue_);
    return mine;
  }

  moodycamel::ConcurrentQueue<Item> queue_{kRingCapacity, 4, 4};
  moodycamel::ConsumerToken consumer_{queue_};
  Item items_[kConsumedMax];
};

class ConcurrentBlocking {
 public:
  void push(const Item& item) { queue_.enqueue(token(), item); }
  void push_n(const Item* items, std::size_t count) { queue_.enqueue_bulk(token(), items, count); }
  template <class Function>
  std::size_t consume(Function&& function) {
    const std::size_t count = queue_.wait_dequeue_bulk(consumer_, items_, kConsumedMax);
    for (std::size_t i = 0; i < count; ++i)
      function(items_[i]);
    return count;
  }

 private:
  moodycamel::ProducerToken& token() {
    static thread_local moodycamel::ProducerToken mine(queue_);
    return mine;
  }

  moodycamel::BlockingConcurrentQueue<Item> queue_{kRingCapacity, 4, 4};
  moodycamel::ConsumerToken consumer_{queue_};
  Item items_[kConsumedMax];
};

template <class Waiting>
class BoostSpsc {
 public:
  void push(const Item& item) {
    while (!queue_.push(item))
      Waiting::wait();
  }
  void push_n(const Item* items, std::size_t count) {
    while (count > 0) {
      const std::size_t pushed = queue_.push(items, count);
      items += pushed;
      count -= pushed;
      if (pushed == 0) Waiting::wait();
    }
  }
  template <class Function>
  std::size_t consume(Function&& function) {
    std::size_t count = 0;
    while ((count = queue_.consume_all(function)) == 0)
      Waiting::wait();
    return count;
  }

 private:
  boost::lockfree::spsc_queue<Item> queue_{kRingCapacity};
};

template <class Waiting>
class BoostQueue {
 public:
  void push(const Item& item) {
    while (!queue_.bounded_push(item))
      Waiting::wait();
  }
  void push_n(const Item* items, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      push(items[i]);
  }
  template <class Function>
  std::size_t consume(Function&& function) {
    Item item;
    while (!queue_.pop(item))
      Waiting::wait();
    function(item);
    return 1;
  }

 private:
  boost::lockfree::queue<Item> queue_{kRingCapacity};
};

}  // namespace ordo::bench
