// The contract suite of the Store port: every sentence of store.h as a test, for every store.
//
//   class MyStoreRig final : public StoreRig { ... };
//   INSTANTIATE_TEST_SUITE_P(MyStore, StoreContract,
//                            testing::Values(StoreRigMaker{"default", &make_my_rig}),
//                            store_rig_name);
//
// A rig is a place where a store keeps its data; the suite opens the store there, closes it and
// opens it again. What a rig cannot do (make the disk full, damage a record) it says by returning
// false, and the tests that need it are shown as skipped.
//
// Threads: the suite starts a thread that reads beside commits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/broker/store.h"

namespace ordo::broker {

class StoreRig {
 public:
  virtual ~StoreRig() = default;

  // Opens the store where the last one was; that one is gone by now. recover() is not called yet.
  virtual std::unique_ptr<Store> open() = 0;
  // The store is abandoned as by kill -9 or loss of power: nothing of it is closed or flushed.
  virtual void crash(std::unique_ptr<Store> store) { store.reset(); }

  virtual bool set_full(bool is_full) { return is_full && false; }
  virtual bool fail_next_commit() { return false; }
  virtual bool damage(PartitionAddress, Offset) { return false; }
};

struct StoreRigMaker {
  std::string name;
  std::function<std::unique_ptr<StoreRig>()> make;
};

inline std::string store_rig_name(const testing::TestParamInfo<StoreRigMaker>& info) {
  return info.param.name;
}

class StoreContract : public testing::TestWithParam<StoreRigMaker> {
 protected:
  static constexpr PartitionAddress kPartition{TopicNumber(7), 2};
  static constexpr PartitionAddress kOther{TopicNumber(7), 3};
  static constexpr CursorNumber kCursor{5};
  static constexpr std::size_t kNoLimit = 1u << 30;

  void SetUp() override {
    rig_ = GetParam().make();
    recovered_ = open();
  }

  Recovered open() {
    store_ = rig_->open();
    Result<Recovered> recovered = store_->recover();
    EXPECT_TRUE(recovered) << recovered.error().message;
    return recovered ? *std::move(recovered) : Recovered{};
  }
  Recovered reopen() {
    store_.reset();
    return open();
  }
  Recovered reopen_after_crash() {
    rig_->crash(std::move(store_));
    return open();
  }

