// Catalog: which topics, subscriptions and snapshots there are and how they are set.
//
//   Result<CatalogChange> change = catalog.create_topic({.name = "projects/p/topics/orders"});
//   if (!change) return change.error();     // with the code and the words of the service
//   perform(change->before);                // to partitions, and wait until they have done it
//   if (store.commit(change->rows)) {       // with the rows that Attached answered
//     catalog.apply();                      // now it is so
//     perform(change->after);
//   } else {
//     catalog.drop();                       // it never was
//   }
//
// A call says what has to be done; nothing is changed until apply(), so nobody can see what is not
// on disk. One change at a time: the next call that changes something follows apply() or drop().
//
// A deleted topic goes on existing without its name while a subscription or snapshot needs its
// messages; they say "_deleted-topic_" then. Its partitions go with the last of them.
//
// Threads: one owner.
// Bounds:  CatalogOptions; beyond them resource_exhausted.
// Cost:    O(log n) in topics and subscriptions; a list O(its length); what deletes or creates a
//          topic looks at all subscriptions once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ordo/broker/config.h"
#include "ordo/broker/filter.h"
#include "ordo/broker/ids.h"
#include "ordo/broker/partition_io.h"
#include "ordo/broker/store.h"
#include "ordo/core/result.h"

namespace ordo::broker {

struct CatalogOptions {
  std::chrono::nanoseconds ack_deadline_min = std::chrono::seconds(1);  // The service's is 10 s.
  std::chrono::nanoseconds retention_min = std::chrono::minutes(10);
  std::chrono::nanoseconds expiration_min = std::chrono::hours(24);
  std::uint32_t delivery_attempts_min = 5;  // Of a dead-letter policy.
  std::uint32_t ordered_window = 1;         // Of a subscription whose labels do not say.
  std::size_t topics_max = 10'000;
  std::size_t partitions_max = 4'096;  // Over all topics, also deleted ones that are still needed.
  std::size_t subscriptions_max = 10'000;
  std::size_t snapshots_max = 5'000;
};

struct CatalogTopic {
  TopicNumber number;
  TopicConfig config;
  bool is_deleted = false;  // Has no name any more; config.name is the one it had.
};

struct CatalogSubscription {
  CursorNumber number;
  TopicNumber topic;  // Also of a deleted one.
  SubscriptionConfig config;
  WallTime last_active;
  std::shared_ptr<const Filter> filter = {};  // Of config.filter; null: everything matches.
};

struct CatalogSnapshot {
  CursorNumber number;
  TopicNumber topic;
  SnapshotConfig config;
};

// The numbers that were never used.
struct CatalogCounters {
  std::uint32_t next_topic = 1;
  std::uint32_t next_cursor = 1;
};

// ------------------------------------------------------------------------ what a change asks for

// All of them are for every partition of `topic`: indices 0 to partition_count - 1.

struct OpenPartitions {  // Make them, empty.
  TopicNumber topic;
  std::uint32_t partition_count = 0;
  std::optional<std::chrono::nanoseconds> retention;
};
struct ClosePartitions {  // Take nothing more in, finish what is under way, and drop them.
  TopicNumber topic;
  std::uint32_t partition_count = 0;
};
struct AttachToAll {  // Attach; the rows of all the answers are committed with the change's.
  TopicNumber topic;
  std::uint32_t partition_count = 0;
  SubscriptionSetup setup;
};
struct ReconfigureAll {  // Reconfigure.
  TopicNumber topic;
  std::uint32_t partition_count = 0;
  SubscriptionSetup setup;
};
struct DetachFromAll {  // Detach.
  TopicNumber topic;
  std::uint32_t partition_count = 0;
  CursorNumber subscription;
  Error reason;
};
struct DropSnapshotOfAll {  // DropSnapshot.
  TopicNumber topic;
  std::uint32_t partition_count = 0;
  CursorNumber snapshot;
};
struct RetainInAll {  // A topic's retention has changed.
  TopicNumber topic;
  std::uint32_t partition_count = 0;
  std::optional<std::chrono::nanoseconds> retention;
};

using PartitionOrder = std::variant<OpenPartitions, ClosePartitions, AttachToAll, ReconfigureAll,
                                    DetachFromAll, DropSnapshotOfAll, RetainInAll>;

struct CatalogChange {
  std::string name;                    // Of what is created, changed or deleted.
  std::vector<PartitionOrder> before;  // Done by the partitions before `rows` are committed.
  CommitBatch rows;
  std::vector<PartitionOrder> after;  // To be done once they are. Undo of a commit that failed:
                                      // detach what `before` attached.
};

// Where a seek goes, or what a snapshot freezes.
struct CursorPlan {
  TopicNumber topic;
  std::uint32_t partition_count = 0;
  CursorNumber subscription;
  CursorNumber snapshot;  // Of a seek to time: none (0).
};

template <class Item>
struct Page {
  std::vector<Item> items;
  std::string next_page_token;  // Empty: there are no more.
};

// The paths of an update mask: "labels", "ack_deadline_seconds", ...
using UpdateMask = std::vector<std::string>;

class Catalog {
 public:
  struct Start;  // Of recover().

