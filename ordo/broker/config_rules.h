// What topics, subscriptions and labels may be set to, and what they mean.
//
//   if (Status checked = check_subscription(config, options); !checked) return checked.error();
//
// Labels are how clients of the service set what its API has no field for:
//
//   topic:        ordo-partitions=1..64, ordo-strict-keys=true|false
//   subscription: ordo-ordered-window=1..1000, ordo-park-attempts=1..1000, ordo-skip-after=90s,
//                 ordo-failure-policy=block|dead_letter|park|skip_after,
//                 ordo-fence-attribute=true|false
//
// Threads: pure functions.
// Errors:  invalid_argument, or what the service answers; the text says what was given and what is
//          allowed.
#pragma once

#include "ordo/broker/catalog.h"
#include "ordo/broker/config.h"
#include "ordo/core/result.h"

namespace ordo::broker {

// Both ways: a label sets its field, and a field that is not as by default gets its label.
Status settle_topic_labels(TopicConfig& config);
Status settle_subscription_labels(SubscriptionConfig& config, const CatalogOptions& options);

// The fields as the labels say: what they do not name is as by default.
Status read_subscription_labels(SubscriptionConfig& config, const CatalogOptions& options);

Status check_topic(const TopicConfig& config, const CatalogOptions& options);

// Fills in defaults (a deadline of 0, attempts of 0), then checks everything but names.
Status check_subscription(SubscriptionConfig& config, const CatalogOptions& options);

Status check_labels(const Labels& labels);

}  // namespace ordo::broker
