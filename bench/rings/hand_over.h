// hand_over: what it costs to bring a 64-byte item from one thread to another through a queue.
//
// A queue is a class with push(item), push_n(items, count) and consume(function); a waiting
// policy is part of it. Producers push numbered items, the calling thread consumes them, and
// nothing else happens, so that the cache lines that travel are what is measured.
//
//   Measures run = hand_over<OrdoRing<SpscRing<Item, SpinWait>>>({.producers = 1, .batch = 64});
//   run.get("ns_per_item"), run.get("errors")
//
// The consumer stays on the first core and the producers on the second, if there are two: threads
// that take turns on one core send no cache line anywhere, and a blocking queue would look several
// times faster than it is. A run checks that every producer's items came once and in order.
//
// Threads: makes the producers; blocks until they are done.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

#include "bench/support/measures.h"
#include "bench/support/usage.h"

namespace ordo::bench {

struct Item {
  std::uint64_t number = 0;
  std::uint64_t producer = 0;
  std::uint64_t rest[6] = {};
};
static_assert(sizeof(Item) == 64);

inline constexpr std::size_t kRingCapacity = 4096;
inline constexpr std::size_t kConsumedMax = 256;  // At a time.

struct HandOverPlan {
  std::size_t producers = 1;
  std::size_t batch = 1;
  std::uint64_t items = 1 << 20;
};

inline void stay_on_core(std::size_t core) {
  if (machine_processors() < 2) return;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

// What a thread does between two looks at a queue that has nothing for it.
struct Spin {
  static void wait() { __builtin_ia32_pause(); }
};
struct Yield {
  static void wait() { std::this_thread::yield(); }
};

template <class Queue>
void produce(Queue& queue, const HandOverPlan& plan, std::uint64_t producer) {
  const std::uint64_t count = plan.items / plan.producers;
  if (plan.batch == 1) {
    for (std::uint64_t number = 0; number < count; ++number)
      queue.push(Item{.number = number, .producer = producer});
    return;
  }
  std::vector<Item> items(plan.batch, Item{.producer = producer});
  for (std::uint64_t number = 0; number < count; number += plan.batch) {
    for (std::size_t i = 0; i < plan.batch; ++i)
      items[i].number = number + i;
    queue.push_n(items.data(), plan.batch);
  }
}

// How long a cache line takes from the first core to the second and back, just now: on a rented
// machine the two may be neighbours this minute and far apart the next.
inline double line_round_trip_ns() {
  constexpr int kTrips = 2'000;
  alignas(64) std::atomic<int> ball{0};
  std::thread other([&] {
    stay_on_core(1);
    for (int i = 1; i < 2 * kTrips; i += 2) {
      while (ball.load(std::memory_order_acquire) != i)
        Spin::wait();
      ball.store(i + 1, std::memory_order_release);
    }
  });
  stay_on_core(0);
  const std::uint64_t begin = now_ns();
  std::uint64_t middle = begin;
  for (int i = 0; i < 2 * kTrips; i += 2) {
    if (i == kTrips) middle = now_ns();  // The thread may not have run at once.
    ball.store(i + 1, std::memory_order_release);
    while (ball.load(std::memory_order_acquire) != i + 2)
      Spin::wait();
  }
  const std::uint64_t end = now_ns();
  other.join();
  return static_cast<double>(end - middle) / (kTrips / 2);
}

// REQUIRES: plan.items is a multiple of producers times batch.
template <class Queue>
Measures hand_over(const HandOverPlan& plan) {
  const double line_ns = line_round_trip_ns();
  Queue queue;
  std::atomic<std::size_t> ready{0};
  std::vector<std::thread> producers;
  for (std::size_t i = 0; i < plan.producers; ++i) {
    producers.emplace_back([&, i] {
      stay_on_core(1);
      ready.fetch_add(1);
      while (ready.load() <= plan.producers)
        std::this_thread::yield();
      produce(queue, plan, i);
    });
  }
  stay_on_core(0);
  while (ready.load() < plan.producers)
    std::this_thread::yield();
  std::vector<std::uint64_t> next(plan.producers);
  std::uint64_t errors = 0;
  const std::uint64_t begin = now_ns();
  ready.fetch_add(1);
  for (std::uint64_t done = 0; done < plan.items;) {
    done += queue.consume([&](const Item& item) {
      std::uint64_t& expected = next[item.producer];
      errors += item.number != expected ? 1 : 0;
      expected = item.number + 1;
    });
  }
  const std::uint64_t end = now_ns();
  for (std::thread& producer : producers)
    producer.join();
  Measures measures;
  measures.set("ns_per_item", static_cast<double>(end - begin) / static_cast<double>(plan.items));
  measures.set("line_ns", line_ns);
  measures.set("errors", static_cast<double>(errors));
  return measures;
}

}  // namespace ordo::bench
