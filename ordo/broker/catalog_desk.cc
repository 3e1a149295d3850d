#include "ordo/broker/catalog_desk.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

#include "ordo/broker/gathering.h"

namespace ordo::broker {
namespace {

constexpr std::chrono::minutes kUsesLookedAfter{1};

// The rows of one partition, taken out of all that were recovered.
std::map<PartitionAddress, std::map<RowKey, std::string>> rows_by_partition(Recovered& recovered) {
  std::map<PartitionAddress, std::map<RowKey, std::string>> rows;
  while (!recovered.rows.empty()) {
    auto row = recovered.rows.extract(recovered.rows.begin());
    const PartitionAddress address = row.key().partition;
    rows[address].insert(std::move(row));
  }
  return rows;
}

}  // namespace

CatalogDesk::CatalogDesk(Office office, const BrokerOptions& options, Catalog catalog)
    : office_(std::move(office)),
      options_(options),
      clock_(office_.switchboard.clock()),
      catalog_(std::move(catalog)),
      loop_({.name = "ordo-catalog", .clock = options.clock}) {}

bool CatalogDesk::finish_by(TimePoint deadline) {
  auto reached = std::make_shared<Reply<bool>>();
  if (!loop_.try_post(Task([reached] { reached->set(true); }))) return false;
  return reached->wait_until(clock_, deadline).has_value();
}

void CatalogDesk::stop() {
  (void)loop_.stop(TimePoint::min());
}

Status CatalogDesk::start(Recovered recovered, CommitBatch cleanup) {
  return run([this, &recovered, &cleanup]() -> Status {
    start_number_ = recovered.start_number;
    if (!cleanup.empty()) {
      if (Status stored = store(std::move(cleanup)); !stored) return stored;
    }
    auto rows = rows_by_partition(recovered);
    for (const auto& [number, topic] : catalog_.topics()) {
      std::vector<PartitionStart> starts(topic.config.partitions);
      for (std::uint32_t index = 0; index < topic.config.partitions; ++index) {
        starts[index].address = {number, index};
        const auto log = recovered.partitions.find({number, index});
        if (log != recovered.partitions.end()) starts[index].log = log->second;
        starts[index].rows = std::move(rows[{number, index}]);
      }
      open_topic(topic, std::move(starts));
    }
    for (const auto& [name, subscription] : catalog_.subscriptions())
      show_subscription(subscription);
    show_strict_topics();
    look_after_uses();
    return {};
  });
}

// What every partition of a topic begins with; `starts` has what it knows of its own.
void CatalogDesk::open_topic(const CatalogTopic& topic, std::vector<PartitionStart> starts) {
  auto entry = std::make_shared<TopicEntry>();
  entry->number = topic.number;
  entry->name = topic.config.name;
  entry->live = std::make_shared<LiveFeed>(LiveFeedOptions{
      .bytes_max = options_.live_bytes_max, .load = office_.load, .clock = options_.clock});
  for (PartitionStart& start : starts) {
    start.start_number = start_number_;
    start.topic_retention = topic.config.retention;
    for (const auto& [name, subscription] : catalog_.subscriptions()) {
      if (subscription.topic == topic.number && !subscription.config.detached)
        start.subscriptions.push_back(catalog_.setup_of(subscription));
    }
    for (const auto& [name, snapshot] : catalog_.snapshots()) {
      if (snapshot.topic == topic.number) start.snapshots.push_back(snapshot.number);
    }
    entry->hosts.push_back(
        office_.switchboard.open(std::move(start), partition_options(options_), entry->live));
  }
  topics_[topic.number] = entry;
  if (!topic.is_deleted) office_.directory.put(std::move(entry));
}

Result<TopicConfig> CatalogDesk::create_topic(TopicConfig config) {
  return run([&]() -> Result<TopicConfig> {
    std::string name;
    if (Status made = make(catalog_.create_topic(std::move(config)), &name); !made)
      return std::move(made).error();
    return catalog_.get_topic(name)->config;
  });
}

Result<TopicConfig> CatalogDesk::update_topic(TopicConfig config, UpdateMask mask) {
  return run([&]() -> Result<TopicConfig> {
    std::string name;
    if (Status made = make(catalog_.update_topic(config, mask), &name); !made)
      return std::move(made).error();
    return catalog_.get_topic(name)->config;
  });
}

Status CatalogDesk::delete_topic(const std::string& name) {
  return run([&]() -> Status {
    const std::shared_ptr<TopicEntry> topic = office_.directory.topic(name);
    Status made = make(catalog_.delete_topic(name));
    if (!made) return made;
    if (topic) topic->live->close();
    for (const auto& [subscription_name, subscription] : catalog_.subscriptions()) {
      if (topic && subscription.topic == topic->number) show_subscription(subscription);
    }
    return made;
  });
}

Result<SubscriptionConfig> CatalogDesk::create_subscription(SubscriptionConfig config) {
  return run([&]() -> Result<SubscriptionConfig> {
    std::string name;
    auto change = catalog_.create_subscription(std::move(config), clock_.wall_now());
    if (Status made = make(std::move(change), &name); !made) return std::move(made).error();
    return catalog_.get_subscription(name)->config;
  });
}

Result<SubscriptionConfig> CatalogDesk::update_subscription(SubscriptionConfig config,
                                                            UpdateMask mask) {
  return run([&]() -> Result<SubscriptionConfig> {
    std::string name;
    if (Status made = make(catalog_.update_subscription(config, mask), &name); !made)
      return std::move(made).error();
    return catalog_.get_subscription(name)->config;
  });
}

Status CatalogDesk::delete_subscription(const std::string& name) {
  return run([&] { return make(catalog_.delete_subscription(name)); });
}

Status CatalogDesk::detach_subscription(const std::string& name) {
  return run([&] { return make(catalog_.detach_subscription(name)); });
}

Result<SnapshotConfig> CatalogDesk::create_snapshot(SnapshotConfig config,
                                                    const std::string& subscription) {
  return run([&] { return take_snapshot(std::move(config), subscription); });
}

Result<SnapshotConfig> CatalogDesk::update_snapshot(SnapshotConfig config, UpdateMask mask) {
  return run([&]() -> Result<SnapshotConfig> {
    std::string name;
    auto change = catalog_.update_snapshot(config, mask, clock_.wall_now());
    if (Status made = make(std::move(change), &name); !made) return std::move(made).error();
    return catalog_.get_snapshot(name)->config;
  });
}

Status CatalogDesk::delete_snapshot(const std::string& name) {
  return run([&] { return make(catalog_.delete_snapshot(name)); });
}

Status CatalogDesk::set_policy(const std::string& resource, std::string policy) {
  return run([&] { return make(catalog_.set_policy(resource, std::move(policy))); });
}

Status CatalogDesk::seek_to_time(const std::string& subscription, WallTime time) {
  return run([&] { return seek(subscription, "", time); });
}

Status CatalogDesk::seek_to_snapshot(const std::string& subscription, const std::string& snapshot) {
  if (snapshot.empty())
    return Error{ErrorCode::invalid_argument, "No target was specified in the SeekRequest."};
  return run([&] { return seek(subscription, snapshot, {}); });
}

// --------------------------------------------------------------------- the desk's own thread

Status CatalogDesk::make(Result<CatalogChange> change, std::string* name) {
  if (!change) return std::move(change).error();
  CommitBatch rows;
  for (const PartitionOrder& order : change->before)
    perform(order, rows);
  std::move(change->rows.begin(), change->rows.end(), std::back_inserter(rows));
  if (Status stored = store(std::move(rows)); !stored) {
    undo(change->before);
    catalog_.drop();
    return stored;
  }
  catalog_.apply();
  CommitBatch none;
  for (const PartitionOrder& order : change->after)
    perform(order, none);
  show(change->name);
  if (name != nullptr) *name = std::move(change->name);
  return {};
}

Status CatalogDesk::store(CommitBatch rows) {
  auto reply = std::make_shared<Reply<Status>>();
  office_.committer.store(std::move(rows), [reply](const Status& status) { reply->set(status); });
  return reply->wait();
}

// Adds to `rows` what is to be stored for it.
void CatalogDesk::perform(const PartitionOrder& order, CommitBatch& rows) {
  std::visit(
      [&](const auto& asked) {
        using Asked = std::decay_t<decltype(asked)>;
        if constexpr (std::is_same_v<Asked, OpenPartitions>) {
          open_partitions(asked);
        } else if constexpr (std::is_same_v<Asked, ClosePartitions>) {
          close_partitions(asked.topic);
        } else if constexpr (std::is_same_v<Asked, AttachToAll>) {
          auto attached = ask_all<Attached>(hosts_of(asked.topic), [&] {
            return Attach{{}, asked.setup};
          });
          for (Attached& one : attached)
            std::move(one.rows.begin(), one.rows.end(), std::back_inserter(rows));
        } else if constexpr (std::is_same_v<Asked, ReconfigureAll>) {
          post_and_wait(asked.topic, [&] { return Reconfigure{asked.setup}; });
        } else if constexpr (std::is_same_v<Asked, DetachFromAll>) {
          post_and_wait(asked.topic, [&] { return Detach{asked.subscription, asked.reason}; });
        } else if constexpr (std::is_same_v<Asked, DropSnapshotOfAll>) {
          post_and_wait(asked.topic, [&] { return DropSnapshot{asked.snapshot}; });
        } else {
          static_assert(std::is_same_v<Asked, RetainInAll>);
          post_and_wait(asked.topic, [&] { return RetainTopic{asked.retention}; });
        }
      },
      order);
}

// A change that could not be stored: what `before` has attached or opened goes again.
void CatalogDesk::undo(const std::vector<PartitionOrder>& orders) {
  for (const PartitionOrder& order : orders) {
    if (const auto* attach = std::get_if<AttachToAll>(&order)) {
      const Error reason{ErrorCode::not_found, "The subscription could not be stored."};
      post_and_wait(attach->topic, [&] { return Detach{attach->setup.subscription, reason}; });
    } else if (const auto* open = std::get_if<OpenPartitions>(&order)) {
      close_partitions(open->topic);
    }
  }
}

void CatalogDesk::open_partitions(const OpenPartitions& order) {
  std::vector<PartitionStart> starts(order.partition_count);
  for (std::uint32_t index = 0; index < order.partition_count; ++index)
    starts[index].address = {order.topic, index};
  CatalogTopic topic;
  topic.number = order.topic;
  topic.config.retention = order.retention;
  topic.is_deleted = true;  // Not to be found until the change is made.
  open_topic(topic, std::move(starts));
}

void CatalogDesk::close_partitions(TopicNumber topic) {
  const Hosts hosts = hosts_of(topic);
  auto left = std::make_shared<std::atomic<std::size_t>>(hosts.size());
  auto done = std::make_shared<Reply<bool>>();
  for (const auto& host : hosts) {
    host->retire({ErrorCode::not_found, "Topic not found"}, [left, done] {
      if (left->fetch_sub(1) == 1) done->set(true);
    });
  }
  if (!hosts.empty()) (void)done->wait();
  for (const auto& host : hosts)
    office_.switchboard.forget(host->address());
  topics_.erase(topic);
}

// Returns once all partitions have done it, and what they store for it is on its way.
void CatalogDesk::post_and_wait(TopicNumber topic, const std::function<Input()>& make_input) {
  const Hosts hosts = hosts_of(topic);
  if (hosts.empty()) return;
  auto left = std::make_shared<std::atomic<std::size_t>>(hosts.size());
  auto done = std::make_shared<Reply<bool>>();
  for (const auto& host : hosts) {
    Posted posted{make_input()};
    posted.after = [left, done] {
      if (left->fetch_sub(1) == 1) done->set(true);
    };
    host->post(std::move(posted));
  }
  (void)done->wait();
}

Hosts CatalogDesk::hosts_of(TopicNumber topic) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() ? Hosts() : found->second->hosts;
}

