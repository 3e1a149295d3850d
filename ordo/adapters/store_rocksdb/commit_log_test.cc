// What CommitLog does to RocksDB's log file, on real files.
#include "ordo/adapters/store_rocksdb/commit_log.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

#include "ordo/adapters/store_rocksdb/recovery.h"

namespace ordo::store_rocksdb {
namespace {

constexpr broker::PartitionAddress kPartition{broker::TopicNumber(1), 0};

class CommitLogTest : public testing::Test {
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

  std::size_t rows() {
    const Result<broker::Recovered> all = read_all(*database_);
    EXPECT_TRUE(all) << all.error().message;
    return all ? all->rows.size() : 0;
  }

  DatabaseOptions options_{.path = testing::TempDir() + "/ordo-commit-log-" +
                                   std::to_string(::getpid())};
  std::unique_ptr<Database> database_;
  PartitionTable table_;
  CommitChain chain_;
  CommitLog log_{[] {}};
};

// Also where its end is all zeros, which is what RocksDB may fill the file up with.
TEST_F(CommitLogTest, ARecordThatIsCutOffIsGoneAndThoseBeforeItStay) {
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
    EXPECT_EQ(rows(), kept);
    const Result<std::optional<CommitChain>> found = database_->chain();
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->last, chain_.last);
    EXPECT_FALSE((*found)->has_gap());
  }
}

TEST_F(CommitLogTest, RowsBesideCommitsAreNoGapAndShowOne) {
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

}  // namespace
}  // namespace ordo::store_rocksdb