  static WallTime at_second(std::int64_t second) {
    return WallTime(std::chrono::seconds(1'600'000'000 + second));
  }
  static MessageBody body(const std::string& text, const std::string& key = "") {
    return MessageBody{text + key, static_cast<std::uint32_t>(text.size()),
                       static_cast<std::uint32_t>(key.size())};
  }
  static std::shared_ptr<MessageBatch> batch(std::uint64_t first_offset, std::size_t count,
                                             std::int64_t second = 0, const std::string& text = "m",
                                             const std::string& key = "key") {
    std::vector<MessageBody> bodies;
    for (std::size_t i = 0; i < count; ++i)
      bodies.push_back(body(text + std::to_string(first_offset + i), key));
    return MessageBatch::make(bodies, Offset(first_offset), at_second(second));
  }
  static RowKey row(std::uint64_t position, std::uint8_t kind = 1, const std::string& text = "",
                    CursorNumber cursor = kCursor, PartitionAddress partition = kPartition) {
    return RowKey{cursor, partition, kind, position, text};
  }

  static CommitOp put_catalog(std::uint8_t kind, std::string name, std::string value) {
    return PutCatalog{CatalogKey{kind, std::move(name)}, std::move(value)};
  }

  template <class... Ops>
  Status commit(Ops... ops) {
    CommitBatch batch;
    (batch.push_back(std::move(ops)), ...);
    return store_->commit(batch);
  }
  std::shared_ptr<MessageBatch> append(std::shared_ptr<MessageBatch> messages,
                                       PartitionAddress partition = kPartition) {
    EXPECT_TRUE(commit(Append{partition, messages}));
    return messages;
  }

  ReadBatches read(std::uint64_t from, std::size_t messages_max = kNoLimit,
                   std::size_t bytes_max = kNoLimit, PartitionAddress partition = kPartition) {
    Result<ReadBatches> result = store_->read(partition, Offset(from), messages_max, bytes_max);
    EXPECT_TRUE(result) << result.error().message;
    return result ? *std::move(result) : ReadBatches{};
  }
  // The offsets a reader finds at or after `from`.
  std::vector<std::uint64_t> offsets(std::uint64_t from, PartitionAddress partition = kPartition) {
    std::vector<std::uint64_t> result;
    Offset at(from);
    for (;;) {
      const ReadBatches batches = read(at.value(), 3, kNoLimit, partition);
      if (batches.batches.empty()) {
        EXPECT_EQ(batches.next, at);
        return result;
      }
      for (const auto& found : batches.batches) {
        for (Offset offset = found->first_offset; offset < found->end_offset(); ++offset) {
          if (offset >= Offset(from)) result.push_back(offset.value());
        }
      }
      EXPECT_GT(batches.next, at);
      if (batches.next <= at) return result;
      at = batches.next;
    }
  }

  std::unique_ptr<StoreRig> rig_;
  std::unique_ptr<Store> store_;
  Recovered recovered_;
};

using Offsets = std::vector<std::uint64_t>;

// ------------------------------------------------------------------------------ recover

TEST_P(StoreContract, ANewStoreIsEmptyAndStartsAtNumberOne) {
  EXPECT_EQ(recovered_.start_number, 1u);
  EXPECT_TRUE(recovered_.catalog.empty());
  EXPECT_TRUE(recovered_.partitions.empty());
  EXPECT_TRUE(recovered_.rows.empty());
}

TEST_P(StoreContract, TheStartNumberCountsOpeningsAlsoThoseThatCommittedNothing) {
  EXPECT_EQ(reopen().start_number, 2u);
  EXPECT_EQ(reopen_after_crash().start_number, 3u);
  EXPECT_EQ(reopen_after_crash().start_number, 4u);
}

TEST_P(StoreContract, RecoverGivesTheBoundsAndTheLastTimeOfEachPartition) {
  append(batch(1, 3, 10));
  append(batch(4, 2, 20));
  append(batch(1, 1, 5), kOther);
  const Recovered recovered = reopen();
  ASSERT_EQ(recovered.partitions.size(), 2u);
  const RecoveredPartition& partition = recovered.partitions.at(kPartition);
  EXPECT_EQ(partition.first, Offset(1));
  EXPECT_EQ(partition.end, Offset(6));
  EXPECT_EQ(partition.last_publish_time, at_second(20));
  EXPECT_EQ(recovered.partitions.at(kOther).end, Offset(2));
}

TEST_P(StoreContract, RecoverGivesRowsAndCatalogAsTheyWereLastWritten) {
  ASSERT_TRUE(commit(PutRow{row(1), "a"}, PutRow{row(2), "b"}, PutRow{row(2, 3, "key"), ""},
                     put_catalog(1, "topic", "config"), put_catalog(2, "topic", "other")));
  ASSERT_TRUE(commit(PutRow{row(1), "changed"}, EraseRow{row(2)}, EraseCatalog{{2, "topic"}}));
  const Recovered recovered = reopen();
  const std::map<RowKey, std::string> rows{{row(1), "changed"}, {row(2, 3, "key"), ""}};
  const std::map<CatalogKey, std::string> catalog{{{1, "topic"}, "config"}};
  EXPECT_EQ(recovered.rows, rows);
  EXPECT_EQ(recovered.catalog, catalog);
}

TEST_P(StoreContract, RowsMayHaveAnyBytesAndAnyNumbers) {
  const std::string bytes("\0\xff\0a\0", 5);
  const std::uint64_t most = ~0ull;
  std::map<RowKey, std::string> rows;
  for (const std::uint64_t position :
       {std::uint64_t{0}, std::uint64_t{255}, std::uint64_t{256}, most}) {
    for (const std::string& text : {std::string(), bytes, std::string(1024, '\xff')}) {
      rows.emplace(row(position, 255, text), text + "v");
      rows.emplace(row(position, 0, text, CursorNumber(~0u), {TopicNumber(~0u), ~0u}), bytes);
    }
  }
  CommitBatch ops;
  for (const auto& [key, value] : rows)
    ops.push_back(PutRow{key, value});
  ops.push_back(put_catalog(255, bytes, bytes));
  ASSERT_TRUE(store_->commit(ops));
  const Recovered recovered = reopen();
  EXPECT_EQ(recovered.rows, rows);
  EXPECT_EQ(recovered.catalog.at({255, bytes}), bytes);
}

// ------------------------------------------------------------------------------ commit

TEST_P(StoreContract, WhatWasCommittedSurvivesACrash) {
  append(batch(1, 3));
  ASSERT_TRUE(commit(PutRow{row(1), "a"}));
  const Recovered recovered = reopen_after_crash();
  EXPECT_EQ(offsets(1), (Offsets{1, 2, 3}));
  EXPECT_EQ(recovered.rows.at(row(1)), "a");
}

TEST_P(StoreContract, OpsTakeEffectInTheirOrder) {
  ASSERT_TRUE(commit(PutRow{row(1), "old"}));
  ASSERT_TRUE(commit(EraseRows{kCursor, kPartition}, PutRow{row(2), "new"}, PutRow{row(3), "x"},
                     EraseRow{row(3)}, PutRow{row(4), "first"}, PutRow{row(4), "second"}));
  const std::map<RowKey, std::string> rows{{row(2), "new"}, {row(4), "second"}};
  EXPECT_EQ(reopen().rows, rows);
}

TEST_P(StoreContract, OneCommitMayTouchManyPartitionsAndKinds) {
  ASSERT_TRUE(commit(Append{kPartition, batch(1, 2)}, Append{kOther, batch(1, 1)},
                     Append{kPartition, batch(3, 1)}, PutRow{row(9), "r"},
                     put_catalog(1, "t", "c")));
  EXPECT_EQ(offsets(1), (Offsets{1, 2, 3}));
  EXPECT_EQ(offsets(1, kOther), (Offsets{1}));
  const Recovered recovered = reopen();
  EXPECT_EQ(recovered.rows.size(), 1u);
  EXPECT_EQ(recovered.catalog.size(), 1u);
}

TEST_P(StoreContract, AnEmptyCommitIsDone) {
  EXPECT_TRUE(commit());
}

TEST_P(StoreContract, ACommitSetsIdsThatRiseInTheOrderOfCommits) {
  const auto first = append(batch(1, 3));
  const auto other = append(batch(1, 2), kOther);
  const auto second = append(batch(4, 1));
  EXPECT_GE(first->first_id, MessageId(1));
  EXPECT_GE(other->first_id, first->first_id + 3);
  EXPECT_GE(second->first_id, other->first_id + 2);
  EXPECT_EQ(read(4).batches.at(0)->first_id, second->first_id);
}

TEST_P(StoreContract, IdsAreNeverGivenTwiceAcrossRestartsAndTrims) {
  MessageId last = append(batch(1, 3))->first_id + 2;
  for (std::uint64_t offset = 4; offset < 10; ++offset) {
    ASSERT_TRUE(commit(Trim{kPartition, Offset(offset)}));
    if (offset % 2 == 0) {
      reopen();
    } else {
      reopen_after_crash();
    }
    const MessageId id = append(batch(offset, 1))->first_id;
    EXPECT_GT(id, last);
    last = id;
  }
}

TEST_P(StoreContract, OffsetsMayHaveGaps) {
  append(batch(1, 2));
  append(batch(10, 2));
  EXPECT_EQ(offsets(1), (Offsets{1, 2, 10, 11}));
  EXPECT_EQ(offsets(5), (Offsets{10, 11}));
  EXPECT_EQ(reopen().partitions.at(kPartition).end, Offset(12));
}

TEST_P(StoreContract, EraseRowsErasesThoseOfOneCursorInOnePartition) {
  const RowKey other_cursor = row(1, 1, "", CursorNumber(6));
  const RowKey lower_cursor = row(1, 1, "", CursorNumber(4));
  const RowKey other_partition = row(1, 1, "", kCursor, kOther);
  ASSERT_TRUE(commit(PutRow{row(0), "a"}, PutRow{row(~0ull, 255, "z"), "b"},
                     PutRow{other_cursor, "c"}, PutRow{lower_cursor, "d"},
                     PutRow{other_partition, "e"}));
  ASSERT_TRUE(commit(EraseRows{kCursor, kPartition}));
  const std::map<RowKey, std::string> rows{
      {other_cursor, "c"}, {lower_cursor, "d"}, {other_partition, "e"}};
  EXPECT_EQ(reopen().rows, rows);
}

TEST_P(StoreContract, ErasePartitionErasesMessagesAndRowsOfEveryCursorInIt) {
  append(batch(1, 3));
  append(batch(1, 2), kOther);
  ASSERT_TRUE(commit(PutRow{row(1), "a"}, PutRow{row(1, 1, "", CursorNumber(6)), "b"},
                     PutRow{row(1, 1, "", kCursor, kOther), "c"}));
  ASSERT_TRUE(commit(ErasePartition{kPartition}));
  EXPECT_TRUE(offsets(1).empty());
  EXPECT_EQ(offsets(1, kOther), (Offsets{1, 2}));
  const Recovered recovered = reopen();
  EXPECT_FALSE(recovered.partitions.contains(kPartition));
  EXPECT_EQ(recovered.rows.size(), 1u);
  EXPECT_TRUE(recovered.rows.contains(row(1, 1, "", kCursor, kOther)));
}

TEST_P(StoreContract, TrimNeverTakesMessagesAtOrAfterItsOffset) {
  for (std::uint64_t offset = 1; offset < 100; offset += 3)
    append(batch(offset, 3));
  ASSERT_TRUE(commit(Trim{kPartition, Offset(50)}));
  const Offsets kept = offsets(50);
  ASSERT_EQ(kept.size(), 50u);
  EXPECT_EQ(kept.front(), 50u);
  EXPECT_EQ(kept.back(), 99u);
  const RecoveredPartition partition = reopen().partitions.at(kPartition);
  EXPECT_EQ(partition.first, Offset(50));
  EXPECT_EQ(partition.end, Offset(100));
  EXPECT_EQ(offsets(50), kept);
}

TEST_P(StoreContract, TheEndAndTheLastTimeOutliveTheMessages) {
  append(batch(1, 5, 30));
  ASSERT_TRUE(commit(Trim{kPartition, Offset(6)}));
  for (int i = 0; i < 2; ++i) {
    const RecoveredPartition partition = reopen().partitions.at(kPartition);
    EXPECT_EQ(partition.first, Offset(6));
    EXPECT_EQ(partition.end, Offset(6));
    EXPECT_EQ(partition.last_publish_time, at_second(30));
  }
  append(batch(6, 1, 31));
  EXPECT_EQ(offsets(6), (Offsets{6}));
}

TEST_P(StoreContract, ATrimThatLagsBehindAnEarlierOneChangesNothing) {
  append(batch(1, 5));
  ASSERT_TRUE(commit(Trim{kPartition, Offset(4)}));
  ASSERT_TRUE(commit(Trim{kPartition, Offset(2)}));
  EXPECT_EQ(offsets(4), (Offsets{4, 5}));
  EXPECT_EQ(reopen().partitions.at(kPartition).first, Offset(4));
}

// ------------------------------------------------------------------------------ commit, errors

TEST_P(StoreContract, AFullStoreRefusesAppendsWholeAndTakesThemWhenThereIsSpaceAgain) {
  append(batch(1, 1));
  if (!rig_->set_full(true)) GTEST_SKIP() << "this rig cannot make its store full";
  const auto refused = batch(2, 2, 0, std::string(1000, 'x'));
  for (int i = 0; i < 2; ++i) {
    const Status stored = commit(PutRow{row(1), "with"}, Append{kPartition, refused});
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error().code, ErrorCode::resource_exhausted);
  }
  EXPECT_TRUE(store_->stats().is_full);
  EXPECT_EQ(offsets(1), (Offsets{1}));
  ASSERT_TRUE(rig_->set_full(false));
  EXPECT_TRUE(commit(Append{kPartition, refused}));
  EXPECT_FALSE(store_->stats().is_full);
  EXPECT_EQ(offsets(1), (Offsets{1, 2, 3}));
  EXPECT_FALSE(reopen().rows.contains(row(1)));
}

TEST_P(StoreContract, AFullStoreStillTakesRowsReadsAndTrims) {
  append(batch(1, 3));
  if (!rig_->set_full(true)) GTEST_SKIP() << "this rig cannot make its store full";
  EXPECT_TRUE(commit(PutRow{row(1), "a"}));
  EXPECT_TRUE(commit(Trim{kPartition, Offset(2)}, put_catalog(1, "t", "c")));
  EXPECT_EQ(offsets(2), (Offsets{2, 3}));
  ASSERT_TRUE(rig_->set_full(false));
  EXPECT_TRUE(reopen().rows.contains(row(1)));
}

TEST_P(StoreContract, AfterAFailedCommitNoneIsTakenUntilItIsOpenedAgain) {
  append(batch(1, 1));
  if (!rig_->fail_next_commit()) GTEST_SKIP() << "this rig cannot make a commit fail";
  const Status failed = commit(Append{kPartition, batch(2, 2)}, PutRow{row(1), "a"});
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().code, ErrorCode::resource_exhausted);
  EXPECT_FALSE(store_->stats().failure.empty());
  const Status next = commit(PutRow{row(2), "b"});
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, ErrorCode::failed_precondition);
  EXPECT_FALSE(read(1).batches.empty()) << "what is stored can still be read";