// Brings the directory's entry of a topic or subscription in step with the catalog.
void CatalogDesk::show(const std::string& name) {
  if (const Result<CatalogTopic> topic = catalog_.get_topic(name)) {
    const std::shared_ptr<TopicEntry>& entry = topics_.at(topic->number);
    if (!office_.directory.topic(name)) {
      entry->name = name;
      office_.directory.put(entry);
    }
  } else {
    office_.directory.erase_topic(name);
  }
  if (const Result<CatalogSubscription> subscription = catalog_.get_subscription(name)) {
    show_subscription(*subscription);
  } else {
    hide_subscription(name);
  }
  show_strict_topics();
}

void CatalogDesk::hide_subscription(const std::string& name) {
  if (!office_.directory.subscription(name)) return;
  office_.directory.erase_subscription(name);
  for (const auto& [number, watcher] : watchers_)
    watcher(name, nullptr);
}

void CatalogDesk::show_subscription(const CatalogSubscription& subscription) {
  const auto before = office_.directory.subscription(subscription.config.name);
  auto entry = std::make_shared<SubscriptionEntry>();
  entry->number = subscription.number;
  entry->config = subscription.config;
  if (before && before->number == subscription.number) entry->use = before->use;
  const auto topic = topics_.find(subscription.topic);
  if (topic != topics_.end() && !subscription.config.detached) entry->topic = topic->second;
  office_.directory.put(std::move(entry));
  for (const auto& [number, watcher] : watchers_)
    watcher(subscription.config.name, &subscription.config);
}

