// Rows of the catalog are lost: after a repair a broker starts, and all that is lost was named.
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/sst_file_reader.h>

#include "ordo/adapters/store_rocksdb/open_broker.h"
#include "ordo/adapters/store_rocksdb/repair.h"
#include "tests/support/forgetful_disk.h"
#include "tests/support/waiting.h"

namespace ordo::store_rocksdb {
namespace {

using testing_support::ForgetfulDisk;

constexpr const char* kProject = "projects/p";

std::string name(const std::string& kind, int number) {
  return std::string(kProject) + "/" + kind + "/name" + std::to_string(number);
}

// What a broker has, by name.
struct Content {
  std::set<std::string> topics;
  std::set<std::string> subscriptions;
  std::set<std::string> snapshots;
};

// A directory to which every run of a broker adds a table of the catalog; the last one crashed.
class CatalogDamage : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr int kRuns = 3;

  void SetUp() override {
    for (int run = 0; run < kRuns; ++run) {
      const std::unique_ptr<Broker> broker = open();
      ASSERT_TRUE(broker);
      ASSERT_NO_FATAL_FAILURE(use(*broker, run));
      whole_ = read(*broker);
      if (run == kRuns - 1 && GetParam() % 2 == 1) disk_.cut_now(GetParam());
    }
    if (disk_.is_off()) disk_.power_on();
    image_ = disk_.image();
  }

  std::unique_ptr<Broker> open() {
    BrokerOptions options;
    options.threads = 1;
    Result<std::unique_ptr<Broker>> broker =
        open_broker("/data", options,
                    {.watermark_interval = {}, .write_buffer_bytes = 1u << 20, .env = env_.get()});
    EXPECT_TRUE(broker) << broker.error().message;
    return broker ? std::move(*broker) : nullptr;
  }

  // Each topic has a subscription of this run and one of the next.
  static void use(Broker& broker, int run) {
    for (int i = 0; i < 4; ++i) {
      const int number = run * 4 + i;
      ASSERT_TRUE(broker.create_topic({.name = name("topics", number)}));
      ASSERT_TRUE(broker.create_subscription(
          {.name = name("subscriptions", 2 * number), .topic = name("topics", number)}));
      if (run == 0) continue;
      const std::string older = name("topics", number - 4);
      ASSERT_TRUE(broker.create_subscription(
          {.name = name("subscriptions", 2 * number + 1), .topic = older}));
      ASSERT_TRUE(broker.publish(older, {{.data = "hello", .ordering_key = "key"}}));
      ASSERT_TRUE(broker.create_snapshot({.name = name("snapshots", number), .topic = {}},
                                         name("subscriptions", 2 * (number - 4))));
    }
    // One whose messages are still needed, without a name.
    if (run != 1) return;
    ASSERT_TRUE(broker.delete_topic(name("topics", 1)));
  }

  static Content read(Broker& broker) {
    Content content;
    const auto topics = broker.list_topics(kProject);
    const auto subscriptions = broker.list_subscriptions(kProject);
    const auto snapshots = broker.list_snapshots(kProject);
    EXPECT_TRUE(topics && subscriptions && snapshots);
    for (const auto& topic : topics->items)
      content.topics.insert(topic.name);
    for (const auto& subscription : subscriptions->items)
      content.subscriptions.insert(subscription.name);
    for (const auto& snapshot : snapshots->items)
      content.snapshots.insert(snapshot.name);
    return content;
  }

  std::vector<std::string> tables_of(const std::string& family) {
    std::vector<std::string> tables;
    for (const auto& [path, bytes] : image_) {
      rocksdb::Options options;
      options.env = env_.get();
      rocksdb::SstFileReader reader(options);
      if (!path.ends_with(".sst") || !reader.Open(path).ok()) continue;
      if (reader.GetTableProperties()->column_family_name == family) tables.push_back(path);
    }
    return tables;
  }

  // After a repair of `image`. How many things are lost.
  std::size_t lost_after_repair(const ForgetfulDisk::Image& image) {
    disk_.load(image);
    const DirectoryPaths paths{"/data", usual_witness("/data")};
    const Result<RepairLines> done = repair(paths, {.accept_loss = true, .env = env_.get()});
    EXPECT_TRUE(done) << done.error().message;
    const std::unique_ptr<Broker> broker = open();
    if (!done || !broker) return 0;
    std::string said;
    for (const std::string& line : *done)
      said += line + "\n";
    SCOPED_TRACE(said);
    const Content now = read(*broker);
    std::size_t unnamed = 0;
    std::size_t lost = 0;
    for (const auto& [before, after] : {std::pair(&whole_.topics, &now.topics),
                                        std::pair(&whole_.subscriptions, &now.subscriptions),
                                        std::pair(&whole_.snapshots, &now.snapshots)}) {
      for (const std::string& each : *before) {
        if (after->contains(each)) continue;
        ++lost;
        if (said.find(each) == std::string::npos) ++unnamed;
      }
    }
    // Those whose own row is lost are named by their numbers.
    std::size_t numbered = 0;
    for (const std::string& line : *done)
      numbered += line.find("whose name is not known") != std::string::npos ? 1 : 0;
    EXPECT_GE(numbered, unnamed);
    expect_usable(*broker, now);
    return lost;
  }

  // New ones get along with those that are left.
  static void expect_usable(Broker& broker, const Content& now) {
    ASSERT_TRUE(broker.create_topic({.name = name("topics", 1'000)}));
    ASSERT_TRUE(broker.create_subscription(
        {.name = name("subscriptions", 1'000), .topic = name("topics", 1'000)}));
    ASSERT_TRUE(broker.publish(name("topics", 1'000), {{.data = "new"}}));
    const auto got = broker.pull(name("subscriptions", 1'000), {});
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_EQ(got->size(), 1u);
    for (const std::string& topic : now.topics)
      EXPECT_TRUE(broker.publish(topic, {{.data = "more"}}));
  }

  ForgetfulDisk disk_;
  std::unique_ptr<rocksdb::Env> env_ = disk_.make_env();
  ForgetfulDisk::Image image_;
  Content whole_;
};

TEST_P(CatalogDamage, IsNamedAndTheRestStarts) {
  std::mt19937_64 random(GetParam());
  const std::vector<std::string> tables = tables_of("meta");
  ASSERT_GE(tables.size(), 2u);
  std::size_t lost = 0;
  for (const std::string& table : tables) {
    SCOPED_TRACE(table);
    ForgetfulDisk::Image image = image_;
    image.erase(table);
    lost += lost_after_repair(image);
    for (int i = 0; i < 3; ++i) {
      image = image_;
      std::string& bytes = image.at(table);
      const std::size_t at = random() % bytes.size();
      SCOPED_TRACE("bit at " + std::to_string(at));
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      lost += lost_after_repair(image);
    }
  }
  EXPECT_GT(lost, 0u);
  ForgetfulDisk::Image image = image_;
  for (const std::string& table : tables)
    image.erase(table);
  EXPECT_GT(lost_after_repair(image), 0u) << "all of them";
}

INSTANTIATE_TEST_SUITE_P(Seeds, CatalogDamage,
                         testing::Range(0u, testing_support::kIsSanitized ? 2u : 4u));

}  // namespace
}  // namespace ordo::store_rocksdb
