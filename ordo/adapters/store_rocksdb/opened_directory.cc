#include "ordo/adapters/store_rocksdb/opened_directory.h"

#include <optional>
#include <string>
#include <utility>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/log_file_order.h"
#include "ordo/adapters/store_rocksdb/rocksdb_error.h"

namespace ordo::store_rocksdb {
namespace {

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
  if (options.reopen_interval <= std::chrono::nanoseconds::zero())
    return error("reopen_interval must be above zero");
  return std::nullopt;
}

}  // namespace

Result<OpenedDirectory> open_directory(const StoreOptions& options) {
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
  std::unique_ptr<rocksdb::Env> ordered = order_log_files(
      env, options.sync == SyncPolicy::commit ? LogLength::ahead : LogLength::grows);
  database_options.env = ordered.get();
  Result<std::unique_ptr<Database>> database = Database::open(
      database_options, found->is_new ? Database::Mode::create : Database::Mode::existing);
  if (!database) return database.error();
  if (found->is_new) {
    for (const std::string& made : {paths.database(), paths.directory}) {
      if (const Status synced = sync_name(env, made); !synced) return synced.error();
    }
  }
  return OpenedDirectory{
      .env = std::move(ordered),
      .lock = std::move(*lock),
      .marks = std::move(*marks),
      .slot = std::make_unique<DatabaseSlot>(database_options, std::move(*database))};
}

}  // namespace ordo::store_rocksdb
