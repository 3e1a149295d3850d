#include "ordo/adapters/store_rocksdb/recovery.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "ordo/adapters/store_rocksdb/log_reader.h"
#include "ordo/adapters/store_rocksdb/rocksdb_error.h"
#include "ordo/adapters/store_rocksdb/row_codec.h"

namespace ordo::store_rocksdb {
namespace {

// Calls `take` with every key and value that begins with `prefix`; false: cannot be understood.
Status for_each(const Database& database, rocksdb::ColumnFamilyHandle* family,
                const std::string& prefix,
                const std::function<bool(std::string_view, std::string_view)>& take) {
  const std::unique_ptr<rocksdb::Iterator> rows(database.db().NewIterator(read_options(), family));
  for (rows->Seek(prefix); rows->Valid() && rows->key().starts_with(prefix); rows->Next()) {
    if (!take(rows->key().ToStringView(), rows->value().ToStringView())) {
      return Error{ErrorCode::data_loss,
                   "a row of '" + family->GetName() + "' cannot be understood"};
    }
  }
  if (!rows->status().ok())
    return error_of(rows->status(), "cannot read all rows of '" + family->GetName() + "'");
  return {};
}

}  // namespace

Result<broker::Recovered> read_all(const Database& database, ErasedPartitions* erased) {
  broker::Recovered found;
  Status read = for_each(database, database.meta(), std::string(1, kCatalogMark),
                         [&](std::string_view key, std::string_view value) {
                           std::optional<broker::CatalogKey> parsed = parse_catalog_key(key);
                           if (!parsed) return false;
                           found.catalog.emplace(std::move(*parsed), value);
                           return true;
                         });
  if (!read) return read.error();
  read = for_each(database, database.meta(), std::string(1, kPartitionMark),
                  [&](std::string_view key, std::string_view value) {
                    const auto address = parse_partition_key(key);
                    const auto row = decode_partition_row(value);
                    if (!address || !row) return false;
                    found.partitions.emplace(*address, *row);
                    return true;
                  });
  if (!read) return read.error();
  ErasedPartitions marked;  // Each before the rows of its partition.
  read =
      for_each(database, database.state(), "", [&](std::string_view key, std::string_view value) {
        if (key == kChainKey) return true;
        if (const auto address = parse_erased_key(key)) return marked.insert(*address).second;
        std::optional<broker::RowKey> parsed = parse_state_key(key);
        if (!parsed) return false;
        if (marked.contains(parsed->partition)) return true;
        found.rows.emplace(std::move(*parsed), value);
        return true;
      });
  if (!read) return read.error();
  if (erased != nullptr) *erased = std::move(marked);
  const LogReader reader(database);
  for (auto& [address, row] : found.partitions) {
    const Result<std::optional<IndexedBatch>> last = reader.last_batch(address);
    if (!last) return last.error();
    if (!*last || (*last)->end() <= row.end) continue;
    row.end = (*last)->end();
    row.last_publish_time = (*last)->row.publish_time;
  }
  return found;
}

}  // namespace ordo::store_rocksdb