  explicit Catalog(const CatalogOptions& options = {}) : options_(options) {}

  // From what the store has. data_loss, naming the row, for one that cannot be read.
  static Result<Start> recover(const Recovered& recovered, const CatalogOptions& options = {});

  // ---------------------------------------------------------------------------------- topics

  Result<CatalogChange> create_topic(TopicConfig config);
  // Mask: labels, message_retention_duration.
  Result<CatalogChange> update_topic(const TopicConfig& config, const UpdateMask& mask);
  Result<CatalogChange> delete_topic(std::string_view name);
  Result<CatalogTopic> get_topic(std::string_view name) const;
  Result<Page<TopicConfig>> list_topics(std::string_view project, int page_size,
                                        std::string_view page_token) const;
  Result<Page<std::string>> list_topic_subscriptions(std::string_view topic, int page_size,
                                                     std::string_view page_token) const;
  Result<Page<std::string>> list_topic_snapshots(std::string_view topic, int page_size,
                                                 std::string_view page_token) const;

  // ---------------------------------------------------------------------------- subscriptions

  // Without a name it is given one. What is not set becomes its default, labels become settings.
  Result<CatalogChange> create_subscription(SubscriptionConfig config, WallTime now);
  // Mask: ack_deadline_seconds, retain_acked_messages, message_retention_duration, labels,
  // expiration_policy, dead_letter_policy, retry_policy, enable_exactly_once_delivery.
  Result<CatalogChange> update_subscription(const SubscriptionConfig& config,
                                            const UpdateMask& mask);
  Result<CatalogChange> delete_subscription(std::string_view name);
  Result<CatalogChange> detach_subscription(std::string_view name);
  Result<CatalogSubscription> get_subscription(std::string_view name) const;
  Result<Page<SubscriptionConfig>> list_subscriptions(std::string_view project, int page_size,
                                                      std::string_view page_token) const;

  // As get_subscription(), of one that can be consumed: failed_precondition once detached.
  Result<CatalogSubscription> get_attached(std::string_view name) const;

  // ---------------------------------------------------------------------------------- snapshots

  // First plan_snapshot(); then TakeSnapshot to every partition; then create_snapshot() with the
  // oldest of what SnapshotTaken said. When that or the commit fails: DropSnapshot.
  Result<CursorPlan> plan_snapshot(std::string_view name, std::string_view subscription);
  Result<CatalogChange> create_snapshot(SnapshotConfig config, const CursorPlan& plan,
                                        WallTime oldest_unacked, WallTime now);
  // Mask: labels, expire_time.
  Result<CatalogChange> update_snapshot(const SnapshotConfig& config, const UpdateMask& mask,
                                        WallTime now);
  Result<CatalogChange> delete_snapshot(std::string_view name);
  Result<CatalogSnapshot> get_snapshot(std::string_view name) const;
  Result<Page<SnapshotConfig>> list_snapshots(std::string_view project, int page_size,
                                              std::string_view page_token) const;

  // `snapshot` empty: to a time.
  Result<CursorPlan> plan_seek(std::string_view subscription, std::string_view snapshot) const;

  // ----------------------------------------------------------------------------------- policies

  // Who may do what with a topic, subscription or snapshot, as it was given: kept, not looked at,
  // and gone with its resource. Empty: none.
  Result<CatalogChange> set_policy(std::string_view resource, std::string policy);
  Result<std::string> get_policy(std::string_view resource) const;

  // ------------------------------------------------------------------------------------- changes

