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

#include <map>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/staged_commit.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

class LogTrimmer {
 public:
  explicit LogTrimmer(const Database& database) : database_(database) {}

  // `table` as it is now, `next_id` of the next commit.
  Status run(const PartitionTable& table, broker::MessageId next_id);

 private:
  Status erase_index(const PartitionTable& table);

  const Database& database_;
  std::map<broker::PartitionAddress, broker::Offset> erased_;  // Index rows below are erased.
};

}  // namespace ordo::store_rocksdb
