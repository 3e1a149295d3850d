#include "ordo/adapters/store_rocksdb/watermark.h"

#include <utility>

#include <rocksdb/env.h>

#include "ordo/adapters/store_rocksdb/bytes.h"
#include "ordo/adapters/store_rocksdb/rocksdb_error.h"
#include "ordo/core/hash.h"

namespace ordo::store_rocksdb {
namespace {

constexpr std::uint64_t kMagic = 0x6b72616d6f64726f;  // "ordomark"
constexpr std::uint64_t kSlotCount = 3;
constexpr std::uint64_t kSlotSize = 4096;

struct Slot {
  Mark mark;
  std::uint64_t sequence = 0;
  std::uint64_t index = 0;
};

std::string encode_slot(const Mark& mark, std::uint64_t sequence) {
  std::string slot;
  put(slot, kMagic);
  put(slot, sequence);
  put(slot, mark.directory_id);
  put(slot, mark.start_number);
  put(slot, mark.commit_number);
  put(slot, mark.next_id);
  put<std::uint8_t>(slot, mark.has_database);
  put<std::uint8_t>(slot, mark.is_clean);
  put(slot, hash_bytes(slot, kMagic));
  return slot;
}

std::optional<Slot> decode_slot(std::string_view bytes) {
  ByteReader in(bytes);
  Slot slot;
  const auto magic = in.take<std::uint64_t>();
  slot.sequence = in.take<std::uint64_t>();
  slot.mark.directory_id = in.take<std::uint64_t>();
  slot.mark.start_number = in.take<std::uint64_t>();
  slot.mark.commit_number = in.take<std::uint64_t>();
  slot.mark.next_id = in.take<std::uint64_t>();
  slot.mark.has_database = in.take<std::uint8_t>() != 0;
  slot.mark.is_clean = in.take<std::uint8_t>() != 0;
  const std::size_t size = bytes.size() - in.rest().size();
  const auto checksum = in.take<std::uint64_t>();
  if (!in.ok() || magic != kMagic || checksum != hash_bytes(bytes.substr(0, size), kMagic))
    return std::nullopt;
  return slot;
}

Result<Slot> newest_slot(rocksdb::Env& env, const std::string& path) {
  std::string bytes;
  const rocksdb::Status read = rocksdb::ReadFileToString(&env, path, &bytes);
  if (!read.ok()) return error_of(read, "cannot read " + path);
  std::optional<Slot> newest;
  for (std::uint64_t i = 0; i < kSlotCount && bytes.size() == kSlotCount * kSlotSize; ++i) {
    std::optional<Slot> slot =
        decode_slot(std::string_view(bytes).substr(i * kSlotSize, kSlotSize));
    if (!slot || (newest && newest->sequence >= slot->sequence)) continue;
    newest = slot;
    newest->index = i;
  }
  if (!newest) {
    return Error{ErrorCode::data_loss,
                 path +
                     " is damaged: none of its copies matches its checksum, so it is not known "
                     "how far commits were acknowledged"};
  }
  return *newest;
}

}  // namespace

Status sync_name(rocksdb::Env& env, std::string path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.pop_back();
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  std::unique_ptr<rocksdb::Directory> folder;
  rocksdb::Status done = env.NewDirectory(parent, &folder);
  if (done.ok()) done = folder->Fsync();
  if (!done.ok()) return error_of(done, "cannot sync the folder of " + path);
  return {};
}

Watermark::Watermark(std::unique_ptr<rocksdb::RandomRWFile> file, std::string path,
                     std::uint64_t sequence)
    : file_(std::move(file)),
      path_(std::move(path)),
      sequence_(sequence) {}

Watermark::~Watermark() = default;

Result<std::optional<Mark>> Watermark::read(rocksdb::Env& env, const std::string& path) {
  if (const rocksdb::Status exists = env.FileExists(path); exists.IsNotFound())
    return std::optional<Mark>();
  const Result<Slot> slot = newest_slot(env, path);
  if (!slot) return slot.error();
  return std::optional<Mark>(slot->mark);
}

Status Watermark::create(rocksdb::Env& env, const std::string& path, const Mark& mark) {
  std::string bytes = encode_slot(mark, 1);
  bytes.resize(kSlotCount * kSlotSize);
  const std::string unfinished = path + ".new";
  rocksdb::Status done = rocksdb::WriteStringToFile(&env, bytes, unfinished, true);
  if (done.ok()) done = env.RenameFile(unfinished, path);
  if (!done.ok()) return error_of(done, "cannot create " + path);
  return sync_name(env, path);
}

Result<std::unique_ptr<Watermark>> Watermark::open(rocksdb::Env& env, const std::string& path) {
  std::unique_ptr<rocksdb::RandomRWFile> file;
  const rocksdb::Status opened = env.NewRandomRWFile(path, &file, rocksdb::EnvOptions());
  if (!opened.ok()) return error_of(opened, "cannot open " + path);
  const Result<Slot> slot = newest_slot(env, path);
  if (!slot) return slot.error();
  std::unique_ptr<Watermark> mark(new Watermark(std::move(file), path, slot->sequence));
  // The newest slot may have been written and not synced; another one is written first.
  if (const Status synced = mark->sync(); !synced) return synced.error();
  mark->slot_ = (slot->index + 1) % kSlotCount;
  return mark;
}

Status Watermark::write(const Mark& mark) {
  const std::lock_guard lock(mutex_);
  const rocksdb::Status written = file_->Write(slot_ * kSlotSize, encode_slot(mark, ++sequence_));
  if (!written.ok()) return error_of(written, "cannot write " + path_);
  return {};
}

Status Watermark::sync() {
  {
    const std::lock_guard lock(mutex_);
    slot_ = (slot_ + 1) % kSlotCount;
  }
  const rocksdb::Status synced = file_->Sync();
  if (!synced.ok()) return error_of(synced, "cannot sync " + path_);
  return {};
}

}  // namespace ordo::store_rocksdb
