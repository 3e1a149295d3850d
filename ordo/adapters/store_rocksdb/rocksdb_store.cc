#include "ordo/adapters/store_rocksdb/rocksdb_store.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <utility>

#include <rocksdb/env.h>

#include "ordo/adapters/store_rocksdb/commit_log.h"
#include "ordo/adapters/store_rocksdb/data_directory.h"
#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/database_slot.h"
#include "ordo/adapters/store_rocksdb/disk_space.h"
#include "ordo/adapters/store_rocksdb/log_reader.h"
#include "ordo/adapters/store_rocksdb/log_trimmer.h"
#include "ordo/adapters/store_rocksdb/opened_directory.h"
#include "ordo/adapters/store_rocksdb/recovery.h"
#include "ordo/adapters/store_rocksdb/rocksdb_error.h"
#include "ordo/adapters/store_rocksdb/spilled_chunks.h"
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

class RocksdbStore final : public broker::Store {
 public:
  RocksdbStore(const StoreOptions& options, OpenedDirectory opened)
      : options_(options),
        env_(std::move(opened.env)),
        clock_(options.clock != nullptr ? *options.clock : system_clock()),
        lock_(std::move(opened.lock)),
        marks_(std::move(opened.marks)),
        slot_(std::move(opened.slot)),
        space_(options.env != nullptr ? *options.env : *rocksdb::Env::Default(), options.directory,
               options.reserve_bytes),
        log_([this] { reopen_later(options_.reopen_interval); }),
        trimmer_([this](const Database& used, rocksdb::WriteBatch& rows) {
          return log_.add(used, rows);
        }),
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
  Error closed() const;
  Status acknowledge(const CommitChain& chain);
  Mark mark_of(const CommitChain& chain) const;
  void sync_later();
  void sync_now();
  void trim_later(std::chrono::nanoseconds pause);
  void trim_now();
  Result<bool> erase_rows(const Database& database);
  void drop_tables(const Database& database);
  bool sync_log(const Database& database);
  void reopen_later(std::chrono::nanoseconds pause);
  void reopen_now();
  Status compare(const Database& opened) const;
  std::optional<RecoveredPartition> partition(PartitionAddress address) const;
  void close();

  const StoreOptions options_;
  const std::unique_ptr<rocksdb::Env> env_;  // Of the database.
  Clock& clock_;
  std::unique_ptr<DirectoryLock> lock_;
  std::unique_ptr<DirectoryMarks> marks_;
  const std::unique_ptr<DatabaseSlot> slot_;
  DiskSpace space_;
  CommitLog log_;       // Used after a use of slot_, without mutex_.
  LogTrimmer trimmer_;  // Used on the timer's thread only.

  // Used by whoever commits.
  StoreRow row_;
  bool recovered_ = false;

