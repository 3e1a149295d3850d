#include "tests/support/forgetful_disk.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include "tests/support/forgetful_file.h"

namespace ordo::testing_support {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// One change of a folder that was not synced. Null: the name is gone.
struct FolderChange {
  std::string path;
  FilePtr node;
  bool is_second = false;  // Of a rename: happens with the one before it.
  std::string folder;      // Whose sync makes it last.
};

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string normal(std::string path) {
  std::string result;
  for (const char c : path) {
    if (c != '/' || result.empty() || result.back() != '/') result += c;
  }
  while (result.size() > 1 && result.back() == '/')
    result.pop_back();
  return result;
}

IOStatus missing(const std::string& path) {
  return IOStatus::PathNotFound(path);
}

}  // namespace

struct ForgetfulDisk::Files {
  mutable std::mutex mutex;
  std::map<std::string, FilePtr> now;
  std::map<std::string, FilePtr> durable;
  std::vector<FolderChange> pending;
  std::set<std::string> folders;
  std::set<std::string> locks;
  std::uint64_t operations = 0;
  std::uint64_t operations_left = std::numeric_limits<std::uint64_t>::max();
  bool off = false;
  std::map<std::string, FilePtr> survivors;  // Of the cut.
  std::mt19937_64 random;
  bool full = false;
  bool keeps_deleted = false;
  std::uint64_t free_bytes = std::uint64_t{1} << 40;
  std::string failing_sync;
  unsigned failing_syncs = 0;
  ForgetfulDisk::SyncFault sync_fault{};

  // REQUIRES for all: mutex is held.
  void operate() {
    ++operations;
    if (!off && --operations_left == 0) cut();
  }
  void cut() {
    off = true;
    std::size_t kept = up_to(random, pending.size());
    while (kept < pending.size() && pending[kept].is_second)
      ++kept;
    survivors = durable;
    for (std::size_t i = 0; i < kept; ++i)
      put(survivors, pending[i].path, pending[i].node);
    for (auto& [path, node] : survivors)
      node = survivor(path, *node, random);
  }
  FilePtr find(const std::string& path) const {
    const auto found = now.find(path);
    return found == now.end() ? nullptr : found->second;
  }
  void change(const std::string& path, FilePtr node, bool is_second = false) {
    change_in(folder_of(path), path, std::move(node), is_second);
  }
  void change_in(const std::string& folder, const std::string& path, FilePtr node, bool is_second) {
    put(now, path, node);
    pending.push_back({path, std::move(node), is_second, folder});
  }
  void add_folders(const std::string& path) {
    for (std::string folder = folder_of(path); !folder.empty(); folder = folder_of(folder))
      folders.insert(folder);
  }
  // All files of a folder at once, as part of the folder that holds it.
  void rename_folder(const std::string& from, const std::string& to) {
    std::vector<std::pair<std::string, FilePtr>> files;
    for (const auto& [path, node] : now) {
      if (path.starts_with(from + "/")) files.emplace_back(path.substr(from.size()), node);
    }
    bool is_second = false;
    for (const auto& [name, node] : files) {
      change_in(folder_of(from), to + name, node, std::exchange(is_second, true));
      change_in(folder_of(from), from + name, nullptr, true);
    }
    folders.erase(from);
    folders.insert(to);
  }
  // Null: nothing is there from now on.
  static void put(std::map<std::string, FilePtr>& files, const std::string& path,
                  const FilePtr& node) {
    if (node) {
      files[path] = node;
    } else {
      files.erase(path);
    }
  }
  void sync_folder(const std::string& folder) {
    std::vector<FolderChange> rest;
    for (FolderChange& each : pending) {
      if (each.folder == folder) {
        put(durable, each.path, each.node);
      } else {
        rest.push_back(std::move(each));
      }
    }
    pending = std::move(rest);
  }
};

class ForgetfulFileSystem final : public rocksdb::FileSystem {
 public:
  using Files = ForgetfulDisk::Files;
  explicit ForgetfulFileSystem(std::shared_ptr<Files> files) : files_(std::move(files)) {}

