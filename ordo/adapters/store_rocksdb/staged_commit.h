// StagedCommit: the ops of one commit, as one write of the database and what is true after it.
//
//   StagedCommit staged(database, table, chain);
//   staged.add(batch);
//   database.db().Write(options, &staged.write());
//   staged.apply(table, erased);       // only if that went well
//
// Threads: one owner.
// Cost:    the bytes of messages are copied once, into the write.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rocksdb/write_batch.h>

#include "ordo/adapters/store_rocksdb/commit_chain.h"
#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/recovery.h"
#include "ordo/broker/store.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

// What is known of every partition.
using PartitionTable = std::map<broker::PartitionAddress, broker::RecoveredPartition>;

class StagedCommit {
 public:
  // `table` stays as it is until apply(). `chain` is the newest commit.
  StagedCommit(const Database& database, const PartitionTable& table, const CommitChain& chain);

  // Errors: what is to be erased cannot be read.
  Status add(broker::CommitBatch& batch);

  rocksdb::WriteBatch& write() { return write_; }
  const CommitChain& chain() const { return chain_; }
  // Of the spilled chunks that go with their partitions.
  const std::vector<std::string>& spill_prefixes() const { return spill_prefixes_; }
  bool has_trim() const { return has_trim_; }

  // Gives the messages their ids and brings `table` and `erased` up to date.
  void apply(PartitionTable& table, ErasedPartitions& erased) const;

 private:
  void add_op(broker::Append& op);
  void add_op(broker::PutRow& op);
  void add_op(broker::EraseRow& op);
  void add_op(broker::EraseRows& op);
  void add_op(broker::PutCatalog& op);
  void add_op(broker::EraseCatalog& op);
  void add_op(broker::Trim& op);
  void add_op(broker::ErasePartition& op);

  broker::RecoveredPartition* find(broker::PartitionAddress partition);
  broker::RecoveredPartition& find_or_make(broker::PartitionAddress partition);
  void put(rocksdb::ColumnFamilyHandle* family, std::string key, const std::string& value);
  void erase_prefix(rocksdb::ColumnFamilyHandle* family, const std::string& prefix);

  const Database& database_;
  const PartitionTable& table_;
  rocksdb::WriteBatch write_;
  CommitChain chain_;
  // Partitions as they will be; nothing: erased.
  std::map<broker::PartitionAddress, std::optional<broker::RecoveredPartition>> changed_;
  std::vector<std::pair<std::shared_ptr<broker::MessageBatch>, broker::MessageId>> ids_;
  std::vector<std::string> spill_prefixes_;
  bool has_trim_ = false;
  // Only where something is erased by its beginning: what this commit itself put before.
  bool remembers_keys_ = false;
  std::set<std::pair<std::uint32_t, std::string>> put_keys_;
  std::optional<Error> error_;
};

}  // namespace ordo::store_rocksdb
