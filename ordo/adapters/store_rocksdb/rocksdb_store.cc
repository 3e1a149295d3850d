#include "ordo/adapters/store_rocksdb/rocksdb_store.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <utility>

#include <rocksdb/env.h>

#include "ordo/adapters/store_rocksdb/data_directory.h"
#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/disk_space.h"
#include "ordo/adapters/store_rocksdb/log_file_order.h"
#include "ordo/adapters/store_rocksdb/log_reader.h"
#include "ordo/adapters/store_rocksdb/log_trimmer.h"
#include "ordo/adapters/store_rocksdb/recovery.h"
#include "ordo/adapters/store_rocksdb/rocksdb_error.h"
#include "ordo/adapters/store_rocksdb/staged_commit.h"
#include "ordo/core/check.h"
#include "ordo/runtime/timer.h"

namespace ordo::store_rocksdb {
namespace {

using broker::CommitBatch;
using broker::Offset;
using broker::PartitionAddress;
using broker::ReadBatches;
using broker::Recovered;
using broker::RecoveredPartition;
using broker::SpillKey;
using broker::StoreStats;

std::uint64_t random_name() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source() | 1;
}

// RocksDB's log file. With an error in it it must not be synced: RocksDB ends the process.
enum class LogFile : std::uint8_t {
  good,
  full,    // A write or a sync found no room: RocksDB takes no writes until it is told to resume.
  bad,     // A write or a sync failed.
  unused,  // RocksDB resumed: all is in tables, and nothing was written since.
};

LogFile log_file_after(const rocksdb::Status& status) {
  if (status.ok()) return LogFile::good;
  return status.IsNoSpace() ? LogFile::full : LogFile::bad;
}

class RocksdbStore final : public broker::Store {
 public:
  RocksdbStore(const StoreOptions& options, std::unique_ptr<rocksdb::Env> env,
               std::unique_ptr<DirectoryLock> lock, std::unique_ptr<DirectoryMarks> marks,
               std::unique_ptr<Database> database)
      : options_(options),
        env_(std::move(env)),
        clock_(options.clock != nullptr ? *options.clock : system_clock()),
        lock_(std::move(lock)),
        marks_(std::move(marks)),
        database_(std::move(database)),
        space_(*database_->db().GetEnv(), options.directory, options.reserve_bytes),
        reader_(*database_),
        trimmer_(*database_, [this](rocksdb::WriteBatch& rows) { return write_beside(rows); }),
        timer_(clock_, "ordo-store") {}

  ~RocksdbStore() override { close(); }

  Result<Recovered> recover() override;
  Status commit(CommitBatch& batch) override;
  Result<ReadBatches> read(PartitionAddress partition, Offset from, std::size_t messages_max,
                           std::size_t bytes_max) override;
  Result<Offset> find_time(PartitionAddress partition, WallTime time) override;
  Status write_spill(const SpillKey& key, std::string_view bytes) override;
  Result<std::string> read_spill(const SpillKey& key) override;
  Status erase_spill(const SpillKey& first, std::uint64_t chunk_count) override;
  StoreStats stats() const override;

 private:
  Error fail(const Error& error);
  std::string failure() const;
  Status write(StagedCommit& staged);
  Status acknowledge(const CommitChain& chain);
  Mark mark_of(const CommitChain& chain) const;
  void sync_later();
  void sync_now();
  void trim_later();
  void trim_now();
  rocksdb::Status write_beside(rocksdb::WriteBatch& rows);
  bool sync_log(const char* failed);
  Status resume();
  void erase_spilled(const std::vector<std::string>& prefixes);
  std::optional<RecoveredPartition> partition(PartitionAddress address) const;
  void close();

  const StoreOptions options_;
  const std::unique_ptr<rocksdb::Env> env_;  // May be null: the database uses another one.
  Clock& clock_;
  std::unique_ptr<DirectoryLock> lock_;
  std::unique_ptr<DirectoryMarks> marks_;
  std::unique_ptr<Database> database_;
  DiskSpace space_;
  LogReader reader_;
  LogTrimmer trimmer_;  // Used on the timer's thread only.

