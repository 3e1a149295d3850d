// Checker: watches a simulated run and says which promise was broken, when and how.
//
//   Checker checker(plan, marks);
//   checker.publish(address, request, uids);              // before the partition gets it
//   checker.effect(address, commit);                      // when the partition asks for it
//   checker.deliver(address, delivery, now);
//   if (!checker.violation().empty()) ...
//
// It knows the inputs and effects of every partition and which commits reached the store, and
// keeps a plain model of what each subscription still owes (model.h). It checks what the broker
// promises and nothing of how it does that.
//
// Threads: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/broker/partition_io.h"
#include "ordo/broker/store.h"
#include "tests/simulation/marks.h"
#include "tests/simulation/model.h"
#include "tests/simulation/plan.h"

namespace ordo::simulation {

class Checker {
 public:
  using Address = broker::PartitionAddress;

  Checker(const Plan& plan, Marks& marks);

  // The first broken promise; empty: none.
  const std::string& violation() const { return violation_; }
  void set_now(broker::Now now) { now_ = now; }

  // -------------------------------------------------------------------- publishing, commits
  Uid new_message(Address address, std::string key, bool is_red);
  void publish(Address address, broker::RequestNumber request, const std::vector<Uid>& uids);
  void publish_replied(Address address, const broker::PublishReply& reply);
  void commit_asked(Address address, const broker::Commit& commit);
  void commit_stored(Address address, broker::TicketNumber ticket);
  void commit_doubted(Address address, broker::TicketNumber ticket) {
    partition(address).commits[ticket.value()].is_doubted = true;
  }
  // The partition is about to be told.
  void commit_told(Address address, const broker::Committed& committed);

  // -------------------------------------------------------------------- subscriptions
  void attach(std::uint32_t subscription, broker::CursorNumber number, Address address);
  void subscription_exists(broker::CursorNumber number);  // Its rows are stored.
  void detach(Address address, broker::CursorNumber number);
  bool is_here(const SubscriptionModel& subscription, Address address) const {
    return !subscription.is_deleted && subscription.plan->topic_number() == address.topic &&
           !subscription.partitions[address.index].is_detached;
  }
  void open_consumer(broker::ConsumerNumber consumer, broker::CursorNumber subscription,
                     const ClientPlan& client);
  void close_consumer(Address address, const broker::CloseConsumer& close);

  // -------------------------------------------------------------------- delivering, settling
  void timers(Address address);  // run_due() follows: leases that end by now are over.
  void deliver(Address address, const broker::Deliver& deliver);
  void acknowledge(Address address, const broker::Acknowledge& acknowledge);
  void modify_deadline(Address address, const broker::ModifyDeadline& modify);
  void settle_replied(Address address, const broker::SettleReply& reply);
  void dead_letter_sent(Address source, const broker::SendDeadLetter& sent);
  void dead_letter_arrives(Address target, Address source, broker::TicketNumber ticket);
  // Those stored since it was last asked.
  std::vector<std::pair<broker::CursorNumber, Uid>> take_dead() { return std::exchange(dead_, {}); }
  void dead_letter_answered(Address target, const broker::AnswerDeadLetter& answer);
  void dead_letter_done(Address source, const broker::DeadLetterDone& done);

  // -------------------------------------------------------------------- operators
  void operate(Address address, const broker::OperateKey& operate);
  void operated(Address address, const broker::VerbReply& reply);
  void seek(Address address, broker::CursorNumber subscription, const Seeking& seeking);
  void time_asked(Address address, broker::TicketNumber ticket);
  void time_found(Address address, const broker::TimeFound& found);
  void sought(Address address, const broker::Sought& sought);
  void take_snapshot(Address address, broker::CursorNumber subscription,
                     broker::CursorNumber snapshot);
  void snapshot_exists(broker::CursorNumber snapshot) { snapshots_[snapshot].exists = true; }
  void drop_snapshot(broker::CursorNumber snapshot) { snapshots_[snapshot].exists = false; }
  void stats(Address address, const broker::PartitionStats& stats, bool is_end);

  // -------------------------------------------------------------------- damage
  // An offset of what is stored and not trimmed, if any; `choice` is any number.
  std::optional<std::uint64_t> pick_stored(Address address, std::uint64_t choice) const;
  void damaged(Address address, std::uint64_t first, std::uint64_t end);
  void kept_back(Address address, const broker::KeptBack& kept_back);
  void listed(Address address, broker::CursorNumber subscription, const broker::KeyFacts& key);
  void peeked(Address address, broker::CursorNumber subscription,
              const broker::PeekedMessage& peeked);

  // -------------------------------------------------------------------- crashes, the end
  // A crash cannot undo what is stored so far. Only where commits are not synced one by one.
  void synced() { synced_ = {partitions_, subscriptions_, snapshots_}; }
  // A crash follows that loses all that was stored since then.
  void lose_unsynced();
  void crash();
  // What a restart finds, and which subscriptions there are.
  void recover(broker::Store& store, const std::vector<broker::CursorNumber>& subscriptions,
               const std::vector<broker::CursorNumber>& snapshots);
  // Nothing is owed any more.
  bool is_settled() const;
  bool is_drained() const;  // And no commit is under way.
  void finish(broker::Store& store);
  std::string owed() const;  // For a person: what is still open.

