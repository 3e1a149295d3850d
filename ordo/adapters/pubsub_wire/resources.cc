#include "ordo/adapters/pubsub_wire/resources.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ordo::pubsub_wire {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::int32_t kNanosMax = 999'999'999;
// More than the nanoseconds of the broker can hold is as good as the most they can.
constexpr std::int64_t kSecondsMax = std::numeric_limits<std::int64_t>::max() / 1'000'000'000 - 1;

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

Error unsupported(std::string_view what) {
  std::string message(what);
  return {ErrorCode::unimplemented, message + " is not supported by this server."};
}

Result<nanoseconds> span_of(const google::protobuf::Duration& span, std::string_view field) {
  if (span.nanos() > kNanosMax || span.nanos() < -kNanosMax ||
      (span.seconds() > 0 && span.nanos() < 0) || (span.seconds() < 0 && span.nanos() > 0)) {
    return invalid("The duration of " + std::string(field) + " is not well-formed.");
  }
  const std::int64_t whole = std::clamp(span.seconds(), -kSecondsMax, kSecondsMax);
  return seconds(whole) + nanoseconds(span.nanos());
}

void set_span(google::protobuf::Duration& out, nanoseconds span) {
  const auto whole = std::chrono::duration_cast<seconds>(span);
  out.set_seconds(whole.count());
  out.set_nanos(static_cast<std::int32_t>((span - whole).count()));
}

broker::Labels labels_of(const google::protobuf::Map<std::string, std::string>& labels) {
  return {labels.begin(), labels.end()};
}

Status read_span(const google::protobuf::Duration& span, std::string_view field, nanoseconds& out) {
  const Result<nanoseconds> read = span_of(span, field);
  if (!read) return read.error();
  out = *read;
  return {};
}

Status read_policies(const v1::Subscription& from, broker::SubscriptionConfig& to) {
  if (from.has_expiration_policy()) {
    to.expiration_ttl.reset();
    if (from.expiration_policy().has_ttl()) {
      to.expiration_ttl.emplace();
      if (Status read = read_span(from.expiration_policy().ttl(), "ttl", *to.expiration_ttl); !read)
        return read;
    }
  }
  if (from.has_retry_policy()) {
    const v1::RetryPolicy& policy = from.retry_policy();
    broker::RetryPolicy& retry = to.retry_policy.emplace();
    if (policy.has_minimum_backoff()) {
      Status read = read_span(policy.minimum_backoff(), "minimum_backoff", retry.minimum_backoff);
      if (!read) return read;
    }
    if (policy.has_maximum_backoff()) {
      Status read = read_span(policy.maximum_backoff(), "maximum_backoff", retry.maximum_backoff);
      if (!read) return read;
    }
  }
  if (from.has_dead_letter_policy()) {
    const v1::DeadLetterPolicy& policy = from.dead_letter_policy();
    if (policy.max_delivery_attempts() < 0)
      return Error{ErrorCode::out_of_range, "max_delivery_attempts must not be negative."};
    broker::DeadLetterPolicy& letters = to.dead_letter_policy.emplace();
    letters.topic = policy.dead_letter_topic();
    letters.max_delivery_attempts = static_cast<std::uint32_t>(policy.max_delivery_attempts());
  }
  return {};
}

// Without an endpoint nothing is pushed, whatever else is said.
Status read_push(const v1::PushConfig& from, broker::SubscriptionConfig& to) {
  if (from.push_endpoint().empty()) return {};
  if (from.has_oidc_token())
    return Error{ErrorCode::unimplemented,
                 "oidc_token is not supported by this server: it has no identity to sign tokens "
                 "with."};
  broker::PushConfig& push = to.push.emplace();
  push.endpoint = from.push_endpoint();
  push.attributes = labels_of(from.attributes());
  if (from.has_no_wrapper())
    push.form = from.no_wrapper().write_metadata() ? broker::PushForm::bare_with_head
                                                   : broker::PushForm::bare;
  return {};
}