  // Used by whoever commits.
  StoreRow row_;
  bool recovered_ = false;

  std::mutex log_mutex_;  // Taken before mutex_. Guards the log file and:
  LogFile log_file_ = LogFile::good;

  mutable std::mutex mutex_;  // Guards what follows.
  PartitionTable table_;
  CommitChain chain_;   // The newest commit.
  CommitChain synced_;  // The newest that is on the disk.
  bool sync_scheduled_ = false;
  bool trim_scheduled_ = false;
  TimePoint witnessed_;
  std::string failure_;
  StoreStats counts_;

  Timer timer_;  // Ends first.
};

Error RocksdbStore::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = error.message;
  return error;
}

std::string RocksdbStore::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Mark RocksdbStore::mark_of(const CommitChain& chain) const {
  return {.directory_id = row_.directory_id,
          .start_number = row_.start_number,
          .commit_number = chain.last,
          .next_id = chain.next_id,
          .has_database = true};
}

Result<Recovered> RocksdbStore::recover() {
  ORDO_CHECK(!recovered_);
  Result<Recovered> found = read_all(*database_);
  if (!found) return found;
  Result<std::optional<CommitChain>> chain = database_->chain();
  if (!chain) return chain.error();
  Result<std::optional<StoreRow>> row = database_->store_row();
  if (!row) return row.error();
  row_ = row->value_or(StoreRow{.directory_id = random_name()});
  found->start_number = ++row_.start_number;
  {
    const std::lock_guard lock(mutex_);
    chain_ = chain->value_or(CommitChain{});
    table_ = found->partitions;
  }
  // The start itself is a commit, synced whatever the policy: fences depend on its number.
  StagedCommit staged(*database_, table_, chain_);
  staged.write().Put(database_->meta(), store_key(), encode_store_row(row_));
  CommitBatch nothing;
  static_cast<void>(staged.add(nothing));
  rocksdb::WriteOptions synced;
  synced.sync = true;
  const rocksdb::Status written = database_->db().Write(synced, &staged.write());
  if (!written.ok()) return error_of(written, "cannot write down that the store was opened");
  {
    const std::lock_guard lock(mutex_);
    chain_ = synced_ = staged.chain();
    witnessed_ = clock_.now();
  }
  const Mark mark = mark_of(staged.chain());
  if (const Status marked = marks_->write(mark); !marked) return marked.error();
  if (const Status marked = marks_->sync(); !marked) return marked.error();
  marks_->testify(mark);
  recovered_ = true;
  return found;
}

Status RocksdbStore::commit(CommitBatch& batch) {
  ORDO_CHECK(recovered_);
  if (batch.empty()) return {};
  if (const std::string why = failure(); !why.empty()) {
    return Error{ErrorCode::failed_precondition,
                 "the store takes no commit until it is opened again: " + why};
  }
  const bool appends = std::any_of(batch.begin(), batch.end(), [](const broker::CommitOp& op) {
    return std::holds_alternative<broker::Append>(op);
  });
  if (appends && space_.is_short()) {
    return Error{ErrorCode::resource_exhausted, space_.message()};
  }
  StagedCommit staged(*database_, table_, chain_);  // Only commits change these two.
  if (Status added = staged.add(batch); !added) return fail(added.error());
  if (Status written = write(staged); !written) return written;
  {
    const std::lock_guard lock(mutex_);
    staged.apply(table_);
    chain_ = staged.chain();
    ++counts_.commits;
    counts_.committed_bytes += staged.write().GetDataSize();
  }
  erase_spilled(staged.spill_prefixes());
  if (staged.has_trim()) trim_later();
  return acknowledge(staged.chain());
}