  const char* Name() const override { return "ForgetfulFileSystem"; }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext*) override {
    return open<Sequential>(name, result);
  }
  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext*) override {
    return open<RandomAccess>(name, result);
  }
  IOStatus NewRandomRWFile(const std::string& name, const FileOptions&,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                           IODebugContext*) override {
    return open<RandomWrite>(name, result);
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    files_->operate();
    auto node = std::make_shared<ForgetfulFile>();
    node->is_ahead = name.ends_with(".log") && !options.fallocate_with_keep_size;
    files_->change(normal(name), node);
    *result = std::make_unique<Writable>(files_, std::move(node), normal(name));
    return IOStatus::OK();
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions&,
                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                              IODebugContext*) override {
    return open<Writable>(name, result);
  }
  // REQUIRES: what goes was not synced.
  IOStatus Truncate(const std::string& name, std::size_t size, const IOOptions&,
                    IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    const FilePtr node = files_->find(normal(name));
    if (!node || size < node->synced_size || size > node->bytes.size()) return missing(name);
    files_->operate();
    node->cut_off = node->bytes.substr(size);
    node->bytes.resize(size);
    return IOStatus::OK();
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) override {
    *result = std::make_unique<Folder>(files_, normal(name));
    return IOStatus::OK();
  }
  IOStatus FileExists(const std::string& name, const IOOptions&, IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    const bool exists = files_->find(normal(name)) || files_->folders.contains(normal(name));
    return exists ? IOStatus::OK() : IOStatus::NotFound(name);
  }
  IOStatus GetChildren(const std::string& folder, const IOOptions&,
                       std::vector<std::string>* result, IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    result->clear();
    for (const auto& [path, node] : files_->now) {
      if (folder_of(path) == normal(folder)) result->push_back(path.substr(path.rfind('/') + 1));
    }
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions&, IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    if (!files_->find(normal(name))) return missing(name);
    files_->operate();
    if (!files_->keeps_deleted) files_->change(normal(name), nullptr);
    return IOStatus::OK();
  }
  IOStatus CreateDir(const std::string& name, const IOOptions&, IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    files_->folders.insert(normal(name));
    return IOStatus::OK();
  }
  IOStatus CreateDirIfMissing(const std::string& name, const IOOptions& options,
                              IODebugContext* context) override {
    return CreateDir(name, options, context);
  }
  IOStatus DeleteDir(const std::string& name, const IOOptions&, IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    files_->folders.erase(normal(name));
    return IOStatus::OK();
  }
  IOStatus GetFileSize(const std::string& name, const IOOptions&, std::uint64_t* size,
                       IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    const FilePtr node = files_->find(normal(name));
    if (!node) return missing(name);
    *size = node->bytes.size();
    return IOStatus::OK();
  }
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, std::uint64_t* time,
                                   IODebugContext*) override {
    *time = 0;
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    const FilePtr node = files_->find(normal(from));
    if (!node && !files_->folders.contains(normal(from))) return missing(from);
    files_->operate();
    if (!node) {
      files_->rename_folder(normal(from), normal(to));
      return IOStatus::OK();
    }
    files_->change(normal(to), node);
    files_->change(normal(from), nullptr, true);
    return IOStatus::OK();
  }
  IOStatus LockFile(const std::string& name, const IOOptions&, rocksdb::FileLock** lock,
                    IODebugContext*) override {
    const std::lock_guard guard(files_->mutex);
    if (!files_->locks.insert(normal(name)).second) return IOStatus::IOError("already locked");
    *lock = new Lock(normal(name));
    return IOStatus::OK();
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    const std::unique_ptr<Lock> held(static_cast<Lock*>(lock));
    const std::lock_guard guard(files_->mutex);
    files_->locks.erase(held->path);
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions&, std::string* path, IODebugContext*) override {
    *path = "/test";
    return IOStatus::OK();
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* result,
                           IODebugContext*) override {
    *result = path;
    return IOStatus::OK();
  }
  IOStatus NewLogger(const std::string&, const IOOptions&, std::shared_ptr<rocksdb::Logger>* result,
                     IODebugContext*) override {
    *result = std::make_shared<Silence>();
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string&, const IOOptions&, std::uint64_t* bytes,
                        IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    *bytes = files_->free_bytes;
    return IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* result,
                       IODebugContext*) override {
    const std::lock_guard lock(files_->mutex);
    *result = files_->folders.contains(normal(path));
    return IOStatus::OK();
  }

 private:
  struct Lock final : rocksdb::FileLock {
    explicit Lock(std::string of) : path(std::move(of)) {}
    std::string path;
  };

  class Silence final : public rocksdb::Logger {
   public:
    using rocksdb::Logger::Logv;
    void Logv(const char*, va_list) override {}
    std::size_t GetLogFileSize() const override { return 0; }
  };

  // What all kinds of open files share.
  class Open {
   public:
    Open(std::shared_ptr<Files> files, FilePtr node, std::string path)
        : files_(std::move(files)),
          node_(std::move(node)),
          path_(std::move(path)) {}

   protected:
    IOStatus read(std::uint64_t at, std::size_t size, Slice* result, char* scratch) const {
      const std::lock_guard lock(files_->mutex);
      const std::size_t from = std::min<std::size_t>(at, node_->bytes.size());
      const std::size_t count = std::min(size, node_->bytes.size() - from);
      std::memcpy(scratch, node_->bytes.data() + from, count);
      *result = Slice(scratch, count);
      return IOStatus::OK();
    }
    IOStatus sync() {
      const std::lock_guard lock(files_->mutex);
      files_->operate();
      const bool is_clean = node_->synced_size == node_->bytes.size() && node_->unsynced.empty() &&
                            node_->cut_off.empty();
      if (!is_clean && files_->failing_syncs > 0 && path_.ends_with(files_->failing_sync)) {
        --files_->failing_syncs;
        return files_->sync_fault == ForgetfulDisk::SyncFault::no_space
                   ? IOStatus::NoSpace("a sync that finds no room")
                   : IOStatus::IOError("a sync that fails");
      }
      node_->sync();
      return IOStatus::OK();
    }

    std::shared_ptr<Files> files_;
    FilePtr node_;
    std::string path_;
  };

  class Sequential final : public rocksdb::FSSequentialFile, Open {
   public:
    using Open::Open;
    IOStatus Read(std::size_t size, const IOOptions&, Slice* result, char* scratch,
                  IODebugContext*) override {
      IOStatus done = read(at_, size, result, scratch);
      at_ += result->size();
      return done;
    }
    IOStatus Skip(std::uint64_t count) override {
      at_ += count;
      return IOStatus::OK();
    }

   private:
    std::uint64_t at_ = 0;
  };

  class RandomAccess final : public rocksdb::FSRandomAccessFile, Open {
   public:
    using Open::Open;
    IOStatus Read(std::uint64_t at, std::size_t size, const IOOptions&, Slice* result,
                  char* scratch, IODebugContext*) const override {
      return read(at, size, result, scratch);
    }
  };

  class RandomWrite final : public rocksdb::FSRandomRWFile, Open {
   public:
    using Open::Open;
    IOStatus Write(std::uint64_t at, const Slice& data, const IOOptions&,
                   IODebugContext*) override {
      const std::lock_guard lock(files_->mutex);
      files_->operate();
      if (at + data.size() > node_->bytes.size()) return IOStatus::NotSupported("no growing here");
      node_->unsynced.push_back({at, node_->bytes.substr(at, data.size())});
      node_->bytes.replace(at, data.size(), data.data(), data.size());
      return IOStatus::OK();
    }
    IOStatus Read(std::uint64_t at, std::size_t size, const IOOptions&, Slice* result,
                  char* scratch, IODebugContext*) const override {
      return read(at, size, result, scratch);
    }
    IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
    IOStatus Sync(const IOOptions&, IODebugContext*) override { return sync(); }
    IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  };

  class Writable final : public rocksdb::FSWritableFile, Open {
   public:
    using Open::Open;
    using rocksdb::FSWritableFile::Append;
    IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
      const std::lock_guard lock(files_->mutex);
      files_->operate();
      if (files_->full) {
        node_->bytes.append(data.data(), data.size() / 2);
        return IOStatus::NoSpace("the disk is full");
      }
      node_->bytes.append(data.data(), data.size());
      return IOStatus::OK();
    }
    IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
    IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
    IOStatus Sync(const IOOptions&, IODebugContext*) override { return sync(); }
    bool IsSyncThreadSafe() const override { return true; }
    std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
      const std::lock_guard lock(files_->mutex);
      return node_->bytes.size();
    }
  };

  class Folder final : public rocksdb::FSDirectory {
   public:
    Folder(std::shared_ptr<Files> files, std::string path)
        : files_(std::move(files)),
          path_(std::move(path)) {}
    IOStatus Fsync(const IOOptions&, IODebugContext*) override {
      const std::lock_guard lock(files_->mutex);
      files_->operate();
      files_->sync_folder(path_);
      return IOStatus::OK();
    }
    IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

   private:
    std::shared_ptr<Files> files_;
    std::string path_;
  };

  template <class Kind, class Result>
  IOStatus open(const std::string& name, Result* result) {
    const std::lock_guard lock(files_->mutex);
    FilePtr node = files_->find(normal(name));
    if (!node) return missing(name);
    *result = std::make_unique<Kind>(files_, std::move(node), normal(name));
    return IOStatus::OK();
  }

  std::shared_ptr<Files> files_;
};

