// `ordo doctor` and `ordo repair` on real data directories.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/adapters/store_rocksdb/rocksdb_store.h"
#include "tests/flow/map_program.h"

namespace ordo::flow {
namespace {

constexpr broker::PartitionAddress kPartition{broker::TopicNumber(1), 0};

std::string directory_with(const Folder& folder, std::uint64_t messages) {
  const std::string directory = folder.file("data");
  Result<std::unique_ptr<broker::Store>> store =
      store_rocksdb::open_store({.directory = directory});
  EXPECT_TRUE(store) << store.error().message;
  EXPECT_TRUE((*store)->recover());
  for (std::uint64_t i = 1; i <= messages; ++i) {
    broker::CommitBatch batch{
        broker::Append{kPartition, broker::MessageBatch::make({{std::string(1'000, 'x'), 0, 0}},
                                                              broker::Offset(i), WallTime{})}};
    EXPECT_TRUE((*store)->commit(batch));
  }
  return directory;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(StoreProgramTest, DoctorSaysWhatIsThereAndRepairHasNothingToDo) {
  const Folder folder;
  const std::string directory = directory_with(folder, 20);
  const Finished doctor = run_ordo({"doctor", directory});
  EXPECT_EQ(doctor.status, 0) << doctor.err;
  EXPECT_TRUE(has(doctor.out, "messages: 20 in 20 batches")) << doctor.out;
  EXPECT_TRUE(has(doctor.out, "healthy")) << doctor.out;
  const Finished repair = run_ordo({"repair", directory});
  EXPECT_EQ(repair.status, 0) << repair.err;
  EXPECT_TRUE(has(repair.out, "nothing was changed")) << repair.out;
}

TEST(StoreProgramTest, ADirectoryThatIsNotThereIsAnError) {
  const Folder folder;
  EXPECT_EQ(run_ordo({"doctor", folder.file("nothing")}).status, 255);
  EXPECT_EQ(run_ordo({"repair", folder.file("nothing")}).status, 255);
}

TEST(StoreProgramTest, ADirectoryInUseIsNotTouched) {
  const Folder folder;
  const std::string directory = directory_with(folder, 1);
  const Result<std::unique_ptr<broker::Store>> store =
      store_rocksdb::open_store({.directory = directory});
  ASSERT_TRUE(store) << store.error().message;
  const Finished doctor = run_ordo({"doctor", directory});
  EXPECT_EQ(doctor.status, 255);
  EXPECT_TRUE(has(doctor.err, "in use")) << doctor.err;
  const Finished repair = run_ordo({"repair", directory, "--accept-loss"});
  EXPECT_NE(repair.status, 0);
  EXPECT_TRUE(has(repair.err, "in use")) << repair.err;
}

TEST(StoreProgramTest, AMissingWatermarkIsNamedAndOnlyAnAcceptedLossGoesOn) {
  const Folder folder;
  const std::string directory = directory_with(folder, 20);
  std::filesystem::remove(directory + "/watermark");
  const Finished doctor = run_ordo({"doctor", directory});
  EXPECT_EQ(doctor.status, 1);
  EXPECT_TRUE(has(doctor.err, "watermark is missing")) << doctor.err;
  EXPECT_EQ(run_ordo({"repair", directory}).status, 1);
  EXPECT_FALSE(store_rocksdb::open_store({.directory = directory}));
  const Finished repair = run_ordo({"repair", directory, "--accept-loss"});
  EXPECT_EQ(repair.status, 0) << repair.err;
  EXPECT_TRUE(has(repair.out, "20 messages kept")) << repair.out;
  EXPECT_EQ(run_ordo({"doctor", directory}).status, 0);
  const auto store = store_rocksdb::open_store({.directory = directory});
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE((*store)->recover());
  const auto read = (*store)->read(kPartition, broker::Offset(1), 100, 1'000'000);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->batches.size(), 20u);
}

}  // namespace
}  // namespace ordo::flow
