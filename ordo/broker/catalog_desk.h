// CatalogDesk: changes the catalog, one change at a time, with the partitions and the store.
//
//   Result<TopicConfig> topic = desk.create_topic({.name = "projects/p/topics/t"});
//
// A change is planned by the pure Catalog, done by the partitions where they must do something
// first, committed, applied, and shown in the directory: in that order, so that nobody can see or
// use what is not on disk.
//
// Threads: any, all calls, but not from a partition's thread or a callback; each waits until its
//          change is on disk. Owns one thread, which makes the changes.
// Bounds:  those of the catalog.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ordo/broker/broker_options.h"
#include "ordo/broker/catalog.h"
#include "ordo/broker/committer.h"
#include "ordo/broker/directory.h"
#include "ordo/broker/gathering.h"
#include "ordo/broker/host.h"
#include "ordo/broker/subscription_watch.h"
#include "ordo/runtime/loop.h"

namespace ordo::broker {

class CatalogDesk {
 public:
  // What it works with; all of it outlives the desk.
  struct Office {
    Switchboard& switchboard;
    Committer& committer;
    Directory& directory;
    std::function<double()> load;  // For live feeds.
  };

  CatalogDesk(Office office, const BrokerOptions& options, Catalog catalog);
  CatalogDesk(const CatalogDesk&) = delete;
  CatalogDesk& operator=(const CatalogDesk&) = delete;
  ~CatalogDesk() { stop(); }

  // Opens the partitions of what was recovered. First, once.
  Status start(Recovered recovered, CommitBatch cleanup);
  // Waits for the changes that were asked for. False: some were not made at the deadline.
  bool finish_by(TimePoint deadline);
  // Waits for the change that is being made; refuses those that wait.
  void stop();

  Result<TopicConfig> create_topic(TopicConfig config);
  Result<TopicConfig> update_topic(TopicConfig config, UpdateMask mask);
  Status delete_topic(const std::string& name);

  Result<SubscriptionConfig> create_subscription(SubscriptionConfig config);
  Result<SubscriptionConfig> update_subscription(SubscriptionConfig config, UpdateMask mask);
  Status delete_subscription(const std::string& name);
  Status detach_subscription(const std::string& name);

  Result<SnapshotConfig> create_snapshot(SnapshotConfig config, const std::string& subscription);
  Result<SnapshotConfig> update_snapshot(SnapshotConfig config, UpdateMask mask);
  Status delete_snapshot(const std::string& name);
  Status set_policy(const std::string& resource, std::string policy);
  Status seek_to_time(const std::string& subscription, WallTime time);
  Status seek_to_snapshot(const std::string& subscription, const std::string& snapshot);

  // The number of the watch.
  Result<std::uint64_t> watch_subscriptions(SubscriptionWatcher watcher);
  // Once it returns no call runs or comes.
  void stop_watching(std::uint64_t number);

  // Asks the catalog something, between changes. `ask` returns a Result or a Status.
  template <class Ask>
  auto ask(Ask ask) -> decltype(ask(std::declval<const Catalog&>())) {
    return run([this, ask = std::move(ask)] { return ask(std::as_const(catalog_)); });
  }

 private:
  template <class Work>
  auto run(Work work) -> decltype(work());

  // The desk's own thread.
  Status make(Result<CatalogChange> change, std::string* name = nullptr);
  void perform(const PartitionOrder& order, CommitBatch& rows);
  void undo(const std::vector<PartitionOrder>& orders);
  Status store(CommitBatch rows);
  void open_topic(const CatalogTopic& topic, std::vector<PartitionStart> starts);
  void open_partitions(const OpenPartitions& order);
  void close_partitions(TopicNumber topic);
  void post_and_wait(TopicNumber topic, const std::function<Input()>& make_input);
  Hosts hosts_of(TopicNumber topic) const;
  void show(const std::string& name);
  void show_subscription(const CatalogSubscription& subscription);
  void hide_subscription(const std::string& name);
  void show_strict_topics();
  Result<SnapshotConfig> take_snapshot(SnapshotConfig config, const std::string& subscription);
  Status seek(const std::string& subscription, const std::string& snapshot, WallTime time);
  void look_after_uses();

  const Office office_;
  const BrokerOptions options_;
  Clock& clock_;

  // The desk's own thread.
  Catalog catalog_;
  std::map<TopicNumber, std::shared_ptr<TopicEntry>> topics_;  // Deleted ones in use included.
  std::uint64_t start_number_ = 1;
  std::map<std::uint64_t, SubscriptionWatcher> watchers_;
  std::uint64_t next_watcher_ = 1;

  Loop loop_;
};

// Runs `work` on the desk's thread and waits for it. What is dropped when the desk stops is
// answered all the same: by the end of its promise.
template <class Work>
auto CatalogDesk::run(Work work) -> decltype(work()) {
  using Answer = decltype(work());
  struct Promise {
    std::shared_ptr<Reply<Answer>> reply;
    bool is_kept = false;

    explicit Promise(std::shared_ptr<Reply<Answer>> to) : reply(std::move(to)) {}
    Promise(Promise&& other) noexcept : reply(std::move(other.reply)), is_kept(other.is_kept) {}
    Promise& operator=(Promise&&) = delete;
    ~Promise() {
      if (reply && !is_kept) reply->set(Answer(closed_error()));
    }
  };
  auto reply = std::make_shared<Reply<Answer>>();
  {
    Task task([promise = Promise(reply), work = std::move(work)]() mutable {
      promise.is_kept = true;
      promise.reply->set(work());
    });
    (void)loop_.post(std::move(task));
  }
  return reply->wait();
}

}  // namespace ordo::broker
