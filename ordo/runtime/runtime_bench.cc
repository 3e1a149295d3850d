// What it costs to hand an item from one thread to another, and to keep time.
//
// Shape of the ring rows: producers on their own threads push 64-byte items, the benchmark's thread
// consumes; an item's time is 1 / items_per_second. The last argument is the number of items, so
// that the small sizes run in every build. The sum of what came out is checked, so a row that lost
// an item fails.
// The consumer stays on the first core and the producers on the second, if there are two: on a busy
// machine they would otherwise take turns on one core, where no cache line travels, and a blocking
// ring would look several times faster than it is. Measure on a quiet machine: a spinning thread
// that shares its core measures its neighbour.
// Questions they answer: does a single producer stay below 35 ns spinning, 70 ns blocking and 8 ns
// in batches of 64, and do two producers stay below 70 ns yielding and 110 ns blocking? What does a
// mutex with a condition variable cost in the same run?
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "ordo/core/check.h"
#include "ordo/runtime/channel.h"
#include "ordo/runtime/event_count.h"
#include "ordo/runtime/loop.h"
#include "ordo/runtime/mpsc_ring.h"
#include "ordo/runtime/spsc_ring.h"
#include "ordo/runtime/timer.h"

namespace ordo {
namespace {

struct Item {
  std::uint64_t number;
  std::uint64_t rest[7];
};
static_assert(sizeof(Item) == 64);

constexpr std::size_t kCapacity = 4096;

// The rival: what one writes without a library.
class NaiveQueue {
 public:
  explicit NaiveQueue(std::size_t capacity) : capacity_(capacity) {}
  bool push(const Item& item) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [this] { return items_.size() < capacity_; });
    items_.push_back(item);
    lock.unlock();
    not_empty_.notify_one();
    return true;
  }
  template <class Function>
  std::size_t consume(std::size_t /*max*/, Function&& function) {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return !items_.empty(); });
    Item item = items_.front();
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
  const std::size_t capacity_;
};

// The channel with the rings' interface: a lock per batch on the consumer's side.
class ChannelQueue {
 public:
  explicit ChannelQueue(std::size_t capacity) : channel_({.items_max = capacity}) {}
  bool push(const Item& item) { return channel_.push(Item(item)) == ChannelPush::admitted; }
  template <class Function>
  std::size_t consume(std::size_t max, Function&& function) {
    batch_.clear();
    const std::size_t count = channel_.pop_some(batch_, max);
    for (Item& item : batch_)
      function(item);
    return count;
  }

 private:
  Channel<Item> channel_;
  std::vector<Item> batch_;
};

// A thread starts on the cores of the one that made it: a producer that did not move would
// share the consumer's core.
const bool kTwoCores = std::thread::hardware_concurrency() >= 2;

// The calling thread on one core, if there are two, and wherever it was before at the end.
class StayOnCore {
 public:
  explicit StayOnCore(std::size_t core) {
    ORDO_CHECK(::pthread_getaffinity_np(::pthread_self(), sizeof(before_), &before_) == 0);
    if (!kTwoCores) return;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    ORDO_CHECK(::pthread_setaffinity_np(::pthread_self(), sizeof(cores), &cores) == 0);
    ORDO_CHECK(static_cast<std::size_t>(::sched_getcpu()) == core);
  }
  StayOnCore(const StayOnCore&) = delete;
  StayOnCore& operator=(const StayOnCore&) = delete;
  ~StayOnCore() { ::pthread_setaffinity_np(::pthread_self(), sizeof(before_), &before_); }

 private:
  cpu_set_t before_{};
};

template <class Queue, std::size_t kBatch>
void produce(Queue& queue, std::uint64_t first, std::uint64_t last) {
  if constexpr (kBatch == 1) {
    for (std::uint64_t number = first; number < last; ++number)
      queue.push(Item{number, {}});
  } else {
    std::vector<Item> batch(kBatch);
    for (std::uint64_t number = first; number < last;) {
      const std::size_t count = std::min<std::size_t>(kBatch, last - number);
      for (std::size_t i = 0; i < count; ++i)
        batch[i].number = number + i;
      number += queue.push_n(batch.begin(), count);
    }
  }
}

