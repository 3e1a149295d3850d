// What the checker of the simulator believes about messages, subscriptions and consumers.
//
// A message that a subscription has to deliver is a Copy there. Its fate is open until something
// settles it. Where an outside observer cannot know (an unconfirmed ack and then a crash) it is
// maybe settled, until it is delivered again (it was not) or a later one of its key is (it was).
//
// Threads: plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ordo/broker/partition_io.h"
#include "tests/simulation/plan.h"

namespace ordo::simulation {

using Uid = std::uint64_t;  // Of a message as published; it stands in its data.

struct Published {
  std::string key;
  bool is_red = false;
  broker::PartitionAddress partition;
  std::uint64_t offset = 0;  // 0: none yet.
};

enum class Presence : std::uint8_t {
  emitted,  // The partition asked for it to be stored.
  stored,   // It is in the store.
  visible,  // The partition knows that.
  gone,     // It is not in the store and never will be, or not any more.
};

struct LogEntry {
  Uid uid = 0;
  Presence presence = Presence::emitted;
  WallTime publish_time;
  broker::MessageId id;
  std::string key;
  bool is_red = false;
  std::size_t size = 0;
  std::optional<broker::AckId> dead_letter;  // Where it comes from.
  bool was_damaged = false;                  // It could not be read for a time.
};

enum class Fate : std::uint8_t { open, maybe_settled, settled };

struct Copy {
  bool is_here = false;  // This message concerns this subscription.
  Fate fate = Fate::open;
  bool is_durable = false;  // Settled, and a crash cannot undo it.
  bool is_dead = false;     // Settled by dead-lettering.
  bool is_dead_letter_under_way = false;

  // The newest delivery.
  std::uint64_t fence = 0;
  std::uint64_t settled_by = 0;  // The fence that settled it.
  broker::ConsumerNumber consumer;
  std::uint32_t epoch = 0;  // The life of the broker in which it was made.
  bool is_live = false;     // Its lease runs.
  bool is_void = false;     // A rewind or a seek took it back.
  bool is_shaky = false;    // Its consumer died or the like: it may end at any time.
  bool is_counted = false;  // Against the limits of its consumer.
  bool is_touched = false;  // Its consumer answered something.
  TimePoint lease_end;

  std::uint32_t deliveries = 0;
  std::uint32_t last_attempt = 0;
  std::uint32_t failures =
      0;                    // Nacks and expiries; what a lost stream or a rewind returns is none.
  bool has_failed = false;  // The newest delivery, for certain.
  bool is_exact = true;     // `deliveries` is all there is to know,
  bool is_doubted = false;  // and `failures` is not.
  TimePoint not_before;
  std::optional<TimePoint> first_failure;
  std::uint32_t lost_epoch = 0;  // The life in which its key was known to wait for it, damaged.
};

struct KeyState {
  std::vector<std::uint64_t> offsets;  // Of its copies, rising.
  std::size_t settled_prefix = 0;      // So many of them are settled for good.
  bool is_stopped = false;             // Paused or parked, for certain.
  bool is_paused = false;              // By an operator, durably.
  bool may_dead_letter = false;        // An operator asked for it.
  broker::ConsumerNumber last_consumer;
  std::uint64_t last_fence = 0;
  std::uint64_t last_verb = 0;  // Its request.
};

struct Seeking {
  broker::RequestNumber request;
  std::optional<WallTime> time;
  broker::CursorNumber snapshot;
  std::optional<broker::TicketNumber> find;    // Of its time, until that is found.
  std::optional<broker::TicketNumber> ticket;  // Of the commit that does it.
  std::uint64_t end = 0;                       // What is visible by then.
  std::uint64_t asked_end = 0;                 // What was visible when it was asked for.
};

struct PartitionCopies {
  std::uint64_t start = 1;
  std::vector<Copy> copies;  // By offset.
  std::map<std::string, KeyState> keys;
  std::vector<std::uint64_t> live;  // Offsets with a running lease.
  std::uint64_t highest_fence = 0;
  std::uint64_t earlier_fence = 0;   // The highest before the last crash.
  bool is_shaky = false;             // Leases may have ended unseen.
  bool is_detached = false;          // The subscription is gone here.
  std::vector<Seeking> asked_seeks;  // Their times are being looked for.
  std::deque<Seeking> found_seeks;   // They begin in this order.
  std::optional<Seeking> seeking;
  std::vector<Copy> before_seek;   // While its commit is under way.
  bool has_doubtful_seek = false;  // One failed; whether it was stored is seen after a restart.

  bool has_seek() const { return seeking || !asked_seeks.empty() || !found_seeks.empty(); }
  Copy& copy(std::uint64_t offset) {
    if (offset >= copies.size()) copies.resize(offset + 1);
    return copies[offset];
  }
};

struct SubscriptionModel {
  std::uint32_t index = 0;  // In the plan.
  const SubscriptionPlan* plan = nullptr;
  bool exists = false;
  bool is_deleted = false;
  std::vector<PartitionCopies> partitions;

  bool wants(const LogEntry& entry) const {
    return plan->taste == Taste::all || (plan->taste == Taste::only_red) == entry.is_red;
  }
  bool is_ordered() const { return plan->config.enable_message_ordering; }
};

struct SnapshotModel {
  std::uint32_t subscription = 0;
  bool exists = false;
  std::vector<std::vector<Copy>> partitions;
};

struct ConsumerModel {
  broker::CursorNumber subscription;
  broker::CreditLimits limits;
  std::chrono::nanoseconds ack_deadline{};
  bool is_open = true;
  std::set<std::uint32_t> closed_in;  // Partitions.
  std::uint64_t live_messages = 0;
  std::uint64_t live_bytes = 0;
};

struct Arrival {                  // What a partition has to append: a publish, or a dead letter.
  broker::RequestNumber request;  // Of a publish.
  std::vector<Uid> uids;
  std::optional<broker::AckId> dead_letter;  // Where it comes from.
};

struct CommitModel {
  std::vector<std::uint64_t> offsets;
  std::vector<std::shared_ptr<const broker::MessageBatch>> batches;
  std::vector<Arrival> arrivals;
  std::vector<broker::CursorNumber> sought;
  bool is_stored = false;
  bool is_doubted = false;  // It failed, and nobody knows how.
};

struct PartitionModel {
  std::map<std::uint64_t, LogEntry> log;
  std::deque<Arrival> arrivals;
  std::map<std::uint64_t, CommitModel> commits;       // Under way, by ticket.
  std::map<std::uint64_t, std::uint64_t> answerable;  // Stored, by request: the first offset.
  std::uint64_t next = 1;         // After the last offset that was asked to be stored.
  std::uint64_t end_visible = 1;  // After the last one that is visible.
  std::uint64_t trimmed = 1;
  broker::MessageId last_id;
  bool has_gap = false;
};

}  // namespace ordo::simulation
