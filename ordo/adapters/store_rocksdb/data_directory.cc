#include "ordo/adapters/store_rocksdb/data_directory.h"

#include <fcntl.h>
#include <mutex>
#include <set>
#include <unistd.h>
#include <utility>
#include <vector>

#include <rocksdb/env.h>
#include <sys/stat.h>

#include "ordo/adapters/store_rocksdb/rocksdb_error.h"

namespace ordo::store_rocksdb {
namespace {

constexpr const char* kWayOn =
    "; nothing was changed. `ordo doctor` tells more; `ordo repair --accept-loss` goes on without "
    "what is missing";

Error loss(std::string what) {
  return {ErrorCode::data_loss, std::move(what) + kWayOn};
}

bool has_database_files(rocksdb::Env& env, const std::string& path) {
  std::vector<std::string> names;
  return env.GetChildren(path, &names).ok() && !names.empty();
}

std::optional<FolderId> folder_id(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return FolderId(found.st_dev, found.st_ino);
}

// The folders that this process uses. The system's locks do not keep a process from itself, RocksDB
// knows them by their names only, and to open and close a lock file is to lose the lock.
class HeldFolders {
 public:
  bool add(const FolderId& folder) {
    const std::lock_guard lock(mutex_);
    return folders_.insert(folder).second;
  }
  void remove(const FolderId& folder) {
    const std::lock_guard lock(mutex_);
    folders_.erase(folder);
  }
  bool has(const std::optional<FolderId>& folder) {
    const std::lock_guard lock(mutex_);
    return folder && folders_.contains(*folder);
  }

