#include "ordo/broker/message_codec.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <span>

#include "ordo/broker/wire_bytes.h"
#include "ordo/core/utf8.h"

namespace ordo::broker {
namespace {

constexpr std::uint32_t kData = 1;
constexpr std::uint32_t kAttributes = 2;
constexpr std::uint32_t kMessageId = 3;
constexpr std::uint32_t kPublishTime = 4;
constexpr std::uint32_t kOrderingKey = 5;

using Limits = MessageLimits;
using AttributeArray = std::array<Attribute, Limits::kAttributesMax>;

Error invalid(std::string message) {
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

// The words of the service.
Error too_large(std::string_view what, std::size_t given, std::size_t most) {
  return invalid("The value for " + std::to_string(given) + " is too large. You passed " +
                 std::string(what) + " in the request, but the maximum value is " +
                 std::to_string(most) + ".");
}

Error malformed() {
  return invalid("The message is not a well-formed PubsubMessage");
}

Status check_key(std::string_view key) {
  if (key.size() > Limits::kKeyBytesMax) {
    return invalid("Ordering key exceeds maximum length of " +
                   std::to_string(Limits::kKeyBytesMax) + " bytes");
  }
  if (!is_utf8(key)) return invalid("Ordering key is not valid UTF-8");
  return {};
}

Status check_attribute(const Attribute& attribute) {
  const std::string_view key = attribute.key;
  if (key.empty()) return invalid("An attribute key cannot be empty");
  if (key.size() > Limits::kAttributeKeyBytesMax) {
    return invalid("An attribute key of " + std::to_string(key.size()) +
                   " bytes exceeds the maximum length of " +
                   std::to_string(Limits::kAttributeKeyBytesMax) + " bytes");
  }
  if (!is_utf8(key)) return invalid("An attribute key is not valid UTF-8");
  if (key.starts_with("goog") && !key.starts_with("googclient_")) {
    return invalid("The attribute key '" + std::string(key) +
                   "' is reserved: keys must not start with goog, except with googclient_");
  }
  if (attribute.value.size() > Limits::kAttributeValueBytesMax) {
    return invalid("The value of the attribute '" + std::string(key) + "' has " +
                   std::to_string(attribute.value.size()) +
                   " bytes, which exceeds the maximum length of " +
                   std::to_string(Limits::kAttributeValueBytesMax) + " bytes");
  }
  if (!is_utf8(attribute.value)) {
    return invalid("The value of the attribute '" + std::string(key) + "' is not valid UTF-8");
  }
  return {};
}

Error too_many_attributes() {
  return invalid("A message has at most " + std::to_string(Limits::kAttributesMax) +
                 " attributes; this one has more");
}

Status check_message(std::string_view data, std::span<const Attribute> attributes,
                     std::string_view key) {
  if (data.empty() && attributes.empty()) return invalid("Some messages are empty");
  for (const Attribute& attribute : attributes) {
    if (Status checked = check_attribute(attribute); !checked) return checked;
  }
  return check_key(key);
}

std::size_t entry_size(const Attribute& attribute) {
  return bytes_field_size(attribute.key.size()) + bytes_field_size(attribute.value.size());
}

void put_attribute(std::string& out, const Attribute& attribute) {
  put_tag(out, kAttributes, WireType::bytes);
  put_varint(out, entry_size(attribute));
  put_bytes_field(out, 1, attribute.key);
  put_bytes_field(out, 2, attribute.value);
}

// REQUIRES: they are valid.
Result<MessageBody> build(std::string_view data, std::span<const Attribute> attributes,
                          std::string_view key) {
  std::size_t size = data.empty() ? 0 : bytes_field_size(data.size());
  for (const Attribute& attribute : attributes)
    size += bytes_field_size(entry_size(attribute));
  if (!key.empty()) size += bytes_field_size(key.size());
  if (size > Limits::kRequestBytesMax) {
    return too_large("request_size", size, Limits::kRequestBytesMax);
  }
  MessageBody body;
  body.bytes.reserve(size);
  if (!data.empty()) put_bytes_field(body.bytes, kData, data);
  for (const Attribute& attribute : attributes)
    put_attribute(body.bytes, attribute);
  if (!key.empty()) {
    put_bytes_field(body.bytes, kOrderingKey, key);
    body.key_size = static_cast<std::uint32_t>(key.size());
    body.key_at = static_cast<std::uint32_t>(body.bytes.size() - key.size());
  }
  return body;
}

// One entry of the map. `is_plain`: it holds a key and a value and nothing else.
struct Entry {
  Attribute attribute;
  bool is_plain = false;
};

std::optional<Entry> read_entry(std::string_view bytes) {
  Entry entry;
  WireReader reader(bytes);
  std::size_t keys = 0, values = 0, others = 0;
  while (const std::optional<WireField> field = reader.next()) {
    if (field->type == WireType::bytes && field->number == 1) {
      entry.attribute.key = field->bytes;
      ++keys;
    } else if (field->type == WireType::bytes && field->number == 2) {
      entry.attribute.value = field->bytes;
      ++values;
    } else {
      ++others;
    }
  }
  if (!reader.is_whole()) return std::nullopt;
  entry.is_plain = keys == 1 && values <= 1 && others == 0;
  return entry;
}

// What a message from outside holds.
struct Parts {
  std::string_view data;
  std::string_view key;
  std::size_t entry_count = 0;  // Of the map, perhaps with the same attribute twice.
  bool is_plain = true;         // It can be stored as it is, as far as the fields go.
};

std::optional<Parts> read_parts(std::string_view wire) {
  Parts parts;
  std::size_t data_count = 0, key_count = 0;
  WireReader reader(wire);
  while (const std::optional<WireField> field = reader.next()) {
    if (field->type == WireType::bytes && field->number == kData) {
      parts.data = field->bytes;
      ++data_count;
    } else if (field->type == WireType::bytes && field->number == kOrderingKey) {
      parts.key = field->bytes;
      ++key_count;
    } else if (field->type == WireType::bytes && field->number == kAttributes) {
      ++parts.entry_count;
    } else {
      parts.is_plain = false;
    }
  }
  if (!reader.is_whole()) return std::nullopt;
  parts.is_plain = parts.is_plain && data_count <= 1 && key_count <= 1;
  return parts;
}

// Reads the map into `attributes`, the last of a name, and returns how many there are.
// `is_plain` becomes false when they cannot be stored as they are.
Result<std::size_t> read_attributes(std::string_view wire, AttributeArray& attributes,
                                    bool& is_plain) {
  std::size_t count = 0;
  WireReader reader(wire);
  while (const std::optional<WireField> field = reader.next()) {
    if (field->type != WireType::bytes || field->number != kAttributes) continue;
    const std::optional<Entry> entry = read_entry(field->bytes);
    if (!entry) return malformed();
    is_plain = is_plain && entry->is_plain;
    std::size_t at = 0;
    while (at < count && attributes[at].key != entry->attribute.key)
      ++at;
    if (at == attributes.size()) return too_many_attributes();
    if (at < count) is_plain = false;
    attributes[at] = entry->attribute;
    if (at == count) ++count;
  }
  return count;
}

Result<MessageBody> body_with_attributes(std::string_view wire, Parts parts) {
  // Far more entries than attributes can only be meant to keep us busy.
  if (parts.entry_count > 10 * Limits::kAttributesMax) return too_many_attributes();
  AttributeArray array;
  const Result<std::size_t> count = read_attributes(wire, array, parts.is_plain);
  if (!count) return count.error();
  const std::span<const Attribute> attributes(array.data(), *count);
  if (Status checked = check_message(parts.data, attributes, parts.key); !checked) {
    return checked.error();
  }
  if (!parts.is_plain) return build(parts.data, attributes, parts.key);
  return MessageBody{std::string(wire), 0, 0};
}

// 2026-01-31T12:34:56.789+00:00, as the service writes it.
std::string time_text(WallTime time) {
  using std::chrono::floor;
  const auto day = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(floor<std::chrono::milliseconds>(time - day));
  std::array<char, 64> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03d+00:00", int(date.year()),
      unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()),
      int(clock.minutes().count()), int(clock.seconds().count()), int(clock.subseconds().count()));
  return std::string(text.data(), static_cast<std::size_t>(size));
}

constexpr std::string_view kDeliveryCount = "CloudPubSubDeadLetterSourceDeliveryCount";
constexpr std::string_view kSubscription = "CloudPubSubDeadLetterSourceSubscription";
constexpr std::string_view kProject = "CloudPubSubDeadLetterSourceSubscriptionProject";
constexpr std::string_view kTopicPublishTime = "CloudPubSubDeadLetterSourceTopicPublishTime";

bool is_origin(const WireField& field) {
  if (field.type != WireType::bytes || field.number != kAttributes) return false;
  const std::optional<Entry> entry = read_entry(field.bytes);
  if (!entry) return false;
  const std::string_view key = entry->attribute.key;
  return key == kDeliveryCount || key == kSubscription || key == kProject ||
         key == kTopicPublishTime;
}

struct TimeParts {
  std::uint64_t seconds;
  std::uint64_t nanos;
};

TimeParts parts_of(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {static_cast<std::uint64_t>(seconds.time_since_epoch().count()),
          static_cast<std::uint64_t>((time - seconds).count())};
}

std::size_t time_size(const TimeParts& time) {
  return 2 + varint_size(time.seconds) + varint_size(time.nanos);
}

struct IdText {
  explicit IdText(MessageId id) {
    size = static_cast<std::size_t>(
        std::to_chars(text.data(), text.data() + text.size(), id.value()).ptr - text.data());
  }
  std::string_view view() const { return {text.data(), size}; }

