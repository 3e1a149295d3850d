#include "ordo/broker/catalog_codec.h"

#include <chrono>
#include <limits>
#include <utility>

#include "ordo/broker/wire_bytes.h"

namespace ordo::broker {
namespace {

using std::chrono::nanoseconds;

constexpr char kVersion = 1;
constexpr auto kPushFormLast = static_cast<std::uint8_t>(PushForm::bare_with_head);

// ------------------------------------------------------------------------------------ writing

void put_labels(std::string& out, std::uint32_t field, const Labels& labels) {
  for (const auto& [key, value] : labels) {
    std::string pair;
    put_bytes_field(pair, 1, key);
    put_bytes_field(pair, 2, value);
    put_bytes_field(out, field, pair);
  }
}

// Writes what differs from zero.
class RowWriter {
 public:
  RowWriter() : bytes_(1, kVersion) {}

  void number(std::uint32_t field, std::uint64_t value) {
    if (value != 0) put_varint_field(bytes_, field, value);
  }
  void time(std::uint32_t field, nanoseconds value) {
    number(field, static_cast<std::uint64_t>(value.count()));
  }
  void text(std::uint32_t field, std::string_view value) {
    if (!value.empty()) put_bytes_field(bytes_, field, value);
  }
  // Written even when it is empty or all zero.
  void present(std::uint32_t field, std::string_view value) {
    put_bytes_field(bytes_, field, value);
  }
  void labels(std::uint32_t field, const Labels& labels) { put_labels(bytes_, field, labels); }

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

std::string pair_of(std::uint64_t first, std::uint64_t second) {
  std::string pair;
  put_varint_field(pair, 1, first);
  put_varint_field(pair, 2, second);
  return pair;
}

std::string push_row(const PushConfig& push) {
  std::string row;
  put_bytes_field(row, 1, push.endpoint);
  put_labels(row, 2, push.attributes);
  if (push.form != PushForm::wrapped)
    put_varint_field(row, 3, static_cast<std::uint64_t>(push.form));
  return row;
}

std::uint64_t count_of(nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

// ------------------------------------------------------------------------------------ reading

Error bad_row(std::string_view what, std::string_view name, const std::string& why) {
  std::string message = "The catalog's row of the ";
  message += what;
  message += " '";
  message += name;
  return Error{ErrorCode::data_loss, message + "' cannot be read: " + why};
}

// Calls `take` for each field; that returns whether it knows the field and its type.
template <class Take>
Status read_row(std::string_view what, std::string_view name, std::string_view bytes, Take take) {
  if (bytes.empty() || bytes[0] != kVersion) {
    const int version = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]);
    return bad_row(what, name,
                   "it has version " + std::to_string(version) + "; this program knows version " +
                       std::to_string(kVersion));
  }
  WireReader reader(bytes.substr(1));
  while (const std::optional<WireField> field = reader.next()) {
    if (!take(*field)) {
      return bad_row(what, name,
                     "field " + std::to_string(field->number) + " is not known or malformed");
    }
  }
  if (!reader.is_whole()) return bad_row(what, name, "it is cut off or garbled");
  return {};
}

bool take_number(const WireField& field, std::uint32_t& out) {
  out = static_cast<std::uint32_t>(field.value);
  return field.type == WireType::varint && field.value <= std::numeric_limits<std::uint32_t>::max();
}
template <class Tag>
bool take_number(const WireField& field, Id<Tag, std::uint32_t>& out) {
  std::uint32_t value = 0;
  if (!take_number(field, value)) return false;
  out = Id<Tag, std::uint32_t>(value);
  return true;
}
bool take_flag(const WireField& field, bool& out) {
  out = field.value != 0;
  return field.type == WireType::varint && field.value <= 1;
}
bool take_time(const WireField& field, nanoseconds& out) {
  out = nanoseconds(static_cast<std::int64_t>(field.value));
  return field.type == WireType::varint;
}
bool take_text(const WireField& field, std::string& out) {
  out = field.bytes;
  return field.type == WireType::bytes;
}

bool take_label(const WireField& field, Labels& labels) {
  if (field.type != WireType::bytes) return false;
  std::string key, value;
  WireReader reader(field.bytes);
  while (const std::optional<WireField> part = reader.next()) {
    if (part->number > 2 || !take_text(*part, part->number == 1 ? key : value)) return false;
  }
  labels[key] = value;
  return reader.is_whole();
}

bool take_retry(const WireField& field, std::optional<RetryPolicy>& out) {
  if (field.type != WireType::bytes) return false;
  out.emplace();
  WireReader reader(field.bytes);
  while (const std::optional<WireField> part = reader.next()) {
    if (part->number > 2) return false;
    if (!take_time(*part, part->number == 1 ? out->minimum_backoff : out->maximum_backoff)) {
      return false;
    }
  }
  return reader.is_whole();
}

bool take_dead_letter(const WireField& field, std::optional<DeadLetterPolicy>& out) {
  if (field.type != WireType::bytes) return false;
  out.emplace();
  WireReader reader(field.bytes);
  while (const std::optional<WireField> part = reader.next()) {
    const bool taken = part->number == 1   ? take_text(*part, out->topic)
                       : part->number == 2 ? take_number(*part, out->max_delivery_attempts)
                                           : false;
    if (!taken) return false;
  }
  return reader.is_whole();
}

bool take_push(const WireField& field, std::optional<PushConfig>& out) {
  if (field.type != WireType::bytes) return false;
  out.emplace();
  WireReader reader(field.bytes);
  while (const std::optional<WireField> part = reader.next()) {
    std::uint32_t form = 0;
    switch (part->number) {
      case 1:
        if (!take_text(*part, out->endpoint)) return false;
        break;
      case 2:
        if (!take_label(*part, out->attributes)) return false;
        break;
      case 3:
        if (!take_number(*part, form) || form > std::uint32_t{kPushFormLast}) return false;
        out->form = static_cast<PushForm>(form);
        break;
      default:
        return false;
    }
  }
  return reader.is_whole();
}

bool take_failure_policy(const WireField& field, FailurePolicy& out) {
  out = static_cast<FailurePolicy>(field.value);
  return field.type == WireType::varint &&
         field.value <= static_cast<std::uint64_t>(FailurePolicy::skip_after);
}

bool take_wall_time(const WireField& field, WallTime& out) {
  nanoseconds time{};
  if (!take_time(field, time)) return false;
  out = WallTime(time);
  return true;
}

bool take_policy_field(const WireField& field, SubscriptionConfig& config) {
  switch (field.number) {
    case 12:
      return take_retry(field, config.retry_policy);
    case 13:
      return take_dead_letter(field, config.dead_letter_policy);
    case 15:
      return take_number(field, config.ordered_window);
    case 16:
      return take_failure_policy(field, config.failure_policy);
    case 17:
      return take_number(field, config.park_attempts);
    case 18:
      return take_time(field, config.skip_after);
    case 20:
      return take_push(field, config.push);
    default:
      return false;
  }
}

bool take_subscription_field(const WireField& field, CatalogSubscription& subscription) {
  SubscriptionConfig& config = subscription.config;
  switch (field.number) {
    case 1:
      return take_number(field, subscription.number);
    case 2:
      return take_number(field, subscription.topic);
    case 3:
      return take_text(field, config.topic);
    case 4:
      return take_time(field, config.ack_deadline);
    case 5:
      return take_flag(field, config.enable_message_ordering);
    case 6:
      return take_flag(field, config.enable_exactly_once_delivery);
    case 7:
      return take_flag(field, config.retain_acked_messages);
    case 8:
      return take_flag(field, config.detached);
    case 9:
      return take_time(field, config.message_retention);
    case 10:
      return take_time(field, config.expiration_ttl.emplace());
    case 11:
      return take_text(field, config.filter);
    case 14:
      return take_label(field, config.labels);
    case 19:
      return take_wall_time(field, subscription.last_active);
    default:
      return take_policy_field(field, config);
  }
}

Result<CatalogTopic> decode_any_topic(std::string_view name, std::string_view bytes,
                                      bool is_deleted) {
  CatalogTopic topic;
  topic.is_deleted = is_deleted;
  if (!is_deleted) topic.config.name = name;
  const auto take = [&](const WireField& field) {
    switch (field.number) {
      case 1:
        return take_number(field, topic.number);
      case 2:
        return take_number(field, topic.config.partitions);
      case 3:
        return take_time(field, topic.config.retention.emplace());
      case 4:
        return take_flag(field, topic.config.strict_keys);
      case 5:
        return take_label(field, topic.config.labels);
      case 6:
        return is_deleted && take_text(field, topic.config.name);
      default:
        return false;
    }
  };
  if (Status read = read_row("topic", name, bytes, take); !read) return read.error();
  return topic;
}

}  // namespace

CatalogKey key_of(const CatalogTopic& topic) {
  if (topic.is_deleted) return {kDeletedTopicKind, std::to_string(topic.number.value())};
  return {kTopicKind, topic.config.name};
}

std::string encode_row(const CatalogTopic& topic) {
  RowWriter row;
  row.number(1, topic.number.value());
  row.number(2, topic.config.partitions);
  if (topic.config.retention) row.time(3, *topic.config.retention);
  row.number(4, topic.config.strict_keys ? 1 : 0);
  row.labels(5, topic.config.labels);
  if (topic.is_deleted) row.text(6, topic.config.name);
  return row.take();
}

std::string encode_row(const CatalogSubscription& subscription) {
  const SubscriptionConfig& config = subscription.config;
  RowWriter row;
  row.number(1, subscription.number.value());
  row.number(2, subscription.topic.value());
  row.text(3, config.topic);
  row.time(4, config.ack_deadline);
  row.number(5, config.enable_message_ordering ? 1 : 0);
  row.number(6, config.enable_exactly_once_delivery ? 1 : 0);
  row.number(7, config.retain_acked_messages ? 1 : 0);
  row.number(8, config.detached ? 1 : 0);
  row.time(9, config.message_retention);
  if (config.expiration_ttl) row.time(10, *config.expiration_ttl);
  row.text(11, config.filter);
  if (config.retry_policy) {
    row.present(12, pair_of(count_of(config.retry_policy->minimum_backoff),
                            count_of(config.retry_policy->maximum_backoff)));
  }
  if (config.dead_letter_policy) {
    std::string policy;
    put_bytes_field(policy, 1, config.dead_letter_policy->topic);
    put_varint_field(policy, 2, config.dead_letter_policy->max_delivery_attempts);
    row.present(13, policy);
  }
  row.labels(14, config.labels);
  row.number(15, config.ordered_window);
  row.number(16, static_cast<std::uint64_t>(config.failure_policy));
  row.number(17, config.park_attempts);
  row.time(18, config.skip_after);
  row.time(19, subscription.last_active.time_since_epoch());
  if (config.push) row.present(20, push_row(*config.push));
  return row.take();
}

std::string encode_row(const CatalogSnapshot& snapshot) {
  RowWriter row;
  row.number(1, snapshot.number.value());
  row.number(2, snapshot.topic.value());
  row.text(3, snapshot.config.topic);
  row.labels(4, snapshot.config.labels);
  row.time(5, snapshot.config.expire_time.time_since_epoch());
  return row.take();
}

std::string encode_row(const CatalogCounters& counters) {
  RowWriter row;
  row.number(1, counters.next_topic);
  row.number(2, counters.next_cursor);
  return row.take();
}

std::string encode_policy(std::string_view policy) {
  RowWriter row;
  row.text(1, policy);
  return row.take();
}

Result<std::string> decode_policy(std::string_view name, std::string_view bytes) {
  std::string policy;
  const auto take = [&](const WireField& field) {
    return field.number == 1 && take_text(field, policy);
  };
  if (Status read = read_row("policy", name, bytes, take); !read) return read.error();
  return policy;
}

Result<CatalogTopic> decode_topic(std::string_view name, std::string_view bytes) {
  return decode_any_topic(name, bytes, false);
}

Result<CatalogTopic> decode_deleted_topic(std::string_view name, std::string_view bytes) {
  return decode_any_topic(name, bytes, true);
}

Result<CatalogSubscription> decode_subscription(std::string_view name, std::string_view bytes) {
  CatalogSubscription subscription;
  subscription.config.name = name;
  subscription.config.expiration_ttl = std::nullopt;  // Absent: never.
  const auto take = [&](const WireField& field) {
    return take_subscription_field(field, subscription);
  };
  if (Status read = read_row("subscription", name, bytes, take); !read) return read.error();
  if (!subscription.config.filter.empty()) {
    Result<Filter> filter = Filter::parse(subscription.config.filter);
    if (!filter) return bad_row("subscription", name, filter.error().message);
    subscription.filter = std::make_shared<const Filter>(*std::move(filter));
  }
  return subscription;
}

Result<CatalogSnapshot> decode_snapshot(std::string_view name, std::string_view bytes) {
  CatalogSnapshot snapshot;
  snapshot.config.name = name;
  const auto take = [&](const WireField& field) {
    switch (field.number) {
      case 1:
        return take_number(field, snapshot.number);
      case 2:
        return take_number(field, snapshot.topic);
      case 3:
        return take_text(field, snapshot.config.topic);
      case 4:
        return take_label(field, snapshot.config.labels);
      case 5:
        return take_wall_time(field, snapshot.config.expire_time);
      default:
        return false;
    }
  };
  if (Status read = read_row("snapshot", name, bytes, take); !read) return read.error();
  return snapshot;
}

Result<CatalogCounters> decode_counters(std::string_view bytes) {
  CatalogCounters counters;
  const auto take = [&](const WireField& field) {
    switch (field.number) {
      case 1:
        return take_number(field, counters.next_topic);
      case 2:
        return take_number(field, counters.next_cursor);
      default:
        return false;
    }
  };
  if (Status read = read_row("counters", kCountersName, bytes, take); !read) return read.error();
  return counters;
}

}  // namespace ordo::broker
