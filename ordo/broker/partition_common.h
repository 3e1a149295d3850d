// What all subscriptions of a partition share: its log as far as it is visible, the messages in
// memory, the tickets that are out, and the step that is being made.
//
//   TicketNumber ticket = common.tickets.issue({TicketUse::Kind::read_lane, cursor, lane, serial});
//   step.effects.push_back(Read{ticket, offset, 1, bytes_max});
//   ...
//   std::optional<TicketUse> use = common.tickets.redeem(ticket);
//
// Threads: one owner.
// Bounds:  as many tickets as effects are under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "ordo/broker/ids.h"
#include "ordo/broker/lane_tail.h"
#include "ordo/broker/message_cache.h"
#include "ordo/broker/partition.h"
#include "ordo/broker/partition_io.h"

namespace ordo::broker {

// One call of Partition::step() or run_due().
struct Step {
  Now now;
  Effects& effects;

  template <class T>
  void emit(T&& effect) {
    effects.emplace_back(std::forward<T>(effect));
  }
};

// What a ticket was given out for.
struct TicketUse {
  enum class Kind : std::uint8_t {
    append,          // Commit of a publish or a dead letter of others.
    rows,            // Commit of a subscription's rows.
    seek,            // Commit of a seek.
    snapshot,        // Commit of a snapshot.
    housekeeping,    // Commit nobody waits for.
    read_cursor,     // Read for a subscription's cursor.
    read_lane,       // Read for the head of a lane.
    read_snapshot,   // Read for the publish time of a snapshot.
    read_stats,      // Read for the publish time of what is oldest in a subscription.
    read_peek,       // Read for somebody who only looks.
    spill,           // ReadSpill for a lane.
    find_retention,  // FindTime for a subscription's retention.
    find_seek,       // FindTime for a seek.
    find_kept,       // FindTime for what is kept although it is acknowledged.
    dead_letter,     // SendDeadLetter of a lane.
  };
  Kind kind = Kind::housekeeping;
  CursorNumber cursor;
  std::uint32_t lane = kNoIndex;
  std::uint64_t serial = 0;  // Of the lane, or of what is waited for.
  Offset offset = {};        // What is read.
};

class Tickets {
 public:
  TicketNumber issue(TicketUse use) {
    ++last_;
    uses_.emplace(last_.value(), use);
    return last_;
  }
  std::optional<TicketUse> redeem(TicketNumber ticket) {
    const auto found = uses_.find(ticket.value());
    if (found == uses_.end()) return std::nullopt;
    const TicketUse use = found->second;
    uses_.erase(found);
    return use;
  }

 private:
  TicketNumber last_;
  std::unordered_map<std::uint64_t, TicketUse> uses_;
};

struct PartitionCommon {
  PartitionCommon(PartitionAddress partition, std::uint64_t start, const PartitionOptions& limits)
      : address(partition),
        start_number(start),
        options(limits),
        cache(limits.cache_bytes_max, limits.ready_bytes_max),
        tails(limits.tail_bytes_max, limits.spill_chunk_offsets) {}

  PartitionAddress address;
  std::uint64_t start_number;
  PartitionOptions options;
  Offset first = Offset(1);  // Messages below are gone.
  Offset end = Offset(1);    // Behind the last committed message.
  MessageCache cache;
  TailPool tails;
  Tickets tickets;
};

}  // namespace ordo::broker
