#include "ordo/broker/store_memory.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ordo/core/check.h"

namespace ordo::broker {
namespace {

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overload(Cases...) -> Overload<Cases...>;

bool is_intact(const MessageBatch& batch) {
  return std::all_of(batch.entries.begin(), batch.entries.end(), [&](const auto& entry) {
    return body_checksum(std::string_view(batch.bytes).substr(entry.body_at, entry.body_size)) ==
           entry.checksum;
  });
}

Error damaged(PartitionAddress partition, const MessageBatch& batch) {
  return Error{ErrorCode::data_loss,
               "Messages " + std::to_string(batch.first_offset.value()) + " to " +
                   std::to_string(batch.end_offset().value() - 1) + " of partition " +
                   std::to_string(partition.topic.value()) + "/" + std::to_string(partition.index) +
                   " do not match their checksums"};
}

}  // namespace

StoreFaults::Commit StoreFaults::on_commit(const CommitBatch&) {
  return Commit::none;
}
std::optional<Error> StoreFaults::on_read(PartitionAddress, Offset) {
  return std::nullopt;
}
std::optional<Error> StoreFaults::on_spill(const SpillKey&) {
  return std::nullopt;
}

// ------------------------------------------------------------------------------ MemoryDisk

void MemoryDisk::Contents::append(const Append& op) {
  Log& log = logs[op.partition];
  ORDO_CHECK(op.batch->first_offset >= log.known.end);
  log.known.end = op.batch->end_offset();
  log.known.last_publish_time = op.batch->publish_time;
  log.batches.emplace_hint(log.batches.end(), op.batch->first_offset, op.batch);
  next_id = std::max(next_id, op.batch->first_id + op.batch->count());
  message_bytes += op.batch->bytes.size();
  message_count += op.batch->count();
}

void MemoryDisk::Contents::drop_batch(
    Log& log, std::map<Offset, std::shared_ptr<const MessageBatch>>::iterator at) {
  message_bytes -= at->second->bytes.size();
  message_count -= at->second->count();
  log.batches.erase(at);
}

void MemoryDisk::Contents::trim(const Trim& op) {
  Log& log = logs[op.partition];
  log.known.first = std::max(log.known.first, op.before);
  log.known.end = std::max(log.known.end, log.known.first);
  while (!log.batches.empty() && log.batches.begin()->second->end_offset() <= op.before)
    drop_batch(log, log.batches.begin());
}

void MemoryDisk::Contents::erase_rows(CursorNumber cursor, PartitionAddress partition) {
  auto row = rows.lower_bound(RowKey{cursor, partition, 0, 0, ""});
  while (row != rows.end() && row->first.cursor == cursor && row->first.partition == partition)
    row = rows.erase(row);
}

void MemoryDisk::Contents::erase_partition(PartitionAddress partition) {
  if (const auto log = logs.find(partition); log != logs.end()) {
    while (!log->second.batches.empty())
      drop_batch(log->second, log->second.batches.begin());
    logs.erase(log);
  }
  std::erase_if(rows, [&](const auto& row) { return row.first.partition == partition; });
}

void MemoryDisk::Contents::apply(const CommitOp& op) {
  std::visit(Overload{
                 [&](const Append& a) { append(a); },
                 [&](const PutRow& a) { rows.insert_or_assign(a.key, a.value); },
                 [&](const EraseRow& a) { rows.erase(a.key); },
                 [&](const EraseRows& a) { erase_rows(a.cursor, a.partition); },
                 [&](const PutCatalog& a) { catalog.insert_or_assign(a.key, a.value); },
                 [&](const EraseCatalog& a) { catalog.erase(a.key); },
                 [&](const Trim& a) { trim(a); },
                 [&](const ErasePartition& a) { erase_partition(a.partition); },
             },
             op);
}

void MemoryDisk::crash(std::size_t kept) {
  std::lock_guard guard(mutex_);
  ++openings_;
  if (!synced_) return;
  const MessageId next_id = written_.next_id;  // An id once given is not given again.
  unsynced_.resize(std::min(kept, unsynced_.size()));
  sync();
  written_ = *synced_;
  written_.next_id = synced_->next_id = next_id;
}

void MemoryDisk::sync() {
  for (const CommitBatch& batch : unsynced_) {
    for (const CommitOp& op : batch)
      synced_->apply(op);
  }
  unsynced_.clear();
}

std::size_t MemoryDisk::unsynced_commits() const {
  std::lock_guard guard(mutex_);
  return unsynced_.size();
}

void MemoryDisk::set_capacity(std::size_t bytes) {
  std::lock_guard guard(mutex_);
  capacity_ = bytes;
}

bool MemoryDisk::damage(PartitionAddress partition, Offset offset) {
  std::lock_guard guard(mutex_);
  const auto log = written_.logs.find(partition);
  if (log == written_.logs.end()) return false;
  auto& batches = log->second.batches;
  auto at = batches.upper_bound(offset);
  if (at == batches.begin() || (--at)->second->end_offset() <= offset) return false;
  // The messages in memory share the batch and must not change with it.
  auto copy = std::make_shared<MessageBatch>(*at->second);
  const MessageBatch::Entry& entry = copy->entries[offset - copy->first_offset];
  ORDO_CHECK(entry.body_size > 0);
  copy->bytes[entry.body_at] = static_cast<char>(copy->bytes[entry.body_at] ^ 1);
  at->second = copy;
  if (synced_) {
    auto& synced = synced_->logs[partition].batches;
    if (const auto same = synced.find(copy->first_offset); same != synced.end())
      same->second = copy;
  }
  return true;
}

// ------------------------------------------------------------------------------ MemoryStore

MemoryStore::MemoryStore(std::shared_ptr<MemoryDisk> disk, StoreFaults* faults, SyncPolicy policy)
    : disk_(std::move(disk)),
      faults_(faults),
      policy_(policy) {}

Result<Recovered> MemoryStore::recover() {
  std::lock_guard guard(disk_->mutex_);
  ORDO_CHECK(opening_ == 0);
  opening_ = ++disk_->openings_;
  ++disk_->written_.start_number;
  // What an earlier process wrote has reached the disk by now, as at any clean opening.
  disk_->unsynced_.clear();
  disk_->synced_.reset();
  if (policy_ == SyncPolicy::on_request) disk_->synced_ = disk_->written_;

  Recovered recovered;
  recovered.start_number = disk_->written_.start_number;
  recovered.catalog = disk_->written_.catalog;
  recovered.rows = disk_->written_.rows;
  for (const auto& [address, log] : disk_->written_.logs)
    recovered.partitions.emplace(address, log.known);
  return recovered;
}

Status MemoryStore::check_open() const {
  if (opening_ == 0) return Error{ErrorCode::failed_precondition, "The store was not recovered"};
  if (opening_ != disk_->openings_)
    return Error{ErrorCode::failed_precondition, "The store was cut off from its disk"};
  return {};
}

Status MemoryStore::fail(std::string reason) {
  stats_.failure = std::move(reason);
  return Error{ErrorCode::unavailable, stats_.failure};
}

bool MemoryStore::is_room_for(const CommitBatch& batch) const {
  if (disk_->capacity_ == 0) return true;
  std::size_t bytes = 0;
  for (const CommitOp& op : batch) {
    if (const auto* append = std::get_if<Append>(&op)) bytes += append->batch->bytes.size();
  }
  return bytes == 0 || disk_->written_.message_bytes + bytes <= disk_->capacity_;
}

void MemoryStore::write(CommitBatch& batch) {
  for (CommitOp& op : batch) {
    if (auto* append = std::get_if<Append>(&op)) append->batch->first_id = disk_->written_.next_id;
    disk_->written_.apply(op);
    if (const auto* erased = std::get_if<ErasePartition>(&op)) {
      std::erase_if(spill_,
                    [&](const auto& chunk) { return chunk.first.partition == erased->partition; });
    }
  }
  ++stats_.commits;
  if (policy_ == SyncPolicy::every_commit) {
    ++stats_.syncs;
  } else {
    disk_->unsynced_.push_back(batch);
  }
}

Status MemoryStore::commit(CommitBatch& batch) {
  const StoreFaults::Commit fault =
      faults_ == nullptr ? StoreFaults::Commit::none : faults_->on_commit(batch);
  std::lock_guard guard(disk_->mutex_);
  if (Status open = check_open(); !open) return open;
  if (!stats_.failure.empty()) {
    return Error{ErrorCode::failed_precondition,
                 "The store takes no commit after: " + stats_.failure};
  }
  if (fault == StoreFaults::Commit::full || !is_room_for(batch)) {
    stats_.is_full = true;
    return Error{ErrorCode::resource_exhausted, "No space is left for messages"};
  }
  if (fault == StoreFaults::Commit::error_not_kept) return fail("the write failed");
  const std::size_t bytes_before = disk_->written_.message_bytes;
  write(batch);
  if (disk_->written_.message_bytes > bytes_before) {
    stats_.committed_bytes += disk_->written_.message_bytes - bytes_before;
    stats_.is_full = false;
  }
  if (fault == StoreFaults::Commit::error_kept) return fail("the sync failed");
  return {};
}

void MemoryStore::sync() {
  std::lock_guard guard(disk_->mutex_);
  if (policy_ == SyncPolicy::every_commit || !check_open()) return;
  disk_->sync();
  ++stats_.syncs;
}

Result<ReadBatches> MemoryStore::read(PartitionAddress partition, Offset from,
                                      std::size_t messages_max, std::size_t bytes_max) {
  if (faults_ != nullptr) {
    if (std::optional<Error> error = faults_->on_read(partition, from)) return *std::move(error);
  }
  std::lock_guard guard(disk_->mutex_);
  if (Status open = check_open(); !open) return std::move(open).error();
  ReadBatches result{{}, from};
  const auto log = disk_->written_.logs.find(partition);
  if (log == disk_->written_.logs.end()) return result;
  const auto& batches = log->second.batches;
  auto at = batches.upper_bound(from);
  if (at != batches.begin() && std::prev(at)->second->end_offset() > from) --at;
  std::size_t messages = 0;
  std::size_t bytes = 0;
  for (; at != batches.end(); ++at) {
    const MessageBatch& batch = *at->second;
    messages += batch.count();
    bytes += batch.bytes.size();
    if (!result.batches.empty() && (messages > messages_max || bytes > bytes_max)) break;
    if (!is_intact(batch)) {
      if (result.batches.empty()) return damaged(partition, batch);
      break;
    }
    result.batches.push_back(at->second);
    result.next = batch.end_offset();
  }
  return result;
}

Result<Offset> MemoryStore::find_time(PartitionAddress partition, WallTime time) {
  if (faults_ != nullptr) {
    if (std::optional<Error> error = faults_->on_read(partition, Offset(0)))
      return *std::move(error);
  }
  std::lock_guard guard(disk_->mutex_);
  if (Status open = check_open(); !open) return std::move(open).error();
  const auto log = disk_->written_.logs.find(partition);
  if (log == disk_->written_.logs.end()) return Offset(1);
  for (const auto& [first, batch] : log->second.batches) {
    if (batch->publish_time >= time) return std::max(first, log->second.known.first);
  }
  return log->second.known.end;
}

Status MemoryStore::write_spill(const SpillKey& key, std::string_view bytes) {
  if (faults_ != nullptr) {
    if (std::optional<Error> error = faults_->on_spill(key)) return *std::move(error);
  }
  std::lock_guard guard(disk_->mutex_);
  if (Status open = check_open(); !open) return open;
  spill_.insert_or_assign(key, std::string(bytes));
  return {};
}

Result<std::string> MemoryStore::read_spill(const SpillKey& key) {
  if (faults_ != nullptr) {
    if (std::optional<Error> error = faults_->on_spill(key)) return *std::move(error);
  }
  std::lock_guard guard(disk_->mutex_);
  if (Status open = check_open(); !open) return std::move(open).error();
  const auto chunk = spill_.find(key);
  if (chunk == spill_.end()) {
    return Error{ErrorCode::not_found,
                 "Lane " + std::to_string(key.lane) + " has no chunk " + std::to_string(key.chunk)};
  }
  return chunk->second;
}

Status MemoryStore::erase_spill(const SpillKey& first, std::uint64_t chunk_count) {
  std::lock_guard guard(disk_->mutex_);
  if (Status open = check_open(); !open) return open;
  SpillKey last = first;
  last.chunk = chunk_count > std::numeric_limits<std::uint64_t>::max() - first.chunk
                   ? std::numeric_limits<std::uint64_t>::max()
                   : first.chunk + chunk_count;
  spill_.erase(spill_.lower_bound(first), spill_.lower_bound(last));
  return {};
}

StoreStats MemoryStore::stats() const {
  std::lock_guard guard(disk_->mutex_);
  StoreStats stats = stats_;
  const MemoryDisk::Contents& written = disk_->written_;
  stats.messages = written.message_count;
  stats.disk_bytes = written.message_bytes;
  if (disk_->capacity_ > 0) {
    stats.disk_free_bytes = disk_->capacity_ - std::min(disk_->capacity_, written.message_bytes);
  }
  return stats;
}

}  // namespace ordo::broker
