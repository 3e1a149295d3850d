// The calls of Broker that ask and change the catalog.
#include <memory>
#include <utility>

#include "ordo/broker/broker.h"
#include "ordo/broker/broker_core.h"

namespace ordo {

using broker::Catalog;
using broker::Page;
using broker::SnapshotConfig;
using broker::SubscriptionConfig;
using broker::TopicConfig;
using broker::UpdateMask;

Result<TopicConfig> Broker::create_topic(TopicConfig config) {
  return core_->desk().create_topic(std::move(config));
}

Result<TopicConfig> Broker::update_topic(TopicConfig config, UpdateMask mask) {
  return core_->desk().update_topic(std::move(config), std::move(mask));
}

Result<TopicConfig> Broker::get_topic(const std::string& name) {
  return core_->desk().ask([&](const Catalog& catalog) -> Result<TopicConfig> {
    auto topic = catalog.get_topic(name);
    if (!topic) return std::move(topic).error();
    return std::move(topic->config);
  });
}

Result<Page<TopicConfig>> Broker::list_topics(const std::string& project, int page_size,
                                              const std::string& page_token) {
  return core_->desk().ask(
      [&](const Catalog& catalog) { return catalog.list_topics(project, page_size, page_token); });
}

Result<Page<std::string>> Broker::list_topic_subscriptions(const std::string& topic, int page_size,
                                                           const std::string& page_token) {
  return core_->desk().ask([&](const Catalog& catalog) {
    return catalog.list_topic_subscriptions(topic, page_size, page_token);
  });
}

Result<Page<std::string>> Broker::list_topic_snapshots(const std::string& topic, int page_size,
                                                       const std::string& page_token) {
  return core_->desk().ask([&](const Catalog& catalog) {
    return catalog.list_topic_snapshots(topic, page_size, page_token);
  });
}

Status Broker::delete_topic(const std::string& name) {
  return core_->desk().delete_topic(name);
}

Result<SubscriptionConfig> Broker::create_subscription(SubscriptionConfig config) {
  return core_->desk().create_subscription(std::move(config));
}

Result<SubscriptionConfig> Broker::update_subscription(SubscriptionConfig config, UpdateMask mask) {
  return core_->desk().update_subscription(std::move(config), std::move(mask));
}

Result<SubscriptionConfig> Broker::get_subscription(const std::string& name) {
  return core_->desk().ask([&](const Catalog& catalog) -> Result<SubscriptionConfig> {
    auto subscription = catalog.get_subscription(name);
    if (!subscription) return std::move(subscription).error();
    return std::move(subscription->config);
  });
}

Result<Page<SubscriptionConfig>> Broker::list_subscriptions(const std::string& project,
                                                            int page_size,
                                                            const std::string& page_token) {
  return core_->desk().ask([&](const Catalog& catalog) {
    return catalog.list_subscriptions(project, page_size, page_token);
  });
}

Status Broker::delete_subscription(const std::string& name) {
  return core_->desk().delete_subscription(name);
}

Status Broker::detach_subscription(const std::string& name) {
  return core_->desk().detach_subscription(name);
}

Result<broker::SubscriptionWatch> Broker::watch_subscriptions(broker::SubscriptionWatcher watcher) {
  const Result<std::uint64_t> number = core_->desk().watch_subscriptions(std::move(watcher));
  if (!number) return number.error();
  return broker::SubscriptionWatch(
      [core = core_, number = *number] { core->desk().stop_watching(number); });
}

Result<std::shared_ptr<const SubscriptionConfig>> Broker::settings_of(
    const std::string& subscription) const {
  Result<broker::Directory::Subscription> found = core_->find(subscription);
  if (!found) return std::move(found).error();
  const SubscriptionConfig* config = &(*found)->config;
  return std::shared_ptr<const SubscriptionConfig>(std::move(*found), config);
}

Result<SnapshotConfig> Broker::create_snapshot(SnapshotConfig config,
                                               const std::string& subscription) {
  return core_->desk().create_snapshot(std::move(config), subscription);
}

Result<SnapshotConfig> Broker::update_snapshot(SnapshotConfig config, UpdateMask mask) {
  return core_->desk().update_snapshot(std::move(config), std::move(mask));
}

Result<SnapshotConfig> Broker::get_snapshot(const std::string& name) {
  return core_->desk().ask([&](const Catalog& catalog) -> Result<SnapshotConfig> {
    auto snapshot = catalog.get_snapshot(name);
    if (!snapshot) return std::move(snapshot).error();
    return std::move(snapshot->config);
  });
}

Result<Page<SnapshotConfig>> Broker::list_snapshots(const std::string& project, int page_size,
                                                    const std::string& page_token) {
  return core_->desk().ask([&](const Catalog& catalog) {
    return catalog.list_snapshots(project, page_size, page_token);
  });
}

Status Broker::delete_snapshot(const std::string& name) {
  return core_->desk().delete_snapshot(name);
}

Status Broker::set_policy(const std::string& resource, std::string policy) {
  return core_->desk().set_policy(resource, std::move(policy));
}

Result<std::string> Broker::get_policy(const std::string& resource) {
  return core_->desk().ask([&](const Catalog& catalog) { return catalog.get_policy(resource); });
}

Status Broker::seek(const std::string& subscription, WallTime time) {
  return core_->desk().seek_to_time(subscription, time);
}

Status Broker::seek(const std::string& subscription, const std::string& snapshot) {
  return core_->desk().seek_to_snapshot(subscription, snapshot);
}

}  // namespace ordo
