// One fault in one file of a data directory, whichever: all data is there, or the store says what
// is wrong. Never fewer messages without a word.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "ordo/adapters/store_rocksdb/examination.h"
#include "ordo/adapters/store_rocksdb/repair.h"
#include "ordo/adapters/store_rocksdb/rocksdb_store.h"
#include "tests/support/forgetful_disk.h"
#include "tests/support/stored_world.h"
#include "tests/support/waiting.h"

namespace ordo::store_rocksdb {
namespace {

using broker::Store;
using testing_support::ForgetfulDisk;
using testing_support::StoredWorld;

enum class Ending : std::uint8_t { closed, crashed };

// A directory with everything in it: tables, log files, rows, trimmed partitions.
struct Directory {
  explicit Directory(std::uint64_t seed, Ending ending) : world(seed, 3'000) {
    options = {.directory = "/data",
               .watermark_interval = {},
               .write_buffer_bytes = 64u << 10,
               .cache_bytes = 1u << 20,
               .env = env.get()};
    for (int run = 0; run < 3; ++run) {
      Result<std::unique_ptr<Store>> store = open_store(options);
      EXPECT_TRUE(store) << store.error().message;
      EXPECT_TRUE((*store)->recover());
      for (int i = 0; i < 60; ++i) {
        broker::CommitBatch batch = world.propose();
        EXPECT_TRUE((*store)->commit(batch));
        world.accept();
      }
      if (run == 2 && ending == Ending::crashed) disk.cut_now(seed);
    }
    if (disk.is_off()) disk.power_on();
    image = disk.image();
  }

  ForgetfulDisk disk;
  std::unique_ptr<rocksdb::Env> env = disk.make_env();
  StoreOptions options;
  StoredWorld world;
  ForgetfulDisk::Image image;
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
    ASSERT_NE(before, stored.partitions.end());
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

// A directory that was refused is usable after a repair. Nothing is in it that was not stored, and
// numbers go on above those that were given.
void expect_repaired(Directory& directory, const ForgetfulDisk::Image& image) {
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
  const broker::PartitionAddress address{broker::TopicNumber(1), 0};
  const auto bounds = recovered->partitions.find(address);
  auto message = broker::MessageBatch::make(
      {{"new", 0, 0}},
      bounds == recovered->partitions.end() ? broker::Offset(1) : bounds->second.end, WallTime{});
  broker::CommitBatch batch{broker::Append{address, message}};
  ASSERT_TRUE((*store)->commit(batch));
  EXPECT_GE(message->first_id.value(), directory.world.newest().next_id);
}

class Damage : public testing::TestWithParam<unsigned> {};

TEST_P(Damage, OfAnyFileInAnyWayIsHarmlessOrNamedButNeverSilent) {
  std::mt19937_64 random(GetParam());
  Directory directory(GetParam(), GetParam() % 2 == 0 ? Ending::closed : Ending::crashed);
  ASSERT_EQ(verdict(directory, directory.image), "") << "undamaged";
  unsigned refused = 0;
  unsigned trials = 0;
  for (const auto& [path, bytes] : directory.image) {
    for (unsigned kind = 0; kind < 4; ++kind) {
      ForgetfulDisk::Image image = directory.image;
      const Fault fault = damage(image, path, kind, random);
      const std::string said = verdict(directory, image);
      ++trials;
      if (said.empty()) continue;
      ++refused;
      const bool is_named = said.starts_with("refused: ") || said.starts_with("cannot read: ");
      EXPECT_TRUE(is_named) << fault.file << " " << fault.what << ": " << said;
      SCOPED_TRACE(fault.file + " " + fault.what + ": " + said);
      ASSERT_NO_FATAL_FAILURE(expect_repaired(directory, image));
    }
  }
  EXPECT_GT(refused, trials / 4) << "of " << trials << " trials so few were noticed";
  RecordProperty("trials", static_cast<int>(trials));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Damage,
                         testing::Range(0u, testing_support::kIsSanitized ? 2u : 6u));

}  // namespace
}  // namespace ordo::store_rocksdb
