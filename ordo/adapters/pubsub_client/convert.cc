#include "ordo/adapters/pubsub_client/convert.h"

#include <utility>

#include <google/protobuf/util/json_util.h>

namespace ordo::pubsub_client {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::int64_t kSecond = 1'000'000'000;

void set(google::protobuf::Duration& to, nanoseconds span) {
  to.set_seconds(span.count() / kSecond);
  to.set_nanos(static_cast<std::int32_t>(span.count() % kSecond));
}

nanoseconds span_of(const google::protobuf::Duration& duration) {
  return seconds(duration.seconds()) + nanoseconds(duration.nanos());
}

WallTime time_of(const google::protobuf::Timestamp& time) {
  return WallTime(seconds(time.seconds()) + nanoseconds(time.nanos()));
}

std::string json_of(const google::protobuf::Message& message) {
  std::string text;
  // What cannot be written, such as bytes that are no text, leaves it empty.
  if (!google::protobuf::util::MessageToJsonString(message, &text).ok()) text.clear();
  return text;
}

}  // namespace

v1::Topic message_of(const Topic& topic) {
  v1::Topic message;
  message.set_name(topic.name);
  message.mutable_labels()->insert(topic.labels.begin(), topic.labels.end());
  if (topic.retention) set(*message.mutable_message_retention_duration(), *topic.retention);
  return message;
}

v1::Subscription message_of(const Subscription& subscription) {
  v1::Subscription message;
  message.set_name(subscription.name);
  message.set_topic(subscription.topic);
  message.mutable_labels()->insert(subscription.labels.begin(), subscription.labels.end());
  message.set_ack_deadline_seconds(static_cast<std::int32_t>(subscription.ack_deadline.count()));
  message.set_enable_message_ordering(subscription.is_ordered);
  message.set_enable_exactly_once_delivery(subscription.is_exactly_once);
  message.set_retain_acked_messages(subscription.retains_acked);
  message.set_filter(subscription.filter);
  if (subscription.retention)
    set(*message.mutable_message_retention_duration(), *subscription.retention);
  if (subscription.expiration) {
    auto& policy = *message.mutable_expiration_policy();
    if (*subscription.expiration != nanoseconds{})
      set(*policy.mutable_ttl(), *subscription.expiration);
  }
  if (subscription.retry) {
    set(*message.mutable_retry_policy()->mutable_minimum_backoff(), subscription.retry->minimum);
    set(*message.mutable_retry_policy()->mutable_maximum_backoff(), subscription.retry->maximum);
  }
  if (subscription.dead_letters) {
    auto& policy = *message.mutable_dead_letter_policy();
    policy.set_dead_letter_topic(subscription.dead_letters->topic);
    policy.set_max_delivery_attempts(subscription.dead_letters->attempts_max);
  }
  if (!subscription.push_endpoint.empty())
    message.mutable_push_config()->set_push_endpoint(subscription.push_endpoint);
  return message;
}

v1::PubsubMessage message_of(const OutgoingMessage& outgoing) {
  v1::PubsubMessage message;
  message.set_data(outgoing.data);
  message.set_ordering_key(outgoing.key);
  message.mutable_attributes()->insert(outgoing.attributes.begin(), outgoing.attributes.end());
  return message;
}

google::protobuf::Timestamp message_of(WallTime time) {
  const auto whole = std::chrono::floor<seconds>(time);
  google::protobuf::Timestamp message;
  message.set_seconds(whole.time_since_epoch().count());
  message.set_nanos(static_cast<std::int32_t>((time - whole).count()));
  return message;
}

Topic resource_of(const v1::Topic& message) {
  Topic topic;
  topic.name = message.name();
  topic.labels = {message.labels().begin(), message.labels().end()};
  if (message.has_message_retention_duration())
    topic.retention = span_of(message.message_retention_duration());
  topic.json = json_of(message);
  return topic;
}

Subscription resource_of(const v1::Subscription& message) {
  Subscription subscription;
  subscription.name = message.name();
  subscription.topic = message.topic();
  subscription.labels = {message.labels().begin(), message.labels().end()};
  subscription.ack_deadline = seconds(message.ack_deadline_seconds());
  subscription.is_ordered = message.enable_message_ordering();
  subscription.is_exactly_once = message.enable_exactly_once_delivery();
  subscription.retains_acked = message.retain_acked_messages();
  subscription.is_detached = message.detached();
  if (message.has_message_retention_duration())
    subscription.retention = span_of(message.message_retention_duration());
  if (message.has_expiration_policy())
    subscription.expiration = span_of(message.expiration_policy().ttl());
  subscription.filter = message.filter();
  if (message.has_retry_policy()) {
    subscription.retry = RetryBackoff{span_of(message.retry_policy().minimum_backoff()),
                                      span_of(message.retry_policy().maximum_backoff())};
  }
  if (message.has_dead_letter_policy()) {
    subscription.dead_letters = DeadLetters{message.dead_letter_policy().dead_letter_topic(),
                                            message.dead_letter_policy().max_delivery_attempts()};
  }
  subscription.push_endpoint = message.push_config().push_endpoint();
  subscription.json = json_of(message);
  return subscription;
}

Snapshot resource_of(const v1::Snapshot& message) {
  Snapshot snapshot;
  snapshot.name = message.name();
  snapshot.topic = message.topic();
  snapshot.labels = {message.labels().begin(), message.labels().end()};
  snapshot.expires_at = time_of(message.expire_time());
  snapshot.json = json_of(message);
  return snapshot;
}

IncomingMessage incoming(v1::ReceivedMessage&& received) {
  v1::PubsubMessage& message = *received.mutable_message();
  IncomingMessage taken;
  taken.ack_id = std::move(*received.mutable_ack_id());
  taken.id = std::move(*message.mutable_message_id());
  taken.data = std::move(*message.mutable_data());
  taken.key = std::move(*message.mutable_ordering_key());
  taken.attributes = {message.attributes().begin(), message.attributes().end()};
  taken.published_at = time_of(message.publish_time());
  taken.attempt = received.delivery_attempt();
  return taken;
}

}  // namespace ordo::pubsub_client
