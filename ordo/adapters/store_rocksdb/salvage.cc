#include "ordo/adapters/store_rocksdb/salvage.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include <rocksdb/env.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/write_batch.h>

#include "ordo/adapters/store_rocksdb/lone_files.h"
#include "ordo/adapters/store_rocksdb/rocksdb_error.h"
#include "ordo/adapters/store_rocksdb/row_codec.h"

namespace ordo::store_rocksdb {
namespace {

constexpr std::size_t kBytesOfAWrite = 4u << 20;

// The changes that some commits made in one family: a table, or a record of a log file.
struct Layer {
  std::uint64_t first = 0;  // Commits. 0: not known, and taken for the oldest.
  std::uint64_t last = 0;
  bool is_whole = false;  // Nothing of these commits is missing.
  std::string table;      // Empty: the changes are here.
  RowChanges changes;
};
using Layers = std::vector<Layer>;
using Rows = std::map<std::string, std::string>;

class Salvage {
 public:
  Salvage(const DatabaseOptions& damaged, Database& fresh) : files_(damaged), fresh_(fresh) {}

  Result<Salvaged> run();

 private:
  void read_table(const std::string& name);
  void read_small_table(const std::string& name, rocksdb::SstFileReader& table, bool is_intact,
                        Layers& layers);
  Status read_log_file(const std::string& name);
  void take_batch(std::string_view key, std::string_view value);
  Result<Rows> newest(Layers& layers, std::uint64_t* whole_until);
  void write_rows(const Rows& rows, rocksdb::ColumnFamilyHandle* family);
  void write(std::size_t at_least);

