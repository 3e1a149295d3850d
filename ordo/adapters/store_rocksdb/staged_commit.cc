#include "ordo/adapters/store_rocksdb/staged_commit.h"

#include <algorithm>
#include <variant>

#include "ordo/adapters/store_rocksdb/row_codec.h"
#include "ordo/core/check.h"

namespace ordo::store_rocksdb {

using broker::MessageBatch;
using broker::MessageId;
using broker::PartitionAddress;
using broker::RecoveredPartition;

namespace {

constexpr std::size_t kBytesOfARow =
    256;  // Keys, and what RocksDB and the index add. Most are less.

// So that messages are not copied again and again while the write grows.
std::size_t bytes_of(const broker::CommitBatch& batch) {
  std::size_t bytes = kBytesOfARow;
  for (const broker::CommitOp& op : batch) {
    bytes += kBytesOfARow;
    const auto* append = std::get_if<broker::Append>(&op);
    if (append == nullptr) continue;
    bytes +=
        append->batch->bytes.size() + append->batch->entries.size() * sizeof(MessageBatch::Entry);
  }
  return bytes;
}

}  // namespace

StagedCommit::StagedCommit(const Database& database, const PartitionTable& table,
                           const CommitChain& chain)
    : database_(database),
      table_(table),
      chain_(CommitChain::one(chain.last + 1, chain.next_id)) {}

Status StagedCommit::add(broker::CommitBatch& batch) {
  if (write_.Count() == 0) write_ = rocksdb::WriteBatch(bytes_of(batch));
  remembers_keys_ = std::any_of(batch.begin(), batch.end(), [](const broker::CommitOp& op) {
    return std::holds_alternative<broker::EraseRows>(op);
  });
  for (broker::CommitOp& op : batch)
    std::visit([this](auto& each) { add_op(each); }, op);
  database_.append_chain(write_, chain_);
  if (error_) return *error_;
  return {};
}

void StagedCommit::apply(PartitionTable& table, ErasedPartitions& erased) const {
  for (const auto& [batch, first_id] : ids_)
    batch->first_id = first_id;
  for (const auto& [partition, state] : changed_) {
    if (state) {
      ORDO_CHECK(!erased.contains(partition));
      table[partition] = *state;
    } else {
      table.erase(partition);
      erased.insert(partition);
    }
  }
}

RecoveredPartition* StagedCommit::find(PartitionAddress partition) {
  const auto changed = changed_.find(partition);
  if (changed != changed_.end()) return changed->second ? &*changed->second : nullptr;
  const auto known = table_.find(partition);
  if (known == table_.end()) return nullptr;
  return &*changed_.emplace(partition, known->second).first->second;
}

RecoveredPartition& StagedCommit::find_or_make(PartitionAddress partition) {
  if (RecoveredPartition* state = find(partition)) return *state;
  ORDO_CHECK(!changed_.contains(partition));  // Else it is erased in this commit.
  RecoveredPartition& made = *(changed_[partition] = RecoveredPartition());
  write_.Put(database_.meta(), partition_key(partition), encode_partition_row(made));
  return made;
}

void StagedCommit::add_op(broker::Append& op) {
  const MessageBatch& batch = *op.batch;
  ORDO_CHECK(!batch.entries.empty());
  RecoveredPartition& state = find_or_make(op.partition);
  ORDO_CHECK(batch.first_offset >= state.end);
  const MessageId first_id(chain_.next_id);
  const auto count = static_cast<std::uint32_t>(batch.count());

  const std::string key = log_key(first_id, count);
  const std::string header = encode_log_header(op.partition, batch, first_id);
  const rocksdb::Slice key_parts[] = {key};
  const rocksdb::Slice value_parts[] = {header, batch.bytes};
  write_.Put(database_.log(), rocksdb::SliceParts(key_parts, 1),
             rocksdb::SliceParts(value_parts, 2));
  put(database_.index(), index_key(op.partition, batch.first_offset),
      encode_index_row({.first_id = first_id,
                        .count = count,
                        .bytes = batch.bytes.size(),
                        .publish_time = batch.publish_time,
                        .previous_end = state.end}));
  state.end = batch.end_offset();
  state.last_publish_time = batch.publish_time;
  chain_.next_id += count;
  ids_.emplace_back(op.batch, first_id);
}

void StagedCommit::add_op(broker::PutRow& op) {
  put(database_.state(), state_key(op.key), op.value);
}

void StagedCommit::add_op(broker::EraseRow& op) {
  write_.Delete(database_.state(), state_key(op.key));
}

void StagedCommit::add_op(broker::EraseRows& op) {
  erase_prefix(database_.state(), cursor_prefix(op.partition, op.cursor));
}

void StagedCommit::add_op(broker::PutCatalog& op) {
  write_.Put(database_.meta(), catalog_key(op.key), op.value);
}

void StagedCommit::add_op(broker::EraseCatalog& op) {
  write_.Delete(database_.meta(), catalog_key(op.key));
}

// Only the mark moves: tables are dropped later, whole (log_trimmer.h).
void StagedCommit::add_op(broker::Trim& op) {
  RecoveredPartition* state = find(op.partition);
  if (state == nullptr) return;
  const broker::Offset first = std::max(state->first, std::min(op.before, state->end));
  if (first == state->first) return;
  state->first = first;
  write_.Put(database_.meta(), partition_key(op.partition), encode_partition_row(*state));
  has_trim_ = true;
}

// Only marked: its rows are erased later, some at a time (log_trimmer.h).
void StagedCommit::add_op(broker::ErasePartition& op) {
  write_.Put(database_.state(), erased_key(op.partition), "");
  spill_prefixes_.push_back(address_prefix(op.partition));
  write_.Delete(database_.meta(), partition_key(op.partition));
  changed_[op.partition] = std::nullopt;
  has_trim_ = true;
}

void StagedCommit::put(rocksdb::ColumnFamilyHandle* family, std::string key,
                       const std::string& value) {
  write_.Put(family, key, value);
  if (remembers_keys_) put_keys_.emplace(family->GetID(), std::move(key));
}

void StagedCommit::erase_prefix(rocksdb::ColumnFamilyHandle* family, const std::string& prefix) {
  const std::string end = end_of_prefix(prefix);
  const Result<std::size_t> erased = database_.erase_each(family, {prefix, end}, write_);
  if (!erased && !error_) error_ = erased.error();
  for (auto each = put_keys_.lower_bound({family->GetID(), prefix});
       each != put_keys_.end() && each->first == family->GetID() && each->second < end; ++each)
    write_.Delete(family, each->second);
}

}  // namespace ordo::store_rocksdb
