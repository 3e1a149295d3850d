// What a topic, a subscription and a snapshot are set to, in the broker's words.
//
// Threads: plain values.
// Bounds:  validated by the catalog; docs/limits.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ordo/broker/ids.h"

namespace ordo::broker {

using Labels = std::map<std::string, std::string>;

struct TopicConfig {
  std::string name = {};  // projects/{project}/topics/{topic}
  Labels labels = {};
  std::uint32_t partitions = 4;                            // 1 to 64; fixed at creation.
  std::optional<std::chrono::nanoseconds> retention = {};  // Kept for replay even if acknowledged.
  bool strict_keys = false;  // Refuses keys when no subscription of it keeps order.
};

struct RetryPolicy {
  std::chrono::nanoseconds minimum_backoff = std::chrono::seconds(10);
  std::chrono::nanoseconds maximum_backoff = std::chrono::seconds(600);
};

struct DeadLetterPolicy {
  std::string topic = {};  // Its name.
  std::uint32_t max_delivery_attempts = 5;
};

// What happens to a key whose head fails again and again.
enum class FailurePolicy : std::uint8_t {
  block,        // Tried again for ever, with back-off.
  dead_letter,  // After max_delivery_attempts to the dead-letter topic; then the key goes on.
  park,         // After park_attempts the key is out of service until somebody decides.
  skip_after,   // A head that has failed for longer than skip_after is given up, and counted.
};

// What a push request carries.
enum class PushForm : std::uint8_t {
  wrapped,        // A JSON object with the message in it.
  bare,           // The data of the message, and nothing else.
  bare_with_head  // The data; everything else of the message is in headers.
};

// Where the messages of a subscription are sent; without it they are fetched.
struct PushConfig {
  std::string endpoint = {};  // push_endpoint.h
  Labels attributes = {};     // x-goog-version, of the service; kept and given back.
  PushForm form = PushForm::wrapped;

  friend bool operator==(const PushConfig&, const PushConfig&) = default;
};

// Of a push subscription without a retry policy: an endpoint that refuses a message at once would
// get it again at once.
inline constexpr RetryPolicy kPushRetryPolicy{std::chrono::milliseconds(100),
                                              std::chrono::seconds(60)};

struct SubscriptionConfig {
  std::string name = {};   // projects/{project}/subscriptions/{subscription}
  std::string topic = {};  // Its name; "_deleted-topic_" once that is deleted.
  Labels labels = {};
  std::chrono::nanoseconds ack_deadline = std::chrono::seconds(10);
  bool enable_message_ordering = false;
  bool enable_exactly_once_delivery = false;
  bool retain_acked_messages = false;
  bool detached = false;
  std::chrono::nanoseconds message_retention = std::chrono::hours(7 * 24);
  std::optional<std::chrono::nanoseconds> expiration_ttl =
      std::chrono::hours(31 * 24);  // None: never.
  std::string filter = {};
  std::optional<RetryPolicy> retry_policy = {};  // None: at once.
  std::optional<DeadLetterPolicy> dead_letter_policy = {};
  // From labels (ordo-ordered-window, ordo-failure-policy, ordo-park-attempts, ordo-skip-after).
  std::uint32_t ordered_window = 1;
  FailurePolicy failure_policy = FailurePolicy::block;  // dead_letter if there is such a policy.
  std::uint32_t park_attempts = 5;
  std::chrono::nanoseconds skip_after = std::chrono::seconds(60);
  std::optional<PushConfig> push = {};  // None: messages are fetched.
};

struct SnapshotConfig {
  std::string name = {};   // projects/{project}/snapshots/{snapshot}
  std::string topic = {};  // Its name.
  Labels labels = {};
  WallTime expire_time = {};
};

}  // namespace ordo::broker
