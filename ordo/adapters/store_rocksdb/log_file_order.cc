#include "ordo/adapters/store_rocksdb/log_file_order.h"

#include <mutex>
#include <string>
#include <utility>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

namespace ordo::store_rocksdb {
namespace {

class OrderedFiles final : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "ordo.OrderedFiles"; }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* context) override {
    if (name.ends_with(".log")) {
      const std::lock_guard lock(mutex_);
      const std::string last = std::exchange(last_log_, name);
      if (rocksdb::IOStatus synced = sync(last, options, context); !synced.ok()) return synced;
    }
    return target()->NewWritableFile(name, options, result, context);
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

  std::mutex mutex_;
  std::string last_log_;
};

class OrderedEnv final : public rocksdb::EnvWrapper {
 public:
  explicit OrderedEnv(rocksdb::Env& env) : EnvWrapper(&env) {
    file_system_ = std::make_shared<OrderedFiles>(env.GetFileSystem());
    system_clock_ = env.GetSystemClock();
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> order_log_files(rocksdb::Env& env) {
  return std::make_unique<OrderedEnv>(env);
}

}  // namespace ordo::store_rocksdb
