// read_all(): everything a broker needs to go on, out of the database.
//
// Threads: a function without state of its own.
// Cost:    all rows of cursors and of the catalog; two lookups for each partition, however many
//          messages it has.
// Errors:  data_loss: something cannot be read or understood.
#pragma once

#include <set>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/broker/store.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

// Partitions that were erased, of which rows may be left.
using ErasedPartitions = std::set<broker::PartitionAddress>;

// start_number is left at its default. `erased`: those whose rows are still to be erased.
Result<broker::Recovered> read_all(const Database& database, ErasedPartitions* erased = nullptr);

}  // namespace ordo::store_rocksdb
