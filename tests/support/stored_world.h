// StoredWorld: makes random commits, and knows what a store has to hold after each of them.
//
//   StoredWorld world(seed);
//   broker::CommitBatch batch = world.propose();
//   Status stored = store.commit(batch);
//   stored ? world.accept() : world.doubt();     // doubt: all of it or nothing of it may be there
//   ...
//   EXPECT_EQ(world.compare(store, recovered), "");   // after it was opened again
//
// Threads: one owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ordo/broker/store.h"

namespace ordo::testing_support {

class StoredWorld {
 public:
  struct StoredMessage {
    std::uint64_t id = 0;
    std::string body;
    friend bool operator==(const StoredMessage&, const StoredMessage&) = default;
  };
  struct Partition {
    broker::Offset first = broker::Offset(1);
    broker::Offset end = broker::Offset(1);
    std::map<broker::Offset, StoredMessage> messages;
    friend bool operator==(const Partition&, const Partition&) = default;
  };
  struct State {
    std::map<broker::PartitionAddress, Partition> partitions;
    std::map<broker::RowKey, std::string> rows;
    std::map<broker::CatalogKey, std::string> catalog;
    // Not seen from outside, hence not compared.
    std::uint64_t next_id = 1;
    std::array<std::uint32_t, 3> topics{1, 1, 1};  // Of each partition; one that is erased is new.

    bool looks_like(const State& other) const {
      return partitions == other.partitions && rows == other.rows && catalog == other.catalog;
    }
  };

  explicit StoredWorld(std::uint64_t seed, std::size_t body_bytes_max = 2'000)
      : random_(seed),
        body_bytes_max_(body_bytes_max) {}

  std::mt19937_64& random() { return random_; }
  std::uint64_t up_to(std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most)(random_);
  }

  broker::CommitBatch propose(bool with_appends = true) {
    proposed_ = states_.back();
    broker::CommitBatch batch;
    const std::uint64_t count = 1 + up_to(3);
    for (std::uint64_t i = 0; i < count; ++i)
      add_op(batch, with_appends);
    return batch;
  }
  // Of a store that had synced it, or (`is_certain` false) may lose it with everything after it.
  void accept(bool is_certain = true) {
    if (is_certain) states_.clear();
    states_.push_back(proposed_);
  }
  void doubt() { states_.push_back(proposed_); }

  const State& newest() const { return states_.back(); }

  // Empty if the store holds one of the states that are possible, which is then the only one.
  std::string compare(broker::Store& store, const broker::Recovered& recovered) {
    State found;
    if (std::string problem = read_all(store, recovered, found); !problem.empty()) return problem;
    for (auto state = states_.rbegin(); state != states_.rend(); ++state) {
      if (!state->looks_like(found)) continue;
      State kept = std::move(*state);
      states_ = {std::move(kept)};
      return "";
    }
    return "the store holds none of " + std::to_string(states_.size()) +
           " possible states: " + describe(found) + "; newest: " + describe(states_.back());
  }

  // All that a store holds; the first thing that is wrong with it, or nothing.
  static std::string read_all(broker::Store& store, const broker::Recovered& recovered,
                              State& found) {
    found.rows = recovered.rows;
    found.catalog = recovered.catalog;
    for (const auto& [address, bounds] : recovered.partitions) {
      if (std::string problem = read_partition(store, address, bounds, found); !problem.empty())
        return problem;
    }
    return "";
  }

 private:
  static std::string describe(const State& state) {
    std::string text = std::to_string(state.rows.size()) + " rows, " +
                       std::to_string(state.catalog.size()) + " of the catalog";
    for (const auto& [address, partition] : state.partitions) {
      text += ", partition " + std::to_string(address.index) + " [" +
              std::to_string(partition.first.value()) + ", " +
              std::to_string(partition.end.value()) + ") with " +
              std::to_string(partition.messages.size());
    }
    return text;
  }