namespace {

// RocksDB waits a second after an error in the background, in case it goes away. This one does not.
class Impatience final : public rocksdb::SystemClockWrapper {
 public:
  Impatience() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  const char* Name() const override { return "Impatience"; }
  void SleepForMicroseconds(int micros) override {
    SystemClockWrapper::SleepForMicroseconds(std::min(micros, 100));
  }
};

class ImpatientEnv final : public rocksdb::EnvWrapper {
 public:
  explicit ImpatientEnv(std::unique_ptr<rocksdb::Env> env) : EnvWrapper(std::move(env)) {
    system_clock_ = std::make_shared<Impatience>();
  }
};

}  // namespace

ForgetfulDisk::ForgetfulDisk() : files_(std::make_shared<Files>()) {}
ForgetfulDisk::~ForgetfulDisk() = default;

std::unique_ptr<rocksdb::Env> ForgetfulDisk::make_env() {
  return std::make_unique<ImpatientEnv>(
      rocksdb::NewCompositeEnv(std::make_shared<ForgetfulFileSystem>(files_)));
}

void ForgetfulDisk::cut_after(std::uint64_t operations, std::uint64_t seed) {
  const std::lock_guard lock(files_->mutex);
  if (files_->off) return;
  files_->random.seed(seed);
  files_->operations_left = operations;
  if (operations == 0) files_->cut();
}

