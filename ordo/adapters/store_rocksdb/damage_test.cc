// One fault in one file of a data directory, whichever: all data is there, or the store says what
// is wrong. Never fewer messages without a word.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/sst_file_reader.h>

#include "ordo/adapters/store_rocksdb/examination.h"
#include "ordo/adapters/store_rocksdb/repair.h"
#include "ordo/adapters/store_rocksdb/rocksdb_store.h"
#include "ordo/adapters/store_rocksdb/row_codec.h"
#include "tests/support/forgetful_disk.h"
#include "tests/support/stored_world.h"
#include "tests/support/waiting.h"

namespace ordo::store_rocksdb {
namespace {

using broker::Store;
using testing_support::ForgetfulDisk;
using testing_support::StoredWorld;

enum class Ending : std::uint8_t {
  closed,
  crashed,
  littered,  // Crashed, and no file that is out of date was deleted before.
};

// What a table holds.
struct Table {
  std::string family;
  std::set<std::pair<broker::PartitionAddress, broker::Offset>> messages;
};

// A directory with everything in it: tables, log files, rows, trimmed partitions.
struct Directory {
  explicit Directory(std::uint64_t seed, Ending ending) : world(seed, 3'000) {
    options = {.directory = "/data",
               .watermark_interval = {},
               .write_buffer_bytes = 64u << 10,
               .cache_bytes = 1u << 20,
               .env = env.get()};
    disk.set_keeps_deleted(ending == Ending::littered);
    for (int run = 0; run < 3; ++run) {
      Result<std::unique_ptr<Store>> store = open_store(options);
      EXPECT_TRUE(store) << store.error().message;
      EXPECT_TRUE((*store)->recover());
      for (int i = 0; i < 60; ++i) {
        broker::CommitBatch batch = world.propose();
        EXPECT_TRUE((*store)->commit(batch));
        world.accept();
      }
      if (run == 2 && ending != Ending::closed) disk.cut_now(seed);
    }
    if (disk.is_off()) disk.power_on();
    disk.set_keeps_deleted(false);
    image = disk.image();
    for (const auto& [path, bytes] : image) {
      if (path.ends_with(".sst")) read_table(path);
    }
  }

  void read_table(const std::string& path) {
    rocksdb::Options rocksdb_options;
    rocksdb_options.env = env.get();
    rocksdb::SstFileReader reader(rocksdb_options);
    if (!reader.Open(path).ok()) return;  // A crash left half of it.
    Table& table = tables[path];
    table.family = reader.GetTableProperties()->column_family_name;
    if (table.family != "log") return;
    const std::unique_ptr<rocksdb::Iterator> rows(reader.NewIterator({}));
    for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
      const std::string_view value = rows->value().ToStringView();
      const auto address = log_row_partition(value);
      ASSERT_TRUE(address);
      const auto batch = decode_log_row(value, *address);
      ASSERT_TRUE(batch);
      for (std::uint32_t i = 0; i < (*batch)->count(); ++i)
        table.messages.emplace(*address, (*batch)->first_offset + i);
    }
  }

  ForgetfulDisk disk;
  std::unique_ptr<rocksdb::Env> env = disk.make_env();
  StoreOptions options;
  StoredWorld world;
  ForgetfulDisk::Image image;
  std::map<std::string, Table> tables;
};

struct Fault {
  std::string file;
  std::string what;
};

// Damages one file of `image` in one way.
Fault damage(ForgetfulDisk::Image& image, const std::string& path, unsigned kind,
             std::mt19937_64& random) {
  std::string& bytes = image.at(path);
  const auto up_to = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random);
  };
  Fault fault{path, ""};
  if (kind == 0 && !bytes.empty()) {
    const std::size_t at = up_to(bytes.size() - 1);
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << up_to(7)));
    fault.what = "bit at " + std::to_string(at);
  } else if (kind == 1 && !bytes.empty()) {
    bytes.resize(up_to(bytes.size() - 1));
    fault.what = "cut to " + std::to_string(bytes.size());
  } else if (kind == 2 && !bytes.empty()) {
    const std::size_t size = 512 << up_to(3);
    const std::size_t at = up_to(bytes.size() - 1) / size * size;
    const std::size_t count = std::min(size, bytes.size() - at);
    bytes.replace(at, count, count, '\0');
    fault.what = "zeros at " + std::to_string(at);
  } else {
    image.erase(path);
    fault.what = "deleted";
  }
  return fault;
}

// What the store says of a damaged image: empty if all is there, "refused: ..." or an error of a
// read; or a failure of the test.
std::string verdict(Directory& directory, const ForgetfulDisk::Image& image) {
  directory.disk.load(image);
  Result<std::unique_ptr<Store>> store = open_store(directory.options);
  if (!store) {
    EXPECT_TRUE(directory.disk.image() == image) << "refused, but something was changed";
    return "refused: " + store.error().message;
  }
  const Result<broker::Recovered> recovered = (*store)->recover();
  if (!recovered) return "refused: " + recovered.error().message;
  StoredWorld expected = directory.world;
  return expected.compare(**store, *recovered);
}

