// PullResponse: what a pull or a stream answers with, framed around the stored bytes by hand.
//
//   PullResponse response(ack_ids, broker::shows_fence(config.labels));
//   for (const broker::Delivery& delivery : deliveries) response.add(delivery);
//   put_bytes_field(response.text(), kProperties, properties);    // fields of a stream's response
//   call->send(response.take());
//
// Field 1 of both PullResponse and StreamingPullResponse holds the messages. Bodies above
// kSharedBytesMin are not copied: the response shares them with the store's cache.
//
// Threads: one owner.
// Bounds:  those of what is added.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ordo/adapters/http2/slice.h"
#include "ordo/broker/ack_id_text.h"
#include "ordo/broker/fence_label.h"
#include "ordo/broker/message_codec.h"
#include "ordo/broker/partition_io.h"
#include "ordo/broker/wire_bytes.h"

namespace ordo::pubsub_wire {

class PullResponse {
 public:
  static constexpr std::size_t kSharedBytesMin = 4096;

  // `shows_fence`: each message has its fence as an attribute. REQUIRES: `ack_ids` outlives this.
  PullResponse(const broker::AckIdText& ack_ids, bool shows_fence)
      : ack_ids_(ack_ids),
        shows_fence_(shows_fence) {}

  void add(const broker::Delivery& delivery) {
    const std::string ack_id = ack_ids_.encode(delivery.ack_id);
    const broker::Message& message = delivery.message;
    const std::string fence = shows_fence_ ? fence_field(delivery.ack_id.fence) : std::string();
    const std::size_t message_bytes = broker::wire_size(message) + fence.size();
    const std::size_t attempt_bytes =
        delivery.attempt > 0 ? 1 + broker::varint_size(delivery.attempt) : 0;
    broker::put_tag(text_, kReceivedMessages, broker::WireType::bytes);
    broker::put_varint(text_, broker::bytes_field_size(ack_id.size()) +
                                  broker::bytes_field_size(message_bytes) + attempt_bytes);
    broker::put_bytes_field(text_, kAckId, ack_id);
    broker::put_tag(text_, kMessage, broker::WireType::bytes);
    broker::put_varint(text_, message_bytes);
    if (message.size() >= kSharedBytesMin) {
      end_piece();
      pieces_.push_back({message.batch(), message.body()});
    } else {
      text_ += message.body();
    }
    text_ += fence;  // Of two attributes of the same name the later one counts.
    broker::append_wire_end(text_, message);
    if (delivery.attempt > 0) broker::put_varint_field(text_, kDeliveryAttempt, delivery.attempt);
  }

  // What comes behind the messages that were added.
  std::string& text() { return text_; }

  std::vector<http2::Slice> take() {
    end_piece();
    return std::exchange(pieces_, {});
  }

 private:
  static constexpr std::uint32_t kReceivedMessages = 1;
  static constexpr std::uint32_t kAckId = 1;
  static constexpr std::uint32_t kMessage = 2;
  static constexpr std::uint32_t kDeliveryAttempt = 3;
  static constexpr std::uint32_t kAttributes = 2;  // Of a message.

  static std::string fence_field(broker::Fence fence) {
    std::string attribute;
    broker::put_bytes_field(attribute, 1, broker::kFenceAttribute);
    broker::put_bytes_field(attribute, 2, std::to_string(fence.value()));
    std::string field;
    broker::put_bytes_field(field, kAttributes, attribute);
    return field;
  }

  void end_piece() {
    if (!text_.empty()) pieces_.push_back(http2::Slice::of(std::exchange(text_, {})));
  }

  const broker::AckIdText& ack_ids_;
  const bool shows_fence_;
  std::string text_;
  std::vector<http2::Slice> pieces_;
};

}  // namespace ordo::pubsub_wire
