// LogFileOrder: a new log file begins only when the last one is on the disk, and may have its
// length from the beginning.
//
// Where commits are not synced one by one, a power cut may leave the newest log file and take the
// end of the one before it: commits would be missing in the middle. With this only newest ones are.
//
// Where they are, it is for a full disk: RocksDB syncs older log files again, in the background and
// with every commit, and ends the process if one failed before. These have nothing left to sync.
//
// A log file that grows has a new length with every commit, and the sync writes that down as well:
// half of its time (ext4). With LogLength::ahead its length is that of the space set aside for it,
// until it is closed; what was not written yet reads as zeros, which a reader passes over. A power
// cut may then keep a later part of what was not synced without an earlier one. So it is for those
// who sync each commit before the next: there is never more than one that was not.
//
//   std::unique_ptr<rocksdb::Env> env =
//       order_log_files(*rocksdb::Env::Default(), LogLength::ahead);
//
// GetFileSize() of this environment gives what was written to the newest log file, not its length.
//
// Threads: any thread.
// Cost:    one sync for each log file, which is one for each write buffer.
#pragma once

#include <cstdint>
#include <memory>

namespace rocksdb {
class Env;
}

namespace ordo::store_rocksdb {

enum class LogLength : std::uint8_t { grows, ahead };

// `env` outlives the result.
std::unique_ptr<rocksdb::Env> order_log_files(rocksdb::Env& env, LogLength length);

}  // namespace ordo::store_rocksdb
