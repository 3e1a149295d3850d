// How the store's rows stand in the database: keys that sort as needed, values that prove
// themselves. docs/storage_format.md describes the same for people.
//
//   log     class, first message id, count     -> a whole MessageBatch with checksums
//   idx     topic, partition, first offset     -> where in the log, how many, when published
//   state   topic, partition, cursor, kind, .. -> a row of a cursor
//           topic, partition                   -> nothing: the partition is erased
//   meta    'C' catalog rows, 'P' partitions, 'S' the store itself
//   spill   topic, partition, cursor, lane, .. -> a chunk of offsets; not durable
//
// Numbers in keys are big endian, so that they sort; in values little endian.
//
// Threads: pure functions.
// Errors:  decoding returns data_loss (a sentence without names; the caller knows those).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ordo/broker/store.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

inline constexpr std::uint32_t kFormatVersion = 1;
// All topics share one retention class today; the byte is there so that others can be added.
inline constexpr std::uint8_t kRetentionClass = 1;

// ---------------------------------------------------------------------------------------- keys

std::string log_key(broker::MessageId first_id, std::uint32_t count);
std::string index_key(broker::PartitionAddress partition, broker::Offset first_offset);
std::string state_key(const broker::RowKey& key);
std::string catalog_key(const broker::CatalogKey& key);
std::string partition_key(broker::PartitionAddress partition);
std::string spill_key(const broker::SpillKey& key);
std::string store_key();

// Beginnings that many keys share.
std::string address_prefix(broker::PartitionAddress partition);
std::string cursor_prefix(broker::PartitionAddress partition, broker::CursorNumber cursor);
// In 'state', before all rows of the partition: they are erased, though they may still be there.
std::string erased_key(broker::PartitionAddress partition);
std::optional<broker::PartitionAddress> parse_erased_key(std::string_view key);
// The first key after all those that begin with `prefix`.
std::string end_of_prefix(std::string prefix);

inline constexpr char kCatalogMark = 'C';
inline constexpr char kPartitionMark = 'P';

std::optional<broker::Offset> index_key_offset(std::string_view key);
std::optional<broker::PartitionAddress> index_key_partition(std::string_view key);
std::optional<broker::RowKey> parse_state_key(std::string_view key);
std::optional<broker::CatalogKey> parse_catalog_key(std::string_view key);
std::optional<broker::PartitionAddress> parse_partition_key(std::string_view key);
struct LogKey {
  broker::MessageId first_id;
  std::uint32_t count = 0;
};
std::optional<LogKey> parse_log_key(std::string_view key);

// -------------------------------------------------------------------------------------- values

// Where a batch stands in the log. Offsets from previous_end to the batch's first never existed:
// so a batch that is missing before it is noticed. A repair puts a row without an id where messages
// were lost, and that was accepted.
struct IndexRow {
  broker::MessageId first_id;  // 0: these offsets are lost for good.
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  WallTime publish_time;
  broker::Offset previous_end;

  bool is_lost() const { return first_id == broker::MessageId(); }
};
std::string encode_index_row(const IndexRow& row);
std::optional<IndexRow> decode_index_row(std::string_view value);

std::string encode_partition_row(const broker::RecoveredPartition& row);
std::optional<broker::RecoveredPartition> decode_partition_row(std::string_view value);

// What a data directory is: its format, a random name, and how often it was opened.
struct StoreRow {
  std::uint32_t format = kFormatVersion;
  std::uint64_t directory_id = 0;
  std::uint64_t start_number = 0;
};
std::string encode_store_row(const StoreRow& row);
std::optional<StoreRow> decode_store_row(std::string_view value);

// The part of a log row before the bodies; the bodies are batch.bytes as they are.
std::string encode_log_header(broker::PartitionAddress partition, const broker::MessageBatch& batch,
                              broker::MessageId first_id);
// Whom a log row belongs to, if it is one at all. Not yet checked.
std::optional<broker::PartitionAddress> log_row_partition(std::string_view value);
// Checks the header's checksum, every bound, and every body against its checksum from publish.
Result<std::shared_ptr<broker::MessageBatch>> decode_log_row(std::string_view value,
                                                             broker::PartitionAddress partition);

}  // namespace ordo::store_rocksdb