  const Recovered recovered = reopen_after_crash();
  EXPECT_FALSE(recovered.rows.contains(row(2)));
  const bool is_kept = recovered.rows.contains(row(1));
  EXPECT_EQ(offsets(1), is_kept ? (Offsets{1, 2, 3}) : (Offsets{1})) << "all of it or nothing";
  EXPECT_TRUE(commit(PutRow{row(2), "b"}));
}

// ------------------------------------------------------------------------------ read

TEST_P(StoreContract, AMessageIsReadAsItWasCommitted) {
  const std::string bytes("\0\xff data", 7);
  auto stored = MessageBatch::make({body("first", "key"), body(bytes), body("x", "key")}, Offset(1),
                                   at_second(7));
  append(stored);
  for (int round = 0; round < 2; ++round) {
    const ReadBatches found = read(1);
    ASSERT_EQ(found.batches.size(), 1u);
    EXPECT_EQ(found.next, Offset(4));
    for (std::uint32_t i = 0; i < 3; ++i) {
      const Message expected(stored, i);
      const Message message(found.batches[0], i);
      EXPECT_EQ(message.offset(), expected.offset());
      EXPECT_EQ(message.id(), expected.id());
      EXPECT_EQ(message.key(), expected.key());
      EXPECT_EQ(message.body(), expected.body());
      EXPECT_EQ(message.publish_time(), at_second(7));
      EXPECT_TRUE(message.is_intact());
    }
    reopen();
  }
}

