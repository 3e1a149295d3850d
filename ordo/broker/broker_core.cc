#include "ordo/broker/broker_core.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ordo/broker/catalog_answers.h"
#include "ordo/broker/gathering.h"
#include "ordo/broker/push_endpoint.h"

namespace ordo::broker {
namespace {

// What partitions still have to do when a broker closes takes far less.
constexpr std::chrono::seconds kDrainTime{30};
// A write of a healthy store takes far less; acknowledgements are given so long at the end.
constexpr std::chrono::seconds kStoreTime{10};
constexpr std::chrono::seconds kSlowWrite{1};

// Partitions that were deleted may still have something to do.
constexpr std::size_t kDeletedHostsMax = 1024;

SwitchboardOptions switchboard_options(const BrokerOptions& options, const Catalog& catalog,
                                       std::function<void(const Damage&)> on_damage) {
  std::size_t stored = 0;  // More than options allow, where those were larger before.
  for (const auto& [number, topic] : catalog.topics())
    stored += topic.config.partitions;
  SwitchboardOptions switchboard;
  switchboard.threads = options.threads;
  switchboard.hosts_max = std::max(options.partitions_max, stored) + kDeletedHostsMax;
  switchboard.callers_run = options.callers_run;
  switchboard.clock = options.clock;
  switchboard.on_damage = std::move(on_damage);
  return switchboard;
}

}  // namespace

BrokerCore::BrokerCore(std::unique_ptr<Store> store, const BrokerOptions& options, Catalog catalog)
    : options_(options),
      store_(std::move(store)),
      switchboard_(switchboard_options(options, catalog,
                                       [this](const Damage& damage) { report(error_of(damage)); })),
      reader_(*store_, options.reader_threads, [this](const Error& error) { report(error); }),
      committer_(*store_, reader_, switchboard_.clock(),
                 {.answered = [this](bool more) { let_answered_run(more); },
                  .failed = [this](const Error& error) { report(error); }}),
      gate_(publish_bytes_max(options), switchboard_.clock()),
      timer_(switchboard_.clock(), "ordo-timer"),
      desk_({switchboard_, committer_, directory_, [this] { return gate_.load(); }}, options,
            std::move(catalog)) {
  switchboard_.connect(committer_, reader_);
}

// All who wait are answered by the deadline, or a little later. A store that hangs in a write keeps
// its thread, and with it this call: that is waited for last, when nobody else waits.
bool BrokerCore::close(TimePoint deadline) {
  const std::lock_guard lock(close_mutex_);
  if (is_ended_) return was_complete_;
  is_closed_ = true;
  gate_.close();
  was_complete_ =
      wait_for_store(deadline, [this](TimePoint until) { return gate_.wait_until_empty(until); });
  timer_.stop();
  const TimePoint store_deadline = std::max(deadline, clock().now() + kStoreTime);
  if (wait_for_store(store_deadline, [this](TimePoint until) { return desk_.finish_by(until); }))
    desk_.stop();
  wind_up();
  // A partition stores what is settled in one commit at a time. What waits behind that one goes out
  // when it is back.
  if (wait_for_store(store_deadline,
                     [this](TimePoint until) { return committer_.finish_by(until); }))
    wind_up();
  if (!wait_for_store(store_deadline,
                      [this](TimePoint until) { return committer_.close_by(until); }))
    was_complete_ = false;
  reader_.close();
  switchboard_.end(clock().now() + kDrainTime);
  for (const auto& host : switchboard_.all())
    host->abandon(closed_error());
  for (const auto& host : switchboard_.forgotten())  // Whoever has one may still ask it.
    host->abandon(closed_error());
  for (const auto& topic : directory_.topics())
    topic->live->close();
  committer_.close();
  desk_.stop();
  is_ended_ = true;
  return was_complete_;
}

// Says so, once, when a write of the store takes long.
bool BrokerCore::wait_for_store(TimePoint deadline,
                                const std::function<bool(TimePoint)>& wait_until) {
  const TimePoint patience = clock().now() + kStoreTime;
  if (wait_until(std::min(deadline, patience))) return true;
  const std::optional<TimePoint> since = committer_.stats().writing_since;
  const TimePoint now = clock().now();
  if (since && now - *since >= kSlowWrite && !std::exchange(is_store_named_, true)) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *since).count();
    report(
        {ErrorCode::deadline_exceeded, "Closing waits for the store, which has been writing for " +
                                           std::to_string(seconds) + " s."});
  }
  return deadline > patience && wait_until(deadline);
}

// By the committer: while more waits for it, the disk should be busy and others do the rest.
void BrokerCore::let_answered_run(bool more_to_store) {
  if (more_to_store) {
    switchboard_.wake();
  } else {
    switchboard_.flush();
  }
}

// Acknowledgements that nobody waits for are collected for some milliseconds: not at the end.
void BrokerCore::wind_up() {
  const std::vector<std::shared_ptr<PartitionHost>> hosts = switchboard_.all();
  if (hosts.empty()) return;
  auto left = std::make_shared<std::atomic<std::size_t>>(hosts.size());
  auto done = std::make_shared<Reply<bool>>();
  for (const auto& host : hosts) {
    host->wind_up([left, done] {
      if (left->fetch_sub(1) == 1) done->set(true);
    });
  }
  (void)done->wait();
}

void BrokerCore::report(const Error& error) {
  if (options_.on_error) options_.on_error(error);
}

