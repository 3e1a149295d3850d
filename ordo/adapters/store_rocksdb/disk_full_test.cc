// No space: messages are refused, the rest goes on, and it recovers by itself.
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <sys/mount.h>

#include "ordo/adapters/store_rocksdb/rocksdb_store.h"
#include "ordo/adapters/store_rocksdb/watermark.h"
#include "tests/support/forgetful_disk.h"
#include "tests/support/stored_world.h"
#include "tests/support/waiting.h"

namespace ordo::store_rocksdb {
namespace {

using broker::CommitBatch;
using broker::Store;
using testing_support::eventually;
using testing_support::ForgetfulDisk;
using testing_support::StoredWorld;

constexpr broker::PartitionAddress kPartition{broker::TopicNumber(1), 0};

broker::Append message(std::uint64_t offset, std::size_t bytes) {
  return {kPartition, broker::MessageBatch::make({{std::string(bytes, 'x'), 0, 0}},
                                                 broker::Offset(offset), WallTime{})};
}
broker::PutRow row(std::uint64_t position) {
  return {{broker::CursorNumber(1), kPartition, 1, position, ""}, "value"};
}

std::unique_ptr<Store> open(const StoreOptions& options) {
  Result<std::unique_ptr<Store>> store = open_store(options);
  EXPECT_TRUE(store) << store.error().message;
  return store ? std::move(*store) : nullptr;
}

constexpr std::uint64_t kSeeds = testing_support::kIsSanitized ? 2 : 6;

// A chunk is what was written or is lost, which is said.
void expect_spill_or_none(Store& store, std::uint64_t chunk) {
  const broker::SpillKey key{
      .cursor = broker::CursorNumber(1), .partition = kPartition, .chunk = chunk};
  const std::string bytes(3'000, static_cast<char>('a' + chunk % 26));
  if (!store.write_spill(key, bytes)) return;
  const Result<std::string> got = store.read_spill(key);
  if (got) {
    ASSERT_EQ(*got, bytes);
  } else {
    ASSERT_TRUE(got.error().code == ErrorCode::not_found ||
                got.error().code == ErrorCode::unavailable)
        << got.error().message;
  }
}

class NoSpaceInMemory : public testing::TestWithParam<SyncPolicy> {};

TEST_P(NoSpaceInMemory, InTheMiddleOfAWriteRefusesTheCommitWholeAndLaterOnesGoThrough) {
  ForgetfulDisk disk;
  const std::unique_ptr<rocksdb::Env> env = disk.make_env();
  const StoreOptions options{.directory = "/data",
                             .sync = GetParam(),
                             .sync_interval = std::chrono::milliseconds(1),
                             .env = env.get()};
  StoredWorld world(1);
  std::unique_ptr<Store> store = open(options);
  ASSERT_TRUE(store->recover());
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 5; ++i) {
      CommitBatch batch = world.propose();
      ASSERT_TRUE(store->commit(batch));
      world.accept();
    }
    disk.set_full(true);
    for (int i = 0; i < 3; ++i) {
      CommitBatch batch = world.propose(i != 1);
      if (batch.empty()) continue;
      const Status refused = store->commit(batch);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted) << refused.error().message;
    }
    disk.set_full(false);
    CommitBatch batch = world.propose();
    Status stored;
    ASSERT_TRUE(eventually([&] { return (stored = store->commit(batch)).has_value(); }))
        << stored.error().message;
    world.accept();
  }
  store.reset();
  store = open(options);
  const Result<broker::Recovered> recovered = store->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(world.compare(*store, *recovered), "");
}

