#include "ordo/adapters/store_rocksdb/log_file_order.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

namespace ordo::store_rocksdb {
namespace {

using Written = std::atomic<std::uint64_t>;

// Counts what is written to it, where its length does not tell.
class CountedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  CountedFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<Written> written)
      : FSWritableFileOwnerWrapper(std::move(file)),
        written_(std::move(written)) {}

  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context) override {
    return counted(data, FSWritableFileWrapper::Append(data, options, context));
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* context) override {
    return counted(data, FSWritableFileWrapper::Append(data, options, verification, context));
  }

 private:
  rocksdb::IOStatus counted(const rocksdb::Slice& data, rocksdb::IOStatus done) {
    if (done.ok()) written_->fetch_add(data.size(), std::memory_order_relaxed);
    return done;
  }

  std::shared_ptr<Written> written_;
};

class OrderedFiles final : public rocksdb::FileSystemWrapper {
 public:
  OrderedFiles(const std::shared_ptr<rocksdb::FileSystem>& files, LogLength length)
      : FileSystemWrapper(files),
        length_(length) {}
  const char* Name() const override { return "ordo.OrderedFiles"; }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* context) override {
    if (!name.ends_with(".log")) return target()->NewWritableFile(name, options, result, context);
    const std::lock_guard lock(mutex_);
    const std::string last = std::exchange(last_log_, name);
    if (rocksdb::IOStatus synced = sync(last, options, context); !synced.ok()) return synced;
    if (length_ == LogLength::grows)
      return target()->NewWritableFile(name, options, result, context);
    rocksdb::FileOptions ahead = options;
    ahead.fallocate_with_keep_size = false;
    rocksdb::IOStatus made = target()->NewWritableFile(name, ahead, result, context);
    if (!made.ok()) return made;
    const auto written = std::make_shared<Written>(0);
    written_ = written;
    *result = std::make_unique<CountedFile>(std::move(*result), written);
    return made;
  }

  rocksdb::IOStatus GetFileSize(const std::string& name, const rocksdb::IOOptions& options,
                                std::uint64_t* size, rocksdb::IODebugContext* context) override {
    {
      const std::lock_guard lock(mutex_);
      const auto written = written_.lock();
      if (written && name == last_log_) {
        *size = written->load(std::memory_order_relaxed);
        return rocksdb::IOStatus::OK();
      }
    }
    return target()->GetFileSize(name, options, size, context);
  }

 private:
  // Through a descriptor of its own: that reaches what others wrote to the same file.
  rocksdb::IOStatus sync(const std::string& name, const rocksdb::FileOptions& options,
                         rocksdb::IODebugContext* context) {
    const rocksdb::IOOptions io;
    if (name.empty() || !target()->FileExists(name, io, context).ok())
      return rocksdb::IOStatus::OK();
    std::unique_ptr<rocksdb::FSWritableFile> file;
    rocksdb::IOStatus done = target()->ReopenWritableFile(name, options, &file, context);
    if (done.ok()) done = file->Sync(io, context);
    if (done.ok()) done = file->Close(io, context);
    return done;
  }

  const LogLength length_;
  std::mutex mutex_;
  std::string last_log_;
  std::weak_ptr<Written> written_;  // To that one, as long as it is open.
};

class OrderedEnv final : public rocksdb::EnvWrapper {
 public:
  OrderedEnv(rocksdb::Env& env, LogLength length) : EnvWrapper(&env) {
    file_system_ = std::make_shared<OrderedFiles>(env.GetFileSystem(), length);
    system_clock_ = env.GetSystemClock();
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> order_log_files(rocksdb::Env& env, LogLength length) {
  return std::make_unique<OrderedEnv>(env, length);
}

}  // namespace ordo::store_rocksdb