void BrokerCore::publish(const std::string& topic, std::vector<MessageBody>&& messages,
                         Broker::OnPublished&& on_published) {
  const Result<Directory::Topic> found = find_topic(topic);
  if (!found) return on_published(found.error());
  publish(**found, std::move(messages), std::move(on_published));
}

void BrokerCore::publish(TopicEntry& topic, std::vector<MessageBody>&& messages,
                         Broker::OnPublished&& on_published) {
  const std::size_t count = messages.size();
  std::size_t bytes = 0;
  for (const MessageBody& message : messages)
    bytes += message.bytes.size();
  Status status = check_publish(messages);
  const std::string_view key = messages.empty() ? std::string_view() : messages.front().key();
  if (status && !key.empty() && topic.refuses_keys.load(std::memory_order_relaxed))
    status = Error{ErrorCode::failed_precondition,
                   "The topic takes ordering keys only while a subscription keeps their order."};
  if (status) status = gate_.enter(bytes);
  if (!status) {
    publish_failures_.fetch_add(count, std::memory_order_relaxed);
    return on_published(status.error());
  }
  const auto partition_count = static_cast<std::uint32_t>(topic.hosts.size());
  const std::uint32_t partition =
      key.empty() ? topic.next_partition.fetch_add(1, std::memory_order_relaxed) % partition_count
                  : partition_of(key, partition_count);
  Posted posted{Publish{{}, std::move(messages)}};
  posted.on_answer = [this, bytes, count, done = std::move(on_published)](Effect&& effect) {
    Result<MessageId>& first_id = std::get<PublishReply>(effect).first_id;
    (first_id ? published_ : publish_failures_).fetch_add(count, std::memory_order_relaxed);
    gate_.leave(bytes);
    done(std::move(first_id));
  };
  topic.hosts[partition]->post(std::move(posted));
}

Result<Directory::Topic> BrokerCore::find_topic(const std::string& topic) const {
  if (is_closed_) return closed_error();
  if (Directory::Topic found = directory_.topic(topic)) return found;
  return not_found(topic);
}

Result<Directory::Subscription> BrokerCore::find(const std::string& subscription) const {
  if (is_closed_) return closed_error();
  Directory::Subscription found = directory_.subscription(subscription);
  if (!found) return not_found(subscription);
  if (!found->topic)
    return Error{ErrorCode::failed_precondition,
                 "Subscription is detached (resource=" + std::string(id_of(subscription)) + ")."};
  found->use->is_touched.store(true, std::memory_order_relaxed);
  return found;
}

Result<std::shared_ptr<ConsumerDesk>> BrokerCore::open_consumer(
    const SubscriptionEntry& subscription, ConsumerSettings settings, ConsumerEvents events) {
  if (const auto refused = refuse_consumer(subscription.config, settings.pushes)) return *refused;
  if (consumer_count_->fetch_add(1) >= options_.consumers_max) {
    consumer_count_->fetch_sub(1);
    return Error{ErrorCode::resource_exhausted,
                 "The broker has as many consumers as it may have (consumers_max)."};
  }
  // Its place is free again when its last owner lets go.
  struct Place {
    std::shared_ptr<SubscriptionUse> use;
    std::shared_ptr<std::atomic<std::size_t>> count;

    Place(std::shared_ptr<SubscriptionUse> of, std::shared_ptr<std::atomic<std::size_t>> counter)
        : use(std::move(of)),
          count(std::move(counter)) {
      use->consumers.fetch_add(1);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
      use->consumers.fetch_sub(1);
      count->fetch_sub(1);
    }
  };
  settings.place = std::make_shared<Place>(subscription.use, consumer_count_);
  auto consumer = std::make_shared<ConsumerDesk>(ConsumerNumber(next_consumer_.fetch_add(1)),
                                                 subscription.number, subscription.topic->hosts,
                                                 settings, std::move(events));
  consumer->open();
  return consumer;
}

BrokerStats BrokerCore::stats() {
  BrokerStats stats;
  const std::vector<std::shared_ptr<PartitionHost>> hosts = switchboard_.all();
  for (const StatsReply& reply : ask_all<StatsReply>(hosts, [] { return AskStats{{}, true}; }))
    stats.memory_bytes += reply.stats.memory_bytes;
  stats.topics = directory_.topics().size();
  stats.subscriptions = directory_.subscriptions().size();
  stats.partitions = hosts.size();
  stats.consumers = *consumer_count_;
  stats.published = published_;
  stats.publish_failures = publish_failures_;
  stats.publish_bytes = gate_.bytes();
  const CommitterStats committer = committer_.stats();
  stats.commits = committer.commits;
  stats.commit_requests = committer.requests;
  stats.failure = committer.failure;
  if (committer.writing_since) stats.commit_time = clock().now() - *committer.writing_since;
  stats.reads = reader_.read_count();
  stats.damaged = switchboard_.damaged_count();
  stats.store = store_->stats();
  return stats;
}

std::vector<std::string> BrokerCore::topic_names() const {
  std::vector<std::string> names;
  for (const Directory::Topic& topic : directory_.topics())
    names.push_back(topic->name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<SubscriptionConfig> BrokerCore::subscription_configs() const {
  std::vector<SubscriptionConfig> configs;
  for (const Directory::Subscription& subscription : directory_.subscriptions())
    configs.push_back(subscription->config);
  std::sort(
      configs.begin(), configs.end(),
      [](const SubscriptionConfig& a, const SubscriptionConfig& b) { return a.name < b.name; });
  return configs;
}

}  // namespace ordo::broker