void set_push(v1::PushConfig& out, const broker::PushConfig& push) {
  out.set_push_endpoint(push.endpoint);
  out.mutable_attributes()->insert(push.attributes.begin(), push.attributes.end());
  if (push.form != broker::PushForm::wrapped)
    out.mutable_no_wrapper()->set_write_metadata(push.form == broker::PushForm::bare_with_head);
}

Status check_supported(const v1::Subscription& subscription) {
  if (subscription.has_bigquery_config()) return unsupported("bigquery_config");
  if (subscription.has_cloud_storage_config()) return unsupported("cloud_storage_config");
  if (subscription.has_bigtable_config()) return unsupported("bigtable_config");
  if (subscription.message_transforms_size() > 0) return unsupported("message_transforms");
  return {};
}

// Clears what the mask does not name, and takes out of the mask what the broker does not keep.
template <class Resource>
Masked<Resource> mask_out(const Resource& resource, const google::protobuf::FieldMask& mask,
                          std::vector<std::string_view> not_kept) {
  Masked<Resource> masked;
  masked.resource = resource;
  masked.is_empty = mask.paths_size() == 0;
  const google::protobuf::Descriptor& type = *Resource::descriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type.field(i);
    const bool is_named =
        std::find(mask.paths().begin(), mask.paths().end(), field->name()) != mask.paths().end();
    if (!is_named && field->name() != "name")
      masked.resource.GetReflection()->ClearField(&masked.resource, field);
  }
  for (const std::string& path : mask.paths()) {
    if (std::find(not_kept.begin(), not_kept.end(), path) == not_kept.end())
      masked.mask.push_back(path);
  }
  return masked;
}

}  // namespace

Result<broker::TopicConfig> config_of(const v1::Topic& topic) {
  if (topic.has_schema_settings()) return unsupported("schema_settings");
  if (!topic.kms_key_name().empty()) return unsupported("kms_key_name");
  if (topic.has_ingestion_data_source_settings())
    return unsupported("ingestion_data_source_settings");
  if (topic.message_transforms_size() > 0) return unsupported("message_transforms");
  broker::TopicConfig config;
  config.name = topic.name();
  config.labels = labels_of(topic.labels());
  if (topic.has_message_retention_duration()) {
    config.retention.emplace();
    Status read = read_span(topic.message_retention_duration(), "message_retention_duration",
                            *config.retention);
    if (!read) return std::move(read).error();
  }
  return config;
}

v1::Topic resource_of(const broker::TopicConfig& config) {
  v1::Topic topic;
  topic.set_name(config.name);
  topic.mutable_labels()->insert(config.labels.begin(), config.labels.end());
  if (config.retention) set_span(*topic.mutable_message_retention_duration(), *config.retention);
  topic.set_state(v1::Topic::ACTIVE);
  return topic;
}

Result<broker::SubscriptionConfig> config_of(const v1::Subscription& subscription) {
  if (Status supported = check_supported(subscription); !supported)
    return std::move(supported).error();
  broker::SubscriptionConfig config;
  config.name = subscription.name();
  config.topic = subscription.topic();
  config.labels = labels_of(subscription.labels());
  config.ack_deadline = seconds(subscription.ack_deadline_seconds());
  config.enable_message_ordering = subscription.enable_message_ordering();
  config.enable_exactly_once_delivery = subscription.enable_exactly_once_delivery();
  config.retain_acked_messages = subscription.retain_acked_messages();
  config.filter = subscription.filter();
  if (subscription.has_message_retention_duration()) {
    Status read = read_span(subscription.message_retention_duration(), "message_retention_duration",
                            config.message_retention);
    if (!read) return std::move(read).error();
  }
  if (Status read = read_policies(subscription, config); !read) return std::move(read).error();
  if (Status read = read_push(subscription.push_config(), config); !read)
    return std::move(read).error();
  return config;
}

