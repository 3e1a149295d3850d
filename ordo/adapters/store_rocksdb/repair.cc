#include "ordo/adapters/store_rocksdb/repair.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <rocksdb/env.h>
#include <rocksdb/write_batch.h>

#include "ordo/adapters/store_rocksdb/catalog_repair.h"
#include "ordo/adapters/store_rocksdb/examination.h"
#include "ordo/adapters/store_rocksdb/log_reader.h"
#include "ordo/adapters/store_rocksdb/lone_files.h"
#include "ordo/adapters/store_rocksdb/recovery.h"
#include "ordo/adapters/store_rocksdb/rocksdb_error.h"
#include "ordo/adapters/store_rocksdb/salvage.h"
#include "ordo/adapters/store_rocksdb/staged_commit.h"
#include "ordo/broker/catalog_codec.h"

namespace ordo::store_rocksdb {
namespace {

using broker::MessageId;
using broker::Offset;
using broker::PartitionAddress;
using broker::RecoveredPartition;

// Rows of cursors may name offsets that are gone. New messages begin so far above the last one that
// is known that none of them is taken for acknowledged.
constexpr std::uint32_t kOffsetStride = std::uint32_t{1} << 31;

constexpr const char* kRefused = "a broker will not start with this catalog: ";

// A database that opens, and whose small families can be read to the end.
Result<std::unique_ptr<Database>> open_readable(const DatabaseOptions& options,
                                                Database::Mode mode) {
  Result<std::unique_ptr<Database>> database = Database::open(options, mode);
  if (!database) return database;
  if (Result<broker::Recovered> all = read_all(**database); !all) return all.error();
  for (rocksdb::ColumnFamilyHandle* family :
       {(*database)->index(), (*database)->state(), (*database)->meta()}) {
    const std::unique_ptr<rocksdb::Iterator> rows(
        (*database)->db().NewIterator(read_options(), family));
    for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    }
    if (!rows->status().ok()) return error_of(rows->status(), "not all rows can be read");
  }
  return database;
}

// Writes the index of one partition again: what can be read, and what is given up.
class IndexRepair {
 public:
  IndexRepair(const Database& database, rocksdb::WriteBatch& write)
      : database_(database),
        write_(write) {}

  // The next batch. Offsets before `known_end` that were not kept are given up.
  void keep(PartitionAddress partition, IndexedBatch at, Offset known_end) {
    if (known_end > reached_) give_up(partition, known_end - reached_);
    at.row.previous_end = reached_;
    write_.Put(database_.index(), index_key(partition, at.first_offset), encode_index_row(at.row));
    time_ = at.row.publish_time;
    reached_ = at.end();
  }
  void give_up(PartitionAddress partition, std::uint64_t count) {
    lost_ += count;
    while (count > 0) {
      const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, kOffsetStride));
      write_.Put(database_.index(), index_key(partition, reached_),
                 encode_index_row({.first_id = MessageId(),
                                   .count = part,
                                   .bytes = 0,
                                   .publish_time = time_,
                                   .previous_end = reached_}));
      reached_ = reached_ + part;
      count -= part;
    }
  }
  void begin(const RecoveredPartition& state) {
    reached_ = state.first;
    time_ = state.last_publish_time;
    lost_ = 0;
  }
  Offset reached() const { return reached_; }
  WallTime time() const { return time_; }
  std::uint64_t lost() const { return lost_; }

 private:
  const Database& database_;
  rocksdb::WriteBatch& write_;
  Offset reached_;
  WallTime time_;
  std::uint64_t lost_ = 0;
};

using FoundBatches = std::map<PartitionAddress, std::map<Offset, IndexedBatch>>;

// All batches of the log that can be read one after the other: its rows say what they are.
FoundBatches batches_of_log(const Database& database) {
  FoundBatches found;
  const auto take = [&](std::string_view /*key*/, std::string_view value) {
    const std::optional<PartitionAddress> partition = log_row_partition(value);
    if (!partition) return;
    const Result<std::shared_ptr<broker::MessageBatch>> batch = decode_log_row(value, *partition);
    if (!batch) return;
    found[*partition][(*batch)->first_offset] = {
        (*batch)->first_offset,
        {.first_id = (*batch)->first_id,
         .count = static_cast<std::uint32_t>((*batch)->count()),
         .bytes = (*batch)->bytes.size(),
         .publish_time = (*batch)->publish_time,
         .previous_end = (*batch)->first_offset}};
  };
  read_both_ways([&] { return database.db().NewIterator(read_options(), database.log()); }, take);
  return found;
}

