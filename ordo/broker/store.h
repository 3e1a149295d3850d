// Store: where the broker keeps what must not be lost. The port; stores are behind it.
//
//   Result<Recovered> recovered = store.recover();      // once, first
//   CommitBatch batch;
//   batch.push_back(Append{address, messages});
//   batch.push_back(PutRow{row_key, value});
//   Status stored = store.commit(batch);                // all of it or nothing; then ids are set
//   store.read(address, Offset(1), 1'000, 1 << 20);     // any thread
//
// A store knows rows and messages, not what they mean: what an acknowledged interval is, which
// message a key waits for and when something may be forgotten is decided above, once.
//
// Threads: recover() first, alone. commit() and spill writes: one caller at a time (the committer).
//          read(), find_time(), read_spill() and stats(): any thread, also beside commit().
// Errors:  commit(): resource_exhausted: definitely nothing of it was stored, and it may be tried
//          again later (no space). Any other code: it is not known whether it was stored, or known
//          only after a restart; the store takes no commit any more (failed_precondition) until it
//          is opened again. Reads: data_loss where stored bytes do not match their checksum.
// The contract suite tests/support/store_contract.h holds every store to this.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ordo/broker/ids.h"
#include "ordo/broker/message.h"
#include "ordo/core/result.h"

namespace ordo::broker {

// A row of a cursor (subscription or snapshot) in a partition.
struct RowKey {
  CursorNumber cursor;
  PartitionAddress partition;
  std::uint8_t kind = 0;       // Chosen above: acked interval, attempts, parked, ...
  std::uint64_t position = 0;  // Mostly an offset. Rows of a kind are ordered by it, then by text.
  std::string text;            // Mostly empty; an ordering key.

  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

// A row of the catalog: a topic, a subscription, a snapshot, a setting of the broker itself.
struct CatalogKey {
  std::uint8_t kind = 0;
  std::string name;

  friend auto operator<=>(const CatalogKey&, const CatalogKey&) = default;
};

struct Append {
  PartitionAddress partition;
  std::shared_ptr<MessageBatch>
      batch;  // commit() sets first_id. first_offset >= the partition's end.
};
struct PutRow {
  RowKey key;
  std::string value;
};
struct EraseRow {
  RowKey key;
};
struct EraseRows {  // All rows of a cursor in a partition.
  CursorNumber cursor;
  PartitionAddress partition;
};
struct PutCatalog {
  CatalogKey key;
  std::string value;
};
struct EraseCatalog {
  CatalogKey key;
};
struct Trim {  // Nobody needs messages below `before` any more: they may vanish now or later.
  PartitionAddress partition;
  Offset before;
};
// Messages and rows of every cursor in it. REQUIRES: nothing is stored at that address ever after.
// (Numbers of topics are never given twice.)
struct ErasePartition {
  PartitionAddress partition;
};

using CommitOp = std::variant<Append, PutRow, EraseRow, EraseRows, PutCatalog, EraseCatalog, Trim,
                              ErasePartition>;
using CommitBatch = std::vector<CommitOp>;

// What the store knows of a partition when it opens.
struct RecoveredPartition {
  Offset first = Offset(1);  // Messages below are gone (trimmed).
  Offset end = Offset(1);    // The offset after the last message ever stored.
  WallTime last_publish_time;
};

struct Recovered {
  std::uint64_t start_number =
      1;  // How often this directory was opened, this time included. Durable.
  std::map<CatalogKey, std::string> catalog;
  std::map<PartitionAddress, RecoveredPartition> partitions;
  std::map<RowKey, std::string> rows;
};

// The batches that hold messages at or after the offset asked for, in order; gaps between them do
// not exist. `next`: where to read on; == the offset asked for when there is nothing (yet).
struct ReadBatches {
  std::vector<std::shared_ptr<const MessageBatch>> batches;
  Offset next;
};

// A piece of the tail of a blocked key, put out of memory. Not durable: gone at restart.
struct SpillKey {
  CursorNumber cursor;
  PartitionAddress partition;
  std::uint64_t lane = 0;   // Of the key; chosen by the partition.
  std::uint64_t chunk = 0;  // Rises within the lane.

  friend auto operator<=>(const SpillKey&, const SpillKey&) = default;
};

struct StoreStats {
  std::uint64_t commits = 0;
  std::uint64_t committed_bytes = 0;
  std::uint64_t syncs = 0;
  std::uint64_t messages = 0;    // Stored and not trimmed, roughly.
  std::uint64_t disk_bytes = 0;  // Used by the store.
  std::uint64_t disk_free_bytes = 0;
  bool is_full = false;  // Appends are refused for want of space.
  std::string failure;   // Why no commit is taken any more; empty while healthy.
};

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // What an earlier process left. Drops all spilled chunks.
  virtual Result<Recovered> recover() = 0;

  // Writes all ops, in their order, or none. Durable on return as the store's policy says.
  virtual Status commit(CommitBatch& batch) = 0;

  // At least one batch if there is any at or after `from`, then more up to both limits.
  virtual Result<ReadBatches> read(PartitionAddress partition, Offset from,
                                   std::size_t messages_max, std::size_t bytes_max) = 0;

  // The first offset whose message was published at `time` or later; the end if there is none.
  virtual Result<Offset> find_time(PartitionAddress partition, WallTime time) = 0;

  // Spilled chunks: bytes in, the same bytes out, until erased. Reading leaves the chunk; one that
  // is not there is not_found. ErasePartition erases those of the partition; EraseRows none, for
  // chunks written after it was asked for may be there when it is performed.
  virtual Status write_spill(const SpillKey& key, std::string_view bytes) = 0;
  virtual Result<std::string> read_spill(const SpillKey& key) = 0;
  virtual Status erase_spill(const SpillKey& first, std::uint64_t chunk_count) = 0;

  virtual StoreStats stats() const = 0;
};

}  // namespace ordo::broker