  // The change of the last call is on disk.
  void apply();
  // It is not, and will not be.
  void drop();

  // ------------------------------------------------------------------------------- by and by

  // The subscription is in use. Forgotten at a restart unless activity_rows() was committed.
  void touch(CursorNumber subscription, WallTime now);
  // Rows for the subscriptions whose use was last written down more than an hour before.
  CommitBatch activity_rows();
  // Names of subscriptions nobody has used for their time to live, and of expired snapshots. To be
  // deleted as if asked for.
  struct Expired {
    std::vector<std::string> subscriptions;
    std::vector<std::string> snapshots;
  };
  Expired expired(WallTime now) const;

  // ------------------------------------------------------------------------------- for partitions

  // Everything there is, also topics that are deleted but still needed.
  const std::map<TopicNumber, CatalogTopic>& topics() const { return topics_; }
  const std::map<std::string, CatalogSubscription, std::less<>>& subscriptions() const {
    return subscriptions_;
  }
  const std::map<std::string, CatalogSnapshot, std::less<>>& snapshots() const {
    return snapshots_;
  }

  // Of a subscription that is not detached.
  SubscriptionSetup setup_of(const CatalogSubscription& subscription) const;

  // A strict topic takes keys only while a subscription of it keeps order: failed_precondition.
  Status check_keys(TopicNumber topic) const;

 private:
  using TopicsByName = std::map<std::string, TopicNumber, std::less<>>;

  struct EraseTopicEdit {
    TopicNumber number;
  };
  struct EraseSubscriptionEdit {
    std::string name;
  };
  struct EraseSnapshotEdit {
    std::string name;
  };
  struct PolicyEdit {
    std::string resource;
    std::string policy;  // Empty: there is none any more.
  };
  using Edit = std::variant<CatalogTopic, CatalogSubscription, CatalogSnapshot, EraseTopicEdit,
                            EraseSubscriptionEdit, EraseSnapshotEdit, PolicyEdit>;
  CatalogChange begin(std::string name);
  void edit(CatalogChange& change, Edit edit);
  void put_counters(CatalogChange& change) const;
  void raise_counters(const Recovered& recovered);
  void perform(const Edit& edit);
  void put_rows(CommitBatch& rows, const Edit& edit) const;

  const CatalogTopic* find_topic(std::string_view name) const;
  const CatalogSubscription* find_subscription(std::string_view name) const;
  const CatalogSnapshot* find_snapshot(std::string_view name) const;
  std::uint32_t partitions_of(TopicNumber topic) const;
  SubscriptionSetup setup_with(const CatalogSubscription& subscription,
                               const CatalogTopic* dead_letter_topic) const;
  void reconfigure_senders(CatalogChange& change, std::string_view topic,
                           const CatalogTopic* now) const;
  bool is_needed(TopicNumber topic, CursorNumber except) const;
  void release_topic(CatalogChange& change, TopicNumber topic, CursorNumber cursor);
  void forget_policy(CatalogChange& change, std::string_view resource);
  Status check_resource(std::string_view name) const;
  Status check_dead_letter_topic(const SubscriptionConfig& config) const;
  Status update_field(SubscriptionConfig& config, const SubscriptionConfig& from,
                      std::string_view path) const;
  static Status read_row(Catalog& catalog, const CatalogKey& key, std::string_view value);
  static CommitBatch leftovers(const Catalog& catalog, const Recovered& recovered);

  CatalogOptions options_;
  CatalogCounters counters_;
  std::map<TopicNumber, CatalogTopic> topics_;
  TopicsByName topics_by_name_;  // Of those that are not deleted.
  std::map<std::string, CatalogSubscription, std::less<>> subscriptions_;
  std::map<CursorNumber, std::string> subscription_names_;
  std::map<std::string, CatalogSnapshot, std::less<>> snapshots_;
  std::map<CursorNumber, WallTime> recorded_active_;          // What is on disk of last_active.
  std::map<std::string, std::string, std::less<>> policies_;  // By resource; those that are set.
  std::vector<Edit> pending_;
  bool has_pending_ = false;
};

struct Catalog::Start {
  Catalog catalog;
  // What is left of things whose creation or deletion a crash cut short. To be committed before
  // anything else.
  CommitBatch cleanup;
};

}  // namespace ordo::broker
