// OutputQueue: bytes on their way to one socket. Small ones are put together, large ones shared.
//
//   OutputQueue output(store);
//   output.copy(frame);                       // small, or not ours
//   output.share(slice);                      // large: no copy
//   iovec pieces[64];
//   output.sent(writev(socket, pieces, output.gather(pieces)));
//
// A queue that is empty has next to no memory: it went back to the store of its I/O thread.
//
// Threads: one owner for a store and all queues of it.
// Bounds:  by its user; the store keeps up to 64 buffers of 64 KiB.
// Cost:    share() of up to kCopiedBytesMax bytes copies them: that is cheaper than a piece.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/uio.h>

#include "ordo/adapters/http2/slice.h"
#include "ordo/core/check.h"

namespace ordo::http2 {

class BufferStore {
 public:
  static constexpr std::size_t kBufferBytes = std::size_t{64} * 1024;

  std::string take() {
    if (buffers_.empty()) return {};
    std::string buffer = std::move(buffers_.back());
    buffers_.pop_back();
    return buffer;
  }
  void give(std::string buffer) {
    if (buffer.capacity() > 2 * kBufferBytes || buffers_.size() >= kBuffersMax) return;
    buffer.clear();
    buffers_.push_back(std::move(buffer));
  }

 private:
  static constexpr std::size_t kBuffersMax = 64;
  std::vector<std::string> buffers_;
};

class OutputQueue {
 public:
  static constexpr std::size_t kCopiedBytesMax = 1024;

  // REQUIRES: `store` outlives this.
  explicit OutputQueue(BufferStore& store) : store_(store) {}

  void copy(std::string_view bytes) {
    if (bytes.empty()) return;
    if (empty() || segments_.back().is_shared ||
        segments_.back().text.size() >= BufferStore::kBufferBytes) {
      segments_.push_back({.text = store_.take()});
    }
    segments_.back().text.append(bytes);
    size_ += bytes.size();
  }

  void share(Slice slice) {
    if (slice.bytes.size() <= kCopiedBytesMax) {
      copy(slice.bytes);
      return;
    }
    size_ += slice.bytes.size();
    segments_.push_back({.slice = std::move(slice), .is_shared = true});
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The first bytes, as pieces; how many there are.
  std::size_t gather(std::span<iovec> pieces) const {
    std::size_t count = 0;
    for (std::size_t i = first_; i < segments_.size() && count < pieces.size(); ++i) {
      std::string_view bytes = segments_[i].bytes();
      if (count == 0) bytes.remove_prefix(begin_);
      // sendmsg() takes no const, and does not write.
      pieces[count++] = {const_cast<char*>(bytes.data()), bytes.size()};
    }
    return count;
  }

  // The first `count` bytes are gone. REQUIRES: count <= size().
  void sent(std::size_t count) {
    ORDO_CHECK(count <= size_);
    size_ -= count;
    begin_ += count;
    while (first_ < segments_.size() && begin_ >= segments_[first_].bytes().size()) {
      Segment& gone = segments_[first_++];
      begin_ -= gone.bytes().size();
      if (!gone.is_shared) store_.give(std::move(gone.text));
      gone = {};
    }
    forget_gone();
  }

  // The socket takes no more for now: memory beyond the bytes that wait goes back to the store.
  void tighten() {
    if (empty() || segments_.back().is_shared) return;
    std::string& text = segments_.back().text;
    if (text.capacity() <= kTightBytes || text.capacity() <= 2 * text.size()) return;
    std::string copy(text);
    store_.give(std::exchange(text, std::move(copy)));
  }

 private:
  static constexpr std::size_t kTightBytes = 4096;
  static constexpr std::size_t kKeptMax = 8;  // Places of segments in an empty queue.
  static constexpr std::size_t kGoneMax = 64;

  struct Segment {
    std::string text{};
    Slice slice{};
    bool is_shared = false;
    std::string_view bytes() const { return is_shared ? slice.bytes : std::string_view(text); }
  };

  void forget_gone() {
    if (first_ == segments_.size()) {
      segments_.clear();
      if (segments_.capacity() > kKeptMax) segments_.shrink_to_fit();
      first_ = 0;
    } else if (first_ > kGoneMax && first_ > segments_.size() / 2) {
      segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

  BufferStore& store_;
  std::vector<Segment> segments_;
  std::size_t first_ = 0;  // Those before it are gone.
  std::size_t begin_ = 0;  // Of the first segment, what has been sent.
  std::size_t size_ = 0;
};

}  // namespace ordo::http2
