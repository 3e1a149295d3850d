// open_directory(): what a store stands on: options that make sense, the directory's lock, its
// marks, and the database, which was compared with them before anything was touched.
//
//   Result<OpenedDirectory> opened = open_directory(options);
//
// Threads: a function without state of its own.
// Errors:  those of open_store().
#pragma once

#include <memory>

#include <rocksdb/env.h>

#include "ordo/adapters/store_rocksdb/data_directory.h"
#include "ordo/adapters/store_rocksdb/database_slot.h"
#include "ordo/adapters/store_rocksdb/rocksdb_store.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

struct OpenedDirectory {
  std::unique_ptr<rocksdb::Env> env;  // Of the database.
  std::unique_ptr<DirectoryLock> lock;
  std::unique_ptr<DirectoryMarks> marks;
  std::unique_ptr<DatabaseSlot> slot;
};

Result<OpenedDirectory> open_directory(const StoreOptions& options);

}  // namespace ordo::store_rocksdb