  mutable std::mutex mutex_;  // Guards what follows.
  PartitionTable table_;
  ErasedPartitions erased_;  // Rows of them may be left.
  CommitChain chain_;        // The newest commit.
  CommitChain synced_;       // The newest that is on the disk.
  bool sync_scheduled_ = false;
  bool trim_scheduled_ = false;
  bool reopen_scheduled_ = false;
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

// For whoever finds no database.
Error RocksdbStore::closed() const {
  const std::string why = failure();
  return {ErrorCode::unavailable,
          why.empty() ? "no room on the disk to open the database again" : why};
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
  const DatabaseSlot::Use database = slot_->use();
  ErasedPartitions erased;
  Result<Recovered> found = read_all(*database, &erased);
  if (!found) return found;
  Result<std::optional<CommitChain>> chain = database->chain();
  if (!chain) return chain.error();
  Result<std::optional<StoreRow>> row = database->store_row();
  if (!row) return row.error();
  row_ = row->value_or(StoreRow{.directory_id = random_name()});
  found->start_number = ++row_.start_number;
  {
    const std::lock_guard lock(mutex_);
    chain_ = chain->value_or(CommitChain{});
    table_ = found->partitions;
    erased_ = std::move(erased);
  }
  // The start itself is a commit, synced whatever the policy: fences depend on its number.
  StagedCommit staged(*database, table_, chain_);
  staged.write().Put(database->meta(), store_key(), encode_store_row(row_));
  CommitBatch nothing;
  static_cast<void>(staged.add(nothing));
  rocksdb::WriteOptions synced;
  synced.sync = true;
  const rocksdb::Status written = database->db().Write(synced, &staged.write());
  if (!written.ok()) return error_of(written, "cannot write down that the store was opened");
  {
    const std::lock_guard lock(mutex_);
    chain_ = synced_ = staged.chain();
    witnessed_ = clock_.now();
  }
  log_.begin(staged.chain());
  const Mark mark = mark_of(staged.chain());
  if (const Status marked = marks_->write(mark); !marked) return marked.error();
  if (const Status marked = marks_->sync(); !marked) return marked.error();
  marks_->testify(mark);
  recovered_ = true;
  if (!erased_.empty()) trim_later(options_.trim_interval);
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
  const DatabaseSlot::Use database = slot_->use();
  if (!database) return Error{ErrorCode::resource_exhausted, closed().message};
  StagedCommit staged(*database, table_, chain_);  // Only commits change these two.
  if (Status added = staged.add(batch); !added) return fail(added.error());
  const bool is_synced = options_.sync == SyncPolicy::commit;
  if (Status written = log_.commit(*database, staged, is_synced); !written) {
    if (written.error().code == ErrorCode::resource_exhausted) return written;
    return fail(written.error());
  }
  {
    const std::lock_guard lock(mutex_);
    staged.apply(table_, erased_);
    chain_ = staged.chain();
    ++counts_.commits;
    if (is_synced) ++counts_.syncs;
    counts_.committed_bytes += staged.write().GetDataSize();
  }
  erase_chunks(*database, staged.spill_prefixes());
  if (staged.has_trim()) trim_later(options_.trim_interval);
  return acknowledge(staged.chain());
}

void RocksdbStore::reopen_later(std::chrono::nanoseconds pause) {
  {
    const std::lock_guard lock(mutex_);
    if (reopen_scheduled_) return;
    reopen_scheduled_ = true;
  }
  timer_.schedule(clock_.now() + pause, [this] { reopen_now(); });
}

// On the timer's thread, or at the end. Opening puts what the log files hold into tables, synced.
void RocksdbStore::reopen_now() {
  {
    const std::lock_guard lock(mutex_);
    reopen_scheduled_ = false;
    if (!failure_.empty()) return;
  }
  if (!log_.is_full()) return;
  const std::uint64_t needed =
      std::min<std::uint64_t>(options_.reserve_bytes, 2 * options_.write_buffer_bytes);
  if (space_.free_bytes() < needed) return reopen_later(options_.reopen_interval);
  const Status opened = slot_->reopen([this](const Database& found) { return compare(found); });
  if (!opened) {
    if (opened.error().code != ErrorCode::resource_exhausted) {
      fail(opened.error());
    } else {
      reopen_later(10 * options_.reopen_interval);  // It is closed; each try replays much.
    }
    return;
  }
  log_.reopened();
  const std::lock_guard lock(mutex_);
  ++counts_.syncs;
}

// All that was stored must be there, and nothing that was refused.
Status RocksdbStore::compare(const Database& opened) const {
  const Result<std::optional<CommitChain>> chain = opened.chain();
  if (!chain) return chain.error();
  const CommitChain found = chain->value_or(CommitChain{});
  const std::lock_guard lock(mutex_);
  if (!found.has_gap() && found.last == chain_.last && found.next_id == chain_.next_id) return {};
  return Error{ErrorCode::data_loss,
               "opened again after the disk was full, the database ends with commit " +
                   std::to_string(found.last) + (found.has_gap() ? " and lacks some" : "") +
                   "; the last one stored is " + std::to_string(chain_.last)};
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
    const DatabaseSlot::Use database = slot_->use();
    if (!database || !sync_log(*database)) {
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

void RocksdbStore::trim_later(std::chrono::nanoseconds pause) {
  {
    const std::lock_guard lock(mutex_);
    if (trim_scheduled_) return;
    trim_scheduled_ = true;
  }
  timer_.schedule(clock_.now() + pause, [this] { trim_now(); });
}

// On the timer's thread.
void RocksdbStore::trim_now() {
  {
    const std::lock_guard lock(mutex_);
    trim_scheduled_ = false;
    if (!failure_.empty()) return;
  }
  const DatabaseSlot::Use database = slot_->use();
  const Result<bool> erased_all = database ? erase_rows(*database) : false;
  if (erased_all && *erased_all) return drop_tables(*database);
  if (erased_all && database) return trim_later({});
  // After another error it is tried again with the next trim.
  if (database && erased_all.error().code != ErrorCode::resource_exhausted) return;
  if (database) log_.note(rocksdb::Status::NoSpace());
  trim_later(options_.trim_interval);
}

// Some of the rows of partitions that were erased. True: there is no more.
Result<bool> RocksdbStore::erase_rows(const Database& database) {
  ErasedPartitions erased;
  {
    const std::lock_guard lock(mutex_);
    erased = erased_;
  }
  if (erased.empty()) return true;
  const Result<std::vector<PartitionAddress>> done = trimmer_.erase(database, erased);
  if (!done) return done.error();
  const std::lock_guard lock(mutex_);
  for (const PartitionAddress& partition : *done)
    erased_.erase(partition);
  return erased_.empty();
}

// Those of the log that nobody needs.
void RocksdbStore::drop_tables(const Database& database) {
  PartitionTable table;
  broker::MessageId next_id;
  {
    const std::lock_guard lock(mutex_);
    table = table_;
    next_id = broker::MessageId(chain_.next_id);
  }
  // Messages must not be gone before it is certain that nobody needs them.
  if (options_.sync != SyncPolicy::commit && !sync_log(database)) {
    if (failure().empty()) trim_later(options_.trim_interval);
    return;
  }
  const Result<bool> has_more = trimmer_.run(database, table, next_id);
  const bool is_full = !has_more && has_more.error().code == ErrorCode::resource_exhausted;
  if (is_full) log_.note(rocksdb::Status::NoSpace());
  // After another error space is given back with the next trim.
  if (is_full || (has_more && *has_more)) trim_later(options_.trim_interval);
}

// What was written so far is on the disk. False: not, for want of space; or the disk failed, and
// the store has too.
bool RocksdbStore::sync_log(const Database& database) {
  const Status synced = log_.sync(database);
  if (!synced) {
    if (synced.error().code != ErrorCode::resource_exhausted) fail(synced.error());
    return false;
  }
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
  const DatabaseSlot::Use database = slot_->use();
  if (!database) return closed();
  while (true) {
    const std::optional<RecoveredPartition> state = partition(address);
    if (!state) return ReadBatches{{}, from};
    Result<ReadBatches> got =
        LogReader(*database).read(address, *state, from, messages_max, bytes_max);
    if (got) return got;
    // What was trimmed meanwhile is not lost.
    const std::optional<RecoveredPartition> now = partition(address);
    if (now && now->first == state->first) return got;
  }
}

Result<Offset> RocksdbStore::find_time(PartitionAddress address, WallTime time) {
  const DatabaseSlot::Use database = slot_->use();
  if (!database) return closed();
  const std::optional<RecoveredPartition> state = partition(address);
  if (!state) return RecoveredPartition().end;
  return LogReader(*database).find_time(address, *state, time);
}

Status RocksdbStore::write_spill(const SpillKey& key, std::string_view bytes) {
  const DatabaseSlot::Use database = slot_->use();
  if (!database) return closed();
  const rocksdb::Status written = write_chunk(*database, key, bytes);
  if (written.ok()) return {};
  log_.note(written);
  return error_of(written, "cannot spill");
}

Result<std::string> RocksdbStore::read_spill(const SpillKey& key) {
  const DatabaseSlot::Use database = slot_->use();
  if (!database) return closed();
  return read_chunk(*database, key);
}

Status RocksdbStore::erase_spill(const SpillKey& first, std::uint64_t chunk_count) {
  if (chunk_count == 0) return {};
  const DatabaseSlot::Use database = slot_->use();
  if (!database) return {};  // No chunk is left when it is opened.
  return erase_chunks(*database, first, chunk_count);
}

StoreStats RocksdbStore::stats() const {
  const DatabaseSlot::Use database = slot_->use();
  StoreStats stats;
  bool awaits_room = !database;
  {
    const std::lock_guard lock(mutex_);
    stats = counts_;
    stats.failure = failure_;
    awaits_room = awaits_room || reopen_scheduled_;
    for (const auto& [address, state] : table_)
      stats.messages += state.end - state.first;
  }
  if (database) {
    std::uint64_t tables = 0;
    database->db().GetAggregatedIntProperty("rocksdb.total-sst-files-size", &tables);
    stats.disk_bytes = tables + database_log_bytes(*database);
  }
  stats.disk_free_bytes = space_.free_bytes();
  stats.is_full = awaits_room || stats.disk_free_bytes < options_.reserve_bytes;
  return stats;
}

// In order: what is in memory to the disk, then the marks, which say so.
void RocksdbStore::close() {
  timer_.stop();
  if (!recovered_ || !failure().empty()) return;
  const auto sync = [this] {
    const DatabaseSlot::Use database = slot_->use();
    return database && sync_log(*database);
  };
  if (!sync()) {
    reopen_now();  // If it was for want of room.
    if (!failure().empty() || !sync()) return;
  }
  if (!slot_->use()->flush()) return;
  Mark mark = mark_of(chain_);
  mark.is_clean = true;
  if (!marks_->write(mark) || !marks_->sync()) return;
  marks_->testify(mark);
}

}  // namespace

Result<std::unique_ptr<broker::Store>> open_store(const StoreOptions& options) {
  Result<OpenedDirectory> opened = open_directory(options);
  if (!opened) return opened.error();
  return std::unique_ptr<broker::Store>(
      std::make_unique<RocksdbStore>(options, std::move(*opened)));
}

}  // namespace ordo::store_rocksdb