// Those that the index knows and the log still has, each looked for by itself. The index also knows
// which offsets never existed.
Status add_batches_of_index(const Database& database, const broker::Recovered& all,
                            FoundBatches& found) {
  const LogReader reader(database);
  for (const auto& [partition, state] : all.partitions) {
    Offset at = state.first;
    while (true) {
      const Result<std::optional<IndexedBatch>> batch = reader.batch_at(partition, at);
      if (!batch) return batch.error();
      if (!*batch) break;
      at = (*batch)->end();
      if ((*batch)->row.is_lost() || !reader.fetch(partition, **batch)) continue;
      found[partition][(*batch)->first_offset] = **batch;
    }
  }
  return {};
}

// The index, the partitions, the chain and the row of the store, as they are from now on.
class Rebuild {
 public:
  Rebuild(Database& database, const Inspection& before, RepairLines& lines)
      : database_(database),
        before_(before),
        lines_(lines) {}

  // `salvaged`: what the database was made of; null: it is the one that was there.
  Result<Mark> run(const Salvaged* salvaged) {
    ErasedPartitions gone;
    Result<broker::Recovered> all = read_all(database_, &gone);
    if (!all) return all.error();
    FoundBatches found = batches_of_log(database_);
    for (const PartitionAddress& partition : gone) {
      found.erase(partition);
      const std::string prefix = address_prefix(partition);
      const Result<std::size_t> erased =
          database_.erase_each(database_.state(), {prefix, end_of_prefix(prefix)}, write_);
      if (!erased) return erased.error();
    }
    is_fresh_ = salvaged != nullptr;
    const bool has_all_meta = !is_fresh_ || salvaged->meta_commit >= acknowledged_commit();
    if (!is_fresh_) {
      if (Status added = add_batches_of_index(database_, *all, found); !added) return added.error();
    }
    // Not all partitions are known. If they are, what the log has of others was erased.
    if (!has_all_meta) add_unknown_partitions(found, *all);
    const Result<std::size_t> erased = database_.erase_each(
        database_.index(), {std::string(2, '\0'), std::string(64, '\xff')}, write_);
    if (!erased) return erased.error();
    for (auto& [partition, state] : all->partitions)
      rebuild(partition, state, found[partition]);
    for (const PartitionAddress& partition : gone)
      found[partition];
    mend_catalog(*std::move(all), found, has_all_meta);
    return finish();
  }

 private:
  // Those that have messages, or rows: what these name must not be taken for something new.
  static void add_unknown_partitions(const FoundBatches& found, broker::Recovered& all) {
    std::set<PartitionAddress> unknown;
    for (const auto& [partition, batches] : found)
      unknown.insert(partition);
    for (const auto& [key, value] : all.rows)
      unknown.insert(key.partition);
    for (const PartitionAddress& partition : unknown) {
      if (all.partitions.contains(partition)) continue;
      RecoveredPartition& state = all.partitions[partition];
      state.end = named_below(all, partition);
      const auto batches = found.find(partition);
      state.first = batches == found.end() ? state.end : batches->second.begin()->first;
      state.end = std::max(state.first, state.end);
    }
  }

  void mend_catalog(broker::Recovered all, const FoundBatches& found, bool has_all_meta) {
    std::vector<broker::TopicNumber> topics;
    for (const auto& [partition, batches] : found)
      topics.push_back(partition.topic);
    const CatalogRepair mended = repair_catalog(std::move(all), topics);
    for (const broker::CatalogKey& key : mended.erased)
      write_.Delete(database_.meta(), catalog_key(key));
    if (!has_all_meta) {
      write_.Put(database_.meta(),
                 catalog_key({broker::kCountersKind, std::string(broker::kCountersName)}),
                 broker::encode_row(mended.counters));
    }
    if (!has_all_meta || !mended.erased.empty())
      lines_.insert(lines_.end(), mended.lines.begin(), mended.lines.end());
    if (!mended.refusal.empty()) lines_.push_back(kRefused + mended.refusal);
  }

  std::uint64_t acknowledged_commit() const {
    std::uint64_t commit = 1;
    for (const std::optional<Mark>& mark : {before_.watermark, before_.witness}) {
      if (mark) commit = std::max(commit, mark->commit_number);
    }
    return commit;
  }

