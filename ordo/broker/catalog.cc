#include "ordo/broker/catalog.h"

#include <algorithm>
#include <utility>

#include "ordo/broker/catalog_codec.h"
#include "ordo/broker/resource_name.h"
#include "ordo/core/check.h"

namespace ordo::broker {
namespace {

void put_row(CommitBatch& rows, CatalogKey key, std::string value) {
  PutCatalog put;
  put.key = std::move(key);
  put.value = std::move(value);
  rows.emplace_back(std::move(put));
}

void erase_row(CommitBatch& rows, CatalogKey key) {
  EraseCatalog erase;
  erase.key = std::move(key);
  rows.emplace_back(std::move(erase));
}

}  // namespace

// ------------------------------------------------------------------------------------ changes

CatalogChange Catalog::begin(std::string name) {
  ORDO_CHECK(!has_pending_);
  CatalogChange change;
  change.name = std::move(name);
  has_pending_ = true;
  return change;
}

void Catalog::edit(CatalogChange& change, Edit edit) {
  put_rows(change.rows, edit);
  pending_.push_back(std::move(edit));
}

void Catalog::put_counters(CatalogChange& change) const {
  put_row(change.rows, {kCountersKind, std::string(kCountersName)}, encode_row(counters_));
}

void Catalog::put_rows(CommitBatch& rows, const Edit& edit) const {
  if (const auto* topic = std::get_if<CatalogTopic>(&edit)) {
    if (topic->is_deleted) erase_row(rows, {kTopicKind, topic->config.name});
    put_row(rows, key_of(*topic), encode_row(*topic));
  } else if (const auto* subscription = std::get_if<CatalogSubscription>(&edit)) {
    put_row(rows, {kSubscriptionKind, subscription->config.name}, encode_row(*subscription));
  } else if (const auto* snapshot = std::get_if<CatalogSnapshot>(&edit)) {
    put_row(rows, {kSnapshotKind, snapshot->config.name}, encode_row(*snapshot));
  } else if (const auto* erased = std::get_if<EraseTopicEdit>(&edit)) {
    erase_row(rows, key_of(topics_.at(erased->number)));
  } else if (const auto* gone = std::get_if<EraseSubscriptionEdit>(&edit)) {
    erase_row(rows, {kSubscriptionKind, gone->name});
  } else if (const auto* forgotten = std::get_if<EraseSnapshotEdit>(&edit)) {
    erase_row(rows, {kSnapshotKind, forgotten->name});
  } else if (const auto* policy = std::get_if<PolicyEdit>(&edit)) {
    if (policy->policy.empty()) {
      erase_row(rows, {kPolicyKind, policy->resource});
    } else {
      put_row(rows, {kPolicyKind, policy->resource}, encode_policy(policy->policy));
    }
  }
}

void Catalog::apply() {
  ORDO_CHECK(has_pending_);
  for (const Edit& edit : pending_)
    perform(edit);
  pending_.clear();
  has_pending_ = false;
}

void Catalog::drop() {
  ORDO_CHECK(has_pending_);
  pending_.clear();
  has_pending_ = false;
}

void Catalog::perform(const Edit& edit) {
  if (const auto* topic = std::get_if<CatalogTopic>(&edit)) {
    topics_[topic->number] = *topic;
    if (!topic->is_deleted) {
      topics_by_name_[topic->config.name] = topic->number;
    } else if (const auto named = topics_by_name_.find(topic->config.name);
               named != topics_by_name_.end() && named->second == topic->number) {
      topics_by_name_.erase(named);  // Another topic may have the name by now.
    }
  } else if (const auto* subscription = std::get_if<CatalogSubscription>(&edit)) {
    CatalogSubscription& entry = subscriptions_[subscription->config.name];
    const WallTime touched = entry.last_active;
    entry = *subscription;
    entry.last_active = std::max(entry.last_active, touched);
    subscription_names_[subscription->number] = subscription->config.name;
    recorded_active_[subscription->number] = subscription->last_active;
  } else if (const auto* snapshot = std::get_if<CatalogSnapshot>(&edit)) {
    snapshots_[snapshot->config.name] = *snapshot;
  } else if (const auto* erased = std::get_if<EraseTopicEdit>(&edit)) {
    const auto found = topics_.find(erased->number);
    if (!found->second.is_deleted) topics_by_name_.erase(found->second.config.name);
    topics_.erase(found);
  } else if (const auto* gone = std::get_if<EraseSubscriptionEdit>(&edit)) {
    const auto found = subscriptions_.find(gone->name);
    subscription_names_.erase(found->second.number);
    recorded_active_.erase(found->second.number);
    subscriptions_.erase(found);
  } else if (const auto* forgotten = std::get_if<EraseSnapshotEdit>(&edit)) {
    snapshots_.erase(snapshots_.find(forgotten->name));
  } else if (const auto* policy = std::get_if<PolicyEdit>(&edit)) {
    if (policy->policy.empty()) {
      policies_.erase(policy->resource);
    } else {
      policies_[policy->resource] = policy->policy;
    }
  }
}

// ------------------------------------------------------------------------------------ looking up

const CatalogTopic* Catalog::find_topic(std::string_view name) const {
  const auto found = topics_by_name_.find(name);
  return found == topics_by_name_.end() ? nullptr : &topics_.at(found->second);
}

const CatalogSubscription* Catalog::find_subscription(std::string_view name) const {
  const auto found = subscriptions_.find(name);
  return found == subscriptions_.end() ? nullptr : &found->second;
}

const CatalogSnapshot* Catalog::find_snapshot(std::string_view name) const {
  const auto found = snapshots_.find(name);
  return found == snapshots_.end() ? nullptr : &found->second;
}

std::uint32_t Catalog::partitions_of(TopicNumber topic) const {
  return topics_.at(topic).config.partitions;
}

SubscriptionSetup Catalog::setup_of(const CatalogSubscription& subscription) const {
  const auto& policy = subscription.config.dead_letter_policy;
  return setup_with(subscription, policy ? find_topic(policy->topic) : nullptr);
}

SubscriptionSetup Catalog::setup_with(const CatalogSubscription& subscription,
                                      const CatalogTopic* dead_letter_topic) const {
  SubscriptionSetup setup;
  setup.subscription = subscription.number;
  setup.config = subscription.config;
  setup.filter = subscription.filter;
  if (setup.config.push) {
    setup.config.ordered_window = 1;  // Requests side by side could overtake each other.
    if (!setup.config.retry_policy) setup.config.retry_policy = kPushRetryPolicy;
  }
  if (dead_letter_topic != nullptr) {
    setup.dead_letter_topic = dead_letter_topic->number;
    setup.dead_letter_partitions = dead_letter_topic->config.partitions;
  }
  return setup;
}

// The subscriptions that send their dead letters to `topic`, which is about to be `now`.
void Catalog::reconfigure_senders(CatalogChange& change, std::string_view topic,
                                  const CatalogTopic* now) const {
  for (const auto& [name, subscription] : subscriptions_) {
    const auto& policy = subscription.config.dead_letter_policy;
    if (!policy || policy->topic != topic || subscription.config.detached) continue;
    change.after.emplace_back(ReconfigureAll{subscription.topic, partitions_of(subscription.topic),
                                             setup_with(subscription, now)});
  }
}

// Whether anybody but `except` consumes from the topic or holds a place in it.
bool Catalog::is_needed(TopicNumber topic, CursorNumber except) const {
  const auto needs = [&](const auto& entry) {
    return entry.second.topic == topic && entry.second.number != except;
  };
  return std::any_of(
             subscriptions_.begin(), subscriptions_.end(),
             [&](const auto& entry) { return needs(entry) && !entry.second.config.detached; }) ||
         std::any_of(snapshots_.begin(), snapshots_.end(), needs);
}

// `cursor` leaves the topic: its rows go, and a deleted topic goes with the last one.
void Catalog::release_topic(CatalogChange& change, TopicNumber topic, CursorNumber cursor) {
  const CatalogTopic& entry = topics_.at(topic);
  for (std::uint32_t index = 0; index < entry.config.partitions; ++index)
    change.rows.emplace_back(EraseRows{cursor, {topic, index}});
  if (!entry.is_deleted || is_needed(topic, cursor)) return;
  change.before.emplace_back(ClosePartitions{topic, entry.config.partitions});
  for (std::uint32_t index = 0; index < entry.config.partitions; ++index)
    change.rows.emplace_back(ErasePartition{{topic, index}});
  edit(change, EraseTopicEdit{topic});
}

Status Catalog::check_keys(TopicNumber topic) const {
  const auto found = topics_.find(topic);
  if (found == topics_.end() || !found->second.config.strict_keys) return {};
  const bool ordered =
      std::any_of(subscriptions_.begin(), subscriptions_.end(), [&](const auto& entry) {
        const CatalogSubscription& subscription = entry.second;
        return subscription.topic == topic && !subscription.config.detached &&
               subscription.config.enable_message_ordering;
      });
  if (ordered) return {};
  return Error{ErrorCode::failed_precondition,
               "The topic is strict about keys, and no subscription of it has "
               "enable_message_ordering: a message with an ordering key is refused"};
}

// ------------------------------------------------------------------------------------ by and by

void Catalog::touch(CursorNumber subscription, WallTime now) {
  const auto name = subscription_names_.find(subscription);
  if (name == subscription_names_.end()) return;
  WallTime& last = subscriptions_.find(name->second)->second.last_active;
  last = std::max(last, now);
}

CommitBatch Catalog::activity_rows() {
  CommitBatch rows;
  for (const auto& [name, subscription] : subscriptions_) {
    WallTime& recorded = recorded_active_[subscription.number];
    if (subscription.last_active - recorded < std::chrono::hours(1)) continue;
    recorded = subscription.last_active;
    put_rows(rows, subscription);
  }
  return rows;
}

Catalog::Expired Catalog::expired(WallTime now) const {
  Expired expired;
  for (const auto& [name, subscription] : subscriptions_) {
    const auto& ttl = subscription.config.expiration_ttl;
    if (ttl && now - subscription.last_active >= *ttl) expired.subscriptions.push_back(name);
  }
  for (const auto& [name, snapshot] : snapshots_) {
    if (snapshot.config.expire_time <= now) expired.snapshots.push_back(name);
  }
  return expired;
}

// ------------------------------------------------------------------------------------ recovery

Status Catalog::read_row(Catalog& catalog, const CatalogKey& key, std::string_view value) {
  const auto take = [&](auto decoded) -> Status {
    if (!decoded) return decoded.error();
    catalog.perform(*std::move(decoded));
    return {};
  };
  switch (key.kind) {
    case kTopicKind:
      return take(decode_topic(key.name, value));
    case kDeletedTopicKind:
      return take(decode_deleted_topic(key.name, value));
    case kSubscriptionKind:
      return take(decode_subscription(key.name, value));
    case kSnapshotKind:
      return take(decode_snapshot(key.name, value));
    case kPolicyKind: {
      Result<std::string> policy = decode_policy(key.name, value);
      if (!policy) return std::move(policy).error();
      catalog.perform(PolicyEdit{key.name, *std::move(policy)});
      return {};
    }
    case kCountersKind: {
      const Result<CatalogCounters> counters = decode_counters(value);
      if (!counters) return counters.error();
      catalog.counters_ = *counters;
      return {};
    }
    default:
      return Error{ErrorCode::data_loss, "The catalog has a row '" + key.name + "' of kind " +
                                             std::to_string(key.kind) + ", which is not known"};
  }
}

Result<Catalog::Start> Catalog::recover(const Recovered& recovered, const CatalogOptions& options) {
  Catalog catalog(options);
  for (const auto& [key, value] : recovered.catalog) {
    if (Status read = read_row(catalog, key, value); !read) return read.error();
  }
  const auto lost = [](const std::string& name) {
    return Error{ErrorCode::data_loss, "The catalog has no row of the topic of " + name};
  };
  for (const auto& [name, subscription] : catalog.subscriptions_) {
    if (!subscription.config.detached && !catalog.topics_.contains(subscription.topic)) {
      return lost(name);
    }
  }
  for (const auto& [name, snapshot] : catalog.snapshots_) {
    if (!catalog.topics_.contains(snapshot.topic)) return lost(name);
  }
  catalog.raise_counters(recovered);
  CommitBatch cleanup = leftovers(catalog, recovered);
  return Start{std::move(catalog), std::move(cleanup)};
}

// A repair may have lost the newest counters. No number is given twice all the same.
void Catalog::raise_counters(const Recovered& recovered) {
  const auto raise = [](std::uint32_t& next, std::uint32_t used) {
    next = std::max(next, used + 1);
  };
  for (const auto& [number, topic] : topics_)
    raise(counters_.next_topic, number.value());
  for (const auto& [address, partition] : recovered.partitions)
    raise(counters_.next_topic, address.topic.value());
  for (const auto& [name, subscription] : subscriptions_)
    raise(counters_.next_cursor, subscription.number.value());
  for (const auto& [name, snapshot] : snapshots_)
    raise(counters_.next_cursor, snapshot.number.value());
  for (const auto& [key, value] : recovered.rows)
    raise(counters_.next_cursor, key.cursor.value());
}

// Rows of cursors that do not exist, and partitions of topics that do not.
CommitBatch Catalog::leftovers(const Catalog& catalog, const Recovered& recovered) {
  CommitBatch batch;
  for (const auto& [address, partition] : recovered.partitions) {
    if (!catalog.topics_.contains(address.topic)) batch.emplace_back(ErasePartition{address});
  }
  std::map<CursorNumber, TopicNumber> cursors;
  for (const auto& [name, subscription] : catalog.subscriptions_) {
    if (!subscription.config.detached) cursors[subscription.number] = subscription.topic;
  }
  for (const auto& [name, snapshot] : catalog.snapshots_)
    cursors[snapshot.number] = snapshot.topic;
  std::optional<std::pair<CursorNumber, PartitionAddress>> last;
  for (const auto& [key, value] : recovered.rows) {
    const auto found = cursors.find(key.cursor);
    if (found != cursors.end() && found->second == key.partition.topic) continue;
    if (last == std::pair(key.cursor, key.partition)) continue;
    last = {key.cursor, key.partition};
    batch.emplace_back(EraseRows{key.cursor, key.partition});
  }
  return batch;
}

}  // namespace ordo::broker