// Nobody else commits: the store tries again by itself, and then all is on the disk.
TEST_P(NoSpaceInMemory, InASyncBetweenCommitsIsOverWhenThereIsRoomAgain) {
  if (GetParam() == SyncPolicy::commit) return;  // Has none.
  ForgetfulDisk disk;
  const std::unique_ptr<rocksdb::Env> env = disk.make_env();
  const StoreOptions options{.directory = "/data",
                             .sync = GetParam(),
                             .sync_interval = std::chrono::milliseconds(1),
                             .trim_interval = std::chrono::milliseconds(1),
                             .env = env.get()};
  std::unique_ptr<Store> store = open(options);
  ASSERT_TRUE(store->recover());
  std::uint64_t offset = 1;
  for (int round = 0; round < 4; ++round) {
    const std::uint64_t syncs = store->stats().syncs;
    disk.fail_next_sync(".log", ForgetfulDisk::SyncFault::no_space);
    // With a trim, before which every policy syncs.
    CommitBatch batch{message(offset, 1'000), row(offset),
                      broker::Trim{kPartition, broker::Offset(offset + 1)}};
    // A sync that the last round left may find no room before this commit does.
    Status stored;
    ASSERT_TRUE(eventually([&] { return (stored = store->commit(batch)).has_value(); }))
        << stored.error().message;
    ++offset;
    ASSERT_TRUE(eventually([&] {
      if (GetParam() == SyncPolicy::os) return store->stats().syncs > syncs;
      const auto mark = Watermark::read(*env, "/data/watermark");
      return mark && *mark && (*mark)->commit_number == offset;  // The start was one too.
    })) << store->stats().failure;
    EXPECT_EQ(store->stats().failure, "");
  }
  if (GetParam() == SyncPolicy::os) store.reset();
  disk.cut_now(1);
  store.reset();
  disk.power_on();
  store = open(options);
  const Result<broker::Recovered> recovered = store->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->partitions.at(kPartition).end, broker::Offset(offset));
  EXPECT_EQ(recovered->rows.size(), offset - 1);
}

// In whatever it does then: writing, opening again, flushing, trimming.
TEST_P(NoSpaceInMemory, WithRoomForAMomentAgainAndAgainNothingIsLostOrComesBack) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ForgetfulDisk disk;
    const std::unique_ptr<rocksdb::Env> env = disk.make_env();
    const StoreOptions options{.directory = "/data",
                               .sync = GetParam(),
                               .sync_interval = std::chrono::milliseconds(1),
                               .trim_interval = std::chrono::milliseconds(1),
                               .reopen_interval = std::chrono::milliseconds(1),
                               .write_buffer_bytes = 64u << 10,
                               .env = env.get()};
    StoredWorld world(seed, 4'000);
    std::unique_ptr<Store> store = open(options);
    ASSERT_TRUE(store->recover());
    for (std::uint64_t step = 0; step < 150; ++step) {
      disk.set_full(world.up_to(2) == 0);
      CommitBatch batch = world.propose();
      Status stored = store->commit(batch);
      if (!stored && world.up_to(1) == 0) {
        disk.set_full(false);
        ASSERT_TRUE(eventually([&] { return (stored = store->commit(batch)).has_value(); }))
            << stored.error().message;
      }
      if (stored) world.accept();
      ASSERT_TRUE(stored || stored.error().code == ErrorCode::resource_exhausted)
          << stored.error().message;
      ASSERT_NO_FATAL_FAILURE(expect_spill_or_none(*store, step));
      const auto got = store->read(kPartition, broker::Offset(1), 10, 10'000);
      ASSERT_TRUE(got || got.error().code == ErrorCode::unavailable) << got.error().message;
    }
    disk.set_full(false);
    CommitBatch batch = world.propose();
    Status stored;
    ASSERT_TRUE(eventually([&] { return (stored = store->commit(batch)).has_value(); }))
        << stored.error().message;
    world.accept();
    store.reset();
    store = open(options);
    const Result<broker::Recovered> recovered = store->recover();
    ASSERT_TRUE(recovered) << recovered.error().message;
    ASSERT_EQ(world.compare(*store, *recovered), "");
  }
}

// What comes after a commit that was refused because its sync found no room.
enum class Then : std::uint8_t { goes_on, closed, cut };

