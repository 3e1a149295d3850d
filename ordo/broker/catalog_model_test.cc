// Goal: whatever is created, changed and deleted, and wherever a crash falls, the partitions are
// what the catalog says they are, the disk holds what the catalog holds, and nothing is left over.
// Method: random calls on few names; a world of plain sets performs the orders and commits the
// rows as the shell does; now and then it crashes before or after a commit and recovers. The seed
// names the failing run.
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/broker/catalog.h"
#include "ordo/broker/catalog_codec.h"

namespace ordo::broker {
namespace {

using Place = std::pair<CursorNumber, PartitionAddress>;

// What is in memory, and what is on disk.
struct World {
  std::set<PartitionAddress> open;
  std::set<Place> attached;              // Subscriptions.
  std::map<Place, TopicNumber> letters;  // Where their dead letters go; 0: nowhere.
  std::map<CatalogKey, std::string> catalog_rows;
  std::set<PartitionAddress> logs;
  std::set<Place> rows;
};

class CatalogSchedule : public testing::TestWithParam<unsigned> {
 protected:
  std::uint64_t pick(std::uint64_t count) { return random_() % count; }
  std::string topic() { return "projects/p/topics/top" + std::to_string(pick(3)); }
  std::string subscription() { return "projects/p/subscriptions/sub" + std::to_string(pick(4)); }
  std::string snapshot() { return "projects/p/snapshots/snap" + std::to_string(pick(2)); }

  template <class Visit>
  static void for_all(TopicNumber topic, std::uint32_t count, Visit visit) {
    for (std::uint32_t index = 0; index < count; ++index)
      visit(PartitionAddress{topic, index});
  }

  void perform(const std::vector<PartitionOrder>& orders, CommitBatch& rows) {
    for (const PartitionOrder& order : orders) {
      std::visit(
          [&](const auto& what) {
            for_all(what.topic, what.partition_count,
                    [&](PartitionAddress address) { perform_one(what, address, rows); });
          },
          order);
    }
  }
  void perform_one(const OpenPartitions&, PartitionAddress address, CommitBatch&) {
    EXPECT_TRUE(world_.open.insert(address).second);
  }
  void perform_one(const ClosePartitions&, PartitionAddress address, CommitBatch&) {
    EXPECT_EQ(world_.open.erase(address), 1u);
  }
  void perform_one(const AttachToAll& order, PartitionAddress address, CommitBatch& rows) {
    EXPECT_TRUE(world_.open.contains(address));
    EXPECT_TRUE(world_.attached.insert({order.setup.subscription, address}).second);
    world_.letters[{order.setup.subscription, address}] = letters_of(order.setup);
    put_row(rows, order.setup.subscription, address);
  }
  void perform_one(const ReconfigureAll& order, PartitionAddress address, CommitBatch&) {
    EXPECT_TRUE(world_.attached.contains({order.setup.subscription, address}));
    world_.letters[{order.setup.subscription, address}] = letters_of(order.setup);
  }
  void perform_one(const DetachFromAll& order, PartitionAddress address, CommitBatch&) {
    EXPECT_EQ(world_.attached.erase({order.subscription, address}), 1u);
    world_.letters.erase({order.subscription, address});
  }
  void perform_one(const DropSnapshotOfAll&, PartitionAddress address, CommitBatch&) {
    EXPECT_TRUE(world_.open.contains(address));
  }
  void perform_one(const RetainInAll&, PartitionAddress address, CommitBatch&) {
    EXPECT_TRUE(world_.open.contains(address));
  }

  static void put_row(CommitBatch& rows, CursorNumber cursor, PartitionAddress address) {
    PutRow put;
    put.key.cursor = cursor;
    put.key.partition = address;
    rows.emplace_back(std::move(put));
  }

  static TopicNumber letters_of(const SubscriptionSetup& setup) {
    return setup.dead_letter_partitions > 0 ? setup.dead_letter_topic : TopicNumber();
  }

  void commit(const CommitBatch& batch) {
    for (const CommitOp& op : batch) {
      if (const auto* put = std::get_if<PutCatalog>(&op)) {
        world_.catalog_rows[put->key] = put->value;
      } else if (const auto* erase = std::get_if<EraseCatalog>(&op)) {
        EXPECT_EQ(world_.catalog_rows.erase(erase->key), 1u) << erase->key.name;
      } else if (const auto* row = std::get_if<PutRow>(&op)) {
        world_.rows.insert({row->key.cursor, row->key.partition});
        world_.logs.insert(row->key.partition);
      } else if (const auto* rows = std::get_if<EraseRows>(&op)) {
        world_.rows.erase({rows->cursor, rows->partition});
      } else if (const auto* gone = std::get_if<ErasePartition>(&op)) {
        world_.logs.erase(gone->partition);
        std::erase_if(world_.rows,
                      [&](const Place& place) { return place.second == gone->partition; });
      }
    }
  }

  void recover() {
    Recovered recovered;
    recovered.catalog = world_.catalog_rows;
    for (const PartitionAddress& address : world_.logs)
      recovered.partitions[address];
    for (const Place& place : world_.rows)
      recovered.rows[{place.first, place.second, 1, 0, ""}] = "row";
    Result<Catalog::Start> start = Catalog::recover(recovered);
    ASSERT_TRUE(start) << start.error().message;
    commit(start->cleanup);
    catalog_ = std::move(start->catalog);
    world_.open.clear();
    world_.attached.clear();
    world_.letters.clear();
    for (const auto& [number, entry] : catalog_.topics()) {
      for_all(number, entry.config.partitions,
              [&](PartitionAddress address) { world_.open.insert(address); });
    }
    for (const auto& [name, entry] : catalog_.subscriptions()) {
      if (entry.config.detached) continue;
      for_all(entry.topic, catalog_.topics().at(entry.topic).config.partitions,
              [&](PartitionAddress address) {
                world_.attached.insert({entry.number, address});
                world_.letters[{entry.number, address}] = letters_of(catalog_.setup_of(entry));
              });
    }
  }

