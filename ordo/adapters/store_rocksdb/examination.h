// examine(): looks at a whole data directory without changing anything, for `ordo doctor`.
//
//   const Examination found = examine({"/var/lib/ordo", usual_witness("/var/lib/ordo")});
//   for (const std::string& line : found.lines) ...        // for people
//   found.problems                                          // empty: everything is there
//
// Opens the database read-only, reads every message and every row, and compares all checksums, the
// chain of commits, the watermark and the witness.
//
// Threads: a function without state of its own.
// Cost:    reads everything that is stored once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ordo/adapters/store_rocksdb/data_directory.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

struct Examination {
  std::vector<std::string> lines;     // What is there.
  std::vector<std::string> problems;  // What is wrong; at most kProblemsMax, then how many more.
  bool is_in_use = false;             // By a process: nothing more was looked at.
  bool is_foreign = false;            // Another format: nothing of it can be understood.
  bool is_missing = false;            // There is no such directory, or nothing of ours in it.
  std::uint64_t messages = 0;         // That can be read.

  static constexpr std::size_t kProblemsMax = 20;
};

Examination examine(const DirectoryPaths& paths, rocksdb::Env* env = nullptr);
// By whoever holds the lock.
Examination examine_locked(const DirectoryPaths& paths, rocksdb::Env* env = nullptr);

// All messages of all partitions: reads each batch, and says where one is missing or damaged.
struct LogCheck {
  std::uint64_t batches = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t lost_messages = 0;  // Accepted as lost by an earlier repair.
  std::vector<std::string> problems;
};
Result<LogCheck> check_log(const Database& database, broker::PartitionAddress partition,
                           const broker::RecoveredPartition& state);

}  // namespace ordo::store_rocksdb