  // No counter has shown anything that waits since it was last asked.
  bool take_idle() { return std::exchange(is_idle_, true); }

  bool has_commit_under_way() const;
  const std::vector<Published>& published() const { return published_; }
  bool is_seeking(broker::CursorNumber subscription) const;
  std::size_t live_count(broker::CursorNumber subscription) const;
  // Of the key's copies; for verbs that should meet something.
  bool has_open(broker::CursorNumber subscription, Address address, const std::string& key) const;

 private:
  enum class Expect : std::uint8_t { done, stale, either };
  struct AskedSettle {
    broker::AckId id;
    Expect expect = Expect::either;
    bool is_ack = false;
  };
  struct AskedVerb {
    broker::OperateKey operate;
    std::uint64_t head = 0;
    bool is_certain = false;
  };

  void bad(std::string_view code, const std::string& text);
  std::string where(const SubscriptionModel& subscription, Address address,
                    std::uint64_t offset) const;
  PartitionModel& partition(Address address) { return partitions_[address]; }
  SubscriptionModel* find(broker::CursorNumber number);
  PartitionCopies* find_copies(broker::CursorNumber number, std::uint32_t index);

  void appended(PartitionModel& model, const broker::MessageBatch& batch, CommitModel& commit);
  void dead_letter_stored(const broker::AckId& source, Uid uid);
  void check_trim(Address address, const broker::Trim& trim);
  void make_visible(Address address, std::uint64_t offset, const LogEntry& entry);
  void add_copy(SubscriptionModel& subscription, std::uint32_t index, std::uint64_t offset,
                const LogEntry& entry);
  void vanish(Address address, const CommitModel& commit);

  void check_content(SubscriptionModel& subscription, Address address,
                     const broker::Delivery& delivery);
  bool check_order(SubscriptionModel& subscription, Address address, std::uint64_t offset,
                   const LogEntry& entry, broker::ConsumerNumber consumer);
  void check_attempt(SubscriptionModel& subscription, Address address, Copy& copy,
                     const broker::Delivery& delivery);
  void check_fence(const SubscriptionModel& subscription, PartitionCopies& copies, const Copy& copy,
                   const broker::Delivery& delivery, const std::string& place);
  void check_room(ConsumerModel& consumer, const broker::Delivery& delivery);
  void start_lease(SubscriptionModel& subscription, Address address, Copy& copy,
                   const broker::Delivery& delivery, broker::ConsumerNumber consumer);
  void end_lease(SubscriptionModel& subscription, Address address, std::uint64_t offset);
  void stop_counting(Address address, std::uint64_t offset, Copy& copy);
  void doubt(SubscriptionModel& subscription, Address address, std::uint64_t offset);
  void fail(SubscriptionModel& subscription, Address address, std::uint64_t offset, TimePoint at);
  void rewind(SubscriptionModel& subscription, Address address, std::uint64_t offset,
              bool is_certain);
  Expect expect_ack(SubscriptionModel& subscription, Address address, const broker::AckId& id);
  Expect expect_modify(SubscriptionModel& subscription, Address address, const broker::AckId& id,
                       std::chrono::nanoseconds deadline);
  void settle(SubscriptionModel& subscription, Address address, std::uint64_t offset, Fate fate);
  void apply_seek(SubscriptionModel& subscription, Address address, broker::TicketNumber ticket);
  void seek_failed(SubscriptionModel& subscription, Address address, const Error& error);
  void void_leases(SubscriptionModel& subscription, Address address);
  void rebuild_keys(SubscriptionModel& subscription, Address address);
  // Whether it went another way than its key, which was not known while it could not be read.
  bool went_alone(const Copy& copy, const LogEntry& entry) const {
    return entry.was_damaged && copy.lost_epoch != epoch_;
  }
  bool has_damage(Address address, const KeyState& key);
  void crash_copies(SubscriptionModel& subscription, std::uint32_t index);
  void recover_partition(broker::Store& store, Address address, PartitionModel& model);
  // Messages past their retention may be settled at any time.
  void age(SubscriptionModel& subscription, Address address);

  const Plan& plan_;
  Marks& marks_;
  broker::Now now_;
  std::uint32_t epoch_ = 1;
  std::string violation_;
  bool is_idle_ = true;
  std::vector<Published> published_;
  std::map<Address, PartitionModel> partitions_;
  std::map<broker::CursorNumber, SubscriptionModel> subscriptions_;
  std::map<broker::CursorNumber, SnapshotModel> snapshots_;
  struct Synced {
    std::map<Address, PartitionModel> partitions;
    std::map<broker::CursorNumber, SubscriptionModel> subscriptions;
    std::map<broker::CursorNumber, SnapshotModel> snapshots;
  };
  Synced synced_;
  std::map<broker::ConsumerNumber, ConsumerModel> consumers_;
  std::map<std::uint64_t, std::vector<AskedSettle>> settles_;  // By request.
  std::map<std::uint64_t, AskedVerb> verbs_;
  std::map<std::pair<Address, std::uint64_t>, broker::AckId> dead_letters_;  // By ticket.
  std::vector<std::pair<broker::CursorNumber, Uid>> dead_;
};

}  // namespace ordo::simulation
