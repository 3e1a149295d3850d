#include "ordo/adapters/store_rocksdb/lone_files.h"

#include <algorithm>

#include <rocksdb/env.h>
#include <rocksdb/utilities/debug.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>

#include "ordo/adapters/store_rocksdb/rocksdb_error.h"
#include "ordo/adapters/store_rocksdb/row_codec.h"

namespace ordo::store_rocksdb {
namespace {

constexpr std::size_t kCopyBytes = 1u << 20;
// Above the numbers that RocksDB gives to the files of a new database.
constexpr const char* kTableName = "000900.sst";
constexpr const char* kLogName = "000900.log";
// How tables mark the kinds of rows.
constexpr int kDeletion = 0;
constexpr int kValue = 1;

rocksdb::Status copy(rocksdb::Env& env, const std::string& from, const std::string& to) {
  std::unique_ptr<rocksdb::SequentialFile> source;
  std::unique_ptr<rocksdb::WritableFile> target;
  rocksdb::Status done = env.NewSequentialFile(from, &source, rocksdb::EnvOptions());
  if (done.ok()) done = env.NewWritableFile(to, &target, rocksdb::EnvOptions());
  std::string room(kCopyBytes, '\0');
  rocksdb::Slice read("x");
  while (done.ok() && !read.empty()) {
    done = source->Read(room.size(), &read, room.data());
    if (done.ok() && !read.empty()) done = target->Append(read);
  }
  if (done.ok()) done = target->Close();
  return done;
}

// The rows of a record, by the numbers of the families, which are those of their creation.
class RecordReader final : public rocksdb::WriteBatch::Handler {
 public:
  explicit RecordReader(CommitRecord& record) : record_(record) {}

  rocksdb::Status PutCF(std::uint32_t family, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    if (family == kLogFamily) {
      record_.batches.emplace_back(key.ToString(), value.ToString());
    } else if (key == kChainKey) {
      return MergeCF(family, key, value);
    } else if (RowChanges* changes = changes_of(family)) {
      changes->emplace_back(key.ToString(), value.ToString());
    }
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(std::uint32_t family, const rocksdb::Slice& key) override {
    if (RowChanges* changes = changes_of(family))
      changes->emplace_back(key.ToString(), std::nullopt);
    return rocksdb::Status::OK();
  }
  rocksdb::Status MergeCF(std::uint32_t /*family*/, const rocksdb::Slice& key,
                          const rocksdb::Slice& value) override {
    if (key == kChainKey) record_.chain = CommitChain::decode(value.ToStringView());
    return rocksdb::Status::OK();
  }
  void LogData(const rocksdb::Slice& /*blob*/) override {}

 private:
  RowChanges* changes_of(std::uint32_t family) {
    if (family == kStateFamily) return &record_.state;
    return family == kMetaFamily ? &record_.meta : nullptr;
  }

  CommitRecord& record_;
};

// Sees every record that is replayed, and lets none through.
class RecordFilter final : public rocksdb::WalFilter {
 public:
  explicit RecordFilter(const LoneFiles::TakeRecord& take) : take_(take) {}
  const char* Name() const override { return "ordo.RecordFilter"; }
  WalProcessingOption LogRecordFound(unsigned long long /*number*/, const std::string& /*name*/,
                                     const rocksdb::WriteBatch& batch,
                                     rocksdb::WriteBatch* /*other*/, bool* /*has_other*/) override {
    CommitRecord record;
    RecordReader reader(record);
    if (batch.Iterate(&reader).ok()) take_(record);
    return WalProcessingOption::kIgnoreCurrentRecord;
  }

