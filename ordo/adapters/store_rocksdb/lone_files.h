// LoneFiles: the tables and log files of a database, each read without any other file.
//
//   const LoneFiles files({.path = "/data/db"});
//   for (const std::string& name : files.names(".sst")) ...
//   files.open_table(name);                              // the rows as they were after it
//   files.table_changes(name);                           // deletions too
//   files.read_log(name, [](CommitRecord& record) { ... }); // commit after commit
//
// RocksDB has no door to a single file that shows everything: deletions of a table and records of a
// log file are seen through a small database of its own around a copy of it, in the folder
// PATH.part.
//
// Threads: one owner.
// Bounds:  on the disk a copy of one file at a time.
// Cost:    each file is read once; copied first for table_changes() and read_log().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rocksdb/sst_file_reader.h>

#include "ordo/adapters/store_rocksdb/commit_chain.h"
#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

// Keys with their newest values; nothing: erased. Without the chain of commits.
using RowChanges = std::vector<std::pair<std::string, std::optional<std::string>>>;

// One commit.
struct CommitRecord {
  std::optional<CommitChain> chain;  // Empty: no commit, but rows that were erased after one.
  std::vector<std::pair<std::string, std::string>> batches;  // Rows of the log.
  RowChanges state;
  RowChanges meta;
};

class LoneFiles {
 public:
  using TakeRecord = std::function<void(CommitRecord&)>;

  explicit LoneFiles(const DatabaseOptions& database);

  // Those that end so, the oldest first.
  std::vector<std::string> names(std::string_view end) const;
  // Null: it cannot be read at all.
  std::unique_ptr<rocksdb::SstFileReader> open_table(const std::string& name) const;
  // REQUIRES: the table is undamaged.
  Result<RowChanges> table_changes(const std::string& name) const;
  // All that can be read. False: nothing can. An error: there is no room for the copy, or the like.
  Result<bool> read_log(const std::string& name, const TakeRecord& take) const;

 private:
  std::string part() const { return database_.path + ".part"; }
  Status copy_to_part(const std::string& name, const std::string& as) const;
  Status make_shell() const;

  DatabaseOptions database_;
  rocksdb::Env& env_;
  std::vector<rocksdb::ColumnFamilyDescriptor> families_;
};

// Deletes a folder and what is in it; nothing happens if there is none.
Status remove_folder(rocksdb::Env& env, const std::string& path);

}  // namespace ordo::store_rocksdb