// To the log file, and to the disk if the policy says so.
Status RocksdbStore::write(StagedCommit& staged) {
  const std::lock_guard log_lock(log_mutex_);
  if (log_file_ == LogFile::full) {
    if (Status resumed = resume(); !resumed) return resumed;
  }
  // Two steps: a log file that has no room has a record that is not whole, which is never read. If
  // the sync fails nobody knows what is on the disk.
  const rocksdb::Status written = database_->db().Write(rocksdb::WriteOptions(), &staged.write());
  log_file_ = log_file_after(written);
  if (log_file_ == LogFile::full) return error_of(written, "no room on the disk");
  if (log_file_ == LogFile::bad) return fail(error_of(written, "cannot write a commit"));
  if (options_.sync != SyncPolicy::commit) return {};
  const rocksdb::Status synced = database_->db().SyncWAL();
  if (!synced.ok()) {
    Error error = error_of(synced, "cannot sync a commit");
    error.code = ErrorCode::unavailable;
    log_file_ = LogFile::bad;
    return fail(error);
  }
  const std::lock_guard lock(mutex_);
  ++counts_.syncs;
  return {};
}

// There may be room again. RocksDB puts all that is in memory into tables: what was written before
// is on the disk then, synced or not. REQUIRES: log_mutex_ is held.
Status RocksdbStore::resume() {
  const rocksdb::Status resumed = database_->db().Resume();
  if (resumed.ok()) {
    log_file_ = LogFile::unused;
    const std::lock_guard lock(mutex_);
    ++counts_.syncs;
    return {};
  }
  const Error error = error_of(resumed, "the disk was full, and still is");
  if (!resumed.IsNoSpace() && !resumed.IsBusy()) return fail(error);
  return Error{ErrorCode::resource_exhausted, error.message};
}

// The commit is stored: the watermark follows, as far as the disk has it.
Status RocksdbStore::acknowledge(const CommitChain& chain) {
  if (options_.sync == SyncPolicy::os) return {};
  if (options_.sync == SyncPolicy::commit) {
    if (const Status marked = marks_->write(mark_of(chain)); !marked) return fail(marked.error());
    {
      const std::lock_guard lock(mutex_);
      synced_ = chain;
    }
    if (options_.watermark_interval == std::chrono::nanoseconds::zero()) {
      if (const Status synced = marks_->sync(); !synced) return fail(synced.error());
      return {};
    }
  }
  sync_later();
  return {};
}

void RocksdbStore::sync_later() {
  const bool by_interval = options_.sync == SyncPolicy::interval;
  {
    const std::lock_guard lock(mutex_);
    if (sync_scheduled_) return;
    sync_scheduled_ = true;
  }
  const auto pause = by_interval ? options_.sync_interval : options_.watermark_interval;
  timer_.schedule(clock_.now() + pause, [this] { sync_now(); });
}

// On the timer's thread: what was committed so far, and the marks.
void RocksdbStore::sync_now() {
  CommitChain chain;
  bool testifies = false;
  {
    const std::lock_guard lock(mutex_);
    sync_scheduled_ = false;
    if (!failure_.empty()) return;
    chain = options_.sync == SyncPolicy::interval ? chain_ : synced_;
    testifies = clock_.now() - witnessed_ >= options_.witness_interval;
    if (testifies) witnessed_ = clock_.now();
  }
  if (options_.sync == SyncPolicy::interval) {
    if (!sync_log("cannot sync the commits of the last interval")) {
      if (failure().empty()) sync_later();  // There is no room; it may come back.
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      synced_ = chain;
    }
    if (const Status marked = marks_->write(mark_of(chain)); !marked) {
      fail(marked.error());
      return;
    }
  }
  if (const Status synced = marks_->sync(); !synced) {
    fail(synced.error());
    return;
  }
  if (testifies) marks_->testify(mark_of(chain));
}

void RocksdbStore::trim_later() {
  {
    const std::lock_guard lock(mutex_);
    if (trim_scheduled_) return;
    trim_scheduled_ = true;
  }
  timer_.schedule(clock_.now() + options_.trim_interval, [this] { trim_now(); });
}