TEST(NoSpaceInTheSyncOfACommit, RefusesItWholeAndLaterOnesGoThrough) {
  for (const Then then : {Then::goes_on, Then::closed, Then::cut}) {
    SCOPED_TRACE(static_cast<int>(then));
    ForgetfulDisk disk;
    const std::unique_ptr<rocksdb::Env> env = disk.make_env();
    const StoreOptions options{.directory = "/data",
                               .reopen_interval = std::chrono::milliseconds(1),
                               .write_buffer_bytes = 64u << 10,
                               .env = env.get()};
    StoredWorld world(7, 20'000);
    std::unique_ptr<Store> store = open(options);
    ASSERT_TRUE(store->recover());
    for (std::uint64_t round = 0; round < 12; ++round) {
      for (int i = 0; i < 3; ++i) {
        CommitBatch batch = world.propose();
        if (batch.empty()) continue;
        Status stored;
        ASSERT_TRUE(eventually([&] { return (stored = store->commit(batch)).has_value(); }))
            << stored.error().message;
        world.accept();
      }
      CommitBatch batch = world.propose();
      if (batch.empty()) continue;
      disk.fail_next_sync(".log", ForgetfulDisk::SyncFault::no_space);
      const Status refused = store->commit(batch);
      ASSERT_FALSE(refused);
      ASSERT_EQ(refused.error().code, ErrorCode::resource_exhausted) << refused.error().message;
      EXPECT_EQ(store->stats().failure, "");
      if (then == Then::goes_on) continue;
      if (then == Then::cut) disk.cut_now(round);
      store.reset();
      if (then == Then::cut) disk.power_on();
      store = open(options);
      const Result<broker::Recovered> recovered = store->recover();
      ASSERT_TRUE(recovered) << recovered.error().message;
      ASSERT_EQ(world.compare(*store, *recovered), "");
    }
    store.reset();
    store = open(options);
    const Result<broker::Recovered> recovered = store->recover();
    ASSERT_TRUE(recovered) << recovered.error().message;
    EXPECT_EQ(world.compare(*store, *recovered), "");
  }
}

// Not even what was written can be taken back.
TEST(NoSpaceInTheSyncOfACommit, WhichCannotBeUndoneIsNotKnownAndTheStoreSaysSo) {
  ForgetfulDisk disk;
  const std::unique_ptr<rocksdb::Env> env = disk.make_env();
  const StoreOptions options{.directory = "/data", .env = env.get()};
  std::unique_ptr<Store> store = open(options);
  ASSERT_TRUE(store->recover());
  CommitBatch first{message(1, 100)};
  ASSERT_TRUE(store->commit(first));
  disk.fail_next_sync(".log", ForgetfulDisk::SyncFault::no_space, 2);
  CommitBatch second{message(2, 100)};
  const Status unknown = store->commit(second);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::unavailable) << unknown.error().message;
  const Status later = store->commit(second);
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::failed_precondition);
  EXPECT_NE(store->stats().failure, "");
  store.reset();
  store = open(options);
  const Result<broker::Recovered> recovered = store->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_GE(recovered->partitions.at(kPartition).end, broker::Offset(2));
}

INSTANTIATE_TEST_SUITE_P(Policies, NoSpaceInMemory,
                         testing::Values(SyncPolicy::commit, SyncPolicy::interval, SyncPolicy::os));

