// CommitLog: RocksDB's log file, as the store writes it; and what it takes when there is no room.
//
//   CommitLog log([this] { reopen_later(); });
//   log.begin(chain);                              // the newest commit
//   Status stored = log.commit(database, staged, /*synced=*/true);
//   log.add(database, rows);                       // another thread, beside commits
//
// A log file that found no room is not written again: the database has to be opened again, and then
// reopened() says so. What a write leaves that found no room is not whole, and is never read. If
// the write went through and the sync finds no room, the record is cut off again: whether a commit
// that was refused is there must not be left to the disk.
//
// Threads: any thread. `when_full` is called with a lock held: it must not come back here.
// Cost:    commit(): one write, and one fdatasync if it is synced.
// Errors:  resource_exhausted: definitely nothing of it is there, until reopened(). Any other code:
//          not known, and nothing is written any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include "ordo/adapters/store_rocksdb/commit_chain.h"
#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/staged_commit.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

class CommitLog {
 public:
  explicit CommitLog(std::function<void()> when_full) : when_full_(std::move(when_full)) {}

  // The newest commit that is written, before the first one is.
  void begin(const CommitChain& newest);

  Status commit(const Database& database, StagedCommit& staged, bool synced);

  // Rows that are no commit: a crash may undo them, with everything that comes later. They say
  // between which commits they stand, for a repair.
  rocksdb::Status add(const Database& database, rocksdb::WriteBatch& rows);

  // All that was written so far is on the disk.
  Status sync(const Database& database);

  bool is_full() const;
  // A write that was not to the log file came to this.
  void note(const rocksdb::Status& status);
  void reopened();

 private:
  enum class State : std::uint8_t {
    good,
    full,  // There was no room: nothing is written until the database is opened again.
    bad,   // A write or a sync failed. RocksDB ends the process if it is synced again.
  };
  static State after(const rocksdb::Status& status);
  void become(State state);

  const std::function<void()> when_full_;
  mutable std::mutex mutex_;  // Held while the log file is written or synced. Guards:
  State state_ = State::good;
  CommitChain written_;  // The newest commit.
};

// Cuts the last `bytes` of the newest log file off, on the disk.
rocksdb::Status cut_log_file(const Database& database, std::size_t bytes);

}  // namespace ordo::store_rocksdb