Result<std::uint64_t> CatalogDesk::watch_subscriptions(SubscriptionWatcher watcher) {
  return run([&]() -> Result<std::uint64_t> {
    for (const auto& [name, subscription] : catalog_.subscriptions())
      watcher(name, &subscription.config);
    const std::uint64_t number = next_watcher_++;
    watchers_.emplace(number, std::move(watcher));
    return number;
  });
}

void CatalogDesk::stop_watching(std::uint64_t number) {
  // A desk that has ended calls nobody either.
  (void)run([&]() -> Status {
    watchers_.erase(number);
    return {};
  });
}

void CatalogDesk::show_strict_topics() {
  for (const auto& [number, topic] : catalog_.topics()) {
    const auto found = topics_.find(number);
    if (topic.config.strict_keys && found != topics_.end())
      found->second->refuses_keys = !catalog_.check_keys(number).has_value();
  }
}

Result<SnapshotConfig> CatalogDesk::take_snapshot(SnapshotConfig config,
                                                  const std::string& subscription) {
  Result<CursorPlan> plan = catalog_.plan_snapshot(config.name, subscription);
  if (!plan) return std::move(plan).error();
  const auto taken = ask_all<SnapshotTaken>(hosts_of(plan->topic), [&] {
    return TakeSnapshot{{}, plan->subscription, plan->snapshot};
  });
  std::optional<Error> failure;
  WallTime oldest = WallTime::max();
  for (const SnapshotTaken& one : taken) {
    if (one.error) failure = one.error;
    oldest = std::min(oldest, one.oldest_unacked);
  }
  std::string name;
  if (!failure) {
    Status made =
        make(catalog_.create_snapshot(std::move(config), *plan, oldest, clock_.wall_now()), &name);
    if (made) return catalog_.get_snapshot(name)->config;
    failure = made.error();
  }
  post_and_wait(plan->topic, [&] { return DropSnapshot{plan->snapshot}; });
  return *failure;
}

