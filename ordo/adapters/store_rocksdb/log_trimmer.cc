#include "ordo/adapters/store_rocksdb/log_trimmer.h"

#include <algorithm>

#include <rocksdb/convenience.h>
#include <rocksdb/metadata.h>

#include "ordo/adapters/store_rocksdb/log_reader.h"
#include "ordo/adapters/store_rocksdb/rocksdb_error.h"
#include "ordo/adapters/store_rocksdb/row_codec.h"

namespace ordo::store_rocksdb {

using broker::MessageId;

namespace {

constexpr std::size_t kRowsOfAWrite = 1'000;
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
      const Result<std::size_t> found =
          database.erase_each(database.index(), index_key(partition, erased),
                              index_key(partition, below), write, kRowsOfAWrite);
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