template <class Queue, std::size_t kProducers, std::size_t kBatch = 1>
void hand_over(benchmark::State& state) {
  const auto count = static_cast<std::uint64_t>(state.range(0));
  const StayOnCore consumer_core(0);
  for (auto _ : state) {
    Queue queue(kCapacity);
    std::vector<std::thread> producers;
    for (std::uint64_t i = 0; i < kProducers; ++i) {
      producers.emplace_back(
          [&queue, first = count * i / kProducers, last = count * (i + 1) / kProducers] {
            const StayOnCore producer_core(1);
            produce<Queue, kBatch>(queue, first, last);
          });
    }
    std::uint64_t sum = 0;
    for (std::uint64_t done = 0; done < count;)
      done += queue.consume(256, [&sum](Item& item) { sum += item.number; });
    for (auto& producer : producers)
      producer.join();
    if (sum != count * (count - 1) / 2) state.SkipWithError("an item was lost or doubled");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

#define ORDO_RING_BENCH(name, ...)    \
  BENCHMARK(hand_over<__VA_ARGS__>)   \
      ->Name(name)                    \
      ->UseRealTime()                 \
      ->Unit(benchmark::kMillisecond) \
      ->Arg(1 << 10)                  \
      ->Arg(1 << 20)
using SpscSpin = SpscRing<Item, SpinWait>;
using SpscYield = SpscRing<Item, YieldWait>;
using SpscBlock = SpscRing<Item, BlockWait>;
using MpscSpin = MpscRing<Item, SpinWait>;
using MpscYield = MpscRing<Item, YieldWait>;
using MpscBlock = MpscRing<Item, BlockWait>;
ORDO_RING_BENCH("one_producer/spsc_spin", SpscSpin, 1);
ORDO_RING_BENCH("one_producer/spsc_yield", SpscYield, 1);
ORDO_RING_BENCH("one_producer/spsc_block", SpscBlock, 1);
ORDO_RING_BENCH("one_producer/spsc_spin_batch_64", SpscSpin, 1, 64);
ORDO_RING_BENCH("one_producer/spsc_block_batch_64", SpscBlock, 1, 64);
ORDO_RING_BENCH("one_producer/mpsc_spin", MpscSpin, 1);
ORDO_RING_BENCH("one_producer/mpsc_block", MpscBlock, 1);
ORDO_RING_BENCH("one_producer/mpsc_block_batch_64", MpscBlock, 1, 64);
ORDO_RING_BENCH("one_producer/channel", ChannelQueue, 1);
ORDO_RING_BENCH("one_producer/mutex_and_condition", NaiveQueue, 1);
ORDO_RING_BENCH("two_producers/mpsc_yield", MpscYield, 2);
ORDO_RING_BENCH("two_producers/mpsc_block", MpscBlock, 2);
ORDO_RING_BENCH("two_producers/mpsc_block_batch_64", MpscBlock, 2, 64);
ORDO_RING_BENCH("two_producers/channel", ChannelQueue, 2);
ORDO_RING_BENCH("two_producers/mutex_and_condition", NaiveQueue, 2);

// May every push call notify_one()? What it costs while nobody waits.
void event_count_notify_nobody(benchmark::State& state) {
  EventCount event;
  for (auto _ : state) {
    event.notify_one();
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(event_count_notify_nobody);

// What going to sleep costs before the sleep itself: announcement, heavy fence, and back.
void event_count_prepare_and_cancel(benchmark::State& state) {
  EventCount event;
  for (auto _ : state) {
    benchmark::DoNotOptimize(event.prepare());
    event.cancel();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(event_count_prepare_and_cancel);

// How long a sleeping thread takes to answer: there and back through two event counts.
void event_count_round_trip(benchmark::State& state) {
  EventCount there;
  EventCount back;
  std::atomic<std::uint64_t> asked{0};
  std::atomic<std::uint64_t> answered{0};
  std::atomic<bool> done{false};
  const auto await = [](EventCount& event, auto ready) {
    while (!ready()) {
      const EventCount::Ticket ticket = event.prepare();
      if (ready()) {
        event.cancel();
        return;
      }
      event.wait(ticket);
    }
  };
  std::thread echo([&] {
    for (std::uint64_t next = 1; !done.load(); ++next) {
      await(there, [&] { return asked.load() >= next || done.load(); });
      answered.store(next);
      back.notify_one();
    }
  });
  std::uint64_t round = 0;
  for (auto _ : state) {
    ++round;
    asked.store(round);
    there.notify_one();
    await(back, [&] { return answered.load() >= round; });
  }
  done.store(true);
  there.notify_one();
  echo.join();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(event_count_round_trip)->UseRealTime();

// May every delivered message have a timer? Schedule and cancel one among many others.
void timer_schedule_and_cancel(benchmark::State& state) {
  Timer timer;
  const TimePoint far = system_clock().now() + std::chrono::hours(1);
  for (std::int64_t i = 0; i < state.range(0); ++i)
    timer.schedule(far + std::chrono::nanoseconds(i * 7), [] {});
  for (auto _ : state) {
    const TimerId id = timer.schedule(far + std::chrono::milliseconds(1), [] {});
    if (!timer.cancel(id)) state.SkipWithError("the timer ran before its time");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(timer_schedule_and_cancel)->Arg(1)->Arg(1 << 10)->Arg(1 << 18);

// May a partition take each request as a task? Posts from one thread, run on the loop's.
void loop_post(benchmark::State& state) {
  const std::int64_t count = state.range(0);
  for (auto _ : state) {
    Loop loop({.tasks_max = kCapacity});
    std::int64_t ran = 0;
    for (std::int64_t i = 0; i < count; ++i)
      loop.post([&ran] { ++ran; });
    if (loop.stop(TimePoint::max()).tasks != 0 || ran != count)
      state.SkipWithError("a task was not run");
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(loop_post)->UseRealTime()->Unit(benchmark::kMillisecond)->Arg(1 << 10)->Arg(1 << 20);

}  // namespace
}  // namespace ordo
