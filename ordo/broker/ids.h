// The numbers of the broker, each a type of its own.
//
// Names (projects/p/topics/t) are for people and the catalog; inside, a topic is a number that is
// never used twice, a partition is a topic's number and an index, and a message is an offset in
// its partition.
//
// Threads: plain values.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string_view>

#include "ordo/core/clock.h"
#include "ordo/core/hash.h"
#include "ordo/core/id.h"

namespace ordo::broker {

using TopicNumber = Id<struct TopicNumberTag, std::uint32_t>;

// A cursor is a position in every partition of a topic: what of it is acknowledged. A subscription
// has one, and a snapshot is one that stands still. Never used twice.
using CursorNumber = Id<struct CursorNumberTag, std::uint32_t>;

// Whoever takes deliveries: a stream, a pull, a handler in the process. Lives until closed.
using ConsumerNumber = Id<struct ConsumerNumberTag, std::uint64_t>;

// Of a message in its partition; the first is 1. Rises by one, but for messages whose publish
// failed: those offsets never exist.
using Offset = Id<struct OffsetTag, std::uint64_t, IdKind::sequence>;

// Unique in a data directory for ever, rising in the order of commits, hence within a key.
using MessageId = Id<struct MessageIdTag, std::uint64_t, IdKind::sequence>;

// Of one delivery. Rises with every delivery of a subscription in a partition, hence of a key, also
// across restarts: the start number of the broker fills its upper bits.
using Fence = Id<struct FenceTag, std::uint64_t, IdKind::sequence>;

// Whom an answer is for; chosen by the caller.
using RequestNumber = Id<struct RequestNumberTag, std::uint64_t, IdKind::sequence>;

// An effect that comes back as an input: a commit, a read, a spill. Unique in its partition.
using TicketNumber = Id<struct TicketNumberTag, std::uint64_t, IdKind::sequence>;

struct PartitionAddress {
  TopicNumber topic;
  std::uint32_t index = 0;

  friend auto operator<=>(const PartitionAddress&, const PartitionAddress&) = default;
};

// Which of a topic's partitions a key belongs to, for ever. Messages without a key go to any.
inline std::uint32_t partition_of(std::string_view key, std::uint32_t partition_count) {
  return static_cast<std::uint32_t>(hash_to_bucket(hash_bytes(key), partition_count));
}

// What an ack id stands for: one delivery of one message.
struct AckId {
  CursorNumber subscription;
  std::uint32_t partition = 0;
  Offset offset;
  Fence fence;

  friend auto operator<=>(const AckId&, const AckId&) = default;
};

// The two times a step needs: for deadlines, and for what is written down.
struct Now {
  TimePoint steady;
  WallTime wall;
};

}  // namespace ordo::broker