  std::array<char, 20> text;
  std::size_t size;
};

}  // namespace

Result<MessageBody> encode_message(const NewMessage& message) {
  if (message.ordering_key && message.ordering_key->empty()) {
    return invalid("Ordering key cannot be empty");
  }
  if (message.attributes.size() > Limits::kAttributesMax) return too_many_attributes();
  const std::string_view key = message.ordering_key ? *message.ordering_key : std::string_view();
  if (message.attributes.empty()) {
    if (Status checked = check_message(message.data, {}, key); !checked) return checked.error();
    return build(message.data, {}, key);
  }
  AttributeArray array;
  std::size_t count = 0;
  for (const auto& [name, value] : message.attributes) {
    for (std::size_t i = 0; i < count; ++i) {
      if (array[i].key == name) return invalid("The attribute '" + name + "' is given twice");
    }
    array[count++] = {name, value};
  }
  const std::span<const Attribute> attributes(array.data(), count);
  if (Status checked = check_message(message.data, attributes, key); !checked) {
    return checked.error();
  }
  return build(message.data, attributes, key);
}

Result<MessageBody> body_from_wire(std::string_view wire) {
  if (wire.size() > Limits::kRequestBytesMax) {
    return too_large("request_size", wire.size(), Limits::kRequestBytesMax);
  }
  const std::optional<Parts> parts = read_parts(wire);
  if (!parts) return malformed();
  Result<MessageBody> body = MessageBody{};
  if (parts->entry_count > 0) {
    body = body_with_attributes(wire, *parts);
  } else {
    if (Status checked = check_message(parts->data, {}, parts->key); !checked) {
      return checked.error();
    }
    body =
        parts->is_plain ? MessageBody{std::string(wire), 0, 0} : build(parts->data, {}, parts->key);
  }
  if (!body) return body;
  if (body->key_size == 0 && !parts->key.empty()) {  // Stored as it came.
    body->key_at = static_cast<std::uint32_t>(parts->key.data() - wire.data());
    body->key_size = static_cast<std::uint32_t>(parts->key.size());
  }
  return body;
}

