// Watermark: how far commits were acknowledged, in a small file of its own. A log that ends before
// it has lost something.
//
//   Result<std::unique_ptr<Watermark>> mark = Watermark::open(env, path, first);
//   (*mark)->write({...});   // to the operating system: survives the process
//   (*mark)->sync();         // to the disk: survives the machine
//
// The file has three slots of one page, each with a checksum. Writes go to one slot until a sync
// begins, then to the next: so one slot is always complete and on the disk, however a write tears.
//
// Threads: write() one caller at a time; sync() one caller at a time, also beside write().
// Cost:    write() one small pwrite, sync() one fdatasync that changes no metadata.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ordo/core/result.h"

namespace rocksdb {
class Env;
class RandomRWFile;
}  // namespace rocksdb

namespace ordo::store_rocksdb {

struct Mark {
  std::uint64_t directory_id = 0;
  std::uint64_t start_number = 0;
  std::uint64_t commit_number = 0;  // Acknowledged, and everything before.
  std::uint64_t next_id = 1;        // The message id after the last one acknowledged.
  bool has_database = false;        // False only until the database is created.
  bool is_clean = false;            // Written by an orderly close.

  friend bool operator==(const Mark&, const Mark&) = default;
};

// The file or folder `path` was created: after this it is there after a power cut too.
Status sync_name(rocksdb::Env& env, std::string path);

class Watermark {
 public:
  // What the file says; nothing if there is no file; data_loss if no slot of it is intact.
  static Result<std::optional<Mark>> read(rocksdb::Env& env, const std::string& path);

  // Writes `mark` to a new file, which appears whole and durable or not at all.
  static Status create(rocksdb::Env& env, const std::string& path, const Mark& mark);

  // Opens an existing file and goes on from its newest slot.
  static Result<std::unique_ptr<Watermark>> open(rocksdb::Env& env, const std::string& path);

  ~Watermark();
  Watermark(const Watermark&) = delete;
  Watermark& operator=(const Watermark&) = delete;

  Status write(const Mark& mark);
  Status sync();

 private:
  Watermark(std::unique_ptr<rocksdb::RandomRWFile> file, std::string path, std::uint64_t sequence);

  std::unique_ptr<rocksdb::RandomRWFile> file_;
  std::string path_;
  std::mutex mutex_;
  std::uint64_t sequence_;  // Of the newest write; rises by one each.
  std::uint64_t slot_ = 0;  // Writes go here.
};

}  // namespace ordo::store_rocksdb
