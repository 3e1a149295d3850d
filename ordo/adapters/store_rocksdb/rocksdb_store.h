// The Store port on RocksDB: one directory, one synced write for each commit, nothing lost without
// a word.
//
//   Result<std::unique_ptr<broker::Store>> store = open_store({.directory = "/var/lib/ordo"});
//   if (!store) return store.error();    // in use, damaged, or short of what was acknowledged
//   Result<broker::Recovered> recovered = (*store)->recover();
//
// open_store() looks before it touches anything: a directory whose log falls short of what was
// acknowledged is left as it is, and the error names what is missing. docs/storage_format.md
// describes the files and what each sync policy can lose.
//
// Threads: as Store. Owns one thread, "ordo-store", for syncs between commits and for trimming;
//          RocksDB has two in the background.
// Bounds:  memory: 3 write buffers and the cache, whatever is stored. Disk: appends are refused
//          (resource_exhausted) while less than the reserve is free; rows still go.
// Cost:    commit: one write to the log file and one fdatasync.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ordo/broker/store.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace rocksdb {
class Env;
}

namespace ordo::store_rocksdb {

// When a commit is on the disk.
enum class SyncPolicy : std::uint8_t {
  commit,    // Before commit() returns. A power cut loses nothing that was acknowledged.
  interval,  // At most sync_interval later: a power cut loses that much, a crashed process nothing.
  os,        // When the operating system likes: a power cut may lose half a minute.
};

struct StoreOptions {
  std::string directory{};
  SyncPolicy sync = SyncPolicy::commit;
  std::chrono::nanoseconds sync_interval = std::chrono::milliseconds(50);
  // The watermark is written with every commit and synced this often. 0: with every commit, which
  // doubles its syncs; see docs/storage_format.md for what the difference can hide.
  std::chrono::nanoseconds watermark_interval = std::chrono::milliseconds(5);
  // A second copy of the watermark, outside of the directory. Not set: directory + ".witness".
  // Empty: none, and an old copy of the directory cannot be told from the directory.
  std::optional<std::string> witness{};
  std::chrono::nanoseconds witness_interval = std::chrono::seconds(1);
  // What nobody needs any more is looked for so long after it was trimmed.
  std::chrono::nanoseconds trim_interval = std::chrono::seconds(1);
  // After the disk was full, the store looks this often whether there is room to go on.
  std::chrono::nanoseconds reopen_interval = std::chrono::milliseconds(100);
  std::uint64_t reserve_bytes = 64u << 20;     // Kept free for acknowledgements.
  std::size_t write_buffer_bytes = 32u << 20;  // Messages are held so long before they are a table.
  std::size_t cache_bytes = 16u << 20;         // Of what is read.
  int open_files_max = 256;
  Clock* clock = nullptr;       // nullptr: system_clock().
  rocksdb::Env* env = nullptr;  // nullptr: the system's files.
};

// Errors: invalid_argument names the option; failed_precondition: in use by another process, or of
//         another format; data_loss: damaged, or short of what was acknowledged.
Result<std::unique_ptr<broker::Store>> open_store(const StoreOptions& options);

}  // namespace ordo::store_rocksdb
