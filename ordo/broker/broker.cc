#include "ordo/broker/broker.h"

#include <algorithm>
#include <utility>

#include "ordo/broker/broker_core.h"
#include "ordo/broker/gathering.h"
#include "ordo/broker/subscriber_core.h"
#include "ordo/engine/settings.h"

namespace ordo {

using broker::BrokerCore;
using broker::Catalog;
using broker::ConsumerDesk;
using broker::Delivery;
using broker::Directory;
using broker::MessageBody;
using broker::MessageId;
using broker::SettleOutcome;
using broker::SubscriptionStats;

namespace {

constexpr std::chrono::seconds kAckDeadlineMax{600};
// What a pull that takes what there is allows partitions for looking.
constexpr std::chrono::nanoseconds kImpatience = std::chrono::milliseconds(500);

Error no_ids() {
  return {ErrorCode::invalid_argument, "No ack ids specified."};
}

void add(SubscriptionStats& sum, const SubscriptionStats& part) {
  sum.routed += part.routed;
  sum.filtered += part.filtered;
  sum.acked += part.acked;
  sum.dead_lettered += part.dead_lettered;
  sum.skipped += part.skipped;
  sum.expired += part.expired;
  sum.waiting += part.waiting;
  sum.leased += part.leased;
  sum.deliveries += part.deliveries;
  sum.redeliveries += part.redeliveries;
  sum.stale_acks += part.stale_acks;
  sum.lanes += part.lanes;
  sum.parked_lanes += part.parked_lanes;
  sum.unread += part.unread;
  sum.acked_intervals += part.acked_intervals;
  if (part.oldest_unacked && (!sum.oldest_unacked || *part.oldest_unacked < *sum.oldest_unacked))
    sum.oldest_unacked = part.oldest_unacked;
}

Result<Subscriber> start_subscriber(const std::shared_ptr<BrokerCore>& core,
                                    const std::string& subscription,
                                    const SubscriberOptions& options, AsyncHandler async,
                                    Handler handler) {
  if (Status status = check_options(options); !status) return std::move(status).error();
  const Result<Directory::Subscription> found = core->find(subscription);
  if (!found) return found.error();
  broker::SubscriberSettings settings;
  settings.options = options;
  settings.lease = options.ack_deadline.value_or((*found)->config.ack_deadline);
  settings.is_ordered = (*found)->config.enable_message_ordering;
  settings.clock = &core->clock();
  settings.timer = &core->timer();
  auto subscriber =
      std::make_shared<broker::SubscriberCore>(settings, std::move(async), std::move(handler));
  const std::weak_ptr<broker::SubscriberCore> weak = subscriber;
  broker::ConsumerEvents events;
  events.deliver = [weak](std::vector<Delivery>&& deliveries) {
    if (const auto self = weak.lock()) self->deliver(std::move(deliveries));
  };
  events.closed = [weak](const Error& reason) {
    if (const auto self = weak.lock()) self->closed(reason);
  };
  broker::ConsumerSettings consumer;
  consumer.limits.messages = static_cast<std::int64_t>(options.outstanding_messages_max);
  consumer.limits.bytes = static_cast<std::int64_t>(options.outstanding_bytes_max);
  consumer.ack_deadline = options.ack_deadline;
  Result<std::shared_ptr<ConsumerDesk>> opened =
      core->open_consumer(**found, consumer, std::move(events));
  if (!opened) return std::move(opened).error();
  subscriber->start(Stream(std::move(*opened), core));
  return Subscriber(std::move(subscriber));
}

}  // namespace

Result<std::unique_ptr<Broker>> Broker::open(std::unique_ptr<broker::Store> store,
                                             const BrokerOptions& options) {
  if (Status status = check_options(options); !status) return std::move(status).error();
  Result<broker::Recovered> recovered = store->recover();
  if (!recovered) return std::move(recovered).error();
  broker::CatalogOptions catalog_options;
  catalog_options.ack_deadline_min = options.ack_deadline_min;
  catalog_options.partitions_max = options.partitions_max;
  catalog_options.ordered_window = options.ordered_window;
  Result<Catalog::Start> start = Catalog::recover(*recovered, catalog_options);
  if (!start) return std::move(start).error();
  auto core = std::make_shared<BrokerCore>(std::move(store), options, std::move(start->catalog));
  if (Status status = core->desk().start(std::move(*recovered), std::move(start->cleanup)); !status)
    return std::move(status).error();
  return std::make_unique<Broker>(std::move(core));
}

Broker::~Broker() {
  (void)core_->close(TimePoint::max());
}

bool Broker::close(TimePoint deadline) {
  return core_->close(deadline);
}

// -------------------------------------------------------------------------------- publishing

Result<std::vector<MessageId>> Broker::publish(const std::string& topic,
                                               const std::vector<broker::NewMessage>& messages) {
  std::vector<MessageBody> bodies;
  for (const broker::NewMessage& message : messages) {
    Result<MessageBody> body = broker::encode_message(message);
    if (!body) return std::move(body).error();
    bodies.push_back(std::move(*body));
  }
  auto reply = std::make_shared<broker::Reply<Result<MessageId>>>();
  publish(topic, std::move(bodies),
          [reply](Result<MessageId> first_id) { reply->set(std::move(first_id)); });
  const Result<MessageId> first_id = reply->wait();
  if (!first_id) return first_id.error();
  std::vector<MessageId> ids;
  ids.reserve(messages.size());
  for (std::uint64_t index = 0; index < messages.size(); ++index)
    ids.push_back(*first_id + index);
  return ids;
}

void Broker::publish(const std::string& topic, std::vector<MessageBody> messages,
                     OnPublished on_published) {
  core_->publish(topic, std::move(messages), std::move(on_published));
}

Result<Publisher> Broker::publisher(const std::string& topic, const PublisherOptions& options) {
  if (Status status = check_options(options); !status) return std::move(status).error();
  const Result<Directory::Topic> found = core_->find_topic(topic);
  if (!found) return found.error();
  return Publisher(
      options, core_->clock(), core_->timer(),
      [core = core_, name = topic](std::vector<MessageBody>&& messages, OnPublished on_published) {
        core->publish(name, std::move(messages), std::move(on_published));
      });
}

// --------------------------------------------------------------------------------- consuming

Result<std::vector<ReceivedMessage>> Broker::pull(const std::string& subscription,
                                                  const PullOptions& options) {
  auto reply = std::make_shared<broker::Reply<Result<std::vector<ReceivedMessage>>>>();
  const Result<Pull> started =
      start_pull(subscription, options,
                 [reply](Result<std::vector<ReceivedMessage>> got) { reply->set(std::move(got)); });
  if (!started) return started.error();
  return reply->wait();
}

Result<Pull> Broker::start_pull(const std::string& subscription, const PullOptions& options,
                                OnPulled on_pulled) {
  if (options.messages_max < 1)
    return Error{ErrorCode::invalid_argument, "No max_messages specified"};
  const Result<Directory::Subscription> found = core_->find(subscription);
  if (!found) return found.error();
  auto desk = std::make_shared<broker::PullDesk>(options, std::move(on_pulled), core_->timer());
  broker::ConsumerSettings settings;
  settings.limits.messages = static_cast<std::int64_t>(options.messages_max);
  settings.limits.bytes = static_cast<std::int64_t>(options.bytes_max);
  settings.limits.is_one_shot = true;
  Result<std::shared_ptr<ConsumerDesk>> consumer =
      core_->open_consumer(**found, settings, desk->events());
  if (!consumer) return std::move(consumer).error();
  const bool is_patient = options.wait > std::chrono::nanoseconds(0);
  desk->begin(
      std::move(*consumer),
      engine::saturating_add(core_->clock().now(), is_patient ? options.wait : kImpatience));
  return Pull(std::move(desk), core_);
}

Result<std::vector<SettleOutcome>> Broker::acknowledge(const std::string& subscription,
                                                       std::vector<broker::AckId> ids) {
  auto reply = std::make_shared<broker::Reply<std::vector<SettleOutcome>>>();
  Status asked = acknowledge(
      subscription, std::move(ids),
      [reply](std::vector<SettleOutcome>&& outcomes) { reply->set(std::move(outcomes)); });
  if (!asked) return std::move(asked).error();
  return reply->wait();
}

Result<std::vector<SettleOutcome>> Broker::modify_ack_deadline(const std::string& subscription,
                                                               std::vector<broker::AckId> ids,
                                                               std::chrono::nanoseconds deadline) {
  auto reply = std::make_shared<broker::Reply<std::vector<SettleOutcome>>>();
  Status asked = modify_ack_deadline(
      subscription, std::move(ids), deadline,
      [reply](std::vector<SettleOutcome>&& outcomes) { reply->set(std::move(outcomes)); });
  if (!asked) return std::move(asked).error();
  return reply->wait();
}

Status Broker::acknowledge(const std::string& subscription, std::vector<broker::AckId> ids,
                           broker::OnSettled on_settled) {
  if (ids.empty()) return no_ids();
  const Result<Directory::Subscription> found = core_->find(subscription);
  if (!found) return found.error();
  broker::acknowledge((*found)->topic->hosts, (*found)->number, std::move(ids),
                      std::move(on_settled));
  return {};
}

Status Broker::modify_ack_deadline(const std::string& subscription, std::vector<broker::AckId> ids,
                                   std::chrono::nanoseconds deadline,
                                   broker::OnSettled on_settled) {
  if (ids.empty()) return no_ids();
  if (deadline < std::chrono::nanoseconds(0) || deadline > kAckDeadlineMax)
    return Error{ErrorCode::invalid_argument,
                 "The ack deadline must be between 0 and 600 seconds."};
  const Result<Directory::Subscription> found = core_->find(subscription);
  if (!found) return found.error();
  broker::modify_deadline((*found)->topic->hosts, (*found)->number, std::move(ids), deadline,
                          std::move(on_settled));
  return {};
}

Status Broker::give_back(const std::string& subscription, std::vector<broker::AckId> ids) {
  const Result<Directory::Subscription> found = core_->find(subscription);
  if (!found) return found.error();
  const std::size_t count = ids.size();
  broker::give_back((*found)->topic->hosts, (*found)->number, std::move(ids), count, {});
  return {};
}

Result<Stream> Broker::open_stream(const std::string& subscription, const StreamOptions& options,
                                   broker::ConsumerEvents events) {
  if (options.ack_deadline &&
      (*options.ack_deadline < std::chrono::seconds(1) || *options.ack_deadline > kAckDeadlineMax))
    return Error{ErrorCode::invalid_argument, "ack_deadline must be between 1 and 600 seconds."};
  const Result<Directory::Subscription> found = core_->find(subscription);
  if (!found) return found.error();
  broker::ConsumerSettings settings;
  settings.limits.messages = options.messages_max;
  settings.limits.bytes = options.bytes_max;
  settings.ack_deadline = options.ack_deadline;
  settings.pushes = options.pushes;
  Result<std::shared_ptr<ConsumerDesk>> consumer =
      core_->open_consumer(**found, settings, std::move(events));
  if (!consumer) return std::move(consumer).error();
  return Stream(std::move(*consumer), core_);
}

Result<Subscriber> Broker::subscribe(const std::string& subscription, Handler handler,
                                     const SubscriberOptions& options) {
  return start_subscriber(core_, subscription, options, nullptr, std::move(handler));
}

Result<Subscriber> Broker::subscribe_async(const std::string& subscription, AsyncHandler handler,
                                           const SubscriberOptions& options) {
  return start_subscriber(core_, subscription, options, std::move(handler), nullptr);
}

Result<broker::LiveSubscription> Broker::subscribe_live(const std::string& topic,
                                                        const std::string& name, Priority priority,
                                                        const SubscribeOptions& options) {
  const Result<Directory::Topic> found = core_->find_topic(topic);
  if (!found) return found.error();
  return broker::LiveSubscription::open((*found)->live, name, priority, options);
}

// --------------------------------------------------------------------------------- operating

Result<SubscriptionStats> Broker::subscription_stats(const std::string& subscription) {
  const Result<Directory::Subscription> found = core_->find(subscription);
  if (!found) return found.error();
  SubscriptionStats sum;
  sum.subscription = (*found)->number;
  const auto replies = broker::ask_all<broker::StatsReply>((*found)->topic->hosts, [] {
    return broker::AskStats{{}, true};
  });
  for (const broker::StatsReply& reply : replies) {
    for (const SubscriptionStats& part : reply.stats.subscriptions) {
      if (part.subscription == sum.subscription) add(sum, part);
    }
  }
  return sum;
}

Result<BusStats> Broker::live_stats(const std::string& topic) {
  const Result<Directory::Topic> found = core_->find_topic(topic);
  if (!found) return found.error();
  return (*found)->live->stats();
}

BrokerStats Broker::stats() {
  return core_->stats();
}

std::vector<std::string> Broker::topic_names() {
  return core_->topic_names();
}

std::vector<broker::SubscriptionConfig> Broker::subscription_configs() {
  return core_->subscription_configs();
}

}  // namespace ordo