  void rebuild(PartitionAddress partition, RecoveredPartition state,
               const std::map<Offset, IndexedBatch>& batches) {
    IndexRepair index(database_, write_);
    index.begin(state);
    std::uint64_t kept = 0;
    for (const auto& [offset, batch] : batches) {
      if (batch.end() <= state.first) continue;
      // Without an index nobody knows which gaps were always there: all are given up.
      index.keep(partition, batch, std::min(batch.row.previous_end, batch.first_offset));
      next_id_ = std::max(next_id_, batch.row.first_id.value() + batch.row.count);
      kept += batch.row.count;
    }
    if (state.end > index.reached()) index.give_up(partition, state.end - index.reached());
    const std::uint64_t lost = index.lost();
    index.give_up(partition, kOffsetStride);
    state.end = index.reached();
    state.last_publish_time = index.time();
    write_.Put(database_.meta(), partition_key(partition), encode_partition_row(state));
    std::string line = "partition " + std::to_string(partition.index) + " of topic " +
                       std::to_string(partition.topic.value()) + ": " + std::to_string(kept) +
                       " messages kept";
    if (lost > 0) line += ", offsets given up: " + std::to_string(lost);
    lines_.push_back(std::move(line));
  }

  Result<Mark> finish() {
    Mark mark;
    mark.has_database = true;
    const auto raise = [&](const std::optional<Mark>& other) {
      if (!other) return;
      mark.directory_id = std::max(mark.directory_id, other->directory_id);
      mark.start_number = std::max(mark.start_number, other->start_number);
      mark.commit_number = std::max(mark.commit_number, other->commit_number);
      next_id_ = std::max(next_id_, other->next_id);
    };
    raise(before_.watermark);
    raise(before_.witness);
    StoreRow row;
    if (const auto stored = database_.store_row(); stored && *stored) row = **stored;
    if (const auto chain = database_.chain(); chain && *chain) {
      mark.commit_number = std::max(mark.commit_number, (*chain)->last);
      next_id_ = std::max(next_id_, (*chain)->next_id);
    }
    mark.directory_id = std::max({mark.directory_id, row.directory_id, std::uint64_t{1}});
    mark.start_number = std::max(mark.start_number, row.start_number);
    ++mark.commit_number;
    mark.next_id = next_id_;
    row.directory_id = mark.directory_id;
    row.start_number = mark.start_number;
    write_.Put(database_.meta(), store_key(), encode_store_row(row));
    CommitChain chain = CommitChain::one(mark.commit_number, mark.next_id);
    if (is_fresh_) chain.first = 1;  // All that there is.
    database_.reset_chain(write_, chain);
    rocksdb::WriteOptions synced;
    synced.sync = true;
    const rocksdb::Status written = database_.db().Write(synced, &write_);
    if (!written.ok()) return error_of(written, "cannot write what was repaired");
    if (Status flushed = database_.flush(); !flushed) return flushed.error();
    return mark;
  }

  Database& database_;
  const Inspection& before_;
  RepairLines& lines_;
  rocksdb::WriteBatch write_;
  std::uint64_t next_id_ = 1;
  bool is_fresh_ = false;
};

// What the marks say, as far as they can be read.
Inspection marks_of(rocksdb::Env& env, const DirectoryPaths& paths) {
  Inspection found;
  if (Result<std::optional<Mark>> mark = Watermark::read(env, paths.watermark()); mark)
    found.watermark = *mark;
  if (paths.witness.empty()) return found;
  if (Result<std::optional<Mark>> mark = Watermark::read(env, paths.witness); mark)
    found.witness = *mark;
  return found;
}

Status write_marks(rocksdb::Env& env, const DirectoryPaths& paths, const Mark& mark) {
  if (Status made = Watermark::create(env, paths.watermark(), mark); !made) return made;
  if (paths.witness.empty()) return {};
  return Watermark::create(env, paths.witness, mark);
}

bool has_files(rocksdb::Env& env, const std::string& path) {
  std::vector<std::string> names;
  return env.GetChildren(path, &names).ok() && !names.empty();
}

// Of the two steps of a swap the second, which was not done if a crash came between them.
Status put_in_place(rocksdb::Env& env, const DirectoryPaths& paths) {
  const rocksdb::Status renamed = env.RenameFile(paths.fresh_database(), paths.database());
  if (!renamed.ok()) return error_of(renamed, "cannot put the repaired database in place");
  return sync_name(env, paths.database());
}

// The old database is put aside. Where it is from now on.
Result<std::string> put_aside(rocksdb::Env& env, const DirectoryPaths& paths) {
  std::string aside = paths.database() + ".lost";
  for (int i = 2; env.FileExists(aside).ok(); ++i)
    aside = paths.database() + ".lost." + std::to_string(i);
  const rocksdb::Status renamed = env.RenameFile(paths.database(), aside);
  if (!renamed.ok()) return error_of(renamed, "cannot put the damaged database aside");
  return aside;
}

