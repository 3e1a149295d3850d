#include "ordo/adapters/store_rocksdb/watermark.h"

#include <memory>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "ordo/adapters/store_rocksdb/commit_chain.h"
#include "ordo/adapters/store_rocksdb/row_codec.h"
#include "tests/support/forgetful_disk.h"

namespace ordo::store_rocksdb {
namespace {

using testing_support::ForgetfulDisk;

Mark mark(std::uint64_t number) {
  return {.directory_id = 1, .start_number = 2, .commit_number = number, .next_id = 10 * number};
}

TEST(WatermarkTest, AfterAPowerCutItIsAtLeastAsFarAsTheLastSyncAndNeverFurtherThanTheLastWrite) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    ForgetfulDisk disk;
    const std::unique_ptr<rocksdb::Env> env = disk.make_env();
    ASSERT_TRUE(Watermark::create(*env, "/folder/w", mark(1)));
    std::uint64_t synced = 1;
    std::uint64_t written = 1;
    std::mt19937_64 random(seed);
    for (int life = 0; life < 4; ++life) {
      auto opened = Watermark::open(*env, "/folder/w");
      ASSERT_TRUE(opened) << opened.error().message;
      const std::uint64_t steps = random() % 12;
      for (std::uint64_t step = 0; step < steps; ++step) {
        ASSERT_TRUE((*opened)->write(mark(++written)));
        if (random() % 3 != 0) continue;
        ASSERT_TRUE((*opened)->sync());
        synced = written;
      }
      disk.cut_now(random());
      opened->reset();
      disk.power_on();
      const auto read = Watermark::read(*env, "/folder/w");
      ASSERT_TRUE(read) << "seed " << seed << ": " << read.error().message;
      ASSERT_GE((*read)->commit_number, synced) << "seed " << seed;
      ASSERT_LE((*read)->commit_number, written) << "seed " << seed;
      ASSERT_EQ(**read, mark((*read)->commit_number));
      written = synced = (*read)->commit_number;
    }
  }
}

TEST(WatermarkTest, AFileThatIsMissingIsNothingAndADamagedOneIsAnError) {
  ForgetfulDisk disk;
  const std::unique_ptr<rocksdb::Env> env = disk.make_env();
  ASSERT_TRUE(Watermark::read(*env, "/folder/w"));
  EXPECT_FALSE(*Watermark::read(*env, "/folder/w"));
  for (const std::string& bytes : {std::string(), std::string(12'288, '\0'), std::string(7, 'x')}) {
    disk.load({{"/folder/w", bytes}});
    const auto read = Watermark::read(*env, "/folder/w");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::data_loss);
  }
}

TEST(CommitChainTest, NumbersThatFollowEachOtherAreARangeAndAMissingOneIsKeptForEver) {
  CommitChain chain = CommitChain::one(5, 50);
  chain.append(CommitChain::one(6, 60));
  EXPECT_FALSE(chain.has_gap());
  EXPECT_EQ(chain.last, 6u);
  CommitChain later = CommitChain::one(9, 90);
  later.append(CommitChain::one(10, 100));
  chain.append(later);
  chain.append(CommitChain::one(11, 110));
  EXPECT_EQ(chain.missing_first, 7u);
  EXPECT_EQ(chain.missing_last, 8u);
  EXPECT_EQ(chain.last, 11u);
  EXPECT_EQ(chain.next_id, 110u);
  EXPECT_EQ(CommitChain::decode(chain.encode()), chain);
}

TEST(CommitChainTest, FamiliesThatEndApartHaveAGap) {
  CommitChain chain = CommitChain::one(5, 50);
  chain.join(CommitChain::one(5, 50));
  EXPECT_FALSE(chain.has_gap());
  chain.join(CommitChain::one(8, 80));
  EXPECT_EQ(chain.missing_first, 6u);
  EXPECT_EQ(chain.missing_last, 8u);
}

TEST(RowCodecTest, ALogRowProvesEveryByteOfItself) {
  const broker::PartitionAddress partition{broker::TopicNumber(1), 2};
  const auto batch = broker::MessageBatch::make({{"first", 0, 2}, {"second", 1, 3}},
                                                broker::Offset(9), WallTime{});
  const std::string row = encode_log_header(partition, *batch, broker::MessageId(7)) + batch->bytes;
  ASSERT_TRUE(decode_log_row(row, partition));
  EXPECT_EQ(broker::Message(*decode_log_row(row, partition), 1).key(), "eco");
  EXPECT_FALSE(decode_log_row(row, {broker::TopicNumber(1), 3})) << "of another partition";
  for (std::size_t at = 0; at < row.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = row;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_FALSE(decode_log_row(damaged, partition)) << "byte " << at << ", bit " << bit;
    }
    EXPECT_FALSE(decode_log_row(std::string_view(row).substr(0, at), partition));
  }
}

TEST(RowCodecTest, KeysSortByPartitionThenOffsetAndComeBackAsTheyWere) {
  const broker::PartitionAddress low{broker::TopicNumber(1), 255};
  const broker::PartitionAddress high{broker::TopicNumber(1), 256};
  EXPECT_LT(index_key(low, broker::Offset(~0ull)), index_key(high, broker::Offset(0)));
  EXPECT_LT(index_key(low, broker::Offset(255)), index_key(low, broker::Offset(256)));
  EXPECT_EQ(index_key_partition(index_key(high, broker::Offset(3))), high);
  EXPECT_EQ(index_key_offset(index_key(high, broker::Offset(3))), broker::Offset(3));
  EXPECT_FALSE(index_key_offset("short"));
  EXPECT_FALSE(decode_index_row("short"));
  EXPECT_FALSE(decode_partition_row(""));
  EXPECT_FALSE(parse_state_key("short"));
  EXPECT_LT(end_of_prefix("a\xff"), "b\xff");
  EXPECT_GT(end_of_prefix("a\xff"), "a\xff\xff");
  EXPECT_GT(end_of_prefix("\xff"), std::string(100, '\xff'));
}

}  // namespace
}  // namespace ordo::store_rocksdb
