#include "ordo/adapters/store_rocksdb/log_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "ordo/adapters/store_rocksdb/rocksdb_error.h"

namespace ordo::store_rocksdb {
namespace {

using broker::MessageBatch;
using broker::Offset;
using broker::PartitionAddress;
using broker::ReadBatches;
using broker::RecoveredPartition;

// The index rows of one partition.
class IndexCursor {
 public:
  IndexCursor(const Database& database, PartitionAddress partition)
      : partition_(partition),
        begin_(address_prefix(partition)),
        end_(end_of_prefix(begin_)),
        begin_slice_(begin_),
        end_slice_(end_) {
    rocksdb::ReadOptions options = read_options();
    options.iterate_lower_bound = &begin_slice_;
    options.iterate_upper_bound = &end_slice_;
    rows_.reset(database.db().NewIterator(options, database.index()));
  }

  // To the batch that holds `offset`, or else the first one after it.
  void seek(Offset offset) {
    rows_->SeekForPrev(index_key(partition_, offset));
    if (!rows_->Valid()) {
      if (rows_->status().ok()) rows_->Seek(index_key(partition_, offset));
      return;
    }
    const Result<std::optional<IndexedBatch>> found = current();
    if (found && *found && (*found)->end() <= offset) rows_->Next();
  }
  void seek_last() { rows_->SeekToLast(); }
  void next() { rows_->Next(); }

  // Nothing at the end.
  Result<std::optional<IndexedBatch>> current() const {
    if (!rows_->Valid()) {
      if (rows_->status().ok()) return std::optional<IndexedBatch>();
      return error_of(rows_->status(), "cannot read the index of partition " +
                                           std::to_string(partition_.index) + " of topic " +
                                           std::to_string(partition_.topic.value()));
    }
    const std::optional<Offset> offset = index_key_offset(rows_->key().ToStringView());
    const std::optional<IndexRow> row = decode_index_row(rows_->value().ToStringView());
    if (!offset || !row) {
      return Error{ErrorCode::data_loss, "a row of the index of partition " +
                                             std::to_string(partition_.index) + " of topic " +
                                             std::to_string(partition_.topic.value()) +
                                             " cannot be understood"};
    }
    return std::optional<IndexedBatch>({*offset, *row});
  }