// Makes a database of what can be read, and puts it in the place of the one that does not open.
Result<Mark> make_anew(rocksdb::Env& env, const DirectoryPaths& paths,
                       const DatabaseOptions& damaged, const Inspection& marks,
                       RepairLines& lines) {
  if (const Status removed = remove_folder(env, paths.fresh_database()); !removed)
    return removed.error();
  DatabaseOptions options = damaged;
  options.path = paths.fresh_database();
  Result<std::unique_ptr<Database>> fresh = Database::open(options, Database::Mode::create);
  if (!fresh) return fresh.error();
  const Result<Salvaged> salvaged = salvage(damaged, **fresh);
  if (!salvaged) return salvaged.error();
  lines.insert(lines.end(), salvaged->lines.begin(), salvaged->lines.end());
  Result<Mark> mark = Rebuild(**fresh, marks, lines).run(&*salvaged);
  if (!mark) return mark;
  fresh->reset();
  if (const Status synced = sync_name(env, options.path); !synced) return synced.error();
  if (has_files(env, paths.database())) {
    const Result<std::string> aside = put_aside(env, paths);
    if (!aside) return aside.error();
    lines.push_back("the database is made anew of all that can be read; the old one is in " +
                    *aside + ", and can be deleted");
  }
  if (const Status swapped = put_in_place(env, paths); !swapped) return swapped.error();
  if (const Status removed = remove_folder(env, damaged.path + ".part"); !removed)
    return removed.error();
  return mark;
}

// Whether commits that were acknowledged are missing in it.
bool is_short(const Database& database, const Inspection& marks) {
  const Result<std::optional<CommitChain>> chain = database.chain();
  if (!chain || !*chain || (*chain)->has_gap()) return true;
  return marks.watermark && marks.watermark->commit_number > (*chain)->last;
}

// In its place if nothing is missing in it, else anew: a database whose manifest fell back opens,
// and deletes the tables that it does not know of any more.
Result<Mark> repair_database(rocksdb::Env& env, const DirectoryPaths& paths,
                             const DatabaseOptions& options, RepairLines& lines) {
  const Inspection marks = marks_of(env, paths);
  const Result<std::unique_ptr<Database>> readable =
      open_readable(options, Database::Mode::read_only);
  if (!readable || is_short(**readable, marks)) return make_anew(env, paths, options, marks, lines);
  // An error now is no room, or no right to write: nothing that is cured by making it anew.
  const Result<std::unique_ptr<Database>> database =
      open_readable(options, Database::Mode::existing);
  if (!database) return database.error();
  return Rebuild(**database, marks, lines).run(nullptr);
}

}  // namespace

Result<RepairLines> repair(const DirectoryPaths& paths, const RepairOptions& options) {
  rocksdb::Env& env = options.env != nullptr ? *options.env : *rocksdb::Env::Default();
  if (!env.FileExists(paths.directory).ok()) {
    return Error{ErrorCode::not_found, "there is no directory " + paths.directory};
  }
  Result<std::unique_ptr<DirectoryLock>> lock = DirectoryLock::take(env, paths);
  if (!lock) return lock.error();
  if (options.accept_loss && !has_files(env, paths.database()) &&
      has_files(env, paths.fresh_database())) {
    if (Status swapped = put_in_place(env, paths); !swapped) return swapped.error();
  }
  const Examination found = examine_locked(paths, options.env);
  if (found.problems.empty()) return RepairLines{"nothing is wrong; nothing was changed"};
  RepairLines lines = found.problems;
  if (found.is_missing || !options.accept_loss) {
    std::string text;
    for (const std::string& problem : found.problems)
      text += problem + "\n";
    if (!found.is_missing)
      text += "nothing was changed; with --accept-loss what is missing is given up";
    return Error{ErrorCode::failed_precondition, text};
  }
  if (found.is_foreign) return Error{ErrorCode::failed_precondition, found.problems.front()};
  const Result<Mark> mark =
      repair_database(env, paths, {.path = paths.database(), .env = options.env}, lines);
  if (!mark) return mark.error();
  if (Status marked = write_marks(env, paths, *mark); !marked) return marked.error();
  const bool is_refused = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with(kRefused);
  });
  if (!is_refused) lines.push_back("repaired; the next start goes on from here");
  return lines;
}

}  // namespace ordo::store_rocksdb
