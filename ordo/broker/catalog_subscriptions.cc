#include <algorithm>
#include <array>
#include <utility>

#include "ordo/broker/catalog.h"
#include "ordo/broker/catalog_answers.h"
#include "ordo/broker/config_rules.h"
#include "ordo/broker/resource_name.h"
#include "ordo/core/units.h"

namespace ordo::broker {
namespace {

constexpr std::string_view kUpdate = "UpdateSubscriptionRequest";
constexpr std::string_view kSubscription = "Subscription";

Status check_name(std::string_view name) {
  const Result<ResourceName> parsed = ResourceName::parse(name, Collection::subscriptions);
  if (!parsed) return parsed.error();
  return {};
}

Result<std::shared_ptr<const Filter>> parse_filter(const std::string& text) {
  if (text.empty()) return std::shared_ptr<const Filter>();
  Result<Filter> filter = Filter::parse(text);
  if (!filter) return filter.error();
  return std::make_shared<const Filter>(*std::move(filter));
}

bool is_immutable(std::string_view path) {
  constexpr std::array<std::string_view, 7> kFields = {
      "name",     "topic", "enable_message_ordering",         "filter",
      "detached", "state", "topic_message_retention_duration"};
  return std::find(kFields.begin(), kFields.end(), path) != kFields.end();
}

}  // namespace

Status Catalog::check_dead_letter_topic(const SubscriptionConfig& config) const {
  if (!config.dead_letter_policy) return {};
  const std::string& topic = config.dead_letter_policy->topic;
  if (Result<ResourceName> name = ResourceName::parse(topic, Collection::topics); !name) {
    return name.error();
  }
  if (find_topic(topic) != nullptr) return {};
  return Error{ErrorCode::not_found,
               "Dead letter topic not found (resource=" + std::string(id_of(topic)) + ")."};
}

Result<CatalogChange> Catalog::create_subscription(SubscriptionConfig config, WallTime now) {
  const Result<ResourceName> topic_name = ResourceName::parse(config.topic, Collection::topics);
  if (!topic_name) return topic_name.error();
  while (config.name.empty()) {
    std::string name = resource_name(topic_name->project, Collection::subscriptions,
                                     "ordo-" + std::to_string(counters_.next_cursor));
    if (find_subscription(name) == nullptr) {
      config.name = std::move(name);
    } else {
      ++counters_.next_cursor;
    }
  }
  if (Status named = check_name(config.name); !named) return named.error();
  if (find_subscription(config.name) != nullptr) return already_exists(config.name);
  const CatalogTopic* topic = find_topic(config.topic);
  if (topic == nullptr) return not_found(config.topic);
  if (config.detached) {
    return Error{ErrorCode::invalid_argument, "A subscription cannot be created detached"};
  }
  if (Status settled = settle_subscription_labels(config, options_); !settled) {
    return settled.error();
  }
  if (Status checked = check_subscription(config, options_); !checked) return checked.error();
  if (Status checked = check_dead_letter_topic(config); !checked) return checked.error();
  Result<std::shared_ptr<const Filter>> filter = parse_filter(config.filter);
  if (!filter) return filter.error();
  if (subscriptions_.size() >= options_.subscriptions_max) {
    return too_many("subscriptions", options_.subscriptions_max);
  }
  CatalogChange change = begin(config.name);
  CatalogSubscription subscription{CursorNumber(counters_.next_cursor++), topic->number,
                                   std::move(config), now, *std::move(filter)};
  change.before.emplace_back(
      AttachToAll{topic->number, topic->config.partitions, setup_of(subscription)});
  edit(change, std::move(subscription));
  put_counters(change);
  return change;
}

Status Catalog::update_field(SubscriptionConfig& config, const SubscriptionConfig& from,
                             std::string_view path) const {
  if (is_immutable(path)) return not_mutable(kUpdate, kSubscription, path);
  if (path == "ack_deadline_seconds") {
    config.ack_deadline = from.ack_deadline;
  } else if (path == "retain_acked_messages") {
    config.retain_acked_messages = from.retain_acked_messages;
  } else if (path == "message_retention_duration") {
    config.message_retention = from.message_retention;
  } else if (path == "labels") {
    config.labels = from.labels;
  } else if (path == "expiration_policy") {
    config.expiration_ttl = from.expiration_ttl;
  } else if (path == "dead_letter_policy") {
    config.dead_letter_policy = from.dead_letter_policy;
    if (Status checked = check_dead_letter_topic(config); !checked) return checked;
  } else if (path == "retry_policy") {
    config.retry_policy = from.retry_policy;
  } else if (path == "push_config") {
    config.push = from.push;
  } else if (path == "enable_exactly_once_delivery") {
    config.enable_exactly_once_delivery = from.enable_exactly_once_delivery;
  } else {
    return unknown_field(kUpdate, kSubscription, path);
  }
  return {};
}

Result<CatalogChange> Catalog::update_subscription(const SubscriptionConfig& config,
                                                   const UpdateMask& mask) {
  if (Status named = check_name(config.name); !named) return named.error();
  const CatalogSubscription* found = find_subscription(config.name);
  if (found == nullptr) return not_found(config.name);
  if (mask.empty()) return empty_mask(kUpdate);
  CatalogSubscription subscription = *found;
  for (const std::string& path : mask) {
    if (Status updated = update_field(subscription.config, config, path); !updated) {
      return updated.error();
    }
  }
  // A policy named by a label may have lost what it needs, or a dead-letter policy may be new.
  if (Status read = read_subscription_labels(subscription.config, options_); !read) {
    return read.error();
  }
  if (Status checked = check_subscription(subscription.config, options_); !checked) {
    return checked.error();
  }
  CatalogChange change = begin(config.name);
  if (!subscription.config.detached) {
    change.after.emplace_back(ReconfigureAll{subscription.topic, partitions_of(subscription.topic),
                                             setup_of(subscription)});
  }
  edit(change, std::move(subscription));
  return change;
}

Result<CatalogChange> Catalog::delete_subscription(std::string_view name) {
  if (Status named = check_name(name); !named) return named.error();
  const CatalogSubscription* found = find_subscription(name);
  if (found == nullptr) return not_found(name);
  CatalogChange change = begin(std::string(name));
  if (!found->config.detached) {
    change.before.emplace_back(
        DetachFromAll{found->topic, partitions_of(found->topic), found->number, not_found(name)});
    release_topic(change, found->topic, found->number);
  }
  forget_policy(change, name);
  edit(change, EraseSubscriptionEdit{std::string(name)});
  return change;
}

Result<CatalogChange> Catalog::detach_subscription(std::string_view name) {
  const Result<CatalogSubscription> found = get_attached(name);
  if (!found) return found.error();
  CatalogChange change = begin(std::string(name));
  change.before.emplace_back(DetachFromAll{
      found->topic, partitions_of(found->topic), found->number,
      Error{ErrorCode::failed_precondition,
            "The subscription is detached (resource=" + std::string(id_of(name)) + ")."}});
  release_topic(change, found->topic, found->number);
  CatalogSubscription subscription = *found;
  subscription.config.detached = true;
  edit(change, std::move(subscription));
  return change;
}

Result<CatalogSubscription> Catalog::get_subscription(std::string_view name) const {
  if (Status named = check_name(name); !named) return named.error();
  const CatalogSubscription* subscription = find_subscription(name);
  if (subscription == nullptr) return not_found(name);
  return *subscription;
}

Result<CatalogSubscription> Catalog::get_attached(std::string_view name) const {
  Result<CatalogSubscription> subscription = get_subscription(name);
  if (!subscription || !subscription->config.detached) return subscription;
  return Error{ErrorCode::failed_precondition,
               "The subscription is detached (resource=" + std::string(id_of(name)) + ")."};
}

Result<Page<SubscriptionConfig>> Catalog::list_subscriptions(std::string_view project,
                                                             int page_size,
                                                             std::string_view page_token) const {
  const Result<std::string_view> id = parse_project_name(project);
  if (!id) return id.error();
  return page_of<SubscriptionConfig>(
      subscriptions_, {resource_name(*id, Collection::subscriptions, ""), page_size, page_token},
      [](const CatalogSubscription&) { return true; },
      [](const auto& entry) { return entry.second.config; });
}

}  // namespace ordo::broker
