// Memory: flat however many items go through, and no allocation per item once the pool is warm.
// A program of its own, because it counts every operator new there is.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <new>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "ordo/pool/pool.h"
#include "tests/support/waiting.h"

namespace {

std::atomic<std::uint64_t>& allocations() {
  static std::atomic<std::uint64_t> count = 0;
  return count;
}

void* allocate(std::size_t size, std::size_t alignment) {
  allocations().fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  return alignment <= alignof(std::max_align_t) ? std::malloc(size)
                                                : std::aligned_alloc(alignment, rounded);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* memory = allocate(size == 0 ? 1 : size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate_or_throw(size, 1);
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 1);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace ordo {
namespace {

using testing_support::Background;
using testing_support::Watchdog;
using Number = std::uint64_t;
using NumberPool = Pool<Number, Number>;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
constexpr Number kItems = 400'000;
#else
constexpr bool kSanitized = false;
constexpr Number kItems = 10'000'000;
#endif
constexpr Number kWarm = 100'000;

std::size_t resident_bytes() {
  std::size_t total = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

struct Growth {
  std::uint64_t allocations = 0;  // After the first kWarm items.
  std::size_t resident_bytes = 0;
  Number taken = 0;
  Number sum = 0;
};

// Pushes from one thread and takes in another, `count` items in all.
Growth run(NumberPool& pool, Number count) {
  Background producer([&] {
    for (Number n = 0; n < count; ++n)
      pool.push(n);
    pool.close();
  });
  Growth growth;
  std::uint64_t allocations_warm = 0;
  std::size_t resident_warm = 0;
  while (growth.taken < count) {
    if (growth.taken == kWarm) {
      resident_warm = resident_bytes();
      allocations_warm = allocations().load();
    }
    growth.sum += pool.pop().value();
    ++growth.taken;
  }
  growth.allocations = allocations().load() - allocations_warm;
  const std::size_t resident = resident_bytes();
  growth.resident_bytes = resident > resident_warm ? resident - resident_warm : 0;
  return growth;
}

TEST(PoolMemoryTest, TenMillionItemsThroughAWindowOf64NeedNoMoreMemoryThanTheFirst) {
  Watchdog watchdog("10 million items");
  NumberPool pool([](Number n) { return n; },
                  {.workers = 2, .preserve_order = true, .order_buffer_size = 64});
  const Growth growth = run(pool, kItems);
  EXPECT_EQ(growth.sum, kItems * (kItems - 1) / 2);
  EXPECT_EQ(growth.allocations, 0u) << "allocations after " << kWarm << " items";
  if (!kSanitized) {
    EXPECT_LT(growth.resident_bytes, 2u << 20);
  }
}

TEST(PoolMemoryTest, WithoutOrderThereIsNoAllocationPerItemEither) {
  Watchdog watchdog("unordered");
  NumberPool pool([](Number n) { return n; }, {.workers = 2, .order_buffer_size = 64});
  const Growth growth = run(pool, 400'000);
  EXPECT_EQ(growth.taken, 400'000u);
  EXPECT_EQ(growth.allocations, 0u);
}

TEST(PoolMemoryTest, WithAFewKeysThereIsNoAllocationPerItemEither) {
  Watchdog watchdog("keyed");
  NumberPool pool(
      [](Number n) { return n; },
      {.workers = 2, .order_buffer_size = 64, .partition_key = [](Number n) { return n % 16; }});
  const Growth growth = run(pool, 400'000);
  EXPECT_EQ(growth.taken, 400'000u);
  // A lane may come and go with its key, but not with every item.
  EXPECT_LT(growth.allocations, 300'000u);
}

TEST(PoolMemoryTest, AMillionKeysUsedOnceCostNothingAfterwards) {
  Watchdog watchdog("keys used once");
  NumberPool pool(
      [](Number n) { return n; },
      {.workers = 2, .order_buffer_size = 64, .partition_key = [](Number n) { return n; }});
  const Growth growth = run(pool, kSanitized ? kItems : 1'000'000);
  if (!kSanitized) {
    EXPECT_LT(growth.resident_bytes, 2u << 20);
  }
}

}  // namespace
}  // namespace ordo
