// Broker: durable messages, in order within a key, in your own process.
//
//   ordo::Result<std::unique_ptr<ordo::Broker>> opened = ordo::open_broker("data");  // RocksDB
//   ordo::Broker& broker = **opened;
//   broker.create_topic({.name = "projects/p/topics/orders"});
//   broker.create_subscription({.name = "projects/p/subscriptions/billing",
//                               .topic = "projects/p/topics/orders",
//                               .enable_message_ordering = true});
//   broker.publish("projects/p/topics/orders", {{.data = "paid", .ordering_key = "order-7"}});
//   auto billing = broker.subscribe("projects/p/subscriptions/billing",
//                                   [](const ordo::ReceivedMessage& message) {
//     return book(message.key(), message.data()) ? ordo::HandlerAnswer::ack
//                                                : ordo::HandlerAnswer::nack;
//   });
//
// What is promised, and what each policy does: docs/broker.md. A publish that returns ids is on
// disk, and comes at least once to every subscription there is, in order within its key, one in
// flight for each key. A definite error means that it never comes; `unavailable` that it is not
// known.
//
// Threads: any, all calls. Those that return a Result wait, so they must not be made from callbacks
//          and handlers of the broker, but for those with a callback, settings_of(), give_back().
//          Owns BrokerOptions::threads and three more.
// Bounds:  BrokerOptions; docs/limits.md.
// Errors:  with the codes and the words of the Pub/Sub service. `unavailable`: closed, or the store
//          takes nothing any more: stats().failure says why.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ordo/broker/broker_options.h"
#include "ordo/broker/catalog.h"
#include "ordo/broker/inspection.h"
#include "ordo/broker/live_feed.h"
#include "ordo/broker/publisher.h"
#include "ordo/broker/pull.h"
#include "ordo/broker/received_message.h"
#include "ordo/broker/store.h"
#include "ordo/broker/stream.h"
#include "ordo/broker/subscriber.h"
#include "ordo/broker/subscription_watch.h"
#include "ordo/core/result.h"

namespace ordo {

namespace broker {
class BrokerCore;
}

struct StreamOptions {
  std::int64_t messages_max = 0;  // Outstanding; zero and below: unlimited.
  std::int64_t bytes_max = 0;     // Likewise; one message may overshoot.
  // 1 to 600 seconds; the subscription's, if none.
  std::optional<std::chrono::nanoseconds> ack_deadline{};
  // For whoever sends to the endpoints of push subscriptions: nobody else may consume from these.
  bool pushes = false;
};

struct BrokerStats {
  std::size_t topics = 0;
  std::size_t subscriptions = 0;
  std::size_t partitions = 0;
  std::size_t consumers = 0;
  std::uint64_t published = 0;             // Messages stored since the broker was opened.
  std::uint64_t publish_failures = 0;      // Messages refused or failed.
  std::size_t publish_bytes = 0;           // Under way.
  std::uint64_t memory_bytes = 0;          // Of all partitions: lanes, leases, cached messages.
  std::uint64_t commits = 0;               // Writes of the store.
  std::uint64_t commit_requests = 0;       // Merged into them.
  std::chrono::nanoseconds commit_time{};  // How long the write under way has taken; zero: none is.
  std::uint64_t reads = 0;
  std::uint64_t damaged = 0;  // Deliveries kept back because their bytes have changed.
  std::string failure;        // Why nothing is stored any more; empty while healthy.
  broker::StoreStats store{};
};

class Broker {
 public:
  // Recovers what the store has. Errors: the store's; data_loss where it has been damaged;
  // invalid_argument for options.
  static Result<std::unique_ptr<Broker>> open(std::unique_ptr<broker::Store> store,
                                              const BrokerOptions& options = {});
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  explicit Broker(std::shared_ptr<broker::BrokerCore> core) : core_(std::move(core)) {}
  ~Broker();  // Closes, and waits for what is under way.

  // Takes no more publishes, lets what is under way be stored and answered, closes all consumers
  // (unavailable), and ends its threads. False: something was not stored and answered by the
  // deadline, with 10 s at least for what nobody waits for; it is answered `unavailable`. It
  // returns by then, but for a store that hangs in a write: that is waited for, when everything
  // else has ended, and on_error is told (deadline_exceeded). Idempotent.
  bool close(TimePoint deadline);

  // -------------------------------------------------------------------------------- the catalog

  Result<broker::TopicConfig> create_topic(broker::TopicConfig config);
  Result<broker::TopicConfig> update_topic(broker::TopicConfig config, broker::UpdateMask mask);
  Result<broker::TopicConfig> get_topic(const std::string& name);
  Result<broker::Page<broker::TopicConfig>> list_topics(const std::string& project,
                                                        int page_size = 0,
                                                        const std::string& page_token = "");
  Result<broker::Page<std::string>> list_topic_subscriptions(const std::string& topic,
                                                             int page_size = 0,
                                                             const std::string& page_token = "");
  Result<broker::Page<std::string>> list_topic_snapshots(const std::string& topic,
                                                         int page_size = 0,
                                                         const std::string& page_token = "");
  // Its subscriptions stay, without a topic, and keep what they have not acknowledged.
  Status delete_topic(const std::string& name);

  Result<broker::SubscriptionConfig> create_subscription(broker::SubscriptionConfig config);
  Result<broker::SubscriptionConfig> update_subscription(broker::SubscriptionConfig config,
                                                         broker::UpdateMask mask);
  Result<broker::SubscriptionConfig> get_subscription(const std::string& name);
  Result<broker::Page<broker::SubscriptionConfig>> list_subscriptions(
      const std::string& project, int page_size = 0, const std::string& page_token = "");
  Status delete_subscription(const std::string& name);
  Status detach_subscription(const std::string& name);
  // As a subscription that can be consumed is set at this moment. Does not wait.
  Result<std::shared_ptr<const broker::SubscriptionConfig>> settings_of(
      const std::string& subscription) const;

