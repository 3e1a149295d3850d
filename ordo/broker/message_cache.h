// MessageCache: messages of a partition that are in memory, found by offset.
//
//   MessageCache cache(32 << 20, 8 << 20);
//   cache.append(batch);                      // just committed: the newest
//   cache.keep(read_batch);                   // came from the store
//   if (Message message = cache.find(offset)) deliver(message);
//
// Two parts: the newest messages, one unbroken piece of the log up to its end; and batches that
// were read, each forgotten when those read after it need the room.
//
// Threads: one owner.
// Bounds:  bytes of each part as given, but at least the last batch of it.
// Cost:    O(1) to append and for the newest, O(log batches read) for others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "ordo/broker/ids.h"
#include "ordo/broker/message.h"

namespace ordo::broker {

class MessageCache {
 public:
  MessageCache(std::size_t newest_bytes_max, std::size_t read_bytes_max)
      : newest_bytes_max_(newest_bytes_max),
        read_bytes_max_(read_bytes_max),
        span_max_(newest_bytes_max / sizeof(MessageBatch::Entry)) {}

  // REQUIRES: `batch` is committed and begins at or after the end of the one appended before.
  void append(std::shared_ptr<const MessageBatch> batch);

  void keep(std::shared_ptr<const MessageBatch> batch);

  // The message, or none if it is not in memory (or does not exist).
  Message find(Offset offset) const;

  // The newest part begins here; offsets from here on that are not found do not exist. Nothing: it
  // is empty.
  bool covers(Offset offset) const { return !batches_.empty() && offset >= first_; }

  // What was read of it is not to be used again.
  void forget_read(Offset offset);

  // Messages below are not needed any more.
  void forget_below(Offset offset);

  std::size_t bytes() const { return newest_bytes_ + read_bytes_; }

 private:
  static std::size_t cost_of(const MessageBatch& batch) {
    return batch.bytes.size() + batch.entries.size() * sizeof(MessageBatch::Entry) +
           sizeof(MessageBatch);
  }
  void drop_oldest();
  void drop_oldest_read();
  void grow_slots();

  const std::size_t newest_bytes_max_;
  const std::size_t read_bytes_max_;
  const std::size_t span_max_;  // Offsets of the newest part; only gaps can make it longer.

  // For each offset from first_ to end_ the sequence of its batch, in a ring.
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint32_t kSequenceMask = 0x7fffffff;  // They wrap, and are never kNone.
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(64, kNone);
  Offset first_ = Offset(1);
  Offset end_ = Offset(1);
  std::deque<std::shared_ptr<const MessageBatch>> batches_;
  std::uint32_t first_sequence_ = 0;
  std::size_t newest_bytes_ = 0;

  std::map<Offset, std::shared_ptr<const MessageBatch>> read_;  // By first offset.
  std::deque<Offset> read_order_;
  std::size_t read_bytes_ = 0;
};

}  // namespace ordo::broker
