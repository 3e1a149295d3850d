#include <utility>

#include "ordo/broker/catalog.h"
#include "ordo/broker/catalog_answers.h"
#include "ordo/broker/config_rules.h"
#include "ordo/broker/resource_name.h"

namespace ordo::broker {
namespace {

constexpr std::string_view kUpdate = "UpdateTopicRequest";
constexpr std::string_view kTopic = "Topic";

Status update_topic_field(TopicConfig& config, const TopicConfig& from, std::string_view path) {
  if (path == "name") return not_mutable(kUpdate, kTopic, path);
  if (path == "message_retention_duration") {
    config.retention = from.retention;
    return {};
  }
  if (path != "labels") return unknown_field(kUpdate, kTopic, path);
  TopicConfig relabelled = from;
  relabelled.partitions = TopicConfig().partitions;
  relabelled.strict_keys = false;
  if (Status settled = settle_topic_labels(relabelled); !settled) return settled;
  if (from.labels.contains("ordo-partitions") && relabelled.partitions != config.partitions) {
    return Error{ErrorCode::invalid_argument,
                 "The number of partitions is fixed when a topic is created: it is " +
                     std::to_string(config.partitions)};
  }
  config.labels = from.labels;
  config.strict_keys = relabelled.strict_keys;
  return settle_topic_labels(config);  // The label of the partitions stays.
}

}  // namespace

Result<CatalogChange> Catalog::create_topic(TopicConfig config) {
  const Result<ResourceName> name = ResourceName::parse(config.name, Collection::topics);
  if (!name) return name.error();
  if (find_topic(config.name) != nullptr) return already_exists(config.name);
  if (Status settled = settle_topic_labels(config); !settled) return settled.error();
  if (Status checked = check_topic(config, options_); !checked) return checked.error();
  if (topics_by_name_.size() >= options_.topics_max) return too_many("topics", options_.topics_max);
  std::size_t partitions = config.partitions;
  for (const auto& [number, topic] : topics_)
    partitions += topic.config.partitions;
  if (partitions > options_.partitions_max) {
    return Error{ErrorCode::resource_exhausted,
                 "With this topic there would be " + std::to_string(partitions) +
                     " partitions; the maximum is " + std::to_string(options_.partitions_max)};
  }
  CatalogChange change = begin(config.name);
  const CatalogTopic topic{TopicNumber(counters_.next_topic++), std::move(config)};
  change.after.emplace_back(
      OpenPartitions{topic.number, topic.config.partitions, topic.config.retention});
  reconfigure_senders(change, topic.config.name, &topic);
  edit(change, topic);
  put_counters(change);
  return change;
}

Result<CatalogChange> Catalog::update_topic(const TopicConfig& config, const UpdateMask& mask) {
  if (Result<ResourceName> name = ResourceName::parse(config.name, Collection::topics); !name) {
    return name.error();
  }
  const CatalogTopic* found = find_topic(config.name);
  if (found == nullptr) return not_found(config.name);
  if (mask.empty()) return empty_mask(kUpdate);
  CatalogTopic topic = *found;
  for (const std::string& path : mask) {
    if (Status updated = update_topic_field(topic.config, config, path); !updated) {
      return updated.error();
    }
  }
  if (Status checked = check_topic(topic.config, options_); !checked) return checked.error();
  CatalogChange change = begin(config.name);
  if (topic.config.retention != found->config.retention) {
    change.after.emplace_back(
        RetainInAll{topic.number, topic.config.partitions, topic.config.retention});
  }
  edit(change, std::move(topic));
  return change;
}

Result<CatalogChange> Catalog::delete_topic(std::string_view name) {
  if (Result<ResourceName> parsed = ResourceName::parse(name, Collection::topics); !parsed) {
    return parsed.error();
  }
  const CatalogTopic* found = find_topic(name);
  if (found == nullptr) return not_found(name);
  CatalogChange change = begin(std::string(name));
  CatalogTopic topic = *found;
  reconfigure_senders(change, name, nullptr);
  forget_policy(change, name);
  for (const auto& [key, subscription] : subscriptions_) {
    if (subscription.topic != topic.number) continue;
    CatalogSubscription orphan = subscription;
    orphan.config.topic = kDeletedTopic;
    edit(change, std::move(orphan));
  }
  for (const auto& [key, snapshot] : snapshots_) {
    if (snapshot.topic != topic.number) continue;
    CatalogSnapshot orphan = snapshot;
    orphan.config.topic = kDeletedTopic;
    edit(change, std::move(orphan));
  }
  if (is_needed(topic.number, CursorNumber())) {
    topic.is_deleted = true;
    edit(change, std::move(topic));
    return change;
  }
  change.before.emplace_back(ClosePartitions{topic.number, topic.config.partitions});
  for (std::uint32_t index = 0; index < topic.config.partitions; ++index)
    change.rows.emplace_back(ErasePartition{{topic.number, index}});
  edit(change, EraseTopicEdit{topic.number});
  return change;
}

Result<CatalogTopic> Catalog::get_topic(std::string_view name) const {
  if (Result<ResourceName> parsed = ResourceName::parse(name, Collection::topics); !parsed) {
    return parsed.error();
  }
  const CatalogTopic* topic = find_topic(name);
  if (topic == nullptr) return not_found(name);
  return *topic;
}

Result<Page<TopicConfig>> Catalog::list_topics(std::string_view project, int page_size,
                                               std::string_view page_token) const {
  const Result<std::string_view> id = parse_project_name(project);
  if (!id) return id.error();
  return page_of<TopicConfig>(
      topics_by_name_, {resource_name(*id, Collection::topics, ""), page_size, page_token},
      [](TopicNumber) { return true; },
      [&](const auto& entry) { return topics_.at(entry.second).config; });
}

Result<Page<std::string>> Catalog::list_topic_subscriptions(std::string_view topic, int page_size,
                                                            std::string_view page_token) const {
  const Result<CatalogTopic> found = get_topic(topic);
  if (!found) return found.error();
  return page_of<std::string>(
      subscriptions_, {"projects/", page_size, page_token},
      [&](const CatalogSubscription& subscription) {
        return subscription.topic == found->number && !subscription.config.detached;
      },
      [](const auto& entry) { return entry.first; });
}

Result<Page<std::string>> Catalog::list_topic_snapshots(std::string_view topic, int page_size,
                                                        std::string_view page_token) const {
  const Result<CatalogTopic> found = get_topic(topic);
  if (!found) return found.error();
  return page_of<std::string>(
      snapshots_, {"projects/", page_size, page_token},
      [&](const CatalogSnapshot& snapshot) { return snapshot.topic == found->number; },
      [](const auto& entry) { return entry.first; });
}

}  // namespace ordo::broker
