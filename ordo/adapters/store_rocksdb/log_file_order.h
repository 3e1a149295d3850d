// LogFileOrder: a new log file begins only when the last one is on the disk.
//
// Where commits are not synced one by one, a power cut may leave the newest log file and take the
// end of the one before it: commits would be missing in the middle. With this only newest ones are.
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
