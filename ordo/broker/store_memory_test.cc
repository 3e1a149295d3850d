#include "ordo/broker/store_memory.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/store_contract.h"

namespace ordo::broker {
namespace {

class OneFault final : public StoreFaults {
 public:
  Commit on_commit(const CommitBatch&) override { return std::exchange(next_, Commit::none); }
  std::optional<Error> on_read(PartitionAddress, Offset) override {
    return std::exchange(next_read_, std::nullopt);
  }
  std::optional<Error> on_spill(const SpillKey&) override {
    return std::exchange(next_spill_, std::nullopt);
  }

  Commit next_ = Commit::none;
  std::optional<Error> next_read_;
  std::optional<Error> next_spill_;
};

class MemoryRig final : public StoreRig {
 public:
  MemoryRig(SyncPolicy policy, StoreFaults::Commit failure) : policy_(policy), failure_(failure) {}

  std::unique_ptr<Store> open() override {
    return std::make_unique<MemoryStore>(disk_, &faults_, policy_);
  }
  void crash(std::unique_ptr<Store> store) override {
    static_cast<MemoryStore&>(*store).sync();
    disk_->crash();
    store.reset();
  }
  bool set_full(bool is_full) override {
    disk_->set_capacity(is_full ? 1 : 0);
    return true;
  }
  bool fail_next_commit() override {
    faults_.next_ = failure_;
    return true;
  }
  bool damage(PartitionAddress partition, Offset offset) override {
    return disk_->damage(partition, offset);
  }

 private:
  const SyncPolicy policy_;
  const StoreFaults::Commit failure_;
  OneFault faults_;
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
};

StoreRigMaker maker(std::string name, SyncPolicy policy, StoreFaults::Commit failure) {
  return {std::move(name), [=] { return std::make_unique<MemoryRig>(policy, failure); }};
}

INSTANTIATE_TEST_SUITE_P(MemoryStore, StoreContract,
                         testing::Values(maker("EveryCommit", SyncPolicy::every_commit,
                                               StoreFaults::Commit::error_not_kept),
                                         maker("OnRequest", SyncPolicy::on_request,
                                               StoreFaults::Commit::error_kept)),
                         store_rig_name);

constexpr PartitionAddress kPartition{TopicNumber(1), 0};

Append message(std::uint64_t offset) {
  return {kPartition, MessageBatch::make({{"text", 0, 0}}, Offset(offset), WallTime{})};
}

Status commit_message(Store& store, std::uint64_t offset) {
  CommitBatch batch{message(offset)};
  return store.commit(batch);
}

Offset end_of(const Recovered& recovered) {
  const auto found = recovered.partitions.find(kPartition);
  return found == recovered.partitions.end() ? Offset(1) : found->second.end;
}

TEST(MemoryStoreTest, ACrashForgetsWhatWasNotSynced) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryStore store(disk, nullptr, SyncPolicy::on_request);
  ASSERT_TRUE(store.recover());
  ASSERT_TRUE(commit_message(store, 1));
  store.sync();
  ASSERT_TRUE(commit_message(store, 2));
  ASSERT_TRUE(commit_message(store, 3));
  EXPECT_EQ(disk->unsynced_commits(), 2u);

  disk->crash();

  MemoryStore again(disk);
  EXPECT_EQ(end_of(*again.recover()), Offset(2));
}

TEST(MemoryStoreTest, ACrashMayKeepAPrefixOfWhatWasNotSynced) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryStore store(disk, nullptr, SyncPolicy::on_request);
  ASSERT_TRUE(store.recover());
  for (std::uint64_t offset = 1; offset <= 3; ++offset)
    ASSERT_TRUE(commit_message(store, offset));

  disk->crash(2);

  MemoryStore again(disk);
  EXPECT_EQ(end_of(*again.recover()), Offset(3));
}

TEST(MemoryStoreTest, AnIdThatALostCommitGaveIsNotGivenAgain) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryStore store(disk, nullptr, SyncPolicy::on_request);
  ASSERT_TRUE(store.recover());
  CommitBatch lost{message(1)};
  ASSERT_TRUE(store.commit(lost));

  disk->crash();

  MemoryStore again(disk);
  ASSERT_TRUE(again.recover());
  CommitBatch kept{message(1)};
  ASSERT_TRUE(again.commit(kept));
  EXPECT_GT(std::get<Append>(kept[0]).batch->first_id, std::get<Append>(lost[0]).batch->first_id);
}

TEST(MemoryStoreTest, AStoreIsCutOffByACrashAndByItsSuccessor) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryStore first(disk);
  ASSERT_TRUE(first.recover());
  disk->crash();
  EXPECT_EQ(commit_message(first, 1).error().code, ErrorCode::failed_precondition);
  EXPECT_FALSE(first.read(kPartition, Offset(1), 1, 1));

  MemoryStore second(disk);
  ASSERT_TRUE(second.recover());
  ASSERT_TRUE(commit_message(second, 1));
  MemoryStore third(disk);
  ASSERT_TRUE(third.recover());
  EXPECT_FALSE(commit_message(second, 2));
  EXPECT_TRUE(commit_message(third, 2));
}

TEST(MemoryStoreTest, FaultsOfReadsAndSpillsAreGivenOnce) {
  OneFault faults;
  MemoryStore store(std::make_shared<MemoryDisk>(), &faults);
  ASSERT_TRUE(store.recover());
  const SpillKey key{CursorNumber(1), kPartition, 1, 1};
  faults.next_read_ = faults.next_spill_ = Error{ErrorCode::unavailable, "the cable is loose"};
  EXPECT_FALSE(store.read(kPartition, Offset(1), 1, 1));
  EXPECT_TRUE(store.read(kPartition, Offset(1), 1, 1));
  EXPECT_FALSE(store.write_spill(key, "x"));
  EXPECT_TRUE(store.write_spill(key, "x"));
}

TEST(MemoryStoreTest, DamageDoesNotReachMessagesThatAreInMemory) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryStore store(disk);
  ASSERT_TRUE(store.recover());
  CommitBatch batch{message(1)};
  ASSERT_TRUE(store.commit(batch));
  ASSERT_TRUE(disk->damage(kPartition, Offset(1)));
  EXPECT_TRUE(Message(std::get<Append>(batch[0]).batch, 0).is_intact());
  EXPECT_FALSE(disk->damage(kPartition, Offset(2)));
}

}  // namespace
}  // namespace ordo::broker