// On the timer's thread.
void RocksdbStore::trim_now() {
  PartitionTable table;
  broker::MessageId next_id;
  {
    const std::lock_guard lock(mutex_);
    trim_scheduled_ = false;
    if (!failure_.empty()) return;
    table = table_;
    next_id = broker::MessageId(chain_.next_id);
  }
  // Messages must not be gone before it is certain that nobody needs them.
  if (options_.sync != SyncPolicy::commit && !sync_log("cannot sync a trim")) {
    if (failure().empty()) trim_later();
    return;
  }
  // After an error space is given back with the next trim.
  const Result<bool> has_more = trimmer_.run(table, next_id);
  if (has_more && *has_more) trim_later();
}

// Of the timer's thread; not synced.
rocksdb::Status RocksdbStore::write_beside(rocksdb::WriteBatch& rows) {
  const std::lock_guard log_lock(log_mutex_);
  if (log_file_ == LogFile::bad || log_file_ == LogFile::full)
    return rocksdb::Status::Busy("the log file is damaged");
  const rocksdb::Status written = database_->db().Write(rocksdb::WriteOptions(), &rows);
  log_file_ = log_file_after(written);
  return written;
}

// What was written so far is on the disk. False: not, for want of space; or the disk failed, and
// the store has too.
bool RocksdbStore::sync_log(const char* failed) {
  const std::lock_guard log_lock(log_mutex_);
  if (log_file_ == LogFile::full) return resume().has_value();
  if (log_file_ != LogFile::good) return log_file_ == LogFile::unused;
  const rocksdb::Status synced = database_->db().SyncWAL();
  log_file_ = log_file_after(synced);
  if (log_file_ == LogFile::bad) fail(error_of(synced, failed));
  if (!synced.ok()) return false;
  const std::lock_guard lock(mutex_);
  ++counts_.syncs;
  return true;
}

std::optional<RecoveredPartition> RocksdbStore::partition(PartitionAddress address) const {
  const std::lock_guard lock(mutex_);
  const auto found = table_.find(address);
  if (found == table_.end()) return std::nullopt;
  return found->second;
}

Result<ReadBatches> RocksdbStore::read(PartitionAddress address, Offset from,
                                       std::size_t messages_max, std::size_t bytes_max) {
  while (true) {
    const std::optional<RecoveredPartition> state = partition(address);
    if (!state) return ReadBatches{{}, from};
    Result<ReadBatches> got = reader_.read(address, *state, from, messages_max, bytes_max);
    if (got) return got;
    // What was trimmed meanwhile is not lost.
    const std::optional<RecoveredPartition> now = partition(address);
    if (now && now->first == state->first) return got;
  }
}

Result<Offset> RocksdbStore::find_time(PartitionAddress address, WallTime time) {
  const std::optional<RecoveredPartition> state = partition(address);
  if (!state) return RecoveredPartition().end;
  return reader_.find_time(address, *state, time);
}

rocksdb::WriteOptions without_log() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

Status RocksdbStore::write_spill(const SpillKey& key, std::string_view bytes) {
  const rocksdb::Status written =
      database_->db().Put(without_log(), database_->spill(), spill_key(key),
                          rocksdb::Slice(bytes.data(), bytes.size()));
  if (!written.ok()) return error_of(written, "cannot spill");
  return {};
}

Result<std::string> RocksdbStore::read_spill(const SpillKey& key) {
  std::string bytes;
  const rocksdb::Status got =
      database_->db().Get(read_options(), database_->spill(), spill_key(key), &bytes);
  if (got.IsNotFound()) return Error{ErrorCode::not_found, "no such chunk was spilled"};
  if (!got.ok()) return error_of(got, "cannot read a spilled chunk");
  return bytes;
}

Status RocksdbStore::erase_spill(const SpillKey& first, std::uint64_t chunk_count) {
  if (chunk_count == 0) return {};
  SpillKey end = first;
  end.chunk = chunk_count > ~first.chunk ? ~std::uint64_t{0} : first.chunk + chunk_count;
  rocksdb::Status erased;
  if (chunk_count == 1) {
    erased = database_->db().Delete(without_log(), database_->spill(), spill_key(first));
  } else {
    erased = database_->db().DeleteRange(without_log(), database_->spill(), spill_key(first),
                                         spill_key(end));
  }
  if (!erased.ok()) return error_of(erased, "cannot erase spilled chunks");
  return {};
}

