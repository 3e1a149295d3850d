#include "ordo/broker/cursor_rows.h"

#include <utility>

namespace ordo::broker {

RowKey row_key(const RowOwner& owner, RowKind kind, std::uint64_t position, std::string text) {
  return RowKey{owner.cursor, owner.partition, static_cast<std::uint8_t>(kind), position,
                std::move(text)};
}

std::string encode_number(std::uint64_t value) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return bytes;
}

std::optional<std::uint64_t> decode_number(std::string_view bytes) {
  if (bytes.size() != 8) return std::nullopt;
  return detail::load_little_endian(bytes.data(), 8);
}

RowKey hold_key(const RowOwner& owner, const HeldLaneRow& held) {
  const bool has_own_row = held.key.empty() || held.hold == LaneHold::data_loss;
  return row_key(owner, RowKind::held_lane, has_own_row ? held.offset.value() : 0, held.key);
}

std::uint64_t hold_value(const HeldLaneRow& held) {
  const auto hold = static_cast<std::uint64_t>(held.hold);
  return held.key.empty() ? hold : hold | (held.offset.value() << 8);
}

namespace {

HeldLaneRow read_held_row(const RowKey& key, std::uint64_t value) {
  const auto hold = static_cast<LaneHold>(value & 0xff);
  return {key.text, Offset(key.position > 0 ? key.position : value >> 8), hold,
          hold == LaneHold::data_loss && key.position == 0};
}

}  // namespace

CursorState read_cursor_rows(const std::map<RowKey, std::string>& rows, const RowOwner& owner) {
  CursorState state;
  const RowKey first{owner.cursor, owner.partition, 0, 0, {}};
  for (auto row = rows.lower_bound(first); row != rows.end(); ++row) {
    const RowKey& key = row->first;
    if (key.cursor != owner.cursor || key.partition != owner.partition) break;
    const std::optional<std::uint64_t> value = decode_number(row->second);
    if (!value) continue;
    switch (static_cast<RowKind>(key.kind)) {
      case RowKind::acked:
        if (*value > key.position) state.acked.emplace(key.position, *value);
        break;
      case RowKind::attempts:
        state.attempts.emplace(key.position, static_cast<std::uint32_t>(*value));
        break;
      case RowKind::delivered:
        state.delivered_below = Offset(*value);
        break;
      case RowKind::held_lane:
        state.held.push_back(read_held_row(key, *value));
        break;
    }
  }
  return state;
}

}  // namespace ordo::broker
