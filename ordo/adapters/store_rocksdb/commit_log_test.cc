// What CommitLog does to RocksDB's log file, on real files.
#include "ordo/adapters/store_rocksdb/commit_log.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "ordo/adapters/store_rocksdb/log_file_order.h"
#include "ordo/adapters/store_rocksdb/recovery.h"

namespace ordo::store_rocksdb {
namespace {

constexpr broker::PartitionAddress kPartition{broker::TopicNumber(1), 0};

class CommitLogTest : public testing::TestWithParam<LogLength> {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(options_.path);
    std::filesystem::create_directories(options_.path);
    open(Database::Mode::create);
    log_.begin(chain_);
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(options_.path);
  }

  void open(Database::Mode mode) {
    database_.reset();
    Result<std::unique_ptr<Database>> opened = Database::open(options_, mode);
    ASSERT_TRUE(opened) << opened.error().message;
    database_ = std::move(*opened);
  }

  // How many bytes its record holds.
  std::size_t commit(std::uint64_t position, std::size_t bytes) {
    broker::CommitBatch batch{broker::PutRow{{broker::CursorNumber(1), kPartition, 1, position, ""},
                                             std::string(bytes, '\0')}};
    StagedCommit staged(*database_, table_, chain_);
    EXPECT_TRUE(staged.add(batch));
    EXPECT_TRUE(log_.commit(*database_, staged, true));
    chain_ = staged.chain();
    return staged.write().GetDataSize();
  }

  static std::size_t rows(const Database& database) {
    const Result<broker::Recovered> all = read_all(database);
    EXPECT_TRUE(all) << all.error().message;
    return all ? all->rows.size() : 0;
  }

  std::uintmax_t longest_log_file() const {
    std::uintmax_t longest = 0;
    for (const auto& entry : std::filesystem::directory_iterator(options_.path)) {
      if (entry.path().extension() == ".log") longest = std::max(longest, entry.file_size());
    }
    return longest;
  }

  std::unique_ptr<rocksdb::Env> env_ = order_log_files(*rocksdb::Env::Default(), GetParam());
  DatabaseOptions options_{
      .path = testing::TempDir() + "/ordo-commit-log-" + std::to_string(::getpid()),
      .env = env_.get()};
  std::unique_ptr<Database> database_;
  PartitionTable table_;
  CommitChain chain_;
  CommitLog log_{[] {}};
};

// Also where its end is all zeros, which is what RocksDB may fill the file up with.
TEST_P(CommitLogTest, ARecordThatIsCutOffIsGoneAndThoseBeforeItStay) {
  std::size_t kept = 0;
  for (const std::size_t bytes : {0u, 1u, 100u, 32'000u, 32'700u, 40'000u, 100'000u}) {
    SCOPED_TRACE(bytes);
    commit(++kept, 100);
    const CommitChain before = chain_;
    const std::size_t size = commit(1'000, bytes);
    const rocksdb::Status cut = cut_log_file(*database_, size);
    ASSERT_TRUE(cut.ok()) << cut.ToString();
    chain_ = before;
    log_.begin(chain_);
    open(Database::Mode::existing);
    EXPECT_EQ(rows(*database_), kept);
    const Result<std::optional<CommitChain>> found = database_->chain();
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->last, chain_.last);
    EXPECT_FALSE((*found)->has_gap());
  }
}

// As a process that is killed leaves it. The length is nothing to go by: on a file system without
// fallocate both grow.
TEST_P(CommitLogTest, ALogFileThatWasNotClosedIsReadUpToItsLastCommit) {
  std::size_t committed = 0;
  for (const std::size_t bytes : {10u, 32'700u, 100'000u}) {
    SCOPED_TRACE(bytes);
    const std::uintmax_t before = longest_log_file();
    const std::size_t size = commit(bytes, bytes);
    if (GetParam() == LogLength::grows) {
      EXPECT_LE(longest_log_file(), before + 2 * size + 100);
    }
    DatabaseOptions killed = options_;
    killed.path += "-killed";
    std::filesystem::remove_all(killed.path);
    std::filesystem::copy(options_.path, killed.path);
    Result<std::unique_ptr<Database>> opened = Database::open(killed, Database::Mode::existing);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(rows(**opened), ++committed);
    opened->reset();
    std::filesystem::remove_all(killed.path);
  }
}

TEST_P(CommitLogTest, RowsBesideCommitsAreNoGapAndShowOne) {
  const auto add_beside = [this] {
    rocksdb::WriteBatch rows;
    rows.Delete(database_->index(), "nothing");
    EXPECT_TRUE(log_.add(*database_, rows).ok());
  };
  commit(1, 10);
  add_beside();
  add_beside();
  commit(2, 10);
  add_beside();
  Result<std::optional<CommitChain>> found = database_->chain();
  ASSERT_TRUE(found && *found);
  EXPECT_FALSE((*found)->has_gap());
  EXPECT_EQ((*found)->last, chain_.last);
  log_.begin(CommitChain::one(chain_.last + 1, 1));  // Which is not there.
  add_beside();
  found = database_->chain();
  ASSERT_TRUE(found && *found);
  EXPECT_TRUE((*found)->has_gap());
}

INSTANTIATE_TEST_SUITE_P(Lengths, CommitLogTest,
                         testing::Values(LogLength::grows, LogLength::ahead),
                         [](const testing::TestParamInfo<LogLength>& length) {
                           return length.param == LogLength::ahead ? "Ahead" : "Grows";
                         });

}  // namespace
}  // namespace ordo::store_rocksdb