TEST_P(StoreContract, ReadingInsideABatchGivesTheWholeBatch) {
  append(batch(1, 5));
  const ReadBatches found = read(3);
  ASSERT_EQ(found.batches.size(), 1u);
  EXPECT_EQ(found.batches[0]->first_offset, Offset(1));
  EXPECT_EQ(found.next, Offset(6));
}

TEST_P(StoreContract, ReadingAtTheEndOrOfAnUnknownPartitionGivesNothing) {
  append(batch(1, 2));
  for (const std::uint64_t from : {3, 4, 1'000}) {
    const ReadBatches found = read(from);
    EXPECT_TRUE(found.batches.empty());
    EXPECT_EQ(found.next, Offset(from));
  }
  EXPECT_TRUE(read(1, 10, 10, {TopicNumber(8), 2}).batches.empty());
}

TEST_P(StoreContract, ReadingGivesAtLeastOneBatchThenMoreUpToBothLimits) {
  for (std::uint64_t offset = 1; offset <= 20; offset += 2)
    append(batch(offset, 2, 0, std::string(100, 'x')));
  EXPECT_EQ(read(1, 1, 1).batches.size(), 1u);
  EXPECT_EQ(read(1, 0, 0).batches.size(), 1u);
  EXPECT_EQ(read(1, 6, kNoLimit).batches.size(), 3u);
  EXPECT_EQ(read(1, 7, kNoLimit).batches.size(), 3u);
  EXPECT_EQ(read(1, kNoLimit, 650).batches.size(), 3u);
  EXPECT_EQ(read(1).batches.size(), 10u);
}

TEST_P(StoreContract, ReadingBelowWhatWasTrimmedGivesWhatIsStillThere) {
  append(batch(1, 2));
  append(batch(3, 2));
  ASSERT_TRUE(commit(Trim{kPartition, Offset(3)}));
  const Offsets found = offsets(1);
  EXPECT_TRUE(found == (Offsets{3, 4}) || found == (Offsets{1, 2, 3, 4}));
}

TEST_P(StoreContract, PartitionsDoNotSeeEachOther) {
  append(batch(1, 2, 0, "a"));
  append(batch(1, 3, 0, "b"), kOther);
  EXPECT_EQ(offsets(1), (Offsets{1, 2}));
  EXPECT_EQ(offsets(1, kOther), (Offsets{1, 2, 3}));
}

TEST_P(StoreContract, ADamagedMessageIsDataLossAndItsNeighboursAreRead) {
  append(batch(1, 2));
  append(batch(3, 2));
  append(batch(5, 2));
  if (!rig_->damage(kPartition, Offset(4))) GTEST_SKIP() << "this rig cannot damage a message";
  const ReadBatches before = read(1);
  EXPECT_EQ(before.batches.size(), 1u);
  const Result<ReadBatches> damaged = store_->read(kPartition, before.next, kNoLimit, kNoLimit);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, ErrorCode::data_loss);
  EXPECT_EQ(read(5).batches.size(), 1u);
}