Status CatalogDesk::seek(const std::string& subscription, const std::string& snapshot,
                         WallTime time) {
  const Result<CursorPlan> plan = catalog_.plan_seek(subscription, snapshot);
  if (!plan) return plan.error();
  const auto sought = ask_all<Sought>(hosts_of(plan->topic), [&]() -> Input {
    if (snapshot.empty()) return SeekToTime{{}, plan->subscription, time};
    return SeekToSnapshot{{}, plan->subscription, plan->snapshot};
  });
  for (const Sought& one : sought) {
    if (one.error) return *one.error;
  }
  return {};
}

// By and by: who was used is written down, and what nobody uses any more goes.
void CatalogDesk::look_after_uses() {
  const WallTime now = clock_.wall_now();
  for (const auto& entry : office_.directory.subscriptions()) {
    const bool is_used = entry->use->is_touched.exchange(false) || entry->use->consumers > 0;
    if (is_used) catalog_.touch(entry->number, now);
  }
  if (CommitBatch rows = catalog_.activity_rows(); !rows.empty()) (void)store(std::move(rows));
  const Catalog::Expired expired = catalog_.expired(now);
  for (const std::string& name : expired.subscriptions)
    (void)make(catalog_.delete_subscription(name));
  for (const std::string& name : expired.snapshots)
    (void)make(catalog_.delete_snapshot(name));
  (void)loop_.run_at(loop_.now() + kUsesLookedAfter, [this] { look_after_uses(); });
}

}  // namespace ordo::broker
