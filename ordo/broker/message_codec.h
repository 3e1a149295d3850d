// What a message looks like as bytes: the wire form of google.pubsub.v1.PubsubMessage.
//
//   Result<MessageBody> body = encode_message({.data = "hello", .ordering_key = "user-1"});
//   if (!body) return body.error();                       // names the rule it breaks
//   Result<MessageView> view = decode_message(message.body());
//   use(view->data, view->ordering_key, view->attribute("colour"));
//   append_wire(out, message);                            // with message_id and publish_time
//
// A body that exists is valid: not empty, its key and attributes within their limits, each
// attribute once, no field but data (1), attributes (2) and ordering_key (5). message_id (3) and
// publish_time (4) are added when it is sent.
//
// Threads: pure functions.
// Bounds:  MessageLimits; beyond them invalid_argument.
// Cost:    encoding is one allocation; decoding and looking up an attribute none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/broker/message.h"
#include "ordo/core/result.h"

namespace ordo::broker {

struct MessageLimits {
  static constexpr std::size_t kKeyBytesMax = 1'024;
  static constexpr std::size_t kAttributesMax = 100;
  static constexpr std::size_t kAttributeKeyBytesMax = 256;
  static constexpr std::size_t kAttributeValueBytesMax = 1'024;
  static constexpr std::size_t kRequestMessagesMax = 1'000;
  static constexpr std::size_t kRequestBytesMax = 10'000'000;
};

// A message as the library and the command line take it.
struct NewMessage {
  std::string data = {};
  std::vector<std::pair<std::string, std::string>> attributes = {};  // Each name once.
  std::optional<std::string> ordering_key = {};  // None: without order. Given: never empty.
};

// ------------------------------------------------------------------------------------ in

Result<MessageBody> encode_message(const NewMessage& message);

// From bytes that came from outside. What the client set as message_id and publish_time, and fields
// we do not know, are dropped; of an attribute given twice the last counts; an empty key is none.
Result<MessageBody> body_from_wire(std::string_view wire);

// What holds of a whole request: 1 to 1,000 messages, 10,000,000 bytes, one key for all of them or
// none for any. `request_bytes`: its size on the wire; by default that of its messages.
Status check_publish(const std::vector<MessageBody>& messages,
                     std::optional<std::size_t> request_bytes = std::nullopt);

// ------------------------------------------------------------------------------------ read

struct Attribute {
  std::string_view key;
  std::string_view value;

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

// The attributes of a body, in their order, read while they are walked over.
class AttributeRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Attribute;
    using difference_type = std::ptrdiff_t;
    using pointer = const Attribute*;
    using reference = const Attribute&;

    Iterator() = default;
    explicit Iterator(std::string_view rest) : rest_(rest) { ++*this; }

    const Attribute& operator*() const { return attribute_; }
    const Attribute* operator->() const { return &attribute_; }
    Iterator& operator++();
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) {
      return a.is_end_ == b.is_end_ && (a.is_end_ || a.rest_.size() == b.rest_.size());
    }

   private:
    std::string_view rest_;
    Attribute attribute_;
    bool is_end_ = true;
  };

  explicit AttributeRange(std::string_view body) : body_(body) {}

  Iterator begin() const { return Iterator(body_); }
  Iterator end() const { return {}; }

 private:
  std::string_view body_;
};

struct MessageView {
  std::string_view body;
  std::string_view data;
  std::string_view ordering_key;  // Empty: none.

  AttributeRange attributes() const { return AttributeRange(body); }
  std::optional<std::string_view> attribute(std::string_view key) const;
};

// data_loss when the bytes are no message at all. The view lives as long as the bytes.
Result<MessageView> decode_message(std::string_view body);

// The value of one attribute of a body, without looking at the rest of it.
std::optional<std::string_view> find_attribute(std::string_view body, std::string_view key);

// ------------------------------------------------------------------------------------ out

// Where a dead letter came from.
struct DeadLetterOrigin {
  std::string_view subscription;  // projects/{project}/subscriptions/{subscription}
  std::uint32_t delivery_count = 0;
  WallTime publish_time;
};

// The same message with the four CloudPubSubDeadLetterSource* attributes; those of an earlier
// dead-lettering are replaced.
MessageBody dead_letter_body(std::string_view body, const DeadLetterOrigin& origin);

// A stored message as it is sent: its body, message_id and publish_time.
std::size_t wire_size(const Message& message);
void append_wire(std::string& out, const Message& message);
// The same without the body, which is the first part of it: for those who send that as it lies.
void append_wire_end(std::string& out, const Message& message);

}  // namespace ordo::broker
