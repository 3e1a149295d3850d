// error_of(): what RocksDB says went wrong, as one of our errors.
//
// Threads: a pure function.
#pragma once

#include <string>

#include <rocksdb/status.h>

#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

// REQUIRES: !status.ok(). `what` is the beginning of the sentence: "cannot open /data".
inline Error error_of(const rocksdb::Status& status, const std::string& what) {
  ErrorCode code = ErrorCode::unavailable;
  if (status.IsCorruption()) code = ErrorCode::data_loss;
  if (status.IsNoSpace()) code = ErrorCode::resource_exhausted;
  return {code, what + ": " + status.ToString()};
}

}  // namespace ordo::store_rocksdb