Status check_publish(const std::vector<MessageBody>& messages,
                     std::optional<std::size_t> request_bytes) {
  if (messages.empty()) return invalid("No messages to publish");
  if (messages.size() > Limits::kRequestMessagesMax) {
    return too_large("message_count", messages.size(), Limits::kRequestMessagesMax);
  }
  std::size_t size = 0;
  for (const MessageBody& message : messages)
    size += bytes_field_size(message.bytes.size());
  if (request_bytes) size = *request_bytes;
  if (size > Limits::kRequestBytesMax) {
    return too_large("request_size", size, Limits::kRequestBytesMax);
  }
  for (const MessageBody& message : messages) {
    if (message.key() != messages[0].key()) {
      return invalid(
          "All messages of one publish request must have the same ordering key, or none");
    }
  }
  return {};
}

AttributeRange::Iterator& AttributeRange::Iterator::operator++() {
  WireReader reader(rest_);
  while (const std::optional<WireField> field = reader.next()) {
    if (field->type != WireType::bytes || field->number != kAttributes) continue;
    const std::optional<Entry> entry = read_entry(field->bytes);
    if (!entry) break;
    attribute_ = entry->attribute;
    rest_ = reader.rest();
    is_end_ = false;
    return *this;
  }
  is_end_ = true;
  return *this;
}