 private:
  const LoneFiles::TakeRecord& take_;
};

}  // namespace

LoneFiles::LoneFiles(const DatabaseOptions& database)
    : database_(database),
      env_(database.env != nullptr ? *database.env : *rocksdb::Env::Default()),
      families_(Database::family_settings(database)) {}

std::vector<std::string> LoneFiles::names(std::string_view end) const {
  std::vector<std::string> names;
  if (!env_.GetChildren(database_.path, &names).ok()) return {};
  std::erase_if(names, [end](const std::string& name) { return !name.ends_with(end); });
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  return names;
}

std::unique_ptr<rocksdb::SstFileReader> LoneFiles::open_table(const std::string& name) const {
  rocksdb::Options options(Database::settings(database_, Database::Mode::read_only),
                           families_[kMetaFamily].options);
  auto table = std::make_unique<rocksdb::SstFileReader>(options);
  if (!table->Open(database_.path + "/" + name).ok()) return nullptr;
  return table;
}

// A repair of RocksDB's own makes a database of the one table.
Result<RowChanges> LoneFiles::table_changes(const std::string& name) const {
  if (const Status removed = remove_folder(env_, part()); !removed) return removed.error();
  if (const Status copied = copy_to_part(name, kTableName); !copied) return copied.error();
  const rocksdb::DBOptions options = Database::settings(database_, Database::Mode::create);
  rocksdb::Status done = rocksdb::RepairDB(part(), options, families_);
  std::vector<std::string> names;
  if (done.ok()) done = rocksdb::DB::ListColumnFamilies(options, part(), &names);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(names.size());
  for (const std::string& family : names)
    families.emplace_back(family, families_[kMetaFamily].options);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  if (done.ok()) done = rocksdb::DB::OpenForReadOnly(options, part(), families, &handles, &opened);
  if (!done.ok()) return error_of(done, "cannot read " + name);
  const std::unique_ptr<rocksdb::DB> db(opened);
  std::vector<rocksdb::KeyVersion> versions;
  for (rocksdb::ColumnFamilyHandle* family : handles) {
    if (done.ok()) {
      done = rocksdb::GetAllKeyVersions(db.get(), family, "", end_of_prefix(""),
                                        ~std::size_t{0} >> 1, &versions);
    }
    db->DestroyColumnFamilyHandle(family);
  }
  if (!done.ok()) return error_of(done, "cannot read " + name);
  RowChanges changes;
  for (rocksdb::KeyVersion& row : versions) {
    // The newest of a key comes first.
    const bool is_old = !changes.empty() && changes.back().first == row.user_key;
    if (is_old || row.user_key == kChainKey) continue;
    if (row.type == kValue) changes.emplace_back(std::move(row.user_key), std::move(row.value));
    if (row.type == kDeletion) changes.emplace_back(std::move(row.user_key), std::nullopt);
  }
  return changes;
}

Result<bool> LoneFiles::read_log(const std::string& name, const TakeRecord& take) const {
  if (const Status removed = remove_folder(env_, part()); !removed) return removed.error();
  if (const Status made = make_shell(); !made) return made.error();
  if (const Status copied = copy_to_part(name, kLogName); !copied) return copied.error();
  RecordFilter filter(take);
  rocksdb::Options options(Database::settings(database_, Database::Mode::existing),
                           rocksdb::ColumnFamilyOptions());
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  options.wal_filter = &filter;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status done = rocksdb::DB::OpenForReadOnly(options, part(), &opened);
  const std::unique_ptr<rocksdb::DB> db(opened);
  return done.ok();
}

Status LoneFiles::copy_to_part(const std::string& name, const std::string& as) const {
  rocksdb::Status done = env_.CreateDirIfMissing(part());
  if (done.ok()) done = copy(env_, database_.path + "/" + name, part() + "/" + as);
  if (!done.ok()) return error_of(done, "cannot copy " + name + " to read it");
  return {};
}

// An empty database, into which a log file can be put.
Status LoneFiles::make_shell() const {
  const rocksdb::Options options(Database::settings(database_, Database::Mode::create),
                                 rocksdb::ColumnFamilyOptions());
  rocksdb::DB* opened = nullptr;
  rocksdb::Status done = rocksdb::DB::Open(options, part(), &opened);
  if (!done.ok()) return error_of(done, "cannot make a place to read a log file in");
  std::unique_ptr<rocksdb::DB>(opened).reset();
  std::vector<std::string> names;
  done = env_.GetChildren(part(), &names);
  for (const std::string& name : names) {
    if (done.ok() && name.ends_with(".log")) done = env_.DeleteFile(part() + "/" + name);
  }
  if (!done.ok()) return error_of(done, "cannot make a place to read a log file in");
  return {};
}

Status remove_folder(rocksdb::Env& env, const std::string& path) {
  std::vector<std::string> names;
  if (const rocksdb::Status listed = env.GetChildren(path, &names); !listed.ok()) {
    if (listed.IsNotFound()) return {};
    return error_of(listed, "cannot look into " + path);
  }
  for (const std::string& name : names) {
    if (name == "." || name == "..") continue;
    std::string file = path;
    file.append("/").append(name);
    bool is_folder = false;
    if (env.IsDirectory(file, &is_folder).ok() && is_folder) {
      if (Status removed = remove_folder(env, file); !removed) return removed;
    } else if (const rocksdb::Status deleted = env.DeleteFile(file); !deleted.ok()) {
      return error_of(deleted, "cannot delete " + file);
    }
  }
  const rocksdb::Status deleted = env.DeleteDir(path);
  if (!deleted.ok()) return error_of(deleted, "cannot delete " + path);
  return {};
}

}  // namespace ordo::store_rocksdb
