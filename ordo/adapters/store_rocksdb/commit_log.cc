#include "ordo/adapters/store_rocksdb/commit_log.h"

#include <cerrno>
#include <memory>
#include <string>
#include <unistd.h>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/transaction_log.h>

#include "ordo/adapters/store_rocksdb/rocksdb_error.h"

namespace ordo::store_rocksdb {
namespace {

Error no_room(const std::string& why) {
  return {ErrorCode::resource_exhausted,
          "no room on the disk; commits are taken again when there is: " + why};
}

Error no_room() {
  return no_room("there was none a moment ago");
}

Error damaged() {
  return {ErrorCode::unavailable, "the log file cannot be written"};
}

// RocksDB's own environment for the system's files cannot.
rocksdb::Status truncate(rocksdb::Env& env, const std::string& path, std::uint64_t size) {
  rocksdb::Status done = env.Truncate(path, size);
  if (!done.IsNotSupported()) return done;
  if (::truncate(path.c_str(), static_cast<off_t>(size)) == 0) return rocksdb::Status::OK();
  return rocksdb::Status::IOError("cannot cut " + path, std::to_string(errno));
}

}  // namespace

rocksdb::Status cut_log_file(const Database& database, std::size_t bytes) {
  rocksdb::Env& env = *database.db().GetEnv();
  std::unique_ptr<rocksdb::LogFile> newest;
  rocksdb::Status done = database.db().GetCurrentWalFile(&newest);
  if (!done.ok()) return done;
  const std::string path = database.db().GetName() + newest->PathName();
  std::uint64_t size = 0;
  done = env.GetFileSystem()->GetFileSize(path, rocksdb::IOOptions(), &size, nullptr);
  if (done.ok() && size < bytes) done = rocksdb::Status::Corruption(path + " is too short");
  if (done.ok()) done = truncate(env, path, size - bytes);
  std::unique_ptr<rocksdb::WritableFile> file;
  if (done.ok()) done = env.ReopenWritableFile(path, &file, rocksdb::EnvOptions());
  if (done.ok()) done = file->Sync();
  if (done.ok()) done = file->Close();
  return done;
}

// Incomplete: a write would wait for tables that find no room.
CommitLog::State CommitLog::after(const rocksdb::Status& status) {
  if (status.ok()) return State::good;
  return status.IsNoSpace() || status.IsIncomplete() ? State::full : State::bad;
}

void CommitLog::become(State state) {
  state_ = state;
  if (state_ == State::full) when_full_();
}

void CommitLog::begin(const CommitChain& newest) {
  const std::lock_guard lock(mutex_);
  written_ = newest;
}

Status CommitLog::commit(const Database& database, StagedCommit& staged, bool synced) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::full) return no_room();
  if (state_ == State::bad) return damaged();
  const rocksdb::Status written = database.db().Write(rocksdb::WriteOptions(), &staged.write());
  become(after(written));
  if (state_ == State::full) return no_room(written.ToString());
  if (state_ == State::bad) return error_of(written, "cannot write a commit");
  rocksdb::Status done;
  if (synced) done = database.db().SyncWAL();
  if (done.ok()) {
    written_ = staged.chain();
    return {};
  }
  // What is cut off belongs to this commit: a record is longer than its content.
  if (done.IsNoSpace() && cut_log_file(database, staged.write().GetDataSize()).ok()) {
    become(State::full);
    return no_room(done.ToString());
  }
  become(State::bad);
  Error error = error_of(done, "cannot sync a commit");
  error.code = ErrorCode::unavailable;
  return error;
}

rocksdb::Status CommitLog::add(const Database& database, rocksdb::WriteBatch& rows) {
  if (rows.Count() == 0) return rocksdb::Status::OK();
  const std::lock_guard lock(mutex_);
  if (state_ == State::bad) return rocksdb::Status::Busy("the log file is damaged");
  if (state_ == State::full) return rocksdb::Status::NoSpace();
  database.append_chain(rows, CommitChain::none_after(written_));
  const rocksdb::Status written = database.db().Write(rocksdb::WriteOptions(), &rows);
  become(after(written));
  return written;
}

Status CommitLog::sync(const Database& database) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::full) return no_room();
  if (state_ == State::bad) return damaged();
  const rocksdb::Status synced = database.db().SyncWAL();
  become(after(synced));
  if (synced.ok()) return {};
  if (state_ == State::full) return no_room(synced.ToString());
  return error_of(synced, "cannot sync what was committed");
}

bool CommitLog::is_full() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::full;
}

void CommitLog::note(const rocksdb::Status& status) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::good && after(status) == State::full) become(State::full);
}

void CommitLog::reopened() {
  const std::lock_guard lock(mutex_);
  state_ = State::good;
}

}  // namespace ordo::store_rocksdb
