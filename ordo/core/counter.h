// Counter, SharedCounter: how often something happened, readable at any time from any thread.
//
//   struct Stats { Counter admitted; Counter rejected; };  // written by the one owner
//   stats.admitted.add();
//   show(stats.admitted.value());                          // any thread
//
//   SharedCounter requests;                                // written by every thread
//   requests.add();
//
// A Counter has one writer, so a plain load and store do; a locked instruction would cost several
// times as much. A SharedCounter gives each writing thread a cache line of its own to count on.
//
// Threads: value() any thread. Counter::add() one thread at a time; SharedCounter::add() any.
// Bounds:  64 bits. Counter 8 bytes; SharedCounter 1 KiB.
// Cost:    add() no locked instruction (Counter), one on an uncontended line (SharedCounter).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ordo {

class Counter {
 public:
  void add(std::uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class SharedCounter {
 public:
  void add(std::uint64_t n = 1) {
    shards_[shard_of_this_thread()].value.fetch_add(n, std::memory_order_relaxed);
  }

  // What has been added by all that happened before this call, and perhaps some of what happens
  // meanwhile. Never less than an earlier call of the same thread saw.
  std::uint64_t value() const {
    std::uint64_t sum = 0;
    for (const Shard& shard : shards_) {
      sum += shard.value.load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  static constexpr std::size_t kShardCount = 16;
  static constexpr std::size_t kCacheLineBytes = 64;

  struct alignas(kCacheLineBytes) Shard {
    std::atomic<std::uint64_t> value{0};
  };

  // Threads are dealt out in turn: up to kShardCount of them share no line.
  static std::size_t shard_of_this_thread() {
    static std::atomic<std::size_t> thread_count{0};
    thread_local const std::size_t shard =
        thread_count.fetch_add(1, std::memory_order_relaxed) % kShardCount;
    return shard;
  }

  std::array<Shard, kShardCount> shards_;
};

}  // namespace ordo
