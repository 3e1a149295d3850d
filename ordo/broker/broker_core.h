// BrokerCore: the parts of a Broker, connected, and kept until the last handle of it is gone.
//
// Publishers, streams and subscribers hold it, so that they may outlive the Broker: what they ask
// then is answered `unavailable`.
//
// Threads: any, all calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ordo/broker/broker.h"
#include "ordo/broker/catalog_desk.h"
#include "ordo/broker/committer.h"
#include "ordo/broker/directory.h"
#include "ordo/broker/host.h"
#include "ordo/broker/publish_gate.h"
#include "ordo/broker/reader.h"
#include "ordo/runtime/timer.h"

namespace ordo::broker {

class BrokerCore : public std::enable_shared_from_this<BrokerCore> {
 public:
  BrokerCore(std::unique_ptr<Store> store, const BrokerOptions& options, Catalog catalog);
  BrokerCore(const BrokerCore&) = delete;
  BrokerCore& operator=(const BrokerCore&) = delete;
  ~BrokerCore() { close(TimePoint::max()); }

  bool close(TimePoint deadline);

  void publish(const std::string& topic, std::vector<MessageBody>&& messages,
               Broker::OnPublished&& on_published);
  // Of a topic that was found before, which may be gone by now.
  void publish(TopicEntry& topic, std::vector<MessageBody>&& messages,
               Broker::OnPublished&& on_published);

  // Errors: not_found, failed_precondition (detached), unavailable.
  Result<Directory::Subscription> find(const std::string& subscription) const;
  Result<Directory::Topic> find_topic(const std::string& topic) const;

  // An open consumer; counted until its last owner lets go. Errors: failed_precondition (settings
  // that do not push, of a push subscription, or the other way round), resource_exhausted.
  Result<std::shared_ptr<ConsumerDesk>> open_consumer(const SubscriptionEntry& subscription,
                                                      ConsumerSettings settings,
                                                      ConsumerEvents events);

  BrokerStats stats();
  std::vector<std::string> topic_names() const;
  std::vector<SubscriptionConfig> subscription_configs() const;

  CatalogDesk& desk() { return desk_; }
  Clock& clock() const { return switchboard_.clock(); }
  Timer& timer() { return timer_; }

 private:
  void wind_up();
  bool wait_for_store(TimePoint deadline, const std::function<bool(TimePoint)>& wait_until);
  void report(const Error& error);
  void let_answered_run(bool more_to_store);

  const BrokerOptions options_;
  const std::unique_ptr<Store> store_;
  Switchboard switchboard_;
  Reader reader_;
  Committer committer_;
  Directory directory_;
  PublishGate gate_;
  Timer timer_;
  CatalogDesk desk_;
  std::atomic<std::uint64_t> next_consumer_{1};
  std::shared_ptr<std::atomic<std::size_t>> consumer_count_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::atomic<std::uint64_t> published_{0};
  std::atomic<std::uint64_t> publish_failures_{0};
  std::atomic<bool> is_closed_{false};

  std::mutex close_mutex_;  // Held while closing.
  bool is_ended_ = false;
  bool is_store_named_ = false;  // As what closing waits for.
  bool was_complete_ = true;
};

}  // namespace ordo::broker