// Every message of `found` was stored so.
void expect_nothing_invented(const StoredWorld::State& stored, const StoredWorld::State& found) {
  for (const auto& [address, partition] : found.partitions) {
    const auto before = stored.partitions.find(address);
    if (partition.messages.empty()) continue;
    if (before == stored.partitions.end()) {
      EXPECT_LT(address.topic.value(), stored.topics.at(address.index)) << "not even erased";
      continue;
    }
    for (const auto& [offset, message] : partition.messages) {
      const auto same = before->second.messages.find(offset);
      if (same == before->second.messages.end()) {
        EXPECT_LT(offset, before->second.first) << "neither stored nor trimmed";
        continue;
      }
      EXPECT_EQ(same->second, message);
    }
  }
}

// Whether a message is in a file that is not damaged. Those that are in no table are in a log file.
bool has_survived(const Directory& directory, const std::string& damaged,
                  broker::PartitionAddress address, broker::Offset offset) {
  bool is_in_a_table = false;
  for (const auto& [path, table] : directory.tables) {
    if (!table.messages.contains({address, offset})) continue;
    if (path != damaged) return true;
    is_in_a_table = true;
  }
  return !is_in_a_table && !damaged.ends_with(".log");
}

// What is not in the damaged file is there after the repair.
void expect_rest_kept(const Directory& directory, const std::string& damaged,
                      const StoredWorld::State& found) {
  const StoredWorld::State& stored = directory.world.newest();
  for (const auto& [address, partition] : stored.partitions) {
    const auto now = found.partitions.find(address);
    for (const auto& [offset, message] : partition.messages) {
      if (!has_survived(directory, damaged, address, offset)) continue;
      EXPECT_TRUE(now != found.partitions.end() && now->second.messages.contains(offset))
          << "partition " << address.index << ", offset " << offset.value() << " is lost";
    }
  }
  const auto table = directory.tables.find(damaged);
  if (table == directory.tables.end()) return;
  EXPECT_TRUE(table->second.family == "state" || found.rows == stored.rows);
  if (table->second.family == "meta") return;
  EXPECT_TRUE(found.catalog == stored.catalog);
  for (const auto& [address, partition] : stored.partitions) {
    ASSERT_TRUE(found.partitions.contains(address));
    EXPECT_EQ(found.partitions.at(address).first, partition.first);
  }
}

// A directory that was refused is usable after a repair. Nothing is in it that was not stored, and
// numbers go on above those that were given.
void expect_repaired(Directory& directory, const ForgetfulDisk::Image& image,
                     const std::string& damaged) {
  const DirectoryPaths paths{"/data", usual_witness("/data")};
  directory.disk.load(image);
  EXPECT_FALSE(examine(paths, directory.env.get()).problems.empty());
  EXPECT_TRUE(directory.disk.image() == image) << "the doctor changed something";
  EXPECT_FALSE(repair(paths, {.accept_loss = false, .env = directory.env.get()}));
  EXPECT_TRUE(directory.disk.image() == image) << "a repair that was not accepted";
  const Result<RepairLines> repaired =
      repair(paths, {.accept_loss = true, .env = directory.env.get()});
  ASSERT_TRUE(repaired) << repaired.error().message;
  const std::vector<std::string> problems = examine(paths, directory.env.get()).problems;
  EXPECT_TRUE(problems.empty()) << problems.front();
  Result<std::unique_ptr<Store>> store = open_store(directory.options);
  ASSERT_TRUE(store) << store.error().message;
  const Result<broker::Recovered> recovered = (*store)->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_GT(recovered->start_number, 3u);
  StoredWorld::State found;
  ASSERT_EQ(StoredWorld::read_all(**store, *recovered, found), "");
  expect_nothing_invented(directory.world.newest(), found);
  ASSERT_NO_FATAL_FAILURE(expect_rest_kept(directory, damaged, found));
  const broker::PartitionAddress address{broker::TopicNumber(1'000'000), 0};
  auto message = broker::MessageBatch::make({{"new", 0, 0}}, broker::Offset(1), WallTime{});
  broker::CommitBatch batch{broker::Append{address, message}};
  ASSERT_TRUE((*store)->commit(batch));
  EXPECT_GE(message->first_id.value(), directory.world.newest().next_id);
}

class Damage : public testing::TestWithParam<unsigned> {};

