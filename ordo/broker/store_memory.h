// MemoryStore: the Store port over plain maps, with faults that can be switched on.
//
//   auto disk = std::make_shared<MemoryDisk>();
//   MemoryStore store(disk);
//   store.recover();
//   ...
//   disk->crash();                  // what was not synced is gone, and `store` is cut off
//   MemoryStore again(disk);
//   again.recover();                // what a restart finds
//
// For tests and for brokers that need not outlive their process. A MemoryDisk holds what a disk
// would; a MemoryStore is one process that has it open. Faults are asked for before each call, so
// that a test decides, by a seed or by hand, what fails: see StoreFaults.
//
// Threads: as Store. crash(), damage() and the other calls of MemoryDisk: any thread.
// Bounds:  none of its own; capacity_bytes of the disk, when set, makes it full.
// Cost:    O(log n) for each op, reads share the stored batches. One lock, held for the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/broker/store.h"

namespace ordo::broker {

// What a test lets go wrong. Each call is made by the thread that uses the store, before anything
// is done, and without a lock: blocking in it is a slow disk.
class StoreFaults {
 public:
  enum class Commit : std::uint8_t {
    none,
    full,            // resource_exhausted: nothing is stored, the store goes on.
    error_not_kept,  // An error; nothing is stored, and the store takes no commit any more.
    error_kept,      // An error although all of it is stored; no commit any more.
  };

  virtual ~StoreFaults() = default;
  virtual Commit on_commit(const CommitBatch& batch);
  virtual std::optional<Error> on_read(PartitionAddress partition, Offset from);
  virtual std::optional<Error> on_spill(const SpillKey& key);
};

// When a commit becomes durable.
enum class SyncPolicy : std::uint8_t {
  every_commit,  // Before commit() returns.
  on_request,    // At MemoryStore::sync(); a crash loses what came after the last one.
};

class MemoryDisk {
 public:
  MemoryDisk() = default;
  MemoryDisk(const MemoryDisk&) = delete;
  MemoryDisk& operator=(const MemoryDisk&) = delete;

  // Power is lost. Of the commits that were not synced the first `kept` had reached the disk; the
  // one after them is torn, which recovery notices and drops, and the rest is gone. Whoever has the
  // disk open is cut off.
  void crash(std::size_t kept = 0);
  std::size_t unsynced_commits() const;

  // Appends beyond so many bytes of messages are refused as if the disk were full. 0: no limit.
  void set_capacity(std::size_t bytes);

  // Flips a bit of the stored message. False when there is none at `offset`.
  bool damage(PartitionAddress partition, Offset offset);

 private:
  friend class MemoryStore;

  struct Log {
    RecoveredPartition known;
    std::map<Offset, std::shared_ptr<const MessageBatch>> batches;  // By their first offset.
  };
  struct Contents {
    std::uint64_t start_number = 0;
    MessageId next_id = MessageId(1);
    std::map<CatalogKey, std::string> catalog;
    std::map<RowKey, std::string> rows;
    std::map<PartitionAddress, Log> logs;
    std::size_t message_bytes = 0;
    std::uint64_t message_count = 0;

    void apply(const CommitOp& op);
    void append(const Append& op);
    void drop_batch(Log& log, std::map<Offset, std::shared_ptr<const MessageBatch>>::iterator at);
    void trim(const Trim& op);
    void erase_partition(PartitionAddress partition);
    void erase_rows(CursorNumber cursor, PartitionAddress partition);
  };

  void sync();  // REQUIRES: mutex_ is held.

  mutable std::mutex mutex_;
  // With every_commit only written_ is kept; else synced_ lags behind it by unsynced_.
  Contents written_;
  std::optional<Contents> synced_;
  std::vector<CommitBatch> unsynced_;
  std::size_t capacity_ = 0;
  std::uint64_t openings_ = 0;  // A store of an earlier one is cut off.
};

class MemoryStore final : public Store {
 public:
  // `faults`, if any, outlive the store.
  explicit MemoryStore(std::shared_ptr<MemoryDisk> disk, StoreFaults* faults = nullptr,
                       SyncPolicy policy = SyncPolicy::every_commit);

  Result<Recovered> recover() override;
  Status commit(CommitBatch& batch) override;
  Result<ReadBatches> read(PartitionAddress partition, Offset from, std::size_t messages_max,
                           std::size_t bytes_max) override;
  Result<Offset> find_time(PartitionAddress partition, WallTime time) override;
  Status write_spill(const SpillKey& key, std::string_view bytes) override;
  Result<std::string> read_spill(const SpillKey& key) override;
  Status erase_spill(const SpillKey& first, std::uint64_t chunk_count) override;
  StoreStats stats() const override;

  // With SyncPolicy::on_request: what was committed so far is durable on return.
  void sync();

 private:
  // All REQUIRE: the disk's mutex is held.
  Status check_open() const;
  Status fail(std::string reason);
  bool is_room_for(const CommitBatch& batch) const;
  void write(CommitBatch& batch);

  const std::shared_ptr<MemoryDisk> disk_;
  StoreFaults* const faults_;
  const SyncPolicy policy_;
  std::uint64_t opening_ = 0;  // 0: recover() was not called.
  std::map<SpillKey, std::string> spill_;
  StoreStats stats_;
};

}  // namespace ordo::broker
