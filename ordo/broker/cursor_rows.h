// The rows in which a cursor (a subscription or a snapshot) keeps its place in a partition.
//
//   put_acked(batch, row_owner, Offset(0), Offset(17));     // everything below 17 is settled
//   CursorState state = read_cursor_rows(rows, owner);      // after a restart
//
// Kinds, and what their values hold (numbers are 8 bytes, lowest first):
//   1 acked      position = begin of an interval of settled offsets (0 for the prefix), value = end
//   2 attempts   position = offset, value = how often it may have been delivered
//   3 delivered  value = an offset: nothing at or above it has been delivered
//   4 held lane  text = key (or position = offset of a message without one), value = LaneHold in
//                the lowest byte, above it the offset of the head it is held for (0: for none);
//                what cannot be read has a row of its own: text = key and position = offset
//                (earlier versions wrote it in the row of the key: it is read, and written anew)
//
// Rows are only ever added to by settling, so any mix of old and new ones is sound: their union is
// what is settled.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/broker/ids.h"
#include "ordo/broker/store.h"

namespace ordo::broker {

enum class RowKind : std::uint8_t { acked = 1, attempts = 2, delivered = 3, held_lane = 4 };

// Why a lane is out of service. Parked and paused ones are written down, and so is every message
// of a key that cannot be read.
enum class LaneHold : std::uint8_t {
  none = 0,
  parked = 1,
  paused = 2,
  dead_letter_gone = 3,
  data_loss = 4,
};

// Whose rows: a cursor in a partition.
struct RowOwner {
  CursorNumber cursor;
  PartitionAddress partition;
};

RowKey row_key(const RowOwner& owner, RowKind kind, std::uint64_t position, std::string text = {});

std::string encode_number(std::uint64_t value);
std::optional<std::uint64_t> decode_number(std::string_view bytes);

struct HeldLaneRow {
  std::string key;  // Empty: a message without key.
  Offset offset;    // Of that message, or of the one that the key is held for; 0: of none.
  LaneHold hold = LaneHold::none;
  bool is_misplaced = false;  // Cannot be read, and is written where a pause of its key would be.
};

// The row that says so.
RowKey hold_key(const RowOwner& owner, const HeldLaneRow& held);
std::uint64_t hold_value(const HeldLaneRow& held);

// What the rows of one cursor in one partition say.
struct CursorState {
  std::map<std::uint64_t, std::uint64_t> acked;  // From begin to end; may touch and overlap.
  std::map<std::uint64_t, std::uint32_t> attempts;
  Offset delivered_below;
  std::vector<HeldLaneRow> held;
};

// Values that are not ours are passed over: what they settled is delivered again.
CursorState read_cursor_rows(const std::map<RowKey, std::string>& rows, const RowOwner& owner);

}  // namespace ordo::broker
