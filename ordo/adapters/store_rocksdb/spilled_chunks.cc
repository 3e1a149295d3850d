#include "ordo/adapters/store_rocksdb/spilled_chunks.h"

#include "ordo/adapters/store_rocksdb/rocksdb_error.h"
#include "ordo/adapters/store_rocksdb/row_codec.h"

namespace ordo::store_rocksdb {

using broker::SpillKey;

namespace {

rocksdb::WriteOptions without_log() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

}  // namespace

rocksdb::Status write_chunk(const Database& database, const SpillKey& key, std::string_view bytes) {
  return database.db().Put(without_log(), database.spill(), spill_key(key),
                           rocksdb::Slice(bytes.data(), bytes.size()));
}

Result<std::string> read_chunk(const Database& database, const SpillKey& key) {
  std::string bytes;
  const rocksdb::Status got =
      database.db().Get(read_options(), database.spill(), spill_key(key), &bytes);
  if (got.IsNotFound()) return Error{ErrorCode::not_found, "no such chunk was spilled"};
  if (!got.ok()) return error_of(got, "cannot read a spilled chunk");
  return bytes;
}

Status erase_chunks(const Database& database, const SpillKey& first, std::uint64_t chunk_count) {
  SpillKey end = first;
  end.chunk = chunk_count > ~first.chunk ? ~std::uint64_t{0} : first.chunk + chunk_count;
  rocksdb::Status erased;
  if (chunk_count == 1) {
    erased = database.db().Delete(without_log(), database.spill(), spill_key(first));
  } else {
    erased = database.db().DeleteRange(without_log(), database.spill(), spill_key(first),
                                       spill_key(end));
  }
  if (!erased.ok()) return error_of(erased, "cannot erase spilled chunks");
  return {};
}

void erase_chunks(const Database& database, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    static_cast<void>(
        database.db().DeleteRange(without_log(), database.spill(), prefix, end_of_prefix(prefix)));
  }
}

}  // namespace ordo::store_rocksdb
