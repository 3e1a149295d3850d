// When the store refuses to start, and what it says.
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <spawn.h>
#include <string>
#include <unistd.h>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <sys/wait.h>

#include "ordo/adapters/store_rocksdb/database.h"
#include "ordo/adapters/store_rocksdb/directory_care.h"
#include "ordo/adapters/store_rocksdb/examination.h"
#include "ordo/adapters/store_rocksdb/repair.h"
#include "ordo/adapters/store_rocksdb/rocksdb_store.h"
#include "ordo/core/clock.h"
#include "tests/support/forgetful_disk.h"
#include "tests/support/stored_world.h"
#include "tests/support/waiting.h"

namespace ordo::store_rocksdb {
namespace {

using broker::CommitBatch;
using broker::Store;
using testing::HasSubstr;
using testing_support::eventually;
using testing_support::ForgetfulDisk;
using testing_support::StoredWorld;

constexpr broker::PartitionAddress kPartition{broker::TopicNumber(7), 3};

class Refusal : public testing::Test {
 protected:
  std::unique_ptr<Store> open() {
    Result<std::unique_ptr<Store>> store = open_store(options_);
    EXPECT_TRUE(store) << store.error().message;
    if (!store || !(*store)->recover()) return nullptr;
    return std::move(*store);
  }
  std::string refusal() {
    const Result<std::unique_ptr<Store>> store = open_store(options_);
    return store ? "opened" : store.error().message;
  }
  void append(Store& store, std::size_t count = 1) {
    for (std::size_t i = 0; i < count; ++i) {
      CommitBatch batch{broker::Append{
          kPartition, broker::MessageBatch::make({{std::string(1'000, 'x'), 0, 0}},
                                                 broker::Offset(next_++), WallTime{})}};
      ASSERT_TRUE(store.commit(batch));
    }
  }

  ForgetfulDisk disk_;
  std::unique_ptr<rocksdb::Env> env_ = disk_.make_env();
  StoreOptions options_{.directory = "/data",
                        .watermark_interval = {},
                        .write_buffer_bytes = 64u << 10,
                        .env = env_.get()};
  std::uint64_t next_ = 1;
};

TEST_F(Refusal, ALogThatFallsShortNamesTheCommitsAndTheMessages) {
  std::unique_ptr<Store> store = open();
  append(*store, 5);
  disk_.cut_now(1);
  store.reset();
  disk_.power_on();
  ForgetfulDisk::Image image = disk_.image();
  for (auto& [path, bytes] : image) {
    if (path.ends_with(".log")) bytes.resize(bytes.find_last_not_of('\0'));
  }
  disk_.load(image);
  const std::string said = refusal();
  EXPECT_THAT(said, HasSubstr("commits 6 were acknowledged (/data/watermark)"));
  EXPECT_THAT(said, HasSubstr("messages with the ids 5"));
  EXPECT_THAT(said, HasSubstr("ordo repair --accept-loss"));
  EXPECT_TRUE(disk_.image() == image) << "nothing was changed";
}

TEST_F(Refusal, AnOldCopyOfTheDirectoryIsKnownByTheWitnessOutside) {
  std::unique_ptr<Store> store = open();
  append(*store, 3);
  store.reset();
  const ForgetfulDisk::Image old = disk_.image();
  store = open();
  append(*store, 3);
  store.reset();
  ForgetfulDisk::Image image = disk_.image();
  std::erase_if(image, [](const auto& file) { return file.first.starts_with("/data/"); });
  for (const auto& [path, bytes] : old) {
    if (path.starts_with("/data/")) image[path] = bytes;
  }
  disk_.load(image);
  EXPECT_THAT(refusal(), HasSubstr("/data is an old copy"));
  options_.witness = "";
  EXPECT_EQ(refusal(), "opened") << "without a witness nobody can know";
}

TEST_F(Refusal, AMissingDatabaseIsNotTakenForANewDirectory) {
  std::unique_ptr<Store> store = open();
  append(*store);
  store.reset();
  ForgetfulDisk::Image image = disk_.image();
  std::erase_if(image, [](const auto& file) { return file.first.starts_with("/data/db/"); });
  disk_.load(image);
  EXPECT_THAT(refusal(), HasSubstr("/data/db"));
  EXPECT_NE(refusal(), "opened");
}

TEST_F(Refusal, AnEmptyDirectoryWhoseWitnessKnowsOfCommitsIsNotTakenForANewOne) {
  std::unique_ptr<Store> store = open();
  append(*store, 3);
  store.reset();
  ForgetfulDisk::Image image = disk_.image();
  std::erase_if(image, [](const auto& file) { return file.first.starts_with("/data/"); });
  disk_.load(image);
  EXPECT_THAT(refusal(), HasSubstr("/data is empty, but commits up to 4 were acknowledged"));
  image.erase("/data.witness");
  disk_.load(image);
  EXPECT_EQ(refusal(), "opened") << "it was removed on purpose";
}

// The oldest copy in the file is that of a directory without a database.
TEST_F(Refusal, AWatermarkThatFellBackToTheBeginningIsNotTakenForANewDirectory) {
  open().reset();
  ForgetfulDisk::Image image = disk_.image();
  std::string& bytes = image.at("/data/watermark");
  for (const std::size_t slot : {1, 2})
    bytes.replace(slot * 4096, 4096, 4096, '\0');
  disk_.load(image);
  EXPECT_THAT(refusal(), HasSubstr("/data/watermark knows of no commit, but commits up to 1"));
}

TEST_F(Refusal, AnotherFormatIsNamedAndNoRepairTouchesIt) {
  open().reset();
  {
    const auto database =
        Database::open({.path = "/data/db", .env = env_.get()}, Database::Mode::existing);
    ASSERT_TRUE(database) << database.error().message;
    std::string row = encode_store_row({.format = 2, .directory_id = 1, .start_number = 1});
    row += "something new";
    ASSERT_TRUE(
        (*database)->db().Put(rocksdb::WriteOptions(), (*database)->meta(), store_key(), row).ok());
    ASSERT_TRUE((*database)->flush());
  }
  const ForgetfulDisk::Image image = disk_.image();
  EXPECT_THAT(refusal(), HasSubstr("has format 2; this version knows format 1"));
  const Result<RepairLines> repaired =
      repair({"/data", "/data.witness"}, {.accept_loss = true, .env = env_.get()});
  ASSERT_FALSE(repaired);
  EXPECT_THAT(repaired.error().message, HasSubstr("has format 2"));
  EXPECT_TRUE(disk_.image() == image) << "nothing was changed";
}

// A repair that cannot write leaves the newest commits where they are.
TEST_F(Refusal, ARepairOnAFullDiskGivesNothingUp) {
  std::unique_ptr<Store> store = open();
  append(*store, 100);
  disk_.cut_now(1);
  store.reset();
  disk_.power_on();
  ForgetfulDisk::Image image = disk_.image();
  image.erase("/data/watermark");
  disk_.load(image);
  disk_.set_full(true);
  const DirectoryPaths paths{"/data", "/data.witness"};
  EXPECT_FALSE(repair(paths, {.accept_loss = true, .env = env_.get()}));
  disk_.set_full(false);
  ASSERT_TRUE(repair(paths, {.accept_loss = true, .env = env_.get()}));
  EXPECT_EQ(examine(paths, env_.get()).messages, 100u);
}

TEST_F(Refusal, ASecondStoreOnTheSameDirectoryIsRefused) {
  const std::unique_ptr<Store> store = open();
  EXPECT_THAT(refusal(), HasSubstr("/data is in use"));
}

TEST_F(Refusal, OptionsThatMakeNoSenseAreNamed) {
  options_.write_buffer_bytes = 1;
  EXPECT_THAT(refusal(), HasSubstr("write_buffer_bytes is 1"));
  options_.directory = "";
  EXPECT_THAT(refusal(), HasSubstr("directory is empty"));
}

TEST_F(Refusal, ADamagedMessageIsNamedByItsPartitionAndOffsets) {
  std::unique_ptr<Store> store = open();
  append(*store, 200);
  store.reset();
  ForgetfulDisk::Image image = disk_.image();
  bool found = false;
  for (auto& [path, bytes] : image) {
    const std::size_t at = path.ends_with(".sst") ? bytes.find("xxxxxxxx") : std::string::npos;
    if (at == std::string::npos || found) continue;
    bytes[at] = 'y';
    found = true;
  }
  ASSERT_TRUE(found);
  disk_.load(image);
  store = open();
  const Result<broker::ReadBatches> read = store->read(kPartition, broker::Offset(1), 10, 100'000);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::data_loss);
  EXPECT_THAT(read.error().message, HasSubstr("partition 3 of topic 7, offset 1"));
}

class Trimmed : public Refusal, public testing::WithParamInterface<SyncPolicy> {};

// Tables are dropped at once; the trim itself may still be on its way to the disk.
TEST_P(Trimmed, MessagesAreGoneOnlyWhenAPowerCutCannotBringThemBack) {
  options_.sync = GetParam();
  options_.sync_interval = std::chrono::hours(1);
  options_.trim_interval = std::chrono::milliseconds(1);
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Result<std::unique_ptr<Store>> store = open_store(options_);
    ASSERT_TRUE(store) << store.error().message;
    const Result<broker::Recovered> recovered = (*store)->recover();
    ASSERT_TRUE(recovered) << recovered.error().message;
    StoredWorld::State found;
    ASSERT_EQ(StoredWorld::read_all(**store, *recovered, found), "");
    const auto known = recovered->partitions.find(kPartition);
    next_ = known == recovered->partitions.end() ? 1 : known->second.end.value();
    append(**store, 1'500);
    const std::uint64_t before = (*store)->stats().disk_bytes;
    CommitBatch trim{broker::Trim{kPartition, broker::Offset(next_ - 1)}};
    ASSERT_TRUE((*store)->commit(trim));
    ASSERT_TRUE(eventually([&] { return (*store)->stats().disk_bytes < before / 2; }));
    disk_.cut_now(seed);
    store->reset();
    disk_.power_on();
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Trimmed,
                         testing::Values(SyncPolicy::commit, SyncPolicy::interval, SyncPolicy::os));

// A real folder, for what only the system can do.
class RealFolder : public testing::Test {
 protected:
  RealFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ordo-store-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    options_.directory = path_ + "/data";
  }
  ~RealFolder() override { std::filesystem::remove_all(path_); }

  std::string path_;
  StoreOptions options_;
};

TEST_F(RealFolder, ASecondProcessIsToldWhichOneHasTheDirectory) {
  int ready[2];
  int end[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(end, O_CLOEXEC), 0);
  posix_spawn_file_actions_t pipes;
  ASSERT_EQ(::posix_spawn_file_actions_init(&pipes), 0);
  ASSERT_EQ(::posix_spawn_file_actions_adddup2(&pipes, end[0], STDIN_FILENO), 0);
  ASSERT_EQ(::posix_spawn_file_actions_adddup2(&pipes, ready[1], STDOUT_FILENO), 0);
  std::string program = ORDO_HOLDER_CHILD;
  std::string directory = options_.directory;
  char* const arguments[] = {program.data(), directory.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(::posix_spawn(&child, program.c_str(), &pipes, nullptr, arguments, environ), 0);
  ::posix_spawn_file_actions_destroy(&pipes);
  ::close(std::exchange(ready[1], -1));  // Else its end would not be seen if it dies.
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  const Result<std::unique_ptr<Store>> second = open_store(options_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::failed_precondition);
  EXPECT_THAT(second.error().message, HasSubstr("(process " + std::to_string(child) + ")"));
  const DirectoryHealth health =
      directory_health(options_.directory, usual_witness(options_.directory));
  EXPECT_TRUE(health.was_not_examined);
  ::close(end[1]);
  ::waitpid(child, nullptr, 0);
  const Result<std::unique_ptr<Store>> third = open_store(options_);
  EXPECT_TRUE(third) << third.error().message;
  for (const int fd : {ready[0], end[0]})
    ::close(fd);
}

TEST_F(RealFolder, AnotherSpellingOfADirectoryInUseIsRefusedAndTheLockIsKept) {
  Result<std::unique_ptr<Store>> store = open_store(options_);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE((*store)->recover());
  std::filesystem::create_directory_symlink(options_.directory, path_ + "/link");
  StoreOptions other = options_;
  for (const std::string& name :
       {options_.directory, options_.directory + "/", path_ + "/./data", path_ + "/link"}) {
    other.directory = name;
    const Result<std::unique_ptr<Store>> second = open_store(other);
    ASSERT_FALSE(second) << name;
    EXPECT_EQ(second.error().code, ErrorCode::failed_precondition) << second.error().message;
    EXPECT_THAT(second.error().message, HasSubstr("(process " + std::to_string(::getpid()) + ")"));
    EXPECT_TRUE(directory_health(name, usual_witness(name)).was_not_examined);
    EXPECT_FALSE(repair_directory(name, usual_witness(name), true));
  }
  // All that left the system's lock where it was: another process still sees it.
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open((options_.directory + "/lock").c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    ::_exit(file >= 0 && ::fcntl(file, F_SETLK, &lock) != 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(RealFolder, OpeningAndClosingLeavesNoFilesBehind) {
  std::size_t files = 0;
  for (int i = 0; i < 8; ++i) {
    Result<std::unique_ptr<Store>> store = open_store(options_);
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE((*store)->recover());
    CommitBatch batch{broker::PutCatalog{{1, "topic"}, std::to_string(i)}};
    ASSERT_TRUE((*store)->commit(batch));
    store->reset();
    files = static_cast<std::size_t>(
        std::distance(std::filesystem::recursive_directory_iterator(path_), {}));
  }
  EXPECT_LT(files, 30u);
}

TEST_F(RealFolder, TrimmedMessagesGiveTheirSpaceBack) {
  options_.write_buffer_bytes = 256u << 10;
  Result<std::unique_ptr<Store>> opened = open_store(options_);
  ASSERT_TRUE(opened);
  Store& store = **opened;
  ASSERT_TRUE(store.recover());
  std::uint64_t next = 1;
  const auto publish = [&](int count) {
    for (int i = 0; i < count; ++i) {
      CommitBatch batch{broker::Append{
          kPartition, broker::MessageBatch::make({{std::string(50'000, 'x'), 0, 0}},
                                                 broker::Offset(next++), WallTime{})}};
      ASSERT_TRUE(store.commit(batch));
    }
  };
  publish(200);
  EXPECT_GT(store.stats().disk_bytes, 9u << 20);
  CommitBatch trim{broker::Trim{kPartition, broker::Offset(next - 1)}};
  ASSERT_TRUE(store.commit(trim));
  EXPECT_TRUE(eventually([&] {
    publish(2);  // Tables are dropped when later ones follow them.
    CommitBatch again{broker::Trim{kPartition, broker::Offset(next - 1)}};
    return store.commit(again) && store.stats().disk_bytes < (3u << 20);
  }));
  EXPECT_TRUE(store.read(kPartition, broker::Offset(1), 10, 1'000'000));
}

}  // namespace
}  // namespace ordo::store_rocksdb
