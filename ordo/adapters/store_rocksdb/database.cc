#include "ordo/adapters/store_rocksdb/database.h"

#include <algorithm>
#include <utility>

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/table.h>

#include "ordo/adapters/store_rocksdb/rocksdb_error.h"

namespace ordo::store_rocksdb {
namespace {

constexpr const char* kFamilies[] = {"default", "log", "idx", "state", "meta", "spill"};

class ChainOperator final : public rocksdb::AssociativeMergeOperator {
 public:
  const char* Name() const override { return "ordo.chain"; }
  bool Merge(const rocksdb::Slice& /*key*/, const rocksdb::Slice* existing,
             const rocksdb::Slice& value, std::string* merged,
             rocksdb::Logger* /*logger*/) const override {
    if (existing == nullptr) {
      *merged = value.ToString();
      return true;
    }
    std::optional<CommitChain> chain = CommitChain::decode(existing->ToStringView());
    const std::optional<CommitChain> later = CommitChain::decode(value.ToStringView());
    if (!chain || !later) return false;
    chain->append(*later);
    *merged = chain->encode();
    return true;
  }
};

// RocksDB's own diary. On a full disk Debian's build ends the process when it cannot be written.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

// After a full disk RocksDB would resume by itself. That can wait for ever and, in Debian's build,
// end the process; the store opens the database again instead (database_slot.h). A compaction that
// finds no room has changed nothing and is tried again a second later.
class NoRecovery final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    if (reason == rocksdb::BackgroundErrorReason::kCompaction && error->IsNoSpace())
      *error = rocksdb::Status::OK();
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* is_automatic) override {
    *is_automatic = false;
  }
};

// Some families are in tables beyond a log file that has a bad record. A full disk leaves half a
// record, of a commit that was refused; if the process ends before all families are in tables it
// looks like this. Reading on behind the record is right then. If it was a commit that counts, the
// chain lacks its number.
bool is_ahead_of_log(const rocksdb::Status& opened) {
  return opened.IsCorruption() &&
         opened.ToString().find("SST file is ahead of WALs") != std::string::npos;
}

}  // namespace

rocksdb::ReadOptions read_options() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.total_order_seek = true;
  return options;
}

rocksdb::DBOptions Database::settings(const DatabaseOptions& given, Mode mode) {
  rocksdb::DBOptions options;
  if (given.env != nullptr) options.env = given.env;
  options.create_if_missing = mode == Mode::create;
  options.create_missing_column_families = mode == Mode::create;
  options.paranoid_checks = true;
  // A torn tail is what a power cut leaves. Where anything acknowledged is missing behind it, the
  // watermark and the chain tell, before anything is changed.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.recycle_log_file_num = 0;
  options.track_and_verify_wals_in_manifest = true;
  options.db_write_buffer_size = 2 * given.write_buffer_bytes;
  options.max_total_wal_size = 2 * given.write_buffer_bytes;  // What a start has to replay.
  options.max_open_files = given.open_files_max;
  options.max_file_opening_threads = 1;
  options.max_background_jobs = 2;
  options.bytes_per_sync = 1 << 20;  // Tables reach the disk evenly, not in front of a commit.
  options.manifest_preallocation_size = 64 << 10;
  options.max_manifest_file_size = 4 << 20;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.info_log = std::make_shared<NoLog>();
  options.listeners = {std::make_shared<NoRecovery>()};
  options.max_bgerror_resume_count = 0;
  options.avoid_flush_during_shutdown = true;  // Only what is spilled is in no log file.
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> Database::family_settings(
    const DatabaseOptions& given) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(given.cache_bytes);
  table.cache_index_and_filter_blocks = true;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  rocksdb::ColumnFamilyOptions small;  // Rows that are written again and again.
  small.compression = rocksdb::kNoCompression;
  small.write_buffer_size = given.write_buffer_bytes;
  small.arena_block_size = 64 << 10;
  small.max_write_buffer_number = 4;
  // Commits do not wait for a compaction, which may find no room for long.
  small.level0_slowdown_writes_trigger = 1'000'000;
  small.level0_stop_writes_trigger = 1'000'000;
  small.target_file_size_base = 8 << 20;
  small.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // One level of tables, each younger than the next: what a repair can put together again.
  small.compaction_style = rocksdb::kCompactionStyleUniversal;
  small.num_levels = 1;

  // Keys only rise and nothing is overwritten: tables are moved to the next level as they are and
  // stay there until retention drops them whole. Nothing is ever rewritten.
  rocksdb::ColumnFamilyOptions log = small;
  log.compaction_style = rocksdb::kCompactionStyleLevel;
  log.num_levels = 2;
  log.level0_file_num_compaction_trigger = 2;
  log.max_bytes_for_level_base = std::uint64_t{1} << 50;
  log.soft_pending_compaction_bytes_limit = 0;
  log.hard_pending_compaction_bytes_limit = 0;
  log.arena_block_size = std::min<std::size_t>(1u << 20, given.write_buffer_bytes / 8);

  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const char* name : kFamilies)
    families.emplace_back(name, small);
  families[kLogFamily].options = log;
  for (const std::uint32_t chained : {kIndexFamily, kStateFamily, kMetaFamily})
    families[chained].options.merge_operator = std::make_shared<ChainOperator>();
  return families;
}