std::optional<std::string_view> MessageView::attribute(std::string_view key) const {
  return find_attribute(body, key);
}

Result<MessageView> decode_message(std::string_view body) {
  const std::optional<Parts> parts = read_parts(body);
  if (!parts) {
    return Error{ErrorCode::data_loss, "The bytes are not those of a message"};
  }
  return MessageView{body, parts->data, parts->key};
}

std::optional<std::string_view> find_attribute(std::string_view body, std::string_view key) {
  for (const Attribute& attribute : AttributeRange(body)) {
    if (attribute.key == key) return attribute.value;
  }
  return std::nullopt;
}

MessageBody dead_letter_body(std::string_view body, const DeadLetterOrigin& origin) {
  MessageBody letter;
  letter.bytes.reserve(body.size() + 400);
  WireReader reader(body);
  std::size_t begin = 0;  // Of the field that is read next.
  while (const std::optional<WireField> field = reader.next()) {
    const std::size_t end = body.size() - reader.rest().size();
    if (!is_origin(*field)) letter.bytes += body.substr(begin, end - begin);
    if (field->type == WireType::bytes && field->number == kOrderingKey) {
      letter.key_at = static_cast<std::uint32_t>(letter.bytes.size() - field->bytes.size());
      letter.key_size = static_cast<std::uint32_t>(field->bytes.size());
    }
    begin = end;
  }
  const std::string_view name = origin.subscription;  // projects/{project}/subscriptions/{id}
  const std::string_view after = name.substr(std::min(name.size(), name.find('/') + 1));
  const std::string count = std::to_string(origin.delivery_count);
  put_attribute(letter.bytes, {kDeliveryCount, count});
  put_attribute(letter.bytes, {kSubscription, name.substr(name.rfind('/') + 1)});
  put_attribute(letter.bytes, {kProject, after.substr(0, after.find('/'))});
  put_attribute(letter.bytes, {kTopicPublishTime, time_text(origin.publish_time)});
  return letter;
}

std::size_t wire_size(const Message& message) {
  return message.size() + bytes_field_size(IdText(message.id()).size) +
         bytes_field_size(time_size(parts_of(message.publish_time())));
}

void append_wire(std::string& out, const Message& message) {
  out += message.body();
  append_wire_end(out, message);
}

void append_wire_end(std::string& out, const Message& message) {
  const TimeParts time = parts_of(message.publish_time());
  put_bytes_field(out, kMessageId, IdText(message.id()).view());
  put_tag(out, kPublishTime, WireType::bytes);
  put_varint(out, time_size(time));
  put_varint_field(out, 1, time.seconds);
  put_varint_field(out, 2, time.nanos);
}

}  // namespace ordo::broker
