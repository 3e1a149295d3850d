// Directory: where publishers and consumers find the partitions of a topic by name.
//
//   std::shared_ptr<TopicEntry> topic = directory.topic("projects/p/topics/t");
//   std::shared_ptr<const SubscriptionEntry> subscription = directory.subscription(name);
//
// Kept in step with the catalog by whoever changes that; entries are replaced, never changed.
//
// Threads: any, all calls.
// Cost:    one shared lock and one lookup.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ordo/broker/config.h"
#include "ordo/broker/consumer_desk.h"
#include "ordo/broker/ids.h"
#include "ordo/broker/live_feed.h"

namespace ordo::broker {

struct TopicEntry {
  TopicNumber number;
  std::string name;
  Hosts hosts;  // By partition index.
  std::shared_ptr<LiveFeed> live;
  std::atomic<std::uint32_t> next_partition{0};  // For messages without a key.
  std::atomic<bool> refuses_keys{false};         // Strict, and nobody keeps order.
};

// Whether anybody uses a subscription; one for all its entries.
struct SubscriptionUse {
  std::atomic<std::size_t> consumers{0};
  std::atomic<bool> is_touched{false};  // Used since it was last asked.
};

struct SubscriptionEntry {
  CursorNumber number;
  SubscriptionConfig config;
  std::shared_ptr<TopicEntry> topic;  // Null: detached.
  std::shared_ptr<SubscriptionUse> use = std::make_shared<SubscriptionUse>();
};

class Directory {
 public:
  using Topic = std::shared_ptr<TopicEntry>;
  using Subscription = std::shared_ptr<const SubscriptionEntry>;

  Topic topic(const std::string& name) const { return find(topics_, name); }
  Subscription subscription(const std::string& name) const { return find(subscriptions_, name); }

  void put(Topic topic) {
    const std::lock_guard lock(mutex_);
    topics_[topic->name] = std::move(topic);
  }
  void put(Subscription subscription) {
    const std::lock_guard lock(mutex_);
    subscriptions_[subscription->config.name] = std::move(subscription);
  }
  void erase_topic(const std::string& name) {
    const std::lock_guard lock(mutex_);
    topics_.erase(name);
  }
  void erase_subscription(const std::string& name) {
    const std::lock_guard lock(mutex_);
    subscriptions_.erase(name);
  }

  std::vector<Topic> topics() const { return all(topics_); }
  std::vector<Subscription> subscriptions() const { return all(subscriptions_); }

 private:
  template <class Entry>
  using ByName = std::unordered_map<std::string, Entry>;

  template <class Entry>
  Entry find(const ByName<Entry>& entries, const std::string& name) const {
    const std::shared_lock lock(mutex_);
    const auto found = entries.find(name);
    return found == entries.end() ? nullptr : found->second;
  }
  template <class Entry>
  std::vector<Entry> all(const ByName<Entry>& entries) const {
    std::vector<Entry> list;
    const std::shared_lock lock(mutex_);
    for (const auto& [name, entry] : entries)
      list.push_back(entry);
    return list;
  }

  mutable std::shared_mutex mutex_;  // Guards all below.
  ByName<Topic> topics_;
  ByName<Subscription> subscriptions_;
};

}  // namespace ordo::broker
