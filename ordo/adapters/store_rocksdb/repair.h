// repair(): makes a data directory usable again without what is missing, for `ordo repair`.
//
//   const Repair done = repair(paths, {.accept_loss = true});
//
// What can still be read stays. Numbers are never used twice: message ids, fences and offsets go on
// above everything that was ever given. Offsets whose messages are gone are marked as given up.
//
// Threads: a function without state of its own; holds the directory's lock.
// Errors:  failed_precondition: in use; or loss is needed and was not accepted.
#pragma once

#include <string>
#include <vector>

#include "ordo/adapters/store_rocksdb/data_directory.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

struct RepairOptions {
  bool accept_loss = false;
  rocksdb::Env* env = nullptr;
};

// What was found and done, line by line.
using RepairLines = std::vector<std::string>;

Result<RepairLines> repair(const DirectoryPaths& paths, const RepairOptions& options);

}  // namespace ordo::store_rocksdb
