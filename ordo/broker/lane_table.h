// LaneTable: the lanes of a subscription in a partition, and the messages at their heads.
//
//   std::uint32_t lane = lanes.find("user-1");
//   if (lane == kNoIndex) lane = lanes.open("user-1");
//   std::uint32_t item = lanes.append_item(lane, offset);   // next in line, or first in the lane
//   lanes.ready().push_back(lane);
//   lanes.remove_item(item);
//   lanes.erase(lane);
//
// A lane is all that is unsettled and known under one ordering key: items, which are or were
// delivered, then a tail of offsets. A message without key has a lane to itself that no key leads
// to, so that leases, back-off and failure policies are the same for both.
//
// Threads: one owner.
// Bounds:  a lane takes about 200 bytes and an item 80; as many as are unsettled and known. Memory
//          is reused and stays at its peak; a key without anything waiting has no lane.
// Cost:    O(1) each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/broker/cursor_rows.h"
#include "ordo/broker/ids.h"
#include "ordo/broker/lane_tail.h"
#include "ordo/broker/partition_io.h"
#include "ordo/core/clock.h"
#include "ordo/lane/flat_index.h"
#include "ordo/lane/slab.h"

namespace ordo::broker {

// What the head of a lane waits for, beside consumers and acks.
enum class LanePhase : std::uint8_t {
  open,            // Nothing: it may be delivered.
  loading,         // A message, or a chunk of its tail, is being read.
  backoff,         // Its due time.
  storing,         // A commit: of attempts.
  dead_lettering,  // The dead letter is on its way.
};

enum class Failure : std::uint8_t { none, nack, expired, stream_lost, unseen, unreadable };

// A message that is delivered or was, and is not settled.
struct Item {
  Offset offset;
  Fence fence;   // Of its newest delivery; zero: none, or void.
  MessageId id;  // Zero until it is delivered.
  std::uint32_t lane = kNoIndex;
  std::uint32_t previous = kNoIndex;
  std::uint32_t next = kNoIndex;
  std::uint32_t place = 0;  // Among the deadlines, while leased.
  std::uint32_t consumer = kNoIndex;
  std::uint32_t size = 0;
  std::uint32_t deliveries = 0;      // Attempts: made and not lost, or maybe made before a restart.
  std::uint32_t asked_attempts = 0;  // Deliveries up to this one are being written down,
  std::uint32_t stored_attempts = 0;  // and up to this one they are.
  std::uint32_t failures = 0;         // Nacks and expiries.
  TimePoint failing_since;            // Valid when it has failures.
  bool is_leased = false;
  bool is_touched = false;    // Its lease was heard of: an ack or a changed deadline.
  bool has_row = false;       // Of its attempts.
  bool is_condemned = false;  // To be dead-lettered by an operator.
};

class LaneList;

struct Lane {
  std::string key;  // Empty: a single message without one.
  std::uint64_t serial = 0;
  std::uint32_t hash = 0;
  std::uint32_t next = kNoIndex;  // In the list it is in.
  std::uint32_t previous = kNoIndex;
  std::uint32_t place = 0;  // Among the back-offs.
  std::uint32_t first_item = kNoIndex;
  std::uint32_t last_item = kNoIndex;
  std::uint32_t leased_count = 0;
  std::uint32_t consumer = kNoIndex;  // The last one it was delivered to.
  LanePhase phase = LanePhase::open;
  LaneHold hold = LaneHold::none;
  Offset held_for;  // The head that it is parked for, or that cannot be read; 0: none.
  Failure last_failure = Failure::none;
  bool is_taken = false;          // Exists.
  bool is_chunk_loading = false;  // A chunk of its tail is being read.
  LaneList* list = nullptr;       // The one it is in.
  TimePoint head_since;
  LaneTail tail;
};

// Why the head of a lane does not go.
BlockReason reason_of(const Lane& lane);

class LaneTable;

// Lanes in a row; each is in one list at most.
class LaneList {
 public:
  explicit LaneList(LaneTable& lanes) : lanes_(lanes) {}

  bool empty() const { return first_ == kNoIndex; }
  std::uint32_t front() const { return first_; }
  std::size_t count() const { return count_; }

  // REQUIRES: the lane is in no list.
  void push_back(std::uint32_t lane);
  void push_front(std::uint32_t lane);
  // REQUIRES: the lane is in this list.
  void move_to_front(std::uint32_t lane);
  void remove(std::uint32_t lane);

 private:
  LaneTable& lanes_;
  std::uint32_t first_ = kNoIndex;
  std::uint32_t last_ = kNoIndex;
  std::size_t count_ = 0;
};

class LaneTable {
 public:
  LaneTable() = default;
  LaneTable(const LaneTable&) = delete;
  LaneTable& operator=(const LaneTable&) = delete;

  std::uint32_t find(std::string_view key) const { return find(hash_of_key(key), key); }
  std::uint32_t find(std::uint32_t hash, std::string_view key) const {
    return by_key_.find(hash, [&](std::uint32_t lane) { return lanes_[lane].key == key; });
  }
  static std::uint32_t hash_of_key(std::string_view key) {
    return static_cast<std::uint32_t>(hash_bytes(key));
  }

  // REQUIRES: `key` has no lane. An empty key: a lane no key leads to.
  std::uint32_t open(std::uint32_t hash, std::string_view key, TimePoint now);
  // It is another lane for whoever remembers its serial.
  void renew_serial(std::uint32_t lane) { lanes_[lane].serial = next_serial_++; }
  // REQUIRES: the lane has no items, an empty tail, and is in no list.
  void erase(std::uint32_t lane);

  Lane& operator[](std::uint32_t lane) { return lanes_[lane]; }
  const Lane& operator[](std::uint32_t lane) const { return lanes_[lane]; }
  Item& item(std::uint32_t index) { return items_[index]; }
  const Item& item(std::uint32_t index) const { return items_[index]; }

  std::uint32_t append_item(std::uint32_t lane, Offset offset);
  void remove_item(std::uint32_t item);
  std::uint32_t find_item(Offset offset) const {
    return by_offset_.find(hash_of_offset(offset),
                           [&](std::uint32_t item) { return items_[item].offset == offset; });
  }

  // The first item that is not leased, or kNoIndex.
  std::uint32_t next_item(const Lane& lane) const;

  std::size_t lane_count() const { return lane_count_; }
  std::size_t key_count() const { return by_key_.count(); }
  std::size_t item_count() const { return item_count_; }
  std::size_t memory_bytes() const;

  // Lanes have indexes below; not all of them exist.
  std::uint32_t lane_index_end() const { return lanes_.peak_count(); }

 private:
  static std::uint32_t hash_of_offset(Offset offset) {
    return static_cast<std::uint32_t>(hash_of(offset.value()));
  }

  Slab<Lane> lanes_;
  Slab<Item> items_;
  FlatIndex by_key_;
  FlatIndex by_offset_;
  std::size_t lane_count_ = 0;
  std::size_t item_count_ = 0;
  std::uint64_t next_serial_ = 1;
};

}  // namespace ordo::broker