  static std::string read_partition(broker::Store& store, broker::PartitionAddress address,
                                    const broker::RecoveredPartition& bounds, State& found) {
    Partition& partition = found.partitions[address];
    partition.first = bounds.first;
    partition.end = bounds.end;
    broker::Offset at = bounds.first;
    while (at < bounds.end) {
      const Result<broker::ReadBatches> read = store.read(address, at, 50, 100'000);
      if (!read) return "cannot read: " + read.error().message;
      if (read->batches.empty()) {
        // A repair gives offsets up at the end of a partition; else there is something.
        const bool given_up = bounds.end - at >= (std::uint64_t{1} << 31);
        return given_up ? "" : "nothing at offset " + std::to_string(at.value());
      }
      for (const auto& batch : read->batches) {
        for (std::uint32_t i = 0; i < batch->count(); ++i) {
          const broker::Message message(batch, i);
          if (!message.is_intact()) return "a damaged message was handed out";
          if (message.offset() < bounds.first) continue;
          partition.messages[message.offset()] = {message.id().value(),
                                                  std::string(message.body())};
        }
      }
      at = read->next;
    }
    return "";
  }

  broker::PartitionAddress some_partition() {
    const auto index = static_cast<std::uint32_t>(up_to(2));
    return {broker::TopicNumber(proposed_.topics.at(index)), index};
  }
  broker::RowKey some_row() {
    return {broker::CursorNumber(static_cast<std::uint32_t>(1 + up_to(1))), some_partition(),
            static_cast<std::uint8_t>(up_to(2)), up_to(5), up_to(3) == 0 ? "key" : ""};
  }

  void add_op(broker::CommitBatch& batch, bool with_appends) {
    const std::uint64_t choice = up_to(19);
    if (choice < 10) {
      if (with_appends) add_append(batch);
    } else if (choice < 14) {
      const broker::RowKey key = some_row();
      const std::string value = std::to_string(random_());
      proposed_.rows[key] = value;
      batch.push_back(broker::PutRow{key, value});
    } else if (choice < 15) {
      const broker::RowKey key = some_row();
      proposed_.rows.erase(key);
      batch.push_back(broker::EraseRow{key});
    } else if (choice < 16) {
      add_erase_rows(batch);
    } else if (choice < 18) {
      const broker::CatalogKey key{1, std::to_string(up_to(5))};
      const std::string value(up_to(100), 'c');
      proposed_.catalog[key] = value;
      batch.push_back(broker::PutCatalog{key, value});
    } else if (choice < 19 || up_to(3) != 0) {
      add_trim(batch);
    } else {
      add_erase_partition(batch);
    }
  }

  void add_append(broker::CommitBatch& batch) {
    const broker::PartitionAddress address = some_partition();
    Partition& partition = proposed_.partitions[address];
    const broker::Offset first = partition.end + (up_to(9) == 0 ? up_to(3) : 0);
    std::vector<broker::MessageBody> bodies;
    const std::uint64_t count = 1 + up_to(4);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string body(1 + up_to(body_bytes_max_), static_cast<char>('a' + up_to(25)));
      body += std::to_string(proposed_.next_id);
      partition.messages[first + i] = {proposed_.next_id++, body};
      bodies.push_back({std::move(body), 0, 1});
    }
    partition.end = first + count;
    batch.push_back(broker::Append{
        address, broker::MessageBatch::make(bodies, first, WallTime(std::chrono::seconds(1)))});
  }

  void add_erase_rows(broker::CommitBatch& batch) {
    const broker::RowKey key = some_row();
    std::erase_if(proposed_.rows, [&](const auto& row) {
      return row.first.cursor == key.cursor && row.first.partition == key.partition;
    });
    batch.push_back(broker::EraseRows{key.cursor, key.partition});
  }

  void add_erase_partition(broker::CommitBatch& batch) {
    const broker::PartitionAddress address = some_partition();
    proposed_.partitions.erase(address);
    std::erase_if(proposed_.rows, [&](const auto& row) { return row.first.partition == address; });
    ++proposed_.topics.at(address.index);
    batch.push_back(broker::ErasePartition{address});
  }

  void add_trim(broker::CommitBatch& batch) {
    const broker::PartitionAddress address = some_partition();
    const auto found = proposed_.partitions.find(address);
    if (found == proposed_.partitions.end()) return;
    Partition& partition = found->second;
    const broker::Offset before = partition.first + up_to(partition.end - partition.first);
    partition.first = std::max(partition.first, before);
    partition.messages.erase(partition.messages.begin(), partition.messages.lower_bound(before));
    batch.push_back(broker::Trim{address, before});
  }

  std::mt19937_64 random_;
  std::size_t body_bytes_max_;
  std::vector<State> states_{State{}};  // Possible ones, oldest first.
  State proposed_;
};

}  // namespace ordo::testing_support
