// DiskSpace: whether there is room for messages, asked before every append.
//
// Threads: any thread.
// Cost:    one statvfs, about a microsecond.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace rocksdb {
class Env;
}

namespace ordo::store_rocksdb {

class Database;

class DiskSpace {
 public:
  DiskSpace(rocksdb::Env& env, std::string path, std::uint64_t reserve_bytes)
      : env_(env),
        path_(std::move(path)),
        reserve_bytes_(reserve_bytes) {}

  // Less than the reserve is free.
  bool is_short() const { return free_bytes() < reserve_bytes_; }
  // The greatest number if the file system does not tell.
  std::uint64_t free_bytes() const;
  // For whoever is refused.
  std::string message() const;

 private:
  rocksdb::Env& env_;
  std::string path_;
  std::uint64_t reserve_bytes_;
};

// Of the log files that are written ahead.
std::uint64_t database_log_bytes(const Database& database);

}  // namespace ordo::store_rocksdb
