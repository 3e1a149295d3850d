#include "ordo/adapters/store_rocksdb/data_directory.h"

#include <fcntl.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <rocksdb/env.h>

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

}  // namespace

std::string holder_of(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
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
  rocksdb::FileLock* lock = nullptr;
  const rocksdb::Status locked = env.LockFile(paths.lock(), &lock);
  if (!locked.ok()) {
    return Error{ErrorCode::failed_precondition,
                 "the data directory " + paths.directory + " is in use by another broker" +
                     holder_of(paths.lock()) + ": " + locked.ToString()};
  }
  return std::unique_ptr<DirectoryLock>(new DirectoryLock(env, lock));
}

DirectoryLock::~DirectoryLock() {
  env_.UnlockFile(lock_);
}

Result<Inspection> inspect(rocksdb::Env& env, const DirectoryPaths& paths,
                           const DatabaseOptions& options) {
  Inspection found;
  Result<std::optional<Mark>> watermark = Watermark::read(env, paths.watermark());
  if (!watermark) return loss(watermark.error().message);
  found.watermark = *watermark;
  if (!found.watermark && has_database_files(env, paths.database())) {
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
  if (found.witness && found.watermark &&
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
  if (found.is_new) return {};
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