  // What becomes of subscriptions, from now on: see subscription_watch.h.
  Result<broker::SubscriptionWatch> watch_subscriptions(broker::SubscriptionWatcher watcher);

  Result<broker::SnapshotConfig> create_snapshot(broker::SnapshotConfig config,
                                                 const std::string& subscription);
  Result<broker::SnapshotConfig> update_snapshot(broker::SnapshotConfig config,
                                                 broker::UpdateMask mask);
  Result<broker::SnapshotConfig> get_snapshot(const std::string& name);
  Result<broker::Page<broker::SnapshotConfig>> list_snapshots(const std::string& project,
                                                              int page_size = 0,
                                                              const std::string& page_token = "");
  Status delete_snapshot(const std::string& name);

  // Who may do what with a topic, subscription or snapshot, as its owner wrote it down: kept, given
  // back and never looked at. Empty: none. It goes with its resource.
  Status set_policy(const std::string& resource, std::string policy);
  Result<std::string> get_policy(const std::string& resource);

  // What was published before `time` counts as acknowledged, what came later as not.
  Status seek(const std::string& subscription, WallTime time);
  Status seek(const std::string& subscription, const std::string& snapshot);

  // -------------------------------------------------------------------------------- publishing

  using OnPublished = Publisher::OnPublished;  // The id of the first; the others follow by one.

  // All or none of them, in order; of one key, or none has one.
  Result<std::vector<broker::MessageId>> publish(const std::string& topic,
                                                 const std::vector<broker::NewMessage>& messages);
  // The same without waiting. The callback is called once, by a thread of the broker or by this
  // one; it must be short and must not throw.
  void publish(const std::string& topic, std::vector<broker::MessageBody> messages,
               OnPublished on_published);
  // Gathers batches; see publisher.h.
  Result<Publisher> publisher(const std::string& topic, const PublisherOptions& options = {});

  // --------------------------------------------------------------------------------- consuming

  Result<std::vector<ReceivedMessage>> pull(const std::string& subscription,
                                            const PullOptions& options = {});
  // The same without waiting; see pull.h. An error: the callback is not called.
  Result<Pull> start_pull(const std::string& subscription, const PullOptions& options,
                          OnPulled on_pulled);
  // On disk when it returns. One outcome for each id.
  Result<std::vector<broker::SettleOutcome>> acknowledge(const std::string& subscription,
                                                         std::vector<broker::AckId> ids);
  // A deadline of zero gives the messages back: they come again, in place.
  Result<std::vector<broker::SettleOutcome>> modify_ack_deadline(const std::string& subscription,
                                                                 std::vector<broker::AckId> ids,
                                                                 std::chrono::nanoseconds deadline);
  // The same without waiting. The callback is called once, by a thread of the broker or by this
  // one. An error: it is not called.
  Status acknowledge(const std::string& subscription, std::vector<broker::AckId> ids,
                     broker::OnSettled on_settled);
  Status modify_ack_deadline(const std::string& subscription, std::vector<broker::AckId> ids,
                             std::chrono::nanoseconds deadline, broker::OnSettled on_settled);

  // Delivered, and handed to nobody: they come again in place and at once, and this is no failed
  // attempt. Does not wait.
  Status give_back(const std::string& subscription, std::vector<broker::AckId> ids);

  Result<Stream> open_stream(const std::string& subscription, const StreamOptions& options,
                             broker::ConsumerEvents events);
  Result<Subscriber> subscribe(const std::string& subscription, Handler handler,
                               const SubscriberOptions& options = {});
  Result<Subscriber> subscribe_async(const std::string& subscription, AsyncHandler handler,
                                     const SubscriberOptions& options = {});
  // Messages of a topic as they are stored, for those who want the newest only; see live_feed.h.
  Result<broker::LiveSubscription> subscribe_live(const std::string& topic, const std::string& name,
                                                  Priority priority = Priority::normal,
                                                  const SubscribeOptions& options = {});

  // --------------------------------------------------------------------------------- operating

  // Keys that have something to do, the hottest ones also when they have not; see inspection.h.
  Result<std::vector<broker::KeyFacts>> list_keys(const std::string& subscription,
                                                  const KeyListOptions& options = {});
  // Those whose head has waited longest first.
  Result<std::vector<broker::KeyFacts>> blocked_keys(const std::string& subscription,
                                                     std::size_t count_max = 100);
  // Messages that are not settled, without consuming them.
  Result<PeekPage> peek(const std::string& subscription, const PeekOptions& options = {});
  Status operate_key(const std::string& subscription, const std::string& key,
                     broker::OperateKey::Verb verb);
  // The same without waiting. The callback is called once, by a thread of the broker or by this
  // one. An error: it is not called.
  Status list_keys(const std::string& subscription, const KeyListOptions& options,
                   broker::OnKeys on_keys);
  Status peek(const std::string& subscription, const PeekOptions& options,
              broker::OnPeeked on_peeked);
  Status operate_key(const std::string& subscription, const std::string& key,
                     broker::OperateKey::Verb verb, std::function<void(Status)> on_done);
  // Summed over the partitions.
  Result<broker::SubscriptionStats> subscription_stats(const std::string& subscription);
  Result<BusStats> live_stats(const std::string& topic);
  // All there are, of every project, sorted by name. They do not wait.
  std::vector<std::string> topic_names();
  std::vector<broker::SubscriptionConfig> subscription_configs();
  BrokerStats stats();

 private:
  const std::shared_ptr<broker::BrokerCore> core_;
};

}  // namespace ordo