  const LoneFiles files_;
  Database& fresh_;
  Salvaged result_;
  Layers state_;
  Layers meta_;
  rocksdb::WriteBatch write_;
  rocksdb::Status written_;
};

Result<Salvaged> Salvage::run() {
  for (const std::string& name : files_.names(".sst"))
    read_table(name);
  for (const std::string& name : files_.names(".log")) {
    if (Status read = read_log_file(name); !read) return read.error();
  }
  for (auto [layers, family, whole_until] :
       {std::tuple(&meta_, fresh_.meta(), &result_.meta_commit),
        std::tuple(&state_, fresh_.state(), &result_.state_commit)}) {
    const Result<Rows> rows = newest(*layers, whole_until);
    if (!rows) return rows.error();
    write_rows(*rows, family);
  }
  write(0);
  if (!written_.ok()) return error_of(written_, "cannot write what could be read");
  if (Status flushed = fresh_.flush(); !flushed) return flushed.error();
  return result_;
}

void Salvage::read_table(const std::string& name) {
  const std::unique_ptr<rocksdb::SstFileReader> table = files_.open_table(name);
  if (!table) {
    result_.lines.push_back(name + " cannot be read at all");
    return;
  }
  const std::string family = table->GetTableProperties()->column_family_name;
  const bool is_intact = table->VerifyChecksum().ok();
  std::size_t count = 0;
  if (family == fresh_.log()->GetName()) {
    count = read_both_ways(
        [&] { return table->NewIterator(read_options()); },
        [this](std::string_view key, std::string_view value) { take_batch(key, value); });
  } else if (family == fresh_.state()->GetName()) {
    read_small_table(name, *table, is_intact, state_);
    count = state_.back().changes.size();
  } else if (family == fresh_.meta()->GetName()) {
    read_small_table(name, *table, is_intact, meta_);
    count = meta_.back().changes.size();
  } else {
    return;
  }
  if (is_intact) return;
  result_.lines.push_back(name + " is damaged; " + std::to_string(count) + " of " +
                          std::to_string(table->GetTableProperties()->num_entries) + " rows of '" +
                          family + "' could be read");
}

void Salvage::read_small_table(const std::string& name, rocksdb::SstFileReader& table,
                               bool is_intact, Layers& layers) {
  Layer& layer = layers.emplace_back();
  const auto place = [&layer](std::string_view value) {
    const std::optional<CommitChain> chain = CommitChain::decode(value);
    if (!chain) return;
    layer.first = chain->first;
    layer.last = chain->last;
    layer.is_whole = !chain->has_gap();
  };
  if (is_intact) {
    layer.table = name;
    const std::unique_ptr<rocksdb::Iterator> rows(table.NewIterator(read_options()));
    rows->SeekToFirst();
    if (rows->Valid() && rows->key() == kChainKey) place(rows->value().ToStringView());
    return;
  }
  read_both_ways([&] { return table.NewIterator(read_options()); },
                 [&](std::string_view key, std::string_view value) {
                   if (key == kChainKey) return place(value);
                   layer.changes.emplace_back(key, std::string(value));
                 });
  layer.is_whole = false;
}

Status Salvage::read_log_file(const std::string& name) {
  const Result<bool> was_read = files_.read_log(name, [this](CommitRecord& record) {
    for (const auto& [key, value] : record.batches)
      take_batch(key, value);
    for (auto [changes, layers] :
         {std::pair(&record.state, &state_), std::pair(&record.meta, &meta_)}) {
      if (!record.chain) continue;
      layers->push_back({.first = record.chain->first,
                         .last = record.chain->last,
                         .is_whole = true,
                         .table = {},
                         .changes = std::move(*changes)});
    }
  });
  if (!was_read) return was_read.error();
  if (!*was_read) result_.lines.push_back(name + " cannot be read at all");
  return {};
}

// Only what proves itself.
void Salvage::take_batch(std::string_view key, std::string_view value) {
  const std::optional<LogKey> parsed = parse_log_key(key);
  const std::optional<broker::PartitionAddress> partition = log_row_partition(value);
  if (!parsed || !partition) return;
  const Result<std::shared_ptr<broker::MessageBatch>> batch = decode_log_row(value, *partition);
  if (!batch || (*batch)->first_id != parsed->first_id) return;
  write_.Put(fresh_.log(), rocksdb::Slice(key.data(), key.size()),
             rocksdb::Slice(value.data(), value.size()));
  write(kBytesOfAWrite);
}

// What the layers come to, one above the other. `whole_until`: the last commit up to which none is
// missing.
Result<Rows> Salvage::newest(Layers& layers, std::uint64_t* whole_until) {
  std::stable_sort(layers.begin(), layers.end(), [](const Layer& a, const Layer& b) {
    return std::pair(a.last, a.first) < std::pair(b.last, b.first);
  });
  std::vector<const Layer*> whole_tables;
  for (const Layer& layer : layers) {
    if (layer.is_whole && !layer.table.empty()) whole_tables.push_back(&layer);
  }
  const auto is_out_of_date = [&](const Layer& layer) {
    return layer.last != 0 &&
           std::any_of(whole_tables.begin(), whole_tables.end(), [&](const Layer* other) {
             const std::uint64_t until = std::max(layer.first, layer.last);  // It may be empty.
             const bool has_all = other->first <= layer.first && until <= other->last;
             const bool is_same = other->first == layer.first && layer.last == other->last;
             return has_all && (!is_same || layer.table.empty() || other->table > layer.table);
           });
  };
  Rows rows;
  std::uint64_t reached = 0;
  bool has_gap = false;
  for (Layer& layer : layers) {
    if (is_out_of_date(layer)) continue;
    if (!layer.table.empty()) {
      Result<RowChanges> changes = files_.table_changes(layer.table);
      if (!changes) return changes.error();
      layer.changes = std::move(*changes);
    }
    for (auto& [key, value] : layer.changes) {
      if (value) {
        rows.insert_or_assign(std::move(key), std::move(*value));
      } else {
        rows.erase(key);
      }
    }
    layer.changes = {};
    has_gap = has_gap || !layer.is_whole || layer.first > reached + 1;
    if (!has_gap) reached = std::max(reached, layer.last);
  }
  *whole_until = has_gap ? 0 : reached;
  return rows;
}

void Salvage::write_rows(const Rows& rows, rocksdb::ColumnFamilyHandle* family) {
  for (const auto& [key, value] : rows) {
    write_.Put(family, key, value);
    write(kBytesOfAWrite);
  }
}

// Once there are so many bytes. Without the log file: it counts only when it is flushed.
void Salvage::write(std::size_t at_least) {
  if (write_.GetDataSize() < at_least) return;
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  if (written_.ok()) written_ = fresh_.db().Write(options, &write_);
  write_.Clear();
}

}  // namespace

std::size_t read_both_ways(const MakeIterator& make, const TakeRow& take) {
  std::unique_ptr<rocksdb::Iterator> rows(make());
  std::string reached;
  std::size_t count = 0;
  for (rows->SeekToFirst(); rows->Valid(); rows->Next(), ++count) {
    take(rows->key().ToStringView(), rows->value().ToStringView());
    reached = rows->key().ToString();
  }
  if (rows->status().ok()) return count;
  rows.reset(make());
  for (rows->SeekToLast(); rows->Valid() && rows->key().ToStringView() > reached; rows->Prev()) {
    take(rows->key().ToStringView(), rows->value().ToStringView());
    ++count;
  }
  return count;
}

Result<Salvaged> salvage(const DatabaseOptions& damaged, Database& fresh) {
  return Salvage(damaged, fresh).run();
}

}  // namespace ordo::store_rocksdb