 private:
  PartitionAddress partition_;
  std::string begin_, end_;
  rocksdb::Slice begin_slice_, end_slice_;
  std::unique_ptr<rocksdb::Iterator> rows_;
};

Error missing(PartitionAddress partition, Offset first, Offset end) {
  return {ErrorCode::data_loss,
          place(partition, first, end) + ": stored once, but not there any more"};
}

// Where `rows` stands, which is the next batch after `reached`; never nothing.
Result<std::optional<IndexedBatch>> next_batch(const IndexCursor& rows, PartitionAddress partition,
                                               Offset reached, const RecoveredPartition& state) {
  Result<std::optional<IndexedBatch>> found = rows.current();
  if (!found) return found;
  if (!*found) return missing(partition, reached, state.end);
  if ((*found)->row.previous_end > reached)
    return missing(partition, reached, (*found)->row.previous_end);
  return found;
}

// What was read before the damage is good; the error comes to whoever reads on.
Result<ReadBatches> or_until_here(ReadBatches result, const Error& error) {
  if (result.batches.empty()) return error;
  return result;
}

}  // namespace

std::string place(PartitionAddress partition, Offset first, Offset end) {
  std::string text = "partition " + std::to_string(partition.index) + " of topic " +
                     std::to_string(partition.topic.value()) + ", offset" +
                     (end.value() - first.value() > 1 ? "s " : " ") + std::to_string(first.value());
  if (end.value() - first.value() > 1) text += " to " + std::to_string(end.value() - 1);
  return text;
}

Result<std::optional<IndexedBatch>> LogReader::batch_at(PartitionAddress partition,
                                                        Offset offset) const {
  IndexCursor rows(database_, partition);
  rows.seek(offset);
  return rows.current();
}

Result<std::optional<IndexedBatch>> LogReader::kept_batch_at(PartitionAddress partition,
                                                             Offset offset) const {
  Result<std::optional<IndexedBatch>> found = batch_at(partition, offset);
  while (found && *found && (*found)->row.is_lost())
    found = batch_at(partition, (*found)->end());
  return found;
}

Result<std::optional<IndexedBatch>> LogReader::last_batch(PartitionAddress partition) const {
  IndexCursor rows(database_, partition);
  rows.seek_last();
  return rows.current();
}

Result<std::shared_ptr<MessageBatch>> LogReader::fetch(PartitionAddress partition,
                                                       const IndexedBatch& at) const {
  rocksdb::PinnableSlice value;
  const rocksdb::Status got = database_.db().Get(read_options(), database_.log(),
                                                 log_key(at.row.first_id, at.row.count), &value);
  if (got.IsNotFound()) return missing(partition, at.first_offset, at.end());
  const auto where = [&] { return place(partition, at.first_offset, at.end()); };
  if (!got.ok()) return error_of(got, where() + " cannot be read");
  Result<std::shared_ptr<MessageBatch>> batch = decode_log_row(value.ToStringView(), partition);
  if (!batch) return Error{batch.error().code, where() + ": " + batch.error().message};
  if ((*batch)->first_offset != at.first_offset || (*batch)->first_id != at.row.first_id ||
      (*batch)->count() != at.row.count) {
    return Error{ErrorCode::data_loss, where() + ": the index points to another log row"};
  }
  return batch;
}

Result<ReadBatches> LogReader::read(PartitionAddress partition, const RecoveredPartition& state,
                                    Offset from, std::size_t messages_max,
                                    std::size_t bytes_max) const {
  ReadBatches result;
  result.next = from;
  if (from >= state.end) return result;
  std::size_t messages = 0;
  std::size_t bytes = 0;
  Offset reached = std::max(from, state.first);
  IndexCursor rows(database_, partition);
  for (rows.seek(reached); reached < state.end; rows.next()) {
    const Result<std::optional<IndexedBatch>> found = next_batch(rows, partition, reached, state);
    if (!found) return or_until_here(std::move(result), found.error());
    const IndexedBatch& at = **found;
    if (at.row.is_lost()) {
      reached = at.end();
      continue;
    }
    const std::uint64_t wanted = at.end() - std::max(reached, at.first_offset);
    if (!result.batches.empty() &&
        (messages + wanted > messages_max || bytes + at.row.bytes > bytes_max))
      break;
    Result<std::shared_ptr<MessageBatch>> batch = fetch(partition, at);
    if (!batch) return or_until_here(std::move(result), batch.error());
    messages += wanted;
    bytes += at.row.bytes;
    reached = at.end();
    result.next = reached;
    result.batches.push_back(std::move(*batch));
    if (messages >= messages_max || bytes >= bytes_max) break;
  }
  return result;
}

Result<Offset> LogReader::find_time(PartitionAddress partition, const RecoveredPartition& state,
                                    WallTime time) const {
  IndexCursor rows(database_, partition);
  // Publish times never fall: the answer lies in [low, high].
  Offset low = state.first;
  Offset high = state.end;
  while (low < high) {
    const Offset middle = low + (high - low) / 2;
    rows.seek(middle);
    const Result<std::optional<IndexedBatch>> found = rows.current();
    if (!found) return found.error();
    if (!*found || (*found)->first_offset >= high) {
      // Offsets from the middle on do not exist: look below.
      high = middle;
    } else if ((*found)->row.publish_time >= time) {
      high = std::min(middle, std::max(low, (*found)->first_offset));
    } else {
      low = (*found)->end();
    }
  }
  const Result<std::optional<IndexedBatch>> found = batch_at(partition, low);
  if (!found) return found.error();
  if (!*found) return state.end;
  return std::max(low, (*found)->first_offset);
}

}  // namespace ordo::store_rocksdb
