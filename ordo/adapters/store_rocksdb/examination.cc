#include "ordo/adapters/store_rocksdb/examination.h"

#include <algorithm>
#include <utility>

#include <rocksdb/env.h>

#include "ordo/adapters/store_rocksdb/log_reader.h"
#include "ordo/adapters/store_rocksdb/recovery.h"
#include "ordo/adapters/store_rocksdb/rocksdb_error.h"

namespace ordo::store_rocksdb {
namespace {

std::string describe(const std::string& name, const Mark& mark) {
  return name + ": commit " + std::to_string(mark.commit_number) + ", next message id " +
         std::to_string(mark.next_id) + ", start " + std::to_string(mark.start_number) +
         (mark.is_clean ? ", closed in order" : ", not closed");
}

void describe_marks(const Inspection& found, const DirectoryPaths& paths, Examination& result) {
  if (found.watermark) result.lines.push_back(describe("watermark", *found.watermark));
  if (found.witness) {
    result.lines.push_back(describe("witness " + paths.witness, *found.witness));
  } else {
    result.lines.push_back("witness: none (an old copy of the directory could not be told)");
  }
  if (found.chain && found.store) {
    result.lines.push_back("database: commit " + std::to_string(found.chain->last) +
                           ", next message id " + std::to_string(found.chain->next_id) +
                           ", start " + std::to_string(found.store->start_number) + ", format " +
                           std::to_string(found.store->format));
  }
}

// Every partition and every row; false: the rest cannot be read.
void check_content(const Database& database, Examination& result) {
  Result<broker::Recovered> all = read_all(database);
  if (!all) {
    result.problems.push_back(all.error().message);
    return;
  }
  LogCheck total;
  for (const auto& [address, state] : all->partitions) {
    Result<LogCheck> checked = check_log(database, address, state);
    if (!checked) {
      result.problems.push_back(checked.error().message);
      continue;
    }
    total.batches += checked->batches;
    total.messages += checked->messages;
    total.bytes += checked->bytes;
    total.lost_messages += checked->lost_messages;
    for (std::string& problem : checked->problems)
      result.problems.push_back(std::move(problem));
  }
  result.messages = total.messages;
  result.lines.push_back("messages: " + std::to_string(total.messages) + " in " +
                         std::to_string(total.batches) + " batches, " +
                         std::to_string(total.bytes) + " bytes, in " +
                         std::to_string(all->partitions.size()) + " partitions");
  if (total.lost_messages > 0)
    result.lines.push_back("offsets given up by an earlier repair: " +
                           std::to_string(total.lost_messages));
  result.lines.push_back("rows: " + std::to_string(all->rows.size()) + " of cursors, " +
                         std::to_string(all->catalog.size()) + " of the catalog");
}

void shorten(std::vector<std::string>& problems) {
  if (problems.size() <= Examination::kProblemsMax) return;
  const std::size_t more = problems.size() - Examination::kProblemsMax;
  problems.resize(Examination::kProblemsMax);
  problems.push_back("and " + std::to_string(more) + " more");
}

}  // namespace

Result<LogCheck> check_log(const Database& database, broker::PartitionAddress partition,
                           const broker::RecoveredPartition& state) {
  const LogReader reader(database);
  LogCheck check;
  broker::Offset reached = state.first;
  while (reached < state.end) {
    const Result<std::optional<IndexedBatch>> found = reader.batch_at(partition, reached);
    if (!found) return found.error();
    const std::optional<IndexedBatch>& at = *found;
    const broker::Offset known = at ? at->row.previous_end : state.end;
    if (known > reached) check.problems.push_back(place(partition, reached, known) + ": missing");
    if (!at) break;
    reached = at->end();
    if (at->row.is_lost()) {
      check.lost_messages += at->row.count;
      continue;
    }
    const Result<std::shared_ptr<broker::MessageBatch>> batch = reader.fetch(partition, *at);
    if (!batch) {
      check.problems.push_back(batch.error().message);
      continue;
    }
    ++check.batches;
    check.messages += at->end() - std::max(state.first, at->first_offset);
    check.bytes += at->row.bytes;
  }
  return check;
}

Examination examine(const DirectoryPaths& paths, rocksdb::Env* env) {
  if (const std::string holder = holder_of(paths); env == nullptr && !holder.empty()) {
    Examination result;
    result.is_in_use = true;
    result.problems.push_back("the data directory " + paths.directory + " is in use" + holder);
    return result;
  }
  return examine_locked(paths, env);
}

Examination examine_locked(const DirectoryPaths& paths, rocksdb::Env* given) {
  rocksdb::Env& env = given != nullptr ? *given : *rocksdb::Env::Default();
  Examination result;
  const DatabaseOptions options{.path = paths.database(), .env = given};
  const Result<Inspection> found = inspect(env, paths, options);
  if (!found) {
    result.problems.push_back(found.error().message);
    return result;
  }
  if (found->is_empty) {
    result.is_missing = true;
    result.problems.push_back("there is no data in " + paths.directory);
    if (const Status whole = judge(*found, paths); !whole)
      result.problems.back() = whole.error().message;
    return result;
  }
  describe_marks(*found, paths, result);
  if (found->is_new && !found->witness) {
    result.lines.push_back("nothing was stored yet");
    return result;
  }
  if (const Status whole = judge(*found, paths); !whole) {
    result.problems.push_back(whole.error().message);
    result.is_foreign = whole.error().code == ErrorCode::failed_precondition;
    if (result.is_foreign) return result;
  }
  Result<std::unique_ptr<Database>> database = Database::open(options, Database::Mode::read_only);
  if (!database) {
    result.problems.push_back(database.error().message);
    return result;
  }
  check_content(**database, result);
  // All that is needed was read above. What is left may have been given up by a repair.
  if (const rocksdb::Status verified = (*database)->db().VerifyChecksum(); !verified.ok())
    result.lines.push_back("a table is damaged where nobody reads: " + verified.ToString());
  shorten(result.problems);
  return result;
}

}  // namespace ordo::store_rocksdb