TEST_P(StoreContract, AnyThreadMayReadBesideCommits) {
  constexpr std::uint64_t kCount = 300;
  std::atomic<std::uint64_t> committed{0};
  std::thread reader([&] {
    std::uint64_t seen = 0;
    while (seen < kCount) {
      const std::uint64_t known = committed.load();
      const Result<ReadBatches> found = store_->read(kPartition, Offset(seen + 1), 10, 10'000);
      (void)store_->stats();
      (void)store_->find_time(kPartition, at_second(1));
      if (!found || (found->batches.empty() && known > seen)) {
        ADD_FAILURE() << "offset " << seen + 1 << " is committed and cannot be read";
        return;
      }
      seen = found->next.value() - 1;
    }
  });
  for (std::uint64_t offset = 1; offset <= kCount; ++offset) {
    append(batch(offset, 1));
    committed.store(offset);
  }
  reader.join();
}

// ------------------------------------------------------------------------------ find_time

TEST_P(StoreContract, FindTimeGivesTheFirstMessageOfThatTimeOrLater) {
  append(batch(1, 2, 10));
  append(batch(3, 2, 20));
  append(batch(7, 2, 20));
  append(batch(9, 1, 30));
  const std::vector<std::pair<std::int64_t, std::uint64_t>> cases{{0, 1},  {10, 1}, {11, 3},
                                                                  {20, 3}, {21, 9}, {30, 9}};
  for (int round = 0; round < 2; ++round) {
    for (const auto& [second, offset] : cases)
      EXPECT_EQ(*store_->find_time(kPartition, at_second(second)), Offset(offset)) << second;
    EXPECT_EQ(*store_->find_time(kPartition, at_second(31)), Offset(10)) << "the end";
    EXPECT_EQ(*store_->find_time(kPartition, WallTime::max()), Offset(10));
    EXPECT_EQ(*store_->find_time(kPartition, WallTime{}), Offset(1));
    EXPECT_EQ(*store_->find_time({TopicNumber(8), 0}, at_second(0)), Offset(1));
    reopen();
  }
}

// ------------------------------------------------------------------------------ spill

TEST_P(StoreContract, ASpilledChunkIsReadAsOftenAsWantedUntilItIsErased) {
  const SpillKey key{kCursor, kPartition, 3, 1};
  const std::string bytes("\0\xff chunk", 8);
  ASSERT_TRUE(store_->write_spill(key, bytes));
  EXPECT_EQ(*store_->read_spill(key), bytes);
  EXPECT_EQ(*store_->read_spill(key), bytes);
  ASSERT_TRUE(store_->erase_spill(key, 1));
  const Result<std::string> gone = store_->read_spill(key);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::not_found);
  EXPECT_TRUE(store_->erase_spill(key, 1)) << "erasing what is not there is done";
}

