#include "ordo/adapters/store_rocksdb/row_codec.h"

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ordo/adapters/store_rocksdb/bytes.h"
#include "ordo/core/hash.h"

namespace ordo::store_rocksdb {
namespace {

using broker::CatalogKey;
using broker::CursorNumber;
using broker::MessageBatch;
using broker::MessageId;
using broker::Offset;
using broker::PartitionAddress;
using broker::RowKey;
using broker::TopicNumber;

// Entries are copied as they lie in memory.
static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<MessageBatch::Entry> &&
              sizeof(MessageBatch::Entry) == 5 * sizeof(std::uint32_t));

constexpr std::size_t kAddressSize = 8;
constexpr std::size_t kKeySizeMax = 4096;        // No key of ours is longer.
constexpr std::uint64_t kHeaderSeed = 0x6c6f67;  // Of the checksum of a log row's header.

void put_address(std::string& out, PartitionAddress partition) {
  put_key<std::uint32_t>(out, partition.topic.value());
  put_key<std::uint32_t>(out, partition.index);
}

PartitionAddress take_address(ByteReader& in) {
  PartitionAddress partition;
  partition.topic = TopicNumber(in.key<std::uint32_t>());
  partition.index = in.key<std::uint32_t>();
  return partition;
}

std::int64_t nanoseconds_of(WallTime time) {
  return time.time_since_epoch().count();
}
WallTime time_of(std::int64_t nanoseconds) {
  return WallTime(std::chrono::nanoseconds(nanoseconds));
}

Error damaged(std::string what) {
  return {ErrorCode::data_loss, std::move(what)};
}

}  // namespace

std::string log_key(MessageId first_id, std::uint32_t count) {
  std::string key(1, static_cast<char>(kRetentionClass));
  put_key<std::uint64_t>(key, first_id.value());
  put_key<std::uint32_t>(key, count);
  return key;
}

std::string index_key(PartitionAddress partition, Offset first_offset) {
  std::string key = address_prefix(partition);
  put_key<std::uint64_t>(key, first_offset.value());
  return key;
}

std::string address_prefix(PartitionAddress partition) {
  std::string key;
  put_address(key, partition);
  return key;
}

std::string cursor_prefix(PartitionAddress partition, CursorNumber cursor) {
  std::string key = address_prefix(partition);
  put_key<std::uint32_t>(key, cursor.value());
  return key;
}

std::string erased_key(PartitionAddress partition) {
  return address_prefix(partition);
}

std::string state_key(const RowKey& row) {
  std::string key = cursor_prefix(row.partition, row.cursor);
  put_key<std::uint8_t>(key, row.kind);
  put_key<std::uint64_t>(key, row.position);
  return key += row.text;
}

std::string catalog_key(const CatalogKey& row) {
  std::string key(1, kCatalogMark);
  put_key<std::uint8_t>(key, row.kind);
  return key += row.name;
}

std::string partition_key(PartitionAddress partition) {
  std::string key(1, kPartitionMark);
  put_address(key, partition);
  return key;
}

std::string spill_key(const broker::SpillKey& row) {
  std::string key = cursor_prefix(row.partition, row.cursor);
  put_key<std::uint64_t>(key, row.lane);
  put_key<std::uint64_t>(key, row.chunk);
  return key;
}

std::string store_key() {
  return "S";
}

std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff)
    prefix.pop_back();
  if (prefix.empty()) return std::string(kKeySizeMax, '\xff');
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

std::optional<PartitionAddress> index_key_partition(std::string_view key) {
  if (key.size() != kAddressSize + sizeof(std::uint64_t)) return std::nullopt;
  ByteReader in(key);
  return take_address(in);
}

std::optional<Offset> index_key_offset(std::string_view key) {
  if (key.size() != kAddressSize + sizeof(std::uint64_t)) return std::nullopt;
  ByteReader in(key.substr(kAddressSize));
  return Offset(in.key<std::uint64_t>());
}

std::optional<PartitionAddress> parse_erased_key(std::string_view key) {
  ByteReader in(key);
  const PartitionAddress partition = take_address(in);
  if (!in.ended()) return std::nullopt;
  return partition;
}

std::optional<RowKey> parse_state_key(std::string_view key) {
  ByteReader in(key);
  RowKey row;
  row.partition = take_address(in);
  row.cursor = CursorNumber(in.key<std::uint32_t>());
  row.kind = in.key<std::uint8_t>();
  row.position = in.key<std::uint64_t>();
  if (!in.ok()) return std::nullopt;
  row.text = in.rest();
  return row;
}

std::optional<CatalogKey> parse_catalog_key(std::string_view key) {
  if (!key.starts_with(kCatalogMark)) return std::nullopt;
  ByteReader in(key.substr(1));
  CatalogKey row;
  row.kind = in.key<std::uint8_t>();
  if (!in.ok()) return std::nullopt;
  row.name = in.rest();
  return row;
}

std::optional<PartitionAddress> parse_partition_key(std::string_view key) {
  if (!key.starts_with(kPartitionMark)) return std::nullopt;
  ByteReader in(key.substr(1));
  const PartitionAddress partition = take_address(in);
  if (!in.ended()) return std::nullopt;
  return partition;
}

std::optional<LogKey> parse_log_key(std::string_view key) {
  ByteReader in(key);
  if (in.key<std::uint8_t>() != kRetentionClass) return std::nullopt;
  LogKey parsed;
  parsed.first_id = MessageId(in.key<std::uint64_t>());
  parsed.count = in.key<std::uint32_t>();
  if (!in.ended()) return std::nullopt;
  return parsed;
}

