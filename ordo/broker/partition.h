// Partition: the messages of some keys of one topic, and what each subscription has done of them.
// The core of the broker: order, one in flight, redelivery in place, and nothing else.
//
//   Partition partition(start, options);
//   Effects effects;
//   partition.step(Publish{request, bodies}, now, effects);    // -> Commit
//   partition.step(Committed{ticket, {}}, now, effects);       // -> PublishReply, Deliver
//   partition.run_due(now, effects);                           // leases, back-off, retention
//
// No thread, clock, I/O or randomness inside: the same inputs give the same effects.
//
// Threads: one owner.
// Bounds:  PartitionOptions. A publish beyond them is refused with resource_exhausted; tails of
//          blocked keys leave memory (WriteSpill); the rest of a backlog stays in the store.
// Cost:    O(1) for each message and step, O(log leases) where a deadline is involved, whatever
//          waits behind blocked keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ordo/broker/partition_io.h"

namespace ordo::broker {

struct PartitionOptions {
  std::size_t pending_publish_bytes_max = 64u << 20;  // Accepted and not yet committed.
  std::size_t cache_bytes_max = 32u << 20;            // Newest messages, kept to spare reads.
  std::size_t tail_bytes_max = 16u << 20;  // Tails of blocked keys in memory; beyond: spilled.
  std::size_t ready_bytes_max = 8u << 20;  // Read ahead for a subscription's consumers.
  std::size_t leases_max = 100'000;        // Of one subscription here, whatever its credit.
  std::size_t lease_bytes_max = 64u << 20;
  std::size_t lanes_max = 1'000'000;      // Keys of one subscription with something unsettled.
  std::size_t spill_chunk_offsets = 512;  // Offsets in one spilled chunk.
  std::size_t read_messages_max = 1'000;  // Of one Read effect.
  std::size_t read_bytes_max = 1u << 20;
  std::size_t deliver_messages_max = 1'000;  // Of one Deliver effect.
  std::size_t deliver_bytes_max = 1u << 20;
  std::uint64_t delivered_ahead = 1'000;  // Step of the durable "delivered below" mark.
};

// What a partition begins with, from Recovered, or empty for a new one.
struct PartitionStart {
  PartitionAddress address;
  std::uint64_t start_number = 1;
  RecoveredPartition log;
  std::optional<std::chrono::nanoseconds> topic_retention;
  std::vector<SubscriptionSetup> subscriptions;
  std::vector<CursorNumber> snapshots;
  std::map<RowKey, std::string> rows;  // Of this partition: subscriptions' and snapshots'.
};

class Partition {
 public:
  Partition(PartitionStart start, const PartitionOptions& options, Now now);
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  // Appends what is to be done to `effects`.
  void step(Input&& input, Now now, Effects& effects);

  // What is due by `now`: expired leases, back-offs that end, retention.
  void run_due(Now now, Effects& effects);
  std::optional<TimePoint> next_due() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace ordo::broker
