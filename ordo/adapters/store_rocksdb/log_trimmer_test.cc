// A partition that was erased goes in small writes, wholly, and nothing else goes with it.
#include "ordo/adapters/store_rocksdb/log_trimmer.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/adapters/store_rocksdb/recovery.h"
#include "ordo/adapters/store_rocksdb/staged_commit.h"

namespace ordo::store_rocksdb {
namespace {

using broker::PartitionAddress;

constexpr PartitionAddress kErased{broker::TopicNumber(1), 0};
constexpr PartitionAddress kOther{broker::TopicNumber(1), 1};
constexpr std::uint64_t kBatches = 4'500;

class LogTrimmerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(options_.path);
    std::filesystem::create_directories(options_.path);
    Result<std::unique_ptr<Database>> opened = Database::open(options_, Database::Mode::create);
    ASSERT_TRUE(opened) << opened.error().message;
    database_ = std::move(*opened);
    broker::CommitBatch batch;
    for (const PartitionAddress& partition : {kErased, kOther}) {
      for (std::uint64_t i = 1; i <= kBatches; ++i) {
        batch.push_back(broker::Append{
            partition, broker::MessageBatch::make({{"x", 0, 0}}, broker::Offset(i), WallTime{})});
        batch.push_back(broker::PutRow{{broker::CursorNumber(1), partition, 1, i, ""}, "value"});
      }
    }
    commit(batch);
    broker::CommitBatch erase{broker::ErasePartition{kErased}};
    commit(erase);
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(options_.path);
  }

  void commit(broker::CommitBatch& batch) {
    StagedCommit staged(*database_, table_, chain_);
    EXPECT_TRUE(staged.add(batch));
    EXPECT_TRUE(database_->db().Write(rocksdb::WriteOptions(), &staged.write()).ok());
    staged.apply(table_, erased_);
    chain_ = staged.chain();
  }

  std::size_t rows_of(rocksdb::ColumnFamilyHandle* family, PartitionAddress partition) {
    rocksdb::WriteBatch unused;
    const std::string prefix = address_prefix(partition);
    const auto found = database_->erase_each(family, {prefix, end_of_prefix(prefix)}, unused);
    EXPECT_TRUE(found);
    return found ? *found : 0;
  }

  DatabaseOptions options_{.path = testing::TempDir() + "/ordo-log-trimmer-" +
                                   std::to_string(::getpid())};
  std::unique_ptr<Database> database_;
  PartitionTable table_;
  ErasedPartitions erased_;
  CommitChain chain_;
  std::vector<std::uint32_t> writes_;  // The rows of each.
  LogTrimmer trimmer_{[this](const Database& database, rocksdb::WriteBatch& rows) {
    writes_.push_back(rows.Count());
    return database.db().Write(rocksdb::WriteOptions(), &rows);
  }};
};

TEST_F(LogTrimmerTest, ErasedRowsCountAsGoneFromTheCommitOn) {
  ErasedPartitions marked;
  const Result<broker::Recovered> all = read_all(*database_, &marked);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->rows.size(), kBatches);
  EXPECT_FALSE(all->partitions.contains(kErased));
  EXPECT_EQ(marked, ErasedPartitions{kErased});
  EXPECT_EQ(rows_of(database_->index(), kErased), kBatches) << "the commit erased rows itself";
}

TEST_F(LogTrimmerTest, ErasedRowsGoInSmallWritesAndTheMarkWithTheLast) {
  std::size_t runs = 0;
  for (bool is_done = false; !is_done; ++runs) {
    ASSERT_LT(runs, 100u);
    EXPECT_EQ(rows_of(database_->state(), kErased) > 0, true) << "the mark is gone too early";
    const Result<std::vector<PartitionAddress>> done = trimmer_.erase(*database_, erased_);
    ASSERT_TRUE(done) << done.error().message;
    is_done = !done->empty();
  }
  EXPECT_GT(runs, 1u) << "one run erased all";
  EXPECT_LE(*std::max_element(writes_.begin(), writes_.end()), 251u);
  EXPECT_EQ(rows_of(database_->index(), kErased), 0u);
  EXPECT_EQ(rows_of(database_->state(), kErased), 0u);
  EXPECT_EQ(rows_of(database_->index(), kOther), kBatches);
  EXPECT_EQ(rows_of(database_->state(), kOther), kBatches);
}

}  // namespace
}  // namespace ordo::store_rocksdb