// A disk of its own, as small as wanted. Only root may make one. Its mount is undone at once and it
// is used through an open file, so that it ends with the process, however that ends.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& size) {
    std::string name = (std::filesystem::temp_directory_path() / "ordo-disk-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return;
    if (::mount("ordo", name.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0) {
      root_ = ::open(name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
      ::umount2(name.c_str(), MNT_DETACH);
    }
    ::rmdir(name.c_str());
    path_ = "/proc/self/fd/" + std::to_string(root_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (is_mounted()) ::close(root_);
  }
  bool is_mounted() const { return root_ >= 0; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // Somebody else takes space, all that is left but `rest`.
  void fill(std::uint64_t rest) const {
    const int file = ::open(this->file("other").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    off_t size = 0;
    // The store writes and deletes files meanwhile: what was free a moment ago may be so no more.
    EXPECT_TRUE(eventually([&] {
      const std::uint64_t free = std::filesystem::space(path_).available;
      if (free <= rest) return true;
      const auto more = static_cast<off_t>(free - rest);
      if (::posix_fallocate(file, size, more) == 0) size += more;
      return false;
    }));
    ::close(file);
  }
  void free() const { std::filesystem::remove(file("other")); }

 private:
  int root_ = -1;
  std::string path_;
};

constexpr const char* kNeedsRoot = "NOT TESTED: a disk of its own can only be made by root";

TEST(DiskFull, PublishesAreRefusedAcksGoOnAndItRecoversByItself) {
  const SmallDisk disk("64m");
  if (!disk.is_mounted()) GTEST_SKIP() << kNeedsRoot;
  const StoreOptions options{
      .directory = disk.file("data"), .reserve_bytes = 16u << 20, .write_buffer_bytes = 1u << 20};
  std::unique_ptr<Store> store = open(options);
  ASSERT_TRUE(store->recover());
  std::uint64_t offset = 1;
  Status stored;
  // Published until it is full by itself.
  while (stored && offset < 10'000) {
    CommitBatch publish{message(offset, 100'000)};
    stored = store->commit(publish);
    if (stored) ++offset;
  }
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, ErrorCode::resource_exhausted);
  EXPECT_GT(offset, 100u);
  disk.fill(8u << 20);  // Log files that end free some; not enough.
  EXPECT_TRUE(store->stats().is_full);
  // Acknowledgements and reads go on; a dead letter, an append with its settlement, does not.
  CommitBatch ack{row(1)};
  EXPECT_TRUE(store->commit(ack));
  CommitBatch dead_letter{message(offset, 1'000), row(2)};
  stored = store->commit(dead_letter);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(store->read(kPartition, broker::Offset(1), 1, 1));
  // Consumers settle everything: the space comes back without anybody's help.
  CommitBatch trim{broker::Trim{kPartition, broker::Offset(offset)}};
  ASSERT_TRUE(store->commit(trim));
  ASSERT_TRUE(eventually([&] {
    CommitBatch again{message(offset, 1'000), row(2)};
    return store->commit(again).has_value();
  }));
  store.reset();
  store = open(options);
  const Result<broker::Recovered> recovered = store->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->rows.size(), 2u);
  EXPECT_EQ(recovered->partitions.at(kPartition).end, broker::Offset(offset + 1));
}

TEST(DiskFull, WhenOthersTakeTheLastByteNothingIsLostAndItRecoversByItself) {
  const SmallDisk disk("64m");
  if (!disk.is_mounted()) GTEST_SKIP() << kNeedsRoot;
  const StoreOptions options{
      .directory = disk.file("data"), .reserve_bytes = 4u << 20, .write_buffer_bytes = 1u << 20};
  std::unique_ptr<Store> store = open(options);
  ASSERT_TRUE(store->recover());
  std::uint64_t offset = 1;
  for (int round = 0; round < 2; ++round) {
    disk.fill(0);
    // Rows go until there is no room at all, then they are refused like messages.
    Status stored;
    std::uint64_t rows = 0;
    for (; stored && rows < 100'000; ++rows) {
      CommitBatch ack{row(rows)};
      for (std::uint64_t i = 0; i < 500; ++i)
        ack.push_back(row(i));
      stored = store->commit(ack);
    }
    ASSERT_FALSE(stored) << rows;
    EXPECT_EQ(stored.error().code, ErrorCode::resource_exhausted) << stored.error().message;
    CommitBatch publish{message(offset, 1'000), row(2'000'000)};
    stored = store->commit(publish);
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error().code, ErrorCode::resource_exhausted) << stored.error().message;
    disk.free();
    ASSERT_TRUE(eventually([&] {
      CommitBatch again{message(offset, 1'000), row(3'000'000 + offset)};
      stored = store->commit(again);
      return stored.has_value();
    })) << stored.error().message;
    ++offset;
  }
  store.reset();
  store = open(options);
  const Result<broker::Recovered> recovered = store->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->partitions.at(kPartition).end, broker::Offset(offset));
  EXPECT_FALSE(recovered->rows.contains(row(2'000'000).key));
  for (std::uint64_t i = 1; i < offset; ++i)
    EXPECT_TRUE(recovered->rows.contains(row(3'000'000 + i).key));
}

}  // namespace
}  // namespace ordo::store_rocksdb
