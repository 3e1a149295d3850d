// DatabaseSlot: the database of a store, which can be closed and opened again while others use it.
//
//   DatabaseSlot slot(options, std::move(database));
//   const DatabaseSlot::Use database = slot.use();
//   if (!database) return closed();              // it could not be opened again yet
//   database->db().Get(...);
//
// After a disk was full RocksDB is not asked to resume: its own recovery can wait for ever or end
// the process. What is in the log files is read again instead, as after a crash.
//
// Threads: any thread; reopen(): one at a time. A thread has one Use at a time, and none when it
//          calls reopen().
// Bounds:  one database, or none while it cannot be opened.
// Cost:    use(): two locks that nobody holds for long, but for reopen(): closing, replaying at
//          most two write buffers of log files, and a second if RocksDB waits after an error.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

class DatabaseSlot {
 public:
  // The database stays as it is, open or closed, as long as this lives.
  class Use {
   public:
    explicit operator bool() const { return database_ != nullptr; }
    Database& operator*() const { return *database_; }  // REQUIRES: it is open.
    Database* operator->() const { return database_; }

   private:
    friend class DatabaseSlot;
    Use(std::shared_lock<std::shared_mutex> lock, Database* database)
        : lock_(std::move(lock)),
          database_(database) {}

    std::shared_lock<std::shared_mutex> lock_;
    Database* database_;
  };

  DatabaseSlot(DatabaseOptions options, std::unique_ptr<Database> database)
      : options_(std::move(options)),
        database_(std::move(database)) {}

  Use use() const;

  // Waits until nobody uses it, then closes it and opens it. It stays closed if that fails or
  // `judge`, which is asked before anybody else uses it, does not accept what is there.
  using Judge = std::function<Status(const Database&)>;
  Status reopen(const Judge& judge);

 private:
  const DatabaseOptions options_;
  mutable std::mutex door_;  // Taken before mutex_: whoever comes later waits for reopen().
  mutable std::shared_mutex mutex_;
  std::unique_ptr<Database> database_;  // Null: closed.
};

}  // namespace ordo::store_rocksdb
