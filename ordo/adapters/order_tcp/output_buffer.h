// OutputBuffer: replies that have not been sent yet, as bytes. BlockStore: where its memory rests.
//
//   BlockStore store;
//   OutputBuffer output(store);
//   char* end = encode_into(output.room(128));      // at most 128 bytes
//   output.added(end);
//   output.sent(send(fd, output.unsent()));
//
// A connection that owes nothing has no buffer: its memory went back to the store of its I/O
// thread, where the next one takes it. So thousands of idle connections cost nothing, and busy
// ones do not allocate.
//
// Threads: one owner for a store and all buffers of it.
// Bounds:  the store keeps up to kStoredBytesMax bytes; a buffer is bounded by its user.
// Cost:    room() is a comparison; growing doubles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/core/check.h"

namespace ordo::order_tcp {

struct Block {
  std::unique_ptr<char[]> bytes{};
  std::size_t size = 0;
};

class BlockStore {
 public:
  static constexpr std::size_t kBlockBytesMin = std::size_t{16} * 1024;
  static constexpr std::size_t kStoredBytesMax = std::size_t{8} * 1024 * 1024;

  // A block of at least `size` bytes.
  Block take(std::size_t size) {
    if (!blocks_.empty() && blocks_.back().size >= size) {
      Block block = std::move(blocks_.back());
      blocks_.pop_back();
      stored_bytes_ -= block.size;
      return block;
    }
    std::size_t rounded = kBlockBytesMin;
    while (rounded < size)
      rounded *= 2;
    return {std::unique_ptr<char[]>(new char[rounded]), rounded};
  }

  void give(Block block) {
    if (block.size == 0 || stored_bytes_ + block.size > kStoredBytesMax) return;
    stored_bytes_ += block.size;
    blocks_.push_back(std::move(block));
  }

  std::size_t stored_bytes() const { return stored_bytes_; }

 private:
  std::vector<Block> blocks_;
  std::size_t stored_bytes_ = 0;
};

class OutputBuffer {
 public:
  // REQUIRES: `store` outlives this.
  explicit OutputBuffer(BlockStore& store) : store_(&store) {}
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;
  ~OutputBuffer() { store_->give(std::move(block_)); }

  // Where `size` more bytes may be written; added() says how far they were.
  char* room(std::size_t size) {
    if (block_.size - end_ < size) grow(size);
    return block_.bytes.get() + end_;
  }
  void added(const char* end) {
    end_ = static_cast<std::size_t>(end - block_.bytes.get());
    ORDO_CHECK(end_ <= block_.size);
  }

  std::string_view unsent() const { return {block_.bytes.get() + begin_, end_ - begin_}; }
  std::size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }

  // The first `count` bytes of unsent() are gone.
  void sent(std::size_t count) {
    ORDO_CHECK(count <= size());
    begin_ += count;
    if (empty()) clear();
  }
  void clear() {
    store_->give(std::exchange(block_, {}));
    begin_ = end_ = 0;
  }

 private:
  void grow(std::size_t size) {
    const std::size_t held = end_ - begin_;
    const bool is_enough_in_front = begin_ >= held && block_.size - held >= size;
    if (is_enough_in_front) {
      std::memcpy(block_.bytes.get(), block_.bytes.get() + begin_, held);
    } else {
      // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the store takes or frees it.
      Block larger = store_->take(std::max(held + size, block_.size * 2));
      if (held > 0) std::memcpy(larger.bytes.get(), block_.bytes.get() + begin_, held);
      std::swap(block_, larger);
      store_->give(std::move(larger));
    }
    begin_ = 0;
    end_ = held;
  }

  BlockStore* store_;
  Block block_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace ordo::order_tcp