bool ForgetfulDisk::is_off() const {
  const std::lock_guard lock(files_->mutex);
  return files_->off;
}

std::uint64_t ForgetfulDisk::operations() const {
  const std::lock_guard lock(files_->mutex);
  return files_->operations;
}

void ForgetfulDisk::power_on() {
  const std::lock_guard lock(files_->mutex);
  files_->now = files_->durable = std::exchange(files_->survivors, {});
  for (const auto& [path, node] : files_->now)
    files_->add_folders(path);
  files_->pending.clear();
  files_->locks.clear();
  files_->off = false;
  files_->operations_left = std::numeric_limits<std::uint64_t>::max();
}

ForgetfulDisk::Image ForgetfulDisk::image() const {
  const std::lock_guard lock(files_->mutex);
  Image image;
  for (const auto& [path, node] : files_->now)
    image[path] = node->bytes;
  return image;
}

void ForgetfulDisk::load(const Image& image) {
  const std::lock_guard lock(files_->mutex);
  files_->pending.clear();
  files_->now.clear();
  files_->locks.clear();
  files_->folders.clear();
  for (const auto& [path, bytes] : image) {
    auto node = std::make_shared<ForgetfulFile>();
    node->bytes = bytes;
    node->sync();
    files_->now[path] = std::move(node);
    files_->add_folders(path);
  }
  files_->durable = files_->now;
}

void ForgetfulDisk::set_free_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(files_->mutex);
  files_->free_bytes = bytes;
}

void ForgetfulDisk::fail_next_sync(const std::string& name_end, SyncFault fault, unsigned count) {
  const std::lock_guard lock(files_->mutex);
  files_->sync_fault = fault;
  files_->failing_sync = name_end;
  files_->failing_syncs = count;
}

void ForgetfulDisk::set_keeps_deleted(bool keeps) {
  const std::lock_guard lock(files_->mutex);
  files_->keeps_deleted = keeps;
}

void ForgetfulDisk::set_full(bool is_full) {
  const std::lock_guard lock(files_->mutex);
  files_->full = is_full;
}

}  // namespace ordo::testing_support
