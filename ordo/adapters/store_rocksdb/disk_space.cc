#include "ordo/adapters/store_rocksdb/disk_space.h"

#include <limits>

#include <rocksdb/env.h>
#include <rocksdb/transaction_log.h>

#include "ordo/adapters/store_rocksdb/database.h"

namespace ordo::store_rocksdb {

std::uint64_t DiskSpace::free_bytes() const {
  std::uint64_t free = 0;
  if (!env_.GetFreeSpace(path_, &free).ok()) return std::numeric_limits<std::uint64_t>::max();
  return free;
}

std::string DiskSpace::message() const {
  return "the disk of " + path_ + " has " + std::to_string(free_bytes()) +
         " bytes free; messages are taken again when there are " + std::to_string(reserve_bytes_);
}

std::uint64_t database_log_bytes(const Database& database) {
  rocksdb::VectorLogPtr files;
  if (!database.db().GetSortedWalFiles(files).ok()) return 0;
  std::uint64_t bytes = 0;
  for (const auto& file : files)
    bytes += file->SizeFileBytes();
  return bytes;
}

}  // namespace ordo::store_rocksdb
