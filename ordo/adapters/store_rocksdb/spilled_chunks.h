// Spilled chunks in the database: not in the log file, and gone when the database is opened again.
//
//   Status written = write_chunk(database, key, bytes);
//   Result<std::string> bytes = read_chunk(database, key);
//
// Threads: any thread.
// Bounds:  none of their own: the core decides what is spilled.
// Cost:    one write or read of RocksDB each, without a log file or a sync.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rocksdb/status.h>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/broker/store.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

rocksdb::Status write_chunk(const Database& database, const broker::SpillKey& key,
                            std::string_view bytes);
// not_found: it was not written, erased, or lost with the database that was closed.
Result<std::string> read_chunk(const Database& database, const broker::SpillKey& key);
// REQUIRES: chunk_count > 0.
Status erase_chunks(const Database& database, const broker::SpillKey& first,
                    std::uint64_t chunk_count);
// All whose keys begin so. Those that stay behind are gone at the next start.
void erase_chunks(const Database& database, const std::vector<std::string>& prefixes);

}  // namespace ordo::store_rocksdb
