// read_all(): everything a broker needs to go on, out of the database.
//
// Threads: a function without state of its own.
// Cost:    all rows of cursors and of the catalog; two lookups for each partition, however many
//          messages it has.
// Errors:  data_loss: something cannot be read or understood.
#pragma once

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/broker/store.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

// start_number is left at its default.
Result<broker::Recovered> read_all(const Database& database);

}  // namespace ordo::store_rocksdb
