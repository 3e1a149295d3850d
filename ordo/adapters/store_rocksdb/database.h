// Database: one RocksDB with the column families and settings of the store. docs/storage_format.md.
//
//   Result<std::unique_ptr<Database>> database = Database::open(options, Database::Mode::existing);
//   (*database)->db().Get(read_options(), (*database)->meta(), key, &value);
//
// Opening replays the write-ahead log as far as it is whole and stops at the first record that is
// not. Whether what it got is all that was acknowledged is not known here: see data_directory.h.
//
// Threads: as RocksDB: any thread.
// Bounds:  memory: 3 write buffers, the cache, and the open files' readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rocksdb/db.h>

#include "ordo/adapters/store_rocksdb/commit_chain.h"
#include "ordo/adapters/store_rocksdb/row_codec.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

struct DatabaseOptions {
  std::string path;
  std::size_t write_buffer_bytes = 32u << 20;
  std::size_t cache_bytes = 16u << 20;
  int open_files_max = 256;
  rocksdb::Env* env = nullptr;  // nullptr: the system's.
};

// The families in the order of their creation, which gives them these numbers in log files. That of
// kSpillFamily is renewed at every start.
inline constexpr std::uint32_t kLogFamily = 1;
inline constexpr std::uint32_t kIndexFamily = 2;
inline constexpr std::uint32_t kStateFamily = 3;
inline constexpr std::uint32_t kMetaFamily = 4;
inline constexpr std::uint32_t kSpillFamily = 5;

class Database {
 public:
  enum class Mode : std::uint8_t {
    create,     // May be missing, or half made by a process that ended while it made it.
    existing,   // An error if it is not there.
    read_only,  // As existing; touches no file.
  };

  static Result<std::unique_ptr<Database>> open(const DatabaseOptions& options, Mode mode);
  // How it is opened; for whoever reads its files by themselves.
  static rocksdb::DBOptions settings(const DatabaseOptions& options, Mode mode);
  static std::vector<rocksdb::ColumnFamilyDescriptor> family_settings(
      const DatabaseOptions& options);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  rocksdb::DB& db() const { return *db_; }
  rocksdb::ColumnFamilyHandle* log() const { return families_[kLogFamily]; }
  rocksdb::ColumnFamilyHandle* index() const { return families_[kIndexFamily]; }
  rocksdb::ColumnFamilyHandle* state() const { return families_[kStateFamily]; }
  rocksdb::ColumnFamilyHandle* meta() const { return families_[kMetaFamily]; }
  // REQUIRES: not read_only.
  rocksdb::ColumnFamilyHandle* spill() const { return families_[kSpillFamily]; }

  // Adds a commit to the chain: in every family but the log, whose rows the index accounts for.
  void append_chain(rocksdb::WriteBatch& write, const CommitChain& chain) const;
  // The chain begins anew with `chain`, after a repair.
  void reset_chain(rocksdb::WriteBatch& write, const CommitChain& chain) const;
  // Nothing if there is none: a database that was just created. Has a gap if any family has.
  Result<std::optional<CommitChain>> chain() const;
  Result<std::optional<StoreRow>> store_row() const;

  // From `begin` to before `end`.
  struct Rows {
    std::string begin;
    std::string end;
  };
  // Adds a deletion to `write` for each of the rows, at most `count_max`; how many there were, and
  // in `next` where to go on. One by one: this RocksDB's iterators free memory twice when a table
  // is damaged and another one has a deleted range.
  Result<std::size_t> erase_each(rocksdb::ColumnFamilyHandle* family, const Rows& which,
                                 rocksdb::WriteBatch& write,
                                 std::size_t count_max = ~std::size_t{0},
                                 std::string* next = nullptr) const;

  // Puts all that is in memory into tables, so that the next start has nothing to replay.
  Status flush();

 private:
  Database() = default;
  Status renew_spill(const DatabaseOptions& options);
  Result<std::optional<std::string>> value_of(rocksdb::ColumnFamilyHandle* family,
                                              const std::string& key) const;

  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

// Where the chain of commits stands: before every other row.
inline const std::string kChainKey(1, '\0');

// Every read checks what it reads.
rocksdb::ReadOptions read_options();

}  // namespace ordo::store_rocksdb