TEST_P(Damage, OfAnyFileInAnyWayIsHarmlessOrNamedButNeverSilent) {
  std::mt19937_64 random(GetParam());
  const auto ending = static_cast<Ending>(GetParam() % 3);
  Directory directory(GetParam(), ending);
  ASSERT_EQ(verdict(directory, directory.image), "") << "undamaged";
  unsigned refused = 0;
  unsigned trials = 0;
  for (const auto& [path, bytes] : directory.image) {
    for (unsigned kind = 0; kind < 4; ++kind) {
      if (ending == Ending::littered && kind != random() % 4) continue;  // So many files.
      ForgetfulDisk::Image image = directory.image;
      const Fault fault = damage(image, path, kind, random);
      const std::string said = verdict(directory, image);
      ++trials;
      if (said.empty()) continue;
      ++refused;
      const bool is_named = said.starts_with("refused: ") || said.starts_with("cannot read: ");
      EXPECT_TRUE(is_named) << fault.file << " " << fault.what << ": " << said;
      SCOPED_TRACE(fault.file + " " + fault.what + ": " + said);
      ASSERT_NO_FATAL_FAILURE(expect_repaired(directory, image, fault.file));
    }
  }
  // Many files of a littered directory are not needed.
  EXPECT_GT(refused, trials / (ending == Ending::littered ? 20 : 4))
      << "of " << trials << " trials so few were noticed";
  RecordProperty("trials", static_cast<int>(trials));
}

// RocksDB forgot which files belong to the database; all of them are there.
ForgetfulDisk::Image forgotten(const Directory& directory, bool with_watermark) {
  ForgetfulDisk::Image image = directory.image;
  image.erase("/data/db/CURRENT");
  if (!with_watermark) image.erase("/data/watermark");
  return image;
}

void expect_all_kept(Directory& directory) {
  Result<std::unique_ptr<Store>> store = open_store(directory.options);
  ASSERT_TRUE(store) << store.error().message;
  const Result<broker::Recovered> recovered = (*store)->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  StoredWorld::State found;
  ASSERT_EQ(StoredWorld::read_all(**store, *recovered, found), "");
  const StoredWorld::State& stored = directory.world.newest();
  EXPECT_TRUE(found.rows == stored.rows);
  EXPECT_TRUE(found.catalog == stored.catalog);
  ASSERT_EQ(found.partitions.size(), stored.partitions.size());
  for (const auto& [address, partition] : stored.partitions) {
    EXPECT_EQ(found.partitions.at(address).first, partition.first);
    EXPECT_TRUE(found.partitions.at(address).messages == partition.messages);
  }
}

TEST_P(Damage, WhichLeavesAllFilesButForgetsThemLosesNothing) {
  Directory directory(GetParam(), static_cast<Ending>(GetParam() % 3));
  const DirectoryPaths paths{"/data", usual_witness("/data")};
  directory.disk.load(forgotten(directory, GetParam() % 2 == 0));
  const Result<RepairLines> done = repair(paths, {.accept_loss = true, .env = directory.env.get()});
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_NO_FATAL_FAILURE(expect_all_kept(directory));
}

// Wherever it stopped: what it left is refused, or whole; and the next repair comes to the end.
TEST_P(Damage, IsRepairedAlsoIfThePowerGoesOffMeanwhile) {
  Directory directory(GetParam(), static_cast<Ending>(GetParam() % 3));
  const DirectoryPaths paths{"/data", usual_witness("/data")};
  const ForgetfulDisk::Image image = forgotten(directory, GetParam() % 2 == 0);
  const RepairOptions options{.accept_loss = true, .env = directory.env.get()};
  directory.disk.load(image);
  const std::uint64_t before = directory.disk.operations();
  ASSERT_TRUE(repair(paths, options));
  const std::uint64_t operations = directory.disk.operations() - before;
  std::vector<std::uint64_t> cuts;
  for (std::uint64_t cut = 1; cut < operations; cut += 1 + cut / 2)
    cuts.push_back(cut);
  for (std::uint64_t left = 0; left < 24; ++left)  // Files are put in place and marks are set.
    cuts.push_back(operations - std::min(left, operations - 1));
  for (const std::uint64_t cut : cuts) {
    SCOPED_TRACE("cut " + std::to_string(cut) + " of " + std::to_string(operations));
    directory.disk.load(image);
    directory.disk.cut_after(cut, cut);
    const Result<RepairLines> done = repair(paths, options);
    ASSERT_TRUE(done) << done.error().message;
    if (directory.disk.is_off()) directory.disk.power_on();
    const bool is_whole = examine(paths, directory.env.get()).problems.empty();
    if (!is_whole) {
      EXPECT_FALSE(open_store(directory.options)) << "not refused";
      const Result<RepairLines> again = repair(paths, options);
      ASSERT_TRUE(again) << again.error().message;
    }
    ASSERT_NO_FATAL_FAILURE(expect_all_kept(directory));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Damage,
                         testing::Range(0u, testing_support::kIsSanitized ? 1u : 6u));

}  // namespace
}  // namespace ordo::store_rocksdb
