// Goal: once the peak was reached, items pass without a single allocation. Method: this binary
// counts every operator new.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/lane/deadline_queue.h"
#include "ordo/lane/keyed_queue.h"
#include "ordo/lane/reorder_window.h"

namespace {

std::atomic<std::uint64_t>& allocation_count() {
  static std::atomic<std::uint64_t> count{0};
  return count;
}

void* counted(void* memory) {
  ++allocation_count();
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(std::malloc(size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(align, (size + align - 1) / align * align));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace ordo {
namespace {

// How many allocations the second and third run of `work` make; the first reaches the peak.
template <class Work>
std::uint64_t allocations_after_the_first(Work&& work) {
  work();
  const std::uint64_t before = allocation_count();
  work();
  work();
  return allocation_count() - before;
}

TEST(AllocationTest, AKeyedQueueAllocatesNothingOnceItsPeakWasReached) {
  std::vector<std::string> keys;
  for (int i = 0; i < 200; ++i) {
    keys.push_back("a key of more than sixteen bytes " + std::to_string(1'000 + i));
  }
  KeyedQueue<std::string, std::uint64_t> queue(1'000);
  std::uint64_t refused = 0;
  const std::uint64_t allocations = allocations_after_the_first([&] {
    for (int round = 0; round < 3; ++round) {
      for (const std::string& key : keys) {
        if (queue.push(key, 1u) != Admission::admitted) ++refused;
      }
    }
    while (auto turn = queue.take()) {
      if (turn->attempt == 1) {
        queue.give_back(turn->lane, TimePoint{});
      } else {
        queue.finish(turn->lane);
      }
      if (queue.ready_count() == 0) queue.wake(TimePoint{});
    }
  });
  EXPECT_EQ(allocations, 0u);
  EXPECT_EQ(refused, 0u);
  EXPECT_EQ(queue.key_count(), 0u);
}

TEST(AllocationTest, AReorderWindowAllocatesNothingPerItem) {
  ReorderWindow<std::uint64_t> window(64);
  const std::uint64_t allocations = allocations_after_the_first([&] {
    while (auto sequence = window.admit())
      window.complete(*sequence, *sequence);
    window.release([](std::uint64_t, std::uint64_t) {});
  });
  EXPECT_EQ(allocations, 0u);
}

TEST(AllocationTest, ADeadlineQueueAllocatesNothingOnceItsPeakWasReached) {
  DeadlineQueue<std::uint64_t> queue;
  std::uint64_t next = 0;
  const std::uint64_t allocations = allocations_after_the_first([&] {
    for (int i = 0; i < 500; ++i) {
      queue.add(next++, TimePoint{} + std::chrono::nanoseconds(i % 7));
    }
    while (queue.pop_expired(TimePoint::max())) {
    }
  });
  EXPECT_EQ(allocations, 0u);
}

}  // namespace
}  // namespace ordo