Result<std::unique_ptr<Database>> Database::open(const DatabaseOptions& given, Mode mode) {
  rocksdb::DBOptions options = settings(given, mode);
  std::vector<rocksdb::ColumnFamilyDescriptor> families = family_settings(given);
  if (mode != Mode::create) {
    std::vector<std::string> names;
    const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(options, given.path, &names);
    if (!listed.ok()) return error_of(listed, "cannot open the database in " + given.path);
    const bool has_spill =
        std::find(names.begin(), names.end(), kFamilies[kSpillFamily]) != names.end();
    if (!has_spill) families.pop_back();
  }
  std::unique_ptr<Database> database(new Database());
  rocksdb::DB* db = nullptr;
  const auto open = [&] {
    return mode == Mode::read_only
               ? rocksdb::DB::OpenForReadOnly(options, given.path, families, &database->families_,
                                              &db)
               : rocksdb::DB::Open(options, given.path, families, &database->families_, &db);
  };
  rocksdb::Status opened = open();
  if (is_ahead_of_log(opened)) {
    options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
    opened = open();
  }
  database->db_.reset(db);
  if (!opened.ok()) return error_of(opened, "cannot open the database in " + given.path);
  if (mode != Mode::read_only) {
    if (const Status renewed = database->renew_spill(given); !renewed) return renewed.error();
  }
  return database;
}

// What was spilled belongs to a process that is gone.
Status Database::renew_spill(const DatabaseOptions& given) {
  if (families_.size() > kSpillFamily) {
    rocksdb::Status dropped = db_->DropColumnFamily(families_[kSpillFamily]);
    if (dropped.ok()) dropped = db_->DestroyColumnFamilyHandle(families_[kSpillFamily]);
    if (!dropped.ok()) return error_of(dropped, "cannot drop what was spilled");
    families_.pop_back();
  }
  rocksdb::ColumnFamilyHandle* spill = nullptr;
  const rocksdb::Status created = db_->CreateColumnFamily(
      family_settings(given)[kSpillFamily].options, kFamilies[kSpillFamily], &spill);
  if (!created.ok()) return error_of(created, "cannot make room for what is spilled");
  families_.push_back(spill);
  return {};
}

Database::~Database() {
  if (!db_) return;
  for (rocksdb::ColumnFamilyHandle* family : families_)
    db_->DestroyColumnFamilyHandle(family);
  db_->Close();
}

Result<std::optional<std::string>> Database::value_of(rocksdb::ColumnFamilyHandle* family,
                                                      const std::string& key) const {
  std::string value;
  const rocksdb::Status got = db_->Get(read_options(), family, key, &value);
  if (got.IsNotFound()) return std::optional<std::string>();
  if (!got.ok()) return error_of(got, "cannot read what the database says of itself");
  return std::optional<std::string>(std::move(value));
}

void Database::append_chain(rocksdb::WriteBatch& write, const CommitChain& chain) const {
  const std::string value = chain.encode();
  for (rocksdb::ColumnFamilyHandle* family : {index(), state(), meta()})
    write.Merge(family, kChainKey, value);
}

void Database::reset_chain(rocksdb::WriteBatch& write, const CommitChain& chain) const {
  const std::string value = chain.encode();
  for (rocksdb::ColumnFamilyHandle* family : {index(), state(), meta()})
    write.Put(family, kChainKey, value);
}

Result<std::optional<CommitChain>> Database::chain() const {
  std::optional<CommitChain> whole;
  bool is_first = true;
  for (rocksdb::ColumnFamilyHandle* family : {index(), state(), meta()}) {
    Result<std::optional<std::string>> value = value_of(family, kChainKey);
    if (!value) return value.error();
    std::optional<CommitChain> chain;
    if (*value) {
      chain = CommitChain::decode(**value);
      if (!chain) return Error{ErrorCode::data_loss, "the row of the commits cannot be understood"};
    }
    if (is_first) {
      whole = chain;
    } else if (whole.has_value() != chain.has_value()) {
      return Error{ErrorCode::data_loss,
                   "'" + family->GetName() + "' does not hold the commits that others hold"};
    } else if (whole) {
      whole->join(*chain);
    }
    is_first = false;
  }
  return whole;
}

Result<std::optional<StoreRow>> Database::store_row() const {
  const Result<std::optional<std::string>> value = value_of(meta(), store_key());
  if (!value) return value.error();
  if (!*value) return std::optional<StoreRow>();
  const std::optional<StoreRow> row = decode_store_row(**value);
  if (!row) return Error{ErrorCode::data_loss, "the row of the store cannot be understood"};
  return row;
}

Result<std::size_t> Database::erase_each(rocksdb::ColumnFamilyHandle* family, const Rows& which,
                                         rocksdb::WriteBatch& write, std::size_t count_max,
                                         std::string* next) const {
  rocksdb::ReadOptions options = read_options();
  const rocksdb::Slice limit(which.end);
  options.iterate_upper_bound = &limit;
  const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(options, family));
  std::size_t count = 0;
  for (rows->Seek(which.begin); rows->Valid() && count < count_max; rows->Next(), ++count)
    write.Delete(family, rows->key());
  if (!rows->status().ok())
    return error_of(rows->status(), "cannot find the rows of '" + family->GetName() + "' to erase");
  if (next != nullptr) *next = rows->Valid() ? rows->key().ToString() : which.end;
  return count;
}

Status Database::flush() {
  const rocksdb::Status flushed = db_->Flush(rocksdb::FlushOptions(), families_);
  if (!flushed.ok()) return error_of(flushed, "cannot flush the database");
  return {};
}

}  // namespace ordo::store_rocksdb
