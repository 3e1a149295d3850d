#include "ordo/broker/config_rules.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/broker/fence_label.h"
#include "ordo/broker/push_endpoint.h"
#include "ordo/core/nearest.h"
#include "ordo/core/units.h"
#include "ordo/core/utf8.h"

namespace ordo::broker {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::uint32_t kPartitionsMax = 64;
constexpr std::uint32_t kWindowMax = 1'000;
constexpr std::uint32_t kAttemptsMax = 1'000;
constexpr nanoseconds kRetentionMax = hours(31 * 24);
constexpr nanoseconds kSkipAfterMin = std::chrono::milliseconds(1);
constexpr nanoseconds kBackoffMax = seconds(600);
constexpr nanoseconds kAckDeadlineMax = seconds(600);
constexpr std::uint32_t kDeliveryAttemptsDefault = 5;
constexpr std::uint32_t kDeliveryAttemptsMax = 100;

constexpr std::string_view kOwnLabels = "ordo-";
constexpr std::string_view kPartitionsLabel = "ordo-partitions";
constexpr std::string_view kStrictKeysLabel = "ordo-strict-keys";
constexpr std::string_view kWindowLabel = "ordo-ordered-window";
constexpr std::string_view kFailurePolicyLabel = "ordo-failure-policy";
constexpr std::string_view kParkAttemptsLabel = "ordo-park-attempts";
constexpr std::string_view kSkipAfterLabel = "ordo-skip-after";

constexpr std::pair<FailurePolicy, std::string_view> kPolicies[] = {
    {FailurePolicy::block, "block"},
    {FailurePolicy::dead_letter, "dead_letter"},
    {FailurePolicy::park, "park"},
    {FailurePolicy::skip_after, "skip_after"},
};

Error invalid(std::string message) {
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

Error bad_label(std::string_view label, std::string_view value, const std::string& allowed) {
  std::string message = "The label ";
  message += label;
  message += " is '";
  message += value;
  return invalid(message + "'; allowed: " + allowed);
}

const std::string* find_label(const Labels& labels, std::string_view name) {
  const auto found = labels.find(std::string(name));
  return found == labels.end() ? nullptr : &found->second;
}

// Leaves `out` as it is without the label.
Status read_number(const Labels& labels, std::string_view label, std::uint32_t most,
                   std::uint32_t& out) {
  const std::string* text = find_label(labels, label);
  if (text == nullptr) return {};
  std::uint32_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end || value < 1 || value > most) {
    return bad_label(label, *text, "1 to " + std::to_string(most));
  }
  out = value;
  return {};
}

Status read_flag(const Labels& labels, std::string_view label, bool& out) {
  const std::string* text = find_label(labels, label);
  if (text == nullptr) return {};
  if (*text != "true" && *text != "false") return bad_label(label, *text, "true, false");
  out = *text == "true";
  return {};
}

Status read_skip_after(const Labels& labels, nanoseconds& out) {
  const std::string* text = find_label(labels, kSkipAfterLabel);
  if (text == nullptr) return {};
  const Result<nanoseconds> value = parse_duration(*text);
  if (!value || *value < kSkipAfterMin || *value > kRetentionMax) {
    return bad_label(kSkipAfterLabel, *text, "1ms to 31d");
  }
  out = *value;
  return {};
}

Status read_policy(const Labels& labels, std::optional<FailurePolicy>& out) {
  const std::string* text = find_label(labels, kFailurePolicyLabel);
  if (text == nullptr) return {};
  std::string name = *text;
  std::replace(name.begin(), name.end(), '-', '_');
  for (const auto& [policy, word] : kPolicies) {
    if (name != word) continue;
    out = policy;
    return {};
  }
  return bad_label(kFailurePolicyLabel, *text, "block, dead_letter, park, skip_after");
}

Status refuse_unknown(const Labels& labels, const std::vector<std::string>& known) {
  for (const auto& [key, value] : labels) {
    if (!key.starts_with(kOwnLabels)) continue;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string meant = nearest(key, known);
    return invalid("There is no label " + key +
                   (meant.empty() ? std::string() : "; did you mean " + meant + "?"));
  }
  return {};
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

Status check_range(std::string_view what, nanoseconds value, nanoseconds least, nanoseconds most) {
  if (value >= least && value <= most) return {};
  std::string message(what);
  message +=
      " is " + (value < nanoseconds::zero() ? std::string("negative") : format_duration(value));
  return invalid(message + "; allowed: " + format_duration(least) + " to " + format_duration(most));
}

Status check_retry(const RetryPolicy& policy) {
  for (const auto& [what, value] : {std::pair("minimum_backoff", policy.minimum_backoff),
                                    std::pair("maximum_backoff", policy.maximum_backoff)}) {
    if (Status checked = check_range(what, value, nanoseconds::zero(), kBackoffMax); !checked) {
      return checked;
    }
  }
  if (policy.minimum_backoff > policy.maximum_backoff) {
    return invalid("minimum_backoff is " + format_duration(policy.minimum_backoff) +
                   ", more than maximum_backoff, which is " +
                   format_duration(policy.maximum_backoff));
  }
  return {};
}

Status check_dead_letter(DeadLetterPolicy& policy, const CatalogOptions& options) {
  if (policy.max_delivery_attempts == 0) policy.max_delivery_attempts = kDeliveryAttemptsDefault;
  if (policy.max_delivery_attempts < options.delivery_attempts_min ||
      policy.max_delivery_attempts > kDeliveryAttemptsMax) {
    return Error{ErrorCode::out_of_range,
                 "max_delivery_attempts is " + std::to_string(policy.max_delivery_attempts) +
                     "; allowed: " + std::to_string(options.delivery_attempts_min) + " to " +
                     std::to_string(kDeliveryAttemptsMax)};
  }
  return {};
}

// What the service knows as an attribute: the version of the form, of which there is one here.
Status check_push(const SubscriptionConfig& config) {
  if (!config.push) return {};
  if (const Result<PushEndpoint> endpoint = PushEndpoint::parse(config.push->endpoint); !endpoint)
    return endpoint.error();
  for (const auto& [name, value] : config.push->attributes) {
    if (name != "x-goog-version") {
      return invalid("There is no push attribute '" + name + "'; allowed: x-goog-version");
    }
    if (value != "v1" && value != "v1beta2") {
      return invalid("The push attribute x-goog-version is '" + value + "'; allowed: v1, v1beta2");
    }
  }
  if (config.enable_exactly_once_delivery) {
    return invalid("Exactly-once delivery is not supported for push subscriptions");
  }
  return {};
}

Status check_failure_settings(const SubscriptionConfig& config) {
  if (config.ordered_window < 1 || config.ordered_window > kWindowMax) {
    return invalid("ordered_window is " + std::to_string(config.ordered_window) +
                   "; allowed: 1 to " + std::to_string(kWindowMax));
  }
  if (config.park_attempts < 1 || config.park_attempts > kAttemptsMax) {
    return invalid("park_attempts is " + std::to_string(config.park_attempts) + "; allowed: 1 to " +
                   std::to_string(kAttemptsMax));
  }
  if (config.failure_policy == FailurePolicy::dead_letter && !config.dead_letter_policy) {
    return invalid("The failure policy dead_letter needs a dead_letter_policy");
  }
  return check_range("skip_after", config.skip_after, kSkipAfterMin, kRetentionMax);
}

}  // namespace

Status check_labels(const Labels& labels) {
  constexpr std::size_t kLabelsMax = 64;
  constexpr std::size_t kCharactersMax = 63;
  if (labels.size() > kLabelsMax) {
    return invalid("There are " + std::to_string(labels.size()) + " labels; allowed: up to " +
                   std::to_string(kLabelsMax));
  }
  for (const auto& [key, value] : labels) {
    if (key.empty() || !is_utf8(key) || !is_utf8(value) || character_count(key) > kCharactersMax ||
        character_count(value) > kCharactersMax) {
      return invalid("A label has a key of 1 to 63 and a value of up to 63 characters of UTF-8");
    }
  }
  return {};
}

Status settle_topic_labels(TopicConfig& config) {
  if (Status checked = check_labels(config.labels); !checked) return checked;
  if (Status known = refuse_unknown(config.labels,
                                    {std::string(kPartitionsLabel), std::string(kStrictKeysLabel)});
      !known) {
    return known;
  }
  if (Status read = read_number(config.labels, kPartitionsLabel, kPartitionsMax, config.partitions);
      !read) {
    return read;
  }
  if (Status read = read_flag(config.labels, kStrictKeysLabel, config.strict_keys); !read) {
    return read;
  }
  if (config.partitions != TopicConfig().partitions) {
    config.labels[std::string(kPartitionsLabel)] = std::to_string(config.partitions);
  }
  if (config.strict_keys) config.labels[std::string(kStrictKeysLabel)] = "true";
  return {};
}

Status read_subscription_labels(SubscriptionConfig& config, const CatalogOptions& options) {
  const SubscriptionConfig defaults;
  config.ordered_window = options.ordered_window;
  config.park_attempts = defaults.park_attempts;
  config.skip_after = defaults.skip_after;
  config.failure_policy = FailurePolicy::block;
  return settle_subscription_labels(config, options);
}

Status settle_subscription_labels(SubscriptionConfig& config, const CatalogOptions& options) {
  Labels& labels = config.labels;
  if (Status checked = check_labels(labels); !checked) return checked;
  if (Status known =
          refuse_unknown(labels, {std::string(kWindowLabel), std::string(kFailurePolicyLabel),
                                  std::string(kParkAttemptsLabel), std::string(kSkipAfterLabel),
                                  std::string(kFenceLabel)});
      !known) {
    return known;
  }
  const SubscriptionConfig defaults;
  const auto put = [&](std::string_view label, const std::string& value) {
    labels.emplace(std::string(label), value);
  };
  const std::string window(kWindowLabel);
  std::optional<FailurePolicy> policy;
  bool has_fence = false;  // It has no field: who sends messages looks at the label.
  for (const Status& read :
       {read_number(labels, kWindowLabel, kWindowMax, config.ordered_window),
        read_number(labels, kParkAttemptsLabel, kAttemptsMax, config.park_attempts),
        read_skip_after(labels, config.skip_after), read_policy(labels, policy),
        read_flag(labels, kFenceLabel, has_fence)}) {
    if (!read) return read;
  }
  if (config.ordered_window == defaults.ordered_window && !labels.contains(window)) {
    config.ordered_window = options.ordered_window;
  } else if (config.ordered_window != options.ordered_window) {
    put(kWindowLabel, std::to_string(config.ordered_window));
  }
  if (config.park_attempts != defaults.park_attempts) {
    put(kParkAttemptsLabel, std::to_string(config.park_attempts));
  }
  if (config.skip_after != defaults.skip_after) {
    put(kSkipAfterLabel, format_duration(config.skip_after));
  }
  // A dead-letter policy is what its owner wants done, unless he says otherwise.
  if (policy) {
    config.failure_policy = *policy;
  } else if (config.failure_policy == FailurePolicy::block) {
    if (config.dead_letter_policy) config.failure_policy = FailurePolicy::dead_letter;
  } else if (config.failure_policy != FailurePolicy::dead_letter) {
    put(kFailurePolicyLabel,
        std::string(kPolicies[static_cast<std::size_t>(config.failure_policy)].second));
  }
  return {};
}

Status check_topic(const TopicConfig& config, const CatalogOptions& options) {
  if (config.partitions < 1 || config.partitions > kPartitionsMax) {
    return invalid("partitions is " + std::to_string(config.partitions) + "; allowed: 1 to " +
                   std::to_string(kPartitionsMax));
  }
  if (!config.retention) return {};
  return check_range("message_retention_duration", *config.retention, options.retention_min,
                     kRetentionMax);
}

Status check_subscription(SubscriptionConfig& config, const CatalogOptions& options) {
  if (config.ack_deadline == nanoseconds::zero()) {
    config.ack_deadline = SubscriptionConfig().ack_deadline;
  }
  if (config.ack_deadline < options.ack_deadline_min || config.ack_deadline > kAckDeadlineMax) {
    return invalid(
        "ack_deadline_secs out of bounds; allowed: " + format_duration(options.ack_deadline_min) +
        " to " + format_duration(kAckDeadlineMax));
  }
  if (Status checked = check_range("message_retention_duration", config.message_retention,
                                   options.retention_min, kRetentionMax);
      !checked) {
    return checked;
  }
  if (config.expiration_ttl && *config.expiration_ttl < options.expiration_min) {
    return invalid("The ttl of expiration_policy is too short; allowed: " +
                   format_duration(options.expiration_min) + " and more");
  }
  if (config.retry_policy) {
    if (Status checked = check_retry(*config.retry_policy); !checked) return checked;
  }
  if (config.dead_letter_policy) {
    if (Status checked = check_dead_letter(*config.dead_letter_policy, options); !checked) {
      return checked;
    }
  }
  if (Status checked = check_push(config); !checked) return checked;
  return check_failure_settings(config);
}

}  // namespace ordo::broker
