// Slab: objects of one type that keep their address, named by a 32-bit index, reused when freed.
//
//   struct Node { std::uint32_t next; ... };  // `next` is free for use while the node is taken
//   Slab<Node> nodes;
//   std::uint32_t index = nodes.acquire();
//   nodes[index].next = kNoIndex;
//   nodes.release(index);
//
// An object is constructed when its place is used for the first time and destroyed with the slab;
// in between it only goes from hand to hand. Chunks double in size, so there are few of them.
//
// Threads: one owner.
// Bounds:  as many objects as were taken at the same time, ever; at most 2^32 - 64.
// Cost:    O(1); allocates only when more objects are taken than ever before.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "ordo/core/check.h"

namespace ordo {

inline constexpr std::uint32_t kNoIndex = std::numeric_limits<std::uint32_t>::max();

template <class T>
class Slab {
 public:
  static constexpr std::uint32_t kCountMax = kNoIndex - 63;

  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() { clear(); }

  // An object in the state in which it was released, or a new one.
  std::uint32_t acquire() {
    if (first_free_ != kNoIndex) {
      const std::uint32_t index = first_free_;
      first_free_ = (*this)[index].next;
      return index;
    }
    ORDO_CHECK(count_ < kCountMax);
    const Place place = place_of(count_);
    if (place.offset == 0) chunks_[place.chunk] = allocate(chunk_size(place.chunk));
    std::construct_at(chunks_[place.chunk] + place.offset);
    return count_++;
  }

  // REQUIRES: `index` was acquired and not yet released.
  void release(std::uint32_t index) {
    (*this)[index].next = first_free_;
    first_free_ = index;
  }

  T& operator[](std::uint32_t index) {
    const Place place = place_of(index);
    return chunks_[place.chunk][place.offset];
  }
  const T& operator[](std::uint32_t index) const {
    const Place place = place_of(index);
    return chunks_[place.chunk][place.offset];
  }

  // Objects ever taken at the same time: all indexes are below this.
  std::uint32_t peak_count() const { return count_; }

  // Destroys all objects, taken or not, and gives their memory back.
  void clear() {
    for (std::uint32_t index = 0; index < count_; ++index) {
      std::destroy_at(&(*this)[index]);
    }
    for (std::size_t chunk = 0; chunk < chunks_.size() && chunks_[chunk] != nullptr; ++chunk) {
      std::allocator<T>().deallocate(chunks_[chunk], chunk_size(chunk));
      chunks_[chunk] = nullptr;
    }
    count_ = 0;
    first_free_ = kNoIndex;
  }

 private:
  static constexpr std::uint32_t kFirstChunkSize = 64;
  static constexpr int kFirstChunkBits = 7;  // bit_width(kFirstChunkSize)

  struct Place {
    std::size_t chunk;
    std::size_t offset;
  };

  static std::size_t chunk_size(std::size_t chunk) { return std::size_t{kFirstChunkSize} << chunk; }
  static T* allocate(std::size_t count) { return std::allocator<T>().allocate(count); }

  // Chunk c holds the indexes from 64 * (2^c - 1) on, so index + 64 has its size as leading bit.
  static Place place_of(std::uint32_t index) {
    const std::uint32_t shifted = index + kFirstChunkSize;
    const auto chunk = static_cast<std::size_t>(std::bit_width(shifted) - kFirstChunkBits);
    return {chunk, shifted - chunk_size(chunk)};
  }

  std::array<T*, 32 - kFirstChunkBits + 1> chunks_{};
  std::uint32_t count_ = 0;
  std::uint32_t first_free_ = kNoIndex;  // The rest of the free ones hang on `next`.
};

}  // namespace ordo
