// ReceivedMessage: a message as a subscriber gets it, with the delivery it came by.
//
//   message.data(), message.key(), message.attribute("colour"), message.id()
//
// Threads: a value; it shares the stored bytes with others, who only read them.
// Cost:    copying is one reference count; looking up an attribute walks over the message.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "ordo/broker/message_codec.h"
#include "ordo/broker/partition_io.h"

namespace ordo {

class ReceivedMessage {
 public:
  explicit ReceivedMessage(broker::Delivery delivery) : delivery_(std::move(delivery)) {}

  std::string_view data() const {
    const Result<broker::MessageView> view = broker::decode_message(message().body());
    return view ? view->data : std::string_view();
  }
  std::string_view key() const { return message().key(); }  // Empty: none.
  std::optional<std::string_view> attribute(std::string_view name) const {
    return broker::find_attribute(message().body(), name);
  }
  broker::AttributeRange attributes() const { return broker::AttributeRange(message().body()); }
  broker::MessageId id() const { return message().id(); }
  WallTime publish_time() const { return message().publish_time(); }
  std::size_t size() const { return message().size(); }

  const broker::AckId& ack_id() const { return delivery_.ack_id; }
  // Rises with every delivery of a key: whoever writes elsewhere can refuse what comes late.
  broker::Fence fence() const { return delivery_.ack_id.fence; }
  // 1 + failures, where a policy of the subscription counts them; else 0.
  std::uint32_t attempt() const { return delivery_.attempt; }
  const broker::Message& message() const { return delivery_.message; }
  const broker::Delivery& delivery() const { return delivery_; }

 private:
  broker::Delivery delivery_;
};

}  // namespace ordo
