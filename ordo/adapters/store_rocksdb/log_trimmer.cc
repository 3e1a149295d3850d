#include "ordo/adapters/store_rocksdb/log_trimmer.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <rocksdb/convenience.h>
#include <rocksdb/metadata.h>

#include "ordo/adapters/store_rocksdb/log_reader.h"
#include "ordo/adapters/store_rocksdb/rocksdb_error.h"
#include "ordo/adapters/store_rocksdb/row_codec.h"

namespace ordo::store_rocksdb {

using broker::MessageId;

namespace {

constexpr std::size_t kRowsOfAWrite = 250;
constexpr std::size_t kWritesOfARun = 16;  // Syncs wait behind a run.
constexpr std::size_t kTablesToMove = 2;  // So many new tables of the log are moved to their level.

}  // namespace

Result<bool> LogTrimmer::run(const Database& database, const PartitionTable& table,
                             MessageId next_id) {
  const LogReader reader(database);
  MessageId needed = next_id;
  for (const auto& [partition, state] : table) {
    if (state.first >= state.end) continue;
    const Result<std::optional<IndexedBatch>> oldest = reader.kept_batch_at(partition, state.first);
    if (!oldest) return oldest.error();
    if (*oldest) needed = std::min(needed, (*oldest)->row.first_id);
  }
  const std::string end = log_key(needed, 0);
  rocksdb::ColumnFamilyMetaData tables;
  database.db().GetColumnFamilyMetaData(database.log(), &tables);
  std::size_t droppable = 0;
  std::size_t moved_soon = 0;
  for (const rocksdb::LevelMetaData& level : tables.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      if (file.largestkey < end) ++(level.level > 0 ? droppable : moved_soon);
    }
  }
  const bool has_more = moved_soon >= kTablesToMove;
  if (droppable == 0) return has_more;
  if (const Status erased = erase_index(database, table); !erased) return erased.error();
  const rocksdb::Slice limit(end);
  const rocksdb::Status dropped =
      rocksdb::DeleteFilesInRange(&database.db(), database.log(), nullptr, &limit, false);
  if (!dropped.ok()) return error_of(dropped, "cannot drop what was trimmed");
  return has_more;
}

Result<std::vector<broker::PartitionAddress>> LogTrimmer::erase(
    const Database& database, const ErasedPartitions& partitions) {
  std::vector<broker::PartitionAddress> done;
  std::size_t writes = 0;
  for (const broker::PartitionAddress& partition : partitions) {
    std::size_t count = kRowsOfAWrite;
    for (; count == kRowsOfAWrite && writes < kWritesOfARun; ++writes) {
      const Result<std::size_t> erased = erase_some(database, partition, reached_[partition]);
      if (!erased) return erased.error();
      count = *erased;
    }
    if (count == kRowsOfAWrite) break;
    reached_.erase(partition);
    done.push_back(partition);
  }
  return done;
}

// With the last ones the mark. If a crash undoes it, it is done again.
Result<std::size_t> LogTrimmer::erase_some(const Database& database,
                                           broker::PartitionAddress partition, Reached& reached) {
  const std::string mark = erased_key(partition);
  const std::string begin = mark + '\0';
  const std::string end = end_of_prefix(mark);
  rocksdb::WriteBatch write;
  std::size_t count = 0;
  Reached next = reached;
  for (auto [family, from, to] : {std::tuple(database.index(), &reached.index, &next.index),
                                  std::tuple(database.state(), &reached.state, &next.state)}) {
    const Result<std::size_t> erased = database.erase_each(
        family, {from->empty() ? begin : *from, end}, write, kRowsOfAWrite - count, to);
    if (!erased) return erased.error();
    count += *erased;
  }
  if (count < kRowsOfAWrite) write.Delete(database.state(), mark);
  const rocksdb::Status written = write_(database, write);
  if (!written.ok()) return error_of(written, "cannot erase the rows of a partition");
  reached = std::move(next);
  return count;
}

Status LogTrimmer::erase_index(const Database& database, const PartitionTable& table) {
  const LogReader reader(database);
  std::erase_if(erased_, [&](const auto& known) { return !table.contains(known.first); });
  for (const auto& [partition, state] : table) {
    const Result<std::optional<IndexedBatch>> oldest = reader.batch_at(partition, state.first);
    if (!oldest) return oldest.error();
    const broker::Offset below = *oldest ? (*oldest)->first_offset : state.end;
    broker::Offset& erased = erased_[partition];
    if (below <= erased) continue;
    std::size_t count = kRowsOfAWrite;
    while (count == kRowsOfAWrite) {
      rocksdb::WriteBatch write;
      const Result<std::size_t> found = database.erase_each(
          database.index(), {index_key(partition, erased), index_key(partition, below)}, write,
          kRowsOfAWrite);
      if (!found) return found.error();
      count = *found;
      // If a crash undoes it, it is done again.
      const rocksdb::Status written = write_(database, write);
      if (!written.ok()) return error_of(written, "cannot erase what was trimmed from the index");
    }
    erased = below;
  }
  return {};
}

}  // namespace ordo::store_rocksdb