TEST_P(StoreContract, EraseSpillErasesAsManyChunksOfOneLaneAsItSays) {
  for (std::uint64_t lane = 1; lane <= 3; ++lane) {
    for (std::uint64_t chunk = 0; chunk < 5; ++chunk)
      ASSERT_TRUE(store_->write_spill({kCursor, kPartition, lane, chunk}, "x"));
  }
  ASSERT_TRUE(store_->erase_spill({kCursor, kPartition, 2, 1}, 3));
  ASSERT_TRUE(store_->erase_spill({kCursor, kPartition, 1, 3}, 1'000));
  Offsets left;
  for (std::uint64_t lane = 1; lane <= 3; ++lane) {
    for (std::uint64_t chunk = 0; chunk < 5; ++chunk) {
      if (store_->read_spill({kCursor, kPartition, lane, chunk})) left.push_back(lane * 10 + chunk);
    }
  }
  EXPECT_EQ(left, (Offsets{10, 11, 12, 20, 24, 30, 31, 32, 33, 34}));
}

TEST_P(StoreContract, SpilledChunksOutliveEraseRowsAndNotErasePartition) {
  const SpillKey key{kCursor, kPartition, 3, 1};
  const SpillKey other{kCursor, kOther, 3, 1};
  ASSERT_TRUE(store_->write_spill(key, "x"));
  ASSERT_TRUE(store_->write_spill(other, "y"));
  ASSERT_TRUE(commit(EraseRows{kCursor, kPartition}));
  EXPECT_TRUE(store_->read_spill(key));
  ASSERT_TRUE(commit(ErasePartition{kPartition}));
  EXPECT_FALSE(store_->read_spill(key));
  EXPECT_TRUE(store_->read_spill(other));
}

TEST_P(StoreContract, SpilledChunksAreGoneAfterRecovery) {
  const SpillKey key{kCursor, kPartition, 3, 1};
  ASSERT_TRUE(store_->write_spill(key, "x"));
  reopen();
  EXPECT_FALSE(store_->read_spill(key));
  ASSERT_TRUE(store_->write_spill(key, "x"));
  reopen_after_crash();
  EXPECT_FALSE(store_->read_spill(key));
}

// ------------------------------------------------------------------------------ stats

TEST_P(StoreContract, StatsCountCommitsBytesAndMessages) {
  const StoreStats before = store_->stats();
  EXPECT_TRUE(before.failure.empty());
  EXPECT_FALSE(before.is_full);
  append(batch(1, 3, 0, std::string(100, 'x')));
  ASSERT_TRUE(commit(PutRow{row(1), "a"}));
  const StoreStats after = store_->stats();
  EXPECT_EQ(after.commits, before.commits + 2);
  EXPECT_GE(after.committed_bytes, before.committed_bytes + 300);
  EXPECT_EQ(after.messages, 3u);
}

}  // namespace ordo::broker