std::string encode_index_row(const IndexRow& row) {
  std::string value;
  put<std::uint64_t>(value, row.first_id.value());
  put<std::uint32_t>(value, row.count);
  put<std::uint64_t>(value, row.bytes);
  put<std::int64_t>(value, nanoseconds_of(row.publish_time));
  put<std::uint64_t>(value, row.previous_end.value());
  return value;
}

std::optional<IndexRow> decode_index_row(std::string_view value) {
  ByteReader in(value);
  IndexRow row;
  row.first_id = MessageId(in.take<std::uint64_t>());
  row.count = in.take<std::uint32_t>();
  row.bytes = in.take<std::uint64_t>();
  row.publish_time = time_of(in.take<std::int64_t>());
  row.previous_end = Offset(in.take<std::uint64_t>());
  if (!in.ended() || row.count == 0) return std::nullopt;
  return row;
}

std::string encode_partition_row(const broker::RecoveredPartition& row) {
  std::string value;
  put<std::uint64_t>(value, row.first.value());
  put<std::uint64_t>(value, row.end.value());
  put<std::int64_t>(value, nanoseconds_of(row.last_publish_time));
  return value;
}

std::optional<broker::RecoveredPartition> decode_partition_row(std::string_view value) {
  ByteReader in(value);
  broker::RecoveredPartition row;
  row.first = Offset(in.take<std::uint64_t>());
  row.end = Offset(in.take<std::uint64_t>());
  row.last_publish_time = time_of(in.take<std::int64_t>());
  if (!in.ended()) return std::nullopt;
  return row;
}

std::string encode_store_row(const StoreRow& row) {
  std::string value;
  put<std::uint32_t>(value, row.format);
  put<std::uint64_t>(value, row.directory_id);
  put<std::uint64_t>(value, row.start_number);
  return value;
}

std::optional<StoreRow> decode_store_row(std::string_view value) {
  ByteReader in(value);
  StoreRow row;
  row.format = in.take<std::uint32_t>();
  if (in.ok() && row.format != kFormatVersion) return row;  // What follows is not known here.
  row.directory_id = in.take<std::uint64_t>();
  row.start_number = in.take<std::uint64_t>();
  if (!in.ended()) return std::nullopt;
  return row;
}

std::string encode_log_header(PartitionAddress partition, const MessageBatch& batch,
                              MessageId first_id) {
  const std::size_t entries_size = batch.entries.size() * sizeof(MessageBatch::Entry);
  std::string header;
  header.reserve(64 + entries_size);
  put_address(header, partition);
  put<std::uint64_t>(header, batch.first_offset.value());
  put<std::uint64_t>(header, first_id.value());
  put<std::int64_t>(header, nanoseconds_of(batch.publish_time));
  put<std::uint64_t>(header, batch.bytes.size());
  put<std::uint32_t>(header, static_cast<std::uint32_t>(batch.entries.size()));
  const std::size_t at = header.size();
  header.resize(at + entries_size);
  std::memcpy(header.data() + at, batch.entries.data(), entries_size);
  put<std::uint64_t>(header, hash_bytes(header, kHeaderSeed));
  return header;
}

std::optional<PartitionAddress> log_row_partition(std::string_view value) {
  ByteReader in(value);
  const PartitionAddress partition = take_address(in);
  if (!in.ok()) return std::nullopt;
  return partition;
}

Result<std::shared_ptr<MessageBatch>> decode_log_row(std::string_view value,
                                                     PartitionAddress partition) {
  ByteReader in(value);
  const PartitionAddress stored = take_address(in);
  auto batch = std::make_shared<MessageBatch>();
  batch->first_offset = Offset(in.take<std::uint64_t>());
  batch->first_id = MessageId(in.take<std::uint64_t>());
  batch->publish_time = time_of(in.take<std::int64_t>());
  const auto bytes_size = in.take<std::uint64_t>();
  const auto count = in.take<std::uint32_t>();
  const std::string_view entries = in.bytes(std::size_t{count} * sizeof(MessageBatch::Entry));
  const std::size_t header_size = value.size() - in.rest().size();
  const auto checksum = in.take<std::uint64_t>();
  if (!in.ok() || in.rest().size() != bytes_size) return damaged("a log row has the wrong size");
  if (checksum != hash_bytes(value.substr(0, header_size), kHeaderSeed))
    return damaged("the header of a log row does not match its checksum");
  if (stored != partition) return damaged("a log row belongs to another partition");
  batch->entries.resize(count);
  std::memcpy(batch->entries.data(), entries.data(), entries.size());
  batch->bytes = in.rest();
  for (std::uint32_t i = 0; i < count; ++i) {
    const MessageBatch::Entry& entry = batch->entries[i];
    const auto inside = [&](std::uint64_t at, std::uint64_t size) {
      return at <= bytes_size && size <= bytes_size - at;
    };
    if (!inside(entry.body_at, entry.body_size) || !inside(entry.key_at, entry.key_size))
      return damaged("a message lies outside of its log row");
    const std::string_view body =
        std::string_view(batch->bytes).substr(entry.body_at, entry.body_size);
    if (broker::body_checksum(body) != entry.checksum) {
      return damaged("the message at offset " + std::to_string((batch->first_offset + i).value()) +
                     " does not match its checksum from publish");
    }
  }
  return batch;
}

}  // namespace ordo::store_rocksdb