  // As the shell performs a change; sometimes it crashes on the way.
  void carry_out(Result<CatalogChange> change) {
    if (!change) {
      ++refused_;
      return;
    }
    ++done_;
    perform(change->before, change->rows);
    const std::uint64_t fate = pick(20);
    if (fate == 0) return recover();  // Before the commit.
    if (fate == 2 && undo(change->before)) return catalog_.drop();
    commit(change->rows);
    if (fate == 1) return recover();  // After it.
    catalog_.apply();
    perform(change->after, change->rows);
  }

  // What is done when the store refuses a change. False where there is no way back.
  bool undo(const std::vector<PartitionOrder>& orders) {
    for (const PartitionOrder& order : orders) {
      const auto* attach = std::get_if<AttachToAll>(&order);
      if (attach == nullptr) return false;
      for_all(attach->topic, attach->partition_count, [&](PartitionAddress address) {
        world_.attached.erase({attach->setup.subscription, address});
        world_.letters.erase({attach->setup.subscription, address});
      });
    }
    return true;
  }

  void take_snapshot() {
    const std::string name = snapshot();
    const Result<CursorPlan> plan = catalog_.plan_snapshot(name, subscription());
    if (!plan) {
      ++refused_;
      return;
    }
    CommitBatch rows;
    for_all(plan->topic, plan->partition_count,
            [&](PartitionAddress address) { put_row(rows, plan->snapshot, address); });
    commit(rows);
    if (pick(10) == 0) return recover();
    carry_out(catalog_.create_snapshot({.name = name}, *plan, now_, now_));
    if (catalog_.get_snapshot(name)) return;
    for_all(plan->topic, plan->partition_count, [&](PartitionAddress address) {  // DropSnapshot.
      world_.rows.erase({plan->snapshot, address});
    });
  }

  SubscriptionConfig random_subscription() {
    SubscriptionConfig config{.name = subscription(), .topic = topic()};
    if (pick(2) == 0) config.dead_letter_policy = DeadLetterPolicy{topic(), 5};
    if (pick(3) == 0) config.labels = {{"ordo-ordered-window", "3"}};
    return config;
  }

  void step() {
    switch (pick(9)) {
      case 0:
      case 1:
        return carry_out(catalog_.create_topic(
            {.name = topic(), .partitions = static_cast<std::uint32_t>(1 + pick(3))}));
      case 2:
        return carry_out(catalog_.delete_topic(topic()));
      case 3:
      case 4:
        return carry_out(catalog_.create_subscription(random_subscription(), now_));
      case 5:
        return carry_out(
            catalog_.update_subscription(random_subscription(), {"labels", "dead_letter_policy"}));
      case 6:
        return carry_out(catalog_.delete_subscription(subscription()));
      case 7:
        return carry_out(pick(2) == 0 ? catalog_.detach_subscription(subscription())
                                      : catalog_.delete_snapshot(snapshot()));
      default:
        return take_snapshot();
    }
  }

  void check() {
    std::set<PartitionAddress> open;
    std::set<Place> attached, rows;
    std::map<Place, TopicNumber> letters;
    std::map<CatalogKey, std::string> catalog_rows;
    for (const auto& [number, entry] : catalog_.topics()) {
      catalog_rows[key_of(entry)] = encode_row(entry);
      for_all(number, entry.config.partitions,
              [&](PartitionAddress address) { open.insert(address); });
    }
    for (const auto& [name, entry] : catalog_.subscriptions()) {
      catalog_rows[{kSubscriptionKind, name}] = encode_row(entry);
      if (entry.config.detached) continue;
      for_all(entry.topic, catalog_.topics().at(entry.topic).config.partitions,
              [&](PartitionAddress address) {
                attached.insert({entry.number, address});
                rows.insert({entry.number, address});
                letters[{entry.number, address}] = letters_of(catalog_.setup_of(entry));
              });
    }
    for (const auto& [name, entry] : catalog_.snapshots()) {
      catalog_rows[{kSnapshotKind, name}] = encode_row(entry);
      for_all(entry.topic, catalog_.topics().at(entry.topic).config.partitions,
              [&](PartitionAddress address) {
                rows.insert({entry.number, address});
              });
    }
    std::map<CatalogKey, std::string> stored = world_.catalog_rows;
    stored.erase({kCountersKind, std::string(kCountersName)});
    ASSERT_TRUE(stored == catalog_rows);
    ASSERT_EQ(world_.open, open);
    ASSERT_EQ(world_.attached, attached);
    ASSERT_EQ(world_.letters, letters);
    ASSERT_EQ(world_.rows, rows);
  }

  std::mt19937_64 random_{GetParam()};
  WallTime now_ = WallTime() + std::chrono::hours(24 * 365 * 50);
  Catalog catalog_;
  World world_;
  int done_ = 0;
  int refused_ = 0;
};

TEST_P(CatalogSchedule, PartitionsAndDiskAreWhatTheCatalogSays) {
  for (int i = 0; i < 300; ++i) {
    step();
    check();
    if (HasFailure()) FAIL() << "at step " << i;
  }
  EXPECT_GT(done_, 50);
  EXPECT_GT(refused_, 20);
}
INSTANTIATE_TEST_SUITE_P(Seeds, CatalogSchedule, testing::Range(0u, 100u));

}  // namespace
}  // namespace ordo::broker