// Chunks that stay behind are gone at the next start.
void RocksdbStore::erase_spilled(const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    static_cast<void>(database_->db().DeleteRange(without_log(), database_->spill(), prefix,
                                                  end_of_prefix(prefix)));
  }
}

StoreStats RocksdbStore::stats() const {
  StoreStats stats;
  {
    const std::lock_guard lock(mutex_);
    stats = counts_;
    stats.failure = failure_;
    for (const auto& [address, state] : table_)
      stats.messages += state.end - state.first;
  }
  std::uint64_t tables = 0;
  database_->db().GetAggregatedIntProperty("rocksdb.total-sst-files-size", &tables);
  stats.disk_bytes = tables + database_log_bytes(*database_);
  stats.disk_free_bytes = space_.free_bytes();
  stats.is_full = stats.disk_free_bytes < options_.reserve_bytes;
  return stats;
}

// In order: what is in memory to the disk, then the marks, which say so.
void RocksdbStore::close() {
  timer_.stop();
  if (!recovered_ || !failure().empty()) return;
  if (!sync_log("cannot sync at the end") || !database_->flush()) return;
  Mark mark = mark_of(chain_);
  mark.is_clean = true;
  if (!marks_->write(mark) || !marks_->sync()) return;
  marks_->testify(mark);
}

std::optional<Error> invalid(const StoreOptions& options) {
  const auto error = [](std::string what) {
    return Error{ErrorCode::invalid_argument, std::move(what)};
  };
  if (options.directory.empty()) return error("directory is empty; it names where data is kept");
  if (options.write_buffer_bytes < (64u << 10))
    return error("write_buffer_bytes is " + std::to_string(options.write_buffer_bytes) +
                 "; at least 65536 are needed");
  if (options.open_files_max < 16)
    return error("open_files_max is " + std::to_string(options.open_files_max) +
                 "; at least 16 are needed");
  if (options.sync_interval <= std::chrono::nanoseconds::zero())
    return error("sync_interval must be above zero");
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<broker::Store>> open_store(const StoreOptions& options) {
  if (const std::optional<Error> error = invalid(options)) return *error;
  rocksdb::Env& env = options.env != nullptr ? *options.env : *rocksdb::Env::Default();
  const DirectoryPaths paths{options.directory,
                             options.witness.value_or(usual_witness(options.directory))};
  DatabaseOptions database_options{.path = paths.database(),
                                   .write_buffer_bytes = options.write_buffer_bytes,
                                   .cache_bytes = options.cache_bytes,
                                   .open_files_max = options.open_files_max,
                                   .env = options.env};
  if (const rocksdb::Status made = env.CreateDirIfMissing(options.directory); !made.ok())
    return error_of(made, "cannot create the data directory " + options.directory);
  Result<std::unique_ptr<DirectoryLock>> lock = DirectoryLock::take(env, paths);
  if (!lock) return lock.error();
  Result<Inspection> found = inspect(env, paths, database_options);
  if (!found) return found.error();
  if (Status whole = judge(*found, paths); !whole) return whole.error();
  Result<std::unique_ptr<DirectoryMarks>> marks = DirectoryMarks::open(env, paths);
  if (!marks) return marks.error();
  std::unique_ptr<rocksdb::Env> ordered;
  if (options.sync != SyncPolicy::commit) {
    ordered = order_log_files(env);
    database_options.env = ordered.get();
  }
  Result<std::unique_ptr<Database>> database = Database::open(
      database_options, found->is_new ? Database::Mode::create : Database::Mode::existing);
  if (!database) return database.error();
  if (found->is_new) {
    for (const std::string& made : {paths.database(), paths.directory}) {
      if (const Status synced = sync_name(env, made); !synced) return synced.error();
    }
  }
  return std::unique_ptr<broker::Store>(std::make_unique<RocksdbStore>(
      options, std::move(ordered), std::move(*lock), std::move(*marks), std::move(*database)));
}

}  // namespace ordo::store_rocksdb
