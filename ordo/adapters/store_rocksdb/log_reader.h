// LogReader: messages out of the database, checked: the index says where, the log row proves what.
//
//   LogReader reader(database);
//   Result<broker::ReadBatches> got = reader.read(partition, state, from, 1'000, 1 << 20);
//
// Threads: any thread; nothing of its own.
// Cost:    one seek in the index and one lookup for each batch.
// Errors:  data_loss naming the partition and the offsets: a batch that is missing although it was
//          stored, does not match a checksum, or is not where the index says.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/row_codec.h"
#include "ordo/broker/store.h"

namespace ordo::store_rocksdb {

struct IndexedBatch {
  broker::Offset first_offset;
  IndexRow row;

  broker::Offset end() const { return first_offset + row.count; }
};

class LogReader {
 public:
  explicit LogReader(const Database& database) : database_(database) {}

  // `state` as it was when the read began.
  Result<broker::ReadBatches> read(broker::PartitionAddress partition,
                                   const broker::RecoveredPartition& state, broker::Offset from,
                                   std::size_t messages_max, std::size_t bytes_max) const;

  // The first offset whose message was published at `time` or later; the end if there is none.
  Result<broker::Offset> find_time(broker::PartitionAddress partition,
                                   const broker::RecoveredPartition& state, WallTime time) const;

  // The batch that holds `offset`, or the first one after it; nothing if there is none.
  Result<std::optional<IndexedBatch>> batch_at(broker::PartitionAddress partition,
                                               broker::Offset offset) const;
  // As batch_at(), but skips what is lost for good.
  Result<std::optional<IndexedBatch>> kept_batch_at(broker::PartitionAddress partition,
                                                    broker::Offset offset) const;
  // The last one; nothing if there is none.
  Result<std::optional<IndexedBatch>> last_batch(broker::PartitionAddress partition) const;

  Result<std::shared_ptr<broker::MessageBatch>> fetch(broker::PartitionAddress partition,
                                                      const IndexedBatch& at) const;

 private:
  const Database& database_;
};

// "partition 3 of topic 7, offsets 12 to 15"
std::string place(broker::PartitionAddress partition, broker::Offset first, broker::Offset end);

}  // namespace ordo::store_rocksdb
