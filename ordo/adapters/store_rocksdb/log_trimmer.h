// LogTrimmer: gives the space of messages that nobody needs back, whole tables at a time.
//
// A trim moves a partition's first offset, nothing more. Now and then this looks for the oldest
// message that some partition still needs, and drops the tables of the log that lie before it.
// All partitions share one log: a message that is needed keeps all that was stored after it.
//
// Threads: one owner at a time; beside commits and reads.
// Cost:    one index lookup for each partition, and one write to the manifest if there is something
//          to drop.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/staged_commit.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

class LogTrimmer {
 public:
  // Writes to the log file, beside commits; it need not be synced.
  using Write = std::function<rocksdb::Status(const Database&, rocksdb::WriteBatch&)>;

  explicit LogTrimmer(Write write) : write_(std::move(write)) {}

  // `table` as it is on the disk, `next_id` of the next commit. What is dropped is gone at once, so
  // a power cut must not undo the trim. True: there is more to drop, soon.
  Result<bool> run(const Database& database, const PartitionTable& table,
                   broker::MessageId next_id);

 private:
  Status erase_index(const Database& database, const PartitionTable& table);

  Write write_;
  std::map<broker::PartitionAddress, broker::Offset> erased_;  // Index rows below are erased.
};

}  // namespace ordo::store_rocksdb