v1::Subscription resource_of(const broker::SubscriptionConfig& config,
                             std::optional<nanoseconds> topic_retention) {
  v1::Subscription subscription;
  subscription.set_name(config.name);
  subscription.set_topic(config.topic);
  v1::PushConfig& push = *subscription.mutable_push_config();
  if (config.push) set_push(push, *config.push);
  subscription.mutable_labels()->insert(config.labels.begin(), config.labels.end());
  subscription.set_ack_deadline_seconds(
      static_cast<std::int32_t>(std::chrono::duration_cast<seconds>(config.ack_deadline).count()));
  subscription.set_enable_message_ordering(config.enable_message_ordering);
  subscription.set_enable_exactly_once_delivery(config.enable_exactly_once_delivery);
  subscription.set_retain_acked_messages(config.retain_acked_messages);
  subscription.set_detached(config.detached);
  subscription.set_filter(config.filter);
  subscription.set_state(v1::Subscription::ACTIVE);
  set_span(*subscription.mutable_message_retention_duration(), config.message_retention);
  if (topic_retention)
    set_span(*subscription.mutable_topic_message_retention_duration(), *topic_retention);
  v1::ExpirationPolicy& expiration = *subscription.mutable_expiration_policy();
  if (config.expiration_ttl) set_span(*expiration.mutable_ttl(), *config.expiration_ttl);
  if (config.retry_policy) {
    v1::RetryPolicy& retry = *subscription.mutable_retry_policy();
    set_span(*retry.mutable_minimum_backoff(), config.retry_policy->minimum_backoff);
    set_span(*retry.mutable_maximum_backoff(), config.retry_policy->maximum_backoff);
  }
  if (config.dead_letter_policy) {
    v1::DeadLetterPolicy& letters = *subscription.mutable_dead_letter_policy();
    letters.set_dead_letter_topic(config.dead_letter_policy->topic);
    letters.set_max_delivery_attempts(
        static_cast<std::int32_t>(config.dead_letter_policy->max_delivery_attempts));
  }
  return subscription;
}

Result<WallTime> time_of(const google::protobuf::Timestamp& time) {
  if (time.nanos() < 0 || time.nanos() > kNanosMax)
    return invalid("The timestamp is not well-formed.");
  const std::int64_t whole = std::clamp(time.seconds(), -kSecondsMax, kSecondsMax);
  return WallTime(seconds(whole) + nanoseconds(time.nanos()));
}

Result<broker::SnapshotConfig> config_of(const v1::Snapshot& snapshot) {
  broker::SnapshotConfig config;
  config.name = snapshot.name();
  config.labels = labels_of(snapshot.labels());
  if (snapshot.has_expire_time()) {
    const Result<WallTime> expire_time = time_of(snapshot.expire_time());
    if (!expire_time) return expire_time.error();
    config.expire_time = *expire_time;
  }
  return config;
}

v1::Snapshot resource_of(const broker::SnapshotConfig& config) {
  v1::Snapshot snapshot;
  snapshot.set_name(config.name);
  snapshot.set_topic(config.topic);
  snapshot.mutable_labels()->insert(config.labels.begin(), config.labels.end());
  const auto whole = std::chrono::floor<seconds>(config.expire_time);
  snapshot.mutable_expire_time()->set_seconds(whole.time_since_epoch().count());
  snapshot.mutable_expire_time()->set_nanos(
      static_cast<std::int32_t>((config.expire_time - whole).count()));
  return snapshot;
}

Masked<v1::Topic> masked(const v1::UpdateTopicRequest& request) {
  return mask_out(request.topic(), request.update_mask(),
                  {"message_storage_policy", "kms_key_name", "schema_settings", "satisfies_pzs",
                   "state", "ingestion_data_source_settings", "message_transforms", "tags"});
}

Masked<v1::Subscription> masked(const v1::UpdateSubscriptionRequest& request) {
  return mask_out(request.subscription(), request.update_mask(),
                  {"bigquery_config", "cloud_storage_config", "bigtable_config",
                   "analytics_hub_subscription_info", "message_transforms", "tags"});
}

Masked<v1::Snapshot> masked(const v1::UpdateSnapshotRequest& request) {
  return mask_out(request.snapshot(), request.update_mask(), {});
}

}  // namespace ordo::pubsub_wire
