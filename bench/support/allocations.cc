#include "bench/support/allocations.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace ordo::bench {
namespace {

struct alignas(64) Cell {
  std::atomic<std::uint64_t> count{0};
};

constexpr std::size_t kCellCount = 256;  // Threads beyond it share cells; the count stays exact.
constinit std::array<Cell, kCellCount> cells;
constinit std::atomic<std::size_t> threads_seen{0};
constinit thread_local Cell* own_cell = nullptr;

void count_one() {
  if (own_cell == nullptr) own_cell = &cells[threads_seen.fetch_add(1) % kCellCount];
  own_cell->count.fetch_add(1, std::memory_order_relaxed);
}

void* allocate(std::size_t size, std::size_t alignment) {
  count_one();
  if (size == 0) size = 1;
  void* memory = nullptr;
  if (alignment <= alignof(std::max_align_t)) {
    memory = std::malloc(size);
  } else {
    memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  }
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

std::uint64_t allocation_count() {
  std::uint64_t total = 0;
  for (const Cell& cell : cells) {
    total += cell.count.load(std::memory_order_relaxed);
  }
  return total;
}

}  // namespace ordo::bench

void* operator new(std::size_t size) {
  return ordo::bench::allocate(size, alignof(std::max_align_t));
}
void* operator new[](std::size_t size) {
  return ordo::bench::allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return ordo::bench::allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return ordo::bench::allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept {
  return operator new(size, tag);
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