 private:
  std::mutex mutex_;
  std::set<FolderId> folders_;
};

HeldFolders& held_here() {
  static HeldFolders held;
  return held;
}

std::string range(std::uint64_t first, std::uint64_t last) {
  if (first == last) return std::to_string(first);
  return std::to_string(first) + " to " + std::to_string(last);
}

// `mark` was acknowledged according to the file `where`; the database got as far as `chain`.
std::string shortfall(const Mark& mark, const std::string& where, const CommitChain& chain) {
  std::string text = "commits " + range(chain.last + 1, mark.commit_number) +
                     " were acknowledged (" + where + ") but the database ends at commit " +
                     std::to_string(chain.last) + ": ";
  if (mark.next_id > chain.next_id) {
    return text + "messages with the ids " + range(chain.next_id, mark.next_id - 1) +
           ", and what was acknowledged meanwhile, are missing";
  }
  return text + "no message is missing, but what was acknowledged meanwhile";
}

// Nothing was ever acknowledged here according to the directory; the witness knows better.
Status vanished(const Inspection& found, const DirectoryPaths& paths) {
  const std::string known = "commits up to " + std::to_string(found.witness->commit_number) +
                            " were acknowledged (" + paths.witness + ")";
  if (!found.is_empty) return loss(paths.watermark() + " knows of no commit, but " + known);
  return Error{ErrorCode::data_loss, "the data directory " + paths.directory + " is empty, but " +
                                         known +
                                         ". Is its disk mounted? To begin anew remove that file"};
}

}  // namespace

std::string holder_of(const DirectoryPaths& paths) {
  if (held_here().has(folder_id(paths.directory)))
    return " (process " + std::to_string(::getpid()) + ")";
  const int file = ::open(paths.lock().c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool known = ::fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0;
  ::close(file);
  return known ? " (process " + std::to_string(lock.l_pid) + ")" : "";
}

Result<std::unique_ptr<DirectoryLock>> DirectoryLock::take(rocksdb::Env& env,
                                                           const DirectoryPaths& paths) {
  const auto in_use = [&](const std::string& why) {
    return Error{ErrorCode::failed_precondition, "the data directory " + paths.directory +
                                                     " is in use by another broker" +
                                                     holder_of(paths) + why};
  };
  std::unique_ptr<DirectoryLock> held(new DirectoryLock(env));
  if (&env == rocksdb::Env::Default()) {
    const std::optional<FolderId> folder = folder_id(paths.directory);
    if (folder && !held_here().add(*folder)) return in_use("");
    held->folder_ = folder;
  }
  const rocksdb::Status locked = env.LockFile(paths.lock(), &held->lock_);
  if (locked.ok()) return held;
  held->lock_ = nullptr;
  held.reset();  // Else the holder would seem to be this process.
  return in_use(": " + locked.ToString());
}

DirectoryLock::~DirectoryLock() {
  if (lock_ != nullptr) env_.UnlockFile(lock_);
  if (folder_) held_here().remove(*folder_);
}

Result<Inspection> inspect(rocksdb::Env& env, const DirectoryPaths& paths,
                           const DatabaseOptions& options) {
  Inspection found;
  Result<std::optional<Mark>> watermark = Watermark::read(env, paths.watermark());
  if (!watermark) return loss(watermark.error().message);
  found.watermark = *watermark;
  if (!found.watermark && (has_database_files(env, paths.database()) ||
                           has_database_files(env, paths.fresh_database()))) {
    return loss(paths.watermark() +
                " is missing, so it is not known how far commits were acknowledged");
  }
  found.is_empty = !found.watermark;
  found.is_new = found.is_empty || !found.watermark->has_database;
  if (!paths.witness.empty()) {
    // A damaged witness says nothing, like one that is missing: it is only a second opinion.
    if (Result<std::optional<Mark>> witness = Watermark::read(env, paths.witness); witness)
      found.witness = *witness;
  }
  if (found.witness && !found.is_new &&
      found.witness->directory_id != found.watermark->directory_id)
    found.witness.reset();
  if (found.is_new) return found;

  Result<std::unique_ptr<Database>> database = Database::open(options, Database::Mode::read_only);
  if (!database) return Error{database.error().code, database.error().message + kWayOn};
  Result<std::optional<CommitChain>> chain = (*database)->chain();
  if (!chain) return loss(chain.error().message);
  Result<std::optional<StoreRow>> store = (*database)->store_row();
  if (!store) return loss(store.error().message);
  found.chain = *chain;
  found.store = *store;
  return found;
}

Status judge(const Inspection& found, const DirectoryPaths& paths) {
  if (found.is_new) return found.witness ? vanished(found, paths) : Status();
  if (!found.chain || !found.store) {
    return loss("the database in " + paths.database() + " is empty, but commits up to " +
                std::to_string(found.watermark->commit_number) + " were acknowledged");
  }
  if (found.store->format != kFormatVersion) {
    return Error{ErrorCode::failed_precondition,
                 "the data directory " + paths.directory + " has format " +
                     std::to_string(found.store->format) + "; this version knows format " +
                     std::to_string(kFormatVersion)};
  }
  if (found.store->directory_id != found.watermark->directory_id)
    return loss(paths.watermark() + " belongs to another data directory");
  const CommitChain& chain = *found.chain;
  if (chain.has_gap()) {
    return loss("commits " + range(chain.missing_first, chain.missing_last) +
                " are missing in the middle of the database in " + paths.database());
  }
  if (found.watermark->commit_number > chain.last)
    return loss(shortfall(*found.watermark, paths.watermark(), chain));
  if (found.witness && found.witness->commit_number > chain.last) {
    return loss("the data directory " + paths.directory +
                " is an old copy: " + shortfall(*found.witness, paths.witness, chain));
  }
  return {};
}

Result<std::unique_ptr<DirectoryMarks>> DirectoryMarks::open(rocksdb::Env& env,
                                                             const DirectoryPaths& paths) {
  if (env.FileExists(paths.watermark()).IsNotFound()) {
    if (Status created = Watermark::create(env, paths.watermark(), Mark{}); !created)
      return created.error();
  }
  Result<std::unique_ptr<Watermark>> watermark = Watermark::open(env, paths.watermark());
  if (!watermark) return watermark.error();
  std::unique_ptr<DirectoryMarks> marks(new DirectoryMarks(env, paths.witness));
  marks->watermark_ = std::move(*watermark);
  return marks;
}

void DirectoryMarks::testify(const Mark& mark) {
  if (witness_path_.empty()) return;
  if (!witness_ || witness_of_ != mark.directory_id) {
    if (!Watermark::create(env_, witness_path_, mark)) return;
    Result<std::unique_ptr<Watermark>> opened = Watermark::open(env_, witness_path_);
    if (!opened) return;
    witness_ = std::move(*opened);
    witness_of_ = mark.directory_id;
    return;
  }
  if (witness_->write(mark)) static_cast<void>(witness_->sync());
}

}  // namespace ordo::store_rocksdb
