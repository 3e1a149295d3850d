// salvage(): gets what can still be read out of the files of a database that does not open.
//
//   Result<Salvaged> found = salvage(damaged, *fresh);   // fresh: a new, empty Database
//
// Every table and every log file is read by itself: which of them belong together is what a damaged
// database has forgotten, and a crash leaves files behind that are out of date. A batch of the log
// is never changed, so it does not matter where it is found. For all other rows the commits that a
// file holds tell which one is newer: every table and every record has a row of them
// (commit_chain.h). A table whose commits all are in another, undamaged one is out of date.
//
// What was damaged is read from both ends up to the damage. The index is not read: it is rebuilt
// from the log. Spilled chunks are of no use.
//
// Threads: a function without state of its own; nobody else uses the files.
// Bounds:  memory: the rows of 'state' and 'meta', and what the log files change in them. Disk: all
//          messages once more, in `fresh`; the folder DAMAGED.part while one file is read.
// Cost:    every file is read, some of them more than once; every message is written.
// Errors:  nothing can be written, in `fresh` or beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <rocksdb/iterator.h>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

struct Salvaged {
  std::vector<std::string> lines;  // The files that could not be read, or not wholly.
  // All rows of the family are there as they were after this commit. 0: some are not.
  std::uint64_t meta_commit = 0;
  std::uint64_t state_commit = 0;
};

Result<Salvaged> salvage(const DatabaseOptions& damaged, Database& fresh);

// Takes every row from the first up to the first that cannot be read, and if there is one, every
// row from the last down to it. How many there were.
using MakeIterator = std::function<rocksdb::Iterator*()>;
using TakeRow = std::function<void(std::string_view key, std::string_view value)>;
std::size_t read_both_ways(const MakeIterator& make, const TakeRow& take);

}  // namespace ordo::store_rocksdb
