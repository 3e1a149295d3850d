// LogTrimmer: gives the space of messages that nobody needs back, whole tables at a time.
//
// A trim moves a partition's first offset, nothing more. Now and then this looks for the oldest
// message that some partition still needs, and drops the tables of the log that lie before it.
// All partitions share one log: a message that is needed keeps all that was stored after it.
//
// A partition that is erased is only marked as such by its commit; its rows go here, some at a
// time, and the mark with the last of them. Nothing is ever stored at its address again.
//
// Threads: one owner at a time; beside commits and reads.
// Bounds:  erase(): 4,000 rows at a time, in writes of 250: so long a commit waits at most.
// Cost:    one index lookup for each partition, and one write to the manifest if there is something
//          to drop.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/staged_commit.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

class LogTrimmer {
 public:
  // Writes to the log file, beside commits; it need not be synced. May add to the batch.
  using Write = std::function<rocksdb::Status(const Database&, rocksdb::WriteBatch&)>;

  explicit LogTrimmer(Write write) : write_(std::move(write)) {}

  // `table` as it is on the disk, `next_id` of the next commit. What is dropped is gone at once, so
  // a power cut must not undo the trim. True: there is more to drop, soon.
  Result<bool> run(const Database& database, const PartitionTable& table,
                   broker::MessageId next_id);

  // Erases some rows of partitions that were erased. Those of which nothing is left.
  Result<std::vector<broker::PartitionAddress>> erase(const Database& database,
                                                      const ErasedPartitions& partitions);

 private:
  struct Reached {  // Rows before are erased. Looking for them again would take long.
    std::string index;
    std::string state;
  };
  Status erase_index(const Database& database, const PartitionTable& table);
  Result<std::size_t> erase_some(const Database& database, broker::PartitionAddress partition,
                                 Reached& reached);

  Write write_;
  std::map<broker::PartitionAddress, broker::Offset> erased_;  // Index rows below are erased.
  std::map<broker::PartitionAddress, Reached> reached_;
};

}  // namespace ordo::store_rocksdb
