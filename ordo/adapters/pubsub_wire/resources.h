// Topics, subscriptions and snapshots: between the messages of the wire and the broker's settings.
//
//   Result<broker::SubscriptionConfig> config = config_of(request);
//   if (!config) return config.error();
//   v1::Subscription shown = resource_of(*config, topic_retention);
//
// What a client leaves out becomes its default. What the broker does not do is refused when it is
// set (UNIMPLEMENTED), but for what makes no difference here; docs/pubsub_api.md names each field.
//
// Masked: an update's resource with the fields of its mask alone, and the mask as the broker knows
// it.
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <optional>

#include <google/pubsub/v1/pubsub.pb.h>

#include "ordo/broker/catalog.h"
#include "ordo/broker/config.h"
#include "ordo/core/result.h"

namespace ordo::pubsub_wire {

namespace v1 = google::pubsub::v1;

Result<broker::TopicConfig> config_of(const v1::Topic& topic);
Result<broker::SubscriptionConfig> config_of(const v1::Subscription& subscription);
Result<broker::SnapshotConfig> config_of(const v1::Snapshot& snapshot);

v1::Topic resource_of(const broker::TopicConfig& config);
// `topic_retention` is that of its topic, where there is one.
v1::Subscription resource_of(const broker::SubscriptionConfig& config,
                             std::optional<std::chrono::nanoseconds> topic_retention);
v1::Snapshot resource_of(const broker::SnapshotConfig& config);

// invalid_argument: outside what a Timestamp may be.
Result<WallTime> time_of(const google::protobuf::Timestamp& time);

template <class Resource>
struct Masked {
  Resource resource;
  broker::UpdateMask mask;  // Without the fields that are not kept.
  bool is_empty = false;    // There was none: nothing was asked for.
};

Masked<v1::Topic> masked(const v1::UpdateTopicRequest& request);
Masked<v1::Subscription> masked(const v1::UpdateSubscriptionRequest& request);
Masked<v1::Snapshot> masked(const v1::UpdateSnapshotRequest& request);

}  // namespace ordo::pubsub_wire
