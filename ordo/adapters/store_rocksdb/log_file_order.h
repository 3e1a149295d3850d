// LogFileOrder: a new log file begins only when the last one is on the disk.
//
// Where commits are not synced one by one, a power cut may leave the newest log file and take the
// end of the one before it: commits would be missing in the middle. With this only newest ones are.
//
// Where they are, it is for a full disk: RocksDB syncs older log files again, in the background and
// with every commit, and ends the process if one failed before. These have nothing left to sync.
//
//   std::unique_ptr<rocksdb::Env> env = order_log_files(*rocksdb::Env::Default());
//
// Threads: any thread.
// Cost:    one sync for each log file, which is one for each write buffer.
#pragma once

#include <memory>

namespace rocksdb {
class Env;
}

namespace ordo::store_rocksdb {

// `env` outlives the result.
std::unique_ptr<rocksdb::Env> order_log_files(rocksdb::Env& env);

}  // namespace ordo::store_rocksdb
