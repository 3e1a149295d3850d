#include "ordo/adapters/store_rocksdb/catalog_repair.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ordo/broker/catalog_codec.h"
#include "ordo/broker/cursor_rows.h"

namespace ordo::store_rocksdb {
namespace {

using broker::CatalogKey;
using broker::CursorNumber;
using broker::Recovered;
using broker::TopicNumber;

// The rows that can be understood. Those that cannot stay: a broker names them.
struct Known {
  std::set<TopicNumber> topics;
  std::map<CatalogKey, broker::CatalogSubscription> subscriptions;
  std::map<CatalogKey, broker::CatalogSnapshot> snapshots;
  broker::CatalogCounters counters;
};

Known read_rows(const Recovered& all) {
  Known known;
  for (const auto& [key, value] : all.catalog) {
    if (key.kind == broker::kTopicKind) {
      if (const auto row = broker::decode_topic(key.name, value)) known.topics.insert(row->number);
    } else if (key.kind == broker::kDeletedTopicKind) {
      if (const auto row = broker::decode_deleted_topic(key.name, value))
        known.topics.insert(row->number);
    } else if (key.kind == broker::kSubscriptionKind) {
      if (auto row = broker::decode_subscription(key.name, value))
        known.subscriptions.emplace(key, *row);
    } else if (key.kind == broker::kSnapshotKind) {
      if (auto row = broker::decode_snapshot(key.name, value)) known.snapshots.emplace(key, *row);
    } else if (key.kind == broker::kCountersKind) {
      if (const auto row = broker::decode_counters(value)) known.counters = *row;
    }
  }
  return known;
}

class Mending {
 public:
  Mending(Recovered all, const std::vector<TopicNumber>& topics)
      : all_(std::move(all)),
        known_(read_rows(all_)) {
    result_.counters = known_.counters;
    for (const TopicNumber topic : topics)
      raise_topic(topic);
  }

  CatalogRepair run() {
    for (const auto& [key, row] : known_.subscriptions) {
      raise_cursor(row.number);
      const bool is_lost = !row.config.detached && !known_.topics.contains(row.topic);
      if (is_lost) give_up("subscription", key, row.topic, row.config.topic);
      if (!is_lost) cursors_.insert(row.number);
    }
    for (const auto& [key, row] : known_.snapshots) {
      raise_cursor(row.number);
      const bool is_lost = !known_.topics.contains(row.topic);
      if (is_lost) give_up("snapshot", key, row.topic, row.config.topic);
      if (!is_lost) cursors_.insert(row.number);
    }
    name_topics();
    name_cursors();
    for (const CatalogKey& key : result_.erased)
      all_.catalog.erase(key);
    if (const auto start = broker::Catalog::recover(all_); !start)
      result_.refusal = start.error().message;
    return std::move(result_);
  }

 private:
  void raise_topic(TopicNumber topic) {
    result_.counters.next_topic = std::max(result_.counters.next_topic, topic.value() + 1);
  }
  void raise_cursor(CursorNumber cursor) {
    result_.counters.next_cursor = std::max(result_.counters.next_cursor, cursor.value() + 1);
  }

  void give_up(const std::string& what, const CatalogKey& key, TopicNumber topic,
               const std::string& topic_name) {
    names_[topic] = topic_name;
    lost_.insert(topic);
    named_.insert(what == "snapshot" ? known_.snapshots.at(key).number
                                     : known_.subscriptions.at(key).number);
    result_.erased.push_back(key);
    result_.lines.push_back(what + " " + key.name + " is given up: its topic is lost");
  }

  // Those that have messages or subscriptions, but no row.
  void name_topics() {
    for (const TopicNumber topic : known_.topics)
      raise_topic(topic);
    for (const auto& [address, partition] : all_.partitions) {
      raise_topic(address.topic);
      if (!known_.topics.contains(address.topic)) lost_.insert(address.topic);
    }
    for (const TopicNumber topic : lost_) {
      const auto name = names_.find(topic);
      result_.lines.push_back(
          "topic " + std::to_string(topic.value()) +
          (name == names_.end() ? ", whose name is not known," : " (" + name->second + ")") +
          " is not in the catalog: the next start drops its messages");
    }
  }

  void name_cursors() {
    std::map<CursorNumber, std::size_t> rows;
    for (const auto& [key, value] : all_.rows) {
      raise_cursor(key.cursor);
      raise_topic(key.partition.topic);
      if (!cursors_.contains(key.cursor) && !named_.contains(key.cursor)) ++rows[key.cursor];
    }
    for (const auto& [cursor, count] : rows) {
      result_.lines.push_back("subscription or snapshot " + std::to_string(cursor.value()) +
                              ", whose name is not known, is not in the catalog: the next start "
                              "drops its rows (" +
                              std::to_string(count) + ")");
    }
  }

  Recovered all_;
  const Known known_;
  CatalogRepair result_;
  std::set<CursorNumber> cursors_;  // Which stay.
  std::set<CursorNumber> named_;    // Which do not, and were named.
  std::set<TopicNumber> lost_;
  std::map<TopicNumber, std::string> names_;
};

}  // namespace

CatalogRepair repair_catalog(Recovered all, const std::vector<TopicNumber>& topics) {
  return Mending(std::move(all), topics).run();
}

broker::Offset named_below(const Recovered& all, broker::PartitionAddress partition) {
  std::uint64_t below = 1;
  for (const auto& [key, value] : all.rows) {
    if (key.partition != partition) continue;
    below = std::max(below, key.position + 1);
    const bool is_offset = key.kind == static_cast<std::uint8_t>(broker::RowKind::acked) ||
                           key.kind == static_cast<std::uint8_t>(broker::RowKind::delivered);
    if (is_offset) below = std::max(below, broker::decode_number(value).value_or(0));
  }
  return broker::Offset(below);
}

}  // namespace ordo::store_rocksdb
