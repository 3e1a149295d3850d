// The files of a store beside its database, and the rules by which it refuses to start.
//
//   DIR/lock        held while a process uses the directory
//   DIR/watermark   how far commits were acknowledged
//   DIR/db/         the database
//   DIR.witness     the same as the watermark, outside: tells DIR from an old copy of it
//
//   Result<Inspection> found = inspect(paths, database_options);   // changes no file
//   if (Status whole = judge(*found, paths); !whole) return whole;
//
// Threads: functions: any; a DirectoryLock and a DirectoryMarks: one owner, except where said.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/directory_care.h"
#include "ordo/adapters/store_rocksdb/watermark.h"
#include "ordo/core/result.h"

namespace rocksdb {
class Env;
class FileLock;
}  // namespace rocksdb

namespace ordo::store_rocksdb {

// A folder of the system, however it is spelt: its device and its number there.
using FolderId = std::pair<std::uint64_t, std::uint64_t>;

struct DirectoryPaths {
  std::string directory;
  std::string witness;  // Empty: none is kept.

  std::string lock() const { return directory + "/lock"; }
  std::string watermark() const { return directory + "/watermark"; }
  std::string database() const { return directory + "/db"; }
  // Made by a repair, which puts it in the place of the other when it is whole.
  std::string fresh_database() const { return directory + "/db.new"; }
};

// Held from take() to destruction. failed_precondition: somebody else holds it, in another process
// or in this one, however the directory is spelt.
class DirectoryLock {
 public:
  static Result<std::unique_ptr<DirectoryLock>> take(rocksdb::Env& env,
                                                     const DirectoryPaths& paths);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(rocksdb::Env& env) : env_(env) {}
  rocksdb::Env& env_;
  rocksdb::FileLock* lock_ = nullptr;
  std::optional<FolderId> folder_;  // Nothing: not a folder of the system.
};

// " (process 123)" if a process, this one included, holds the lock of the directory; else empty.
std::string holder_of(const DirectoryPaths& paths);

// What a directory says of itself.
struct Inspection {
  bool is_new = false;            // Nothing was ever acknowledged here.
  bool is_empty = false;          // There is not even a watermark.
  std::optional<Mark> watermark;  // Nothing only if is_empty.
  std::optional<Mark> witness;    // Nothing: there is none of this directory.
  std::optional<StoreRow> store;  // From here on: of the database; nothing if is_new.
  std::optional<CommitChain> chain;
};

// Reads without changing anything. Errors: what cannot be read, naming the file.
Result<Inspection> inspect(rocksdb::Env& env, const DirectoryPaths& paths,
                           const DatabaseOptions& database);

// Whether everything that was acknowledged is there; if not, what is missing and who says so.
Status judge(const Inspection& found, const DirectoryPaths& paths);

// Watermark and witness of a directory, open for writing.
class DirectoryMarks {
 public:
  // REQUIRES: the lock is held. Creates the watermark if there is none.
  static Result<std::unique_ptr<DirectoryMarks>> open(rocksdb::Env& env,
                                                      const DirectoryPaths& paths);

  Status write(const Mark& mark) { return watermark_->write(mark); }  // Survives the process.
  Status sync() { return watermark_->sync(); }                        // Survives the machine.

  // Writes the witness, to the disk. One that cannot be written is no reason to stop; doctor
  // tells. One caller at a time.
  void testify(const Mark& mark);

 private:
  DirectoryMarks(rocksdb::Env& env, std::string witness_path)
      : env_(env),
        witness_path_(std::move(witness_path)) {}

  rocksdb::Env& env_;
  std::string witness_path_;
  std::unique_ptr<Watermark> watermark_;
  std::unique_ptr<Watermark> witness_;
  std::uint64_t witness_of_ = 0;  // The directory that the witness is of.
};

}  // namespace ordo::store_rocksdb
