// Message: one stored message, a share of the batch it was published with.
//
//   std::shared_ptr<MessageBatch> batch = MessageBatch::make(bodies, first_offset, publish_time);
//   Message second(batch, 1);
//   second.key(), second.body(), second.id()
//
// The body is the wire form of google.pubsub.v1.PubsubMessage without message_id and publish_time
// (fields 1 data, 2 attributes, 5 ordering_key), so that it can be sent without being parsed; see
// message_codec.h. A batch is what one request stored: all or none, in order, in one partition.
//
// Threads: a batch is written by its one owner until it is committed, and read by all after that.
// Cost:    a batch is two allocations, a Message one reference count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/broker/ids.h"
#include "ordo/core/check.h"
#include "ordo/core/hash.h"

namespace ordo::broker {

// A message on its way in: validated, encoded, not yet stored.
struct MessageBody {
  std::string bytes;           // The wire form; contains the key.
  std::uint32_t key_at = 0;    // Where in bytes the ordering key stands.
  std::uint32_t key_size = 0;  // 0: no key.

  std::string_view key() const { return std::string_view(bytes).substr(key_at, key_size); }
};

// Over a body, from publish to delivery.
inline std::uint32_t body_checksum(std::string_view body) {
  return static_cast<std::uint32_t>(hash_bytes(body, 0x6f72646f));
}

struct MessageBatch {
  struct Entry {
    std::uint32_t body_at = 0;
    std::uint32_t body_size = 0;
    std::uint32_t key_at = 0;  // Absolute in `bytes`.
    std::uint32_t key_size = 0;
    std::uint32_t checksum = 0;  // body_checksum() as it was at publish.
  };

  Offset first_offset;
  MessageId first_id;     // Given by the store when it commits.
  WallTime publish_time;  // Of all; never falls within a partition.
  std::vector<Entry> entries;
  std::string bytes;

  std::size_t count() const { return entries.size(); }
  Offset end_offset() const { return first_offset + entries.size(); }

  static std::shared_ptr<MessageBatch> make(const std::vector<MessageBody>& bodies,
                                            Offset first_offset, WallTime publish_time) {
    auto batch = std::make_shared<MessageBatch>();
    batch->first_offset = first_offset;
    batch->publish_time = publish_time;
    std::size_t size = 0;
    for (const MessageBody& body : bodies)
      size += body.bytes.size();
    batch->bytes.reserve(size);
    batch->entries.reserve(bodies.size());
    for (const MessageBody& body : bodies) {
      const auto at = static_cast<std::uint32_t>(batch->bytes.size());
      batch->entries.push_back({at, static_cast<std::uint32_t>(body.bytes.size()), at + body.key_at,
                                body.key_size, body_checksum(body.bytes)});
      batch->bytes += body.bytes;
    }
    return batch;
  }
};

class Message {
 public:
  Message() = default;
  Message(std::shared_ptr<const MessageBatch> batch, std::uint32_t index)
      : batch_(std::move(batch)),
        index_(index) {
    ORDO_CHECK(index_ < batch_->entries.size());
  }

  explicit operator bool() const { return batch_ != nullptr; }

  Offset offset() const { return batch_->first_offset + index_; }
  MessageId id() const { return batch_->first_id + index_; }
  WallTime publish_time() const { return batch_->publish_time; }
  std::string_view key() const {
    return std::string_view(batch_->bytes).substr(entry().key_at, entry().key_size);
  }
  std::string_view body() const {
    return std::string_view(batch_->bytes).substr(entry().body_at, entry().body_size);
  }
  std::size_t size() const { return entry().body_size; }
  bool is_intact() const { return body_checksum(body()) == entry().checksum; }
  const std::shared_ptr<const MessageBatch>& batch() const { return batch_; }

 private:
  const MessageBatch::Entry& entry() const { return batch_->entries[index_]; }

  std::shared_ptr<const MessageBatch> batch_;
  std::uint32_t index_ = 0;
};

}  // namespace ordo::broker
