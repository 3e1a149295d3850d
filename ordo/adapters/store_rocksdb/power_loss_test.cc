// The power goes off in the middle of any write, sync, rename or delete; then the store is opened
// again. ORDO_POWER_CUTS=100000 is the long run.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "ordo/adapters/store_rocksdb/rocksdb_store.h"
#include "tests/support/forgetful_disk.h"
#include "tests/support/stored_world.h"
#include "tests/support/waiting.h"

namespace ordo::store_rocksdb {
namespace {

using broker::Store;
using testing_support::eventually;
using testing_support::ForgetfulDisk;
using testing_support::StoredWorld;

constexpr unsigned kLives = testing_support::kIsSanitized ? 16 : 80;

std::uint64_t cuts_of_a_life() {
  const char* given = std::getenv("ORDO_POWER_CUTS");
  const std::uint64_t cuts = given != nullptr ? std::strtoull(given, nullptr, 10) : kLives * 25;
  return (cuts + kLives - 1) / kLives;
}

// One data directory that loses power again and again; a new one now and then, to keep it small.
class PowerLoss : public testing::TestWithParam<unsigned> {
 protected:
  void begin(std::uint64_t seed) {
    disk_ = std::make_unique<ForgetfulDisk>();
    env_ = disk_->make_env();
    world_ = std::make_unique<StoredWorld>(seed, 1 + 4'000 * (seed % 3));
    options_ = {.directory = "/data",
                .watermark_interval = std::chrono::milliseconds(seed % 2 == 0 ? 0 : 1),
                .write_buffer_bytes = seed % 5 == 0 ? 1u << 20 : 64u << 10,
                .cache_bytes = 1u << 20,
                .env = env_.get()};
    if (seed % 4 == 3) options_.sync = seed % 8 == 3 ? SyncPolicy::interval : SyncPolicy::os;
    options_.sync_interval = std::chrono::milliseconds(2);
    if (seed % 3 != 2) options_.trim_interval = std::chrono::milliseconds(1);
    options_.reopen_interval = std::chrono::milliseconds(1);
    fills_up_ = seed % 5 == 1 || seed % 5 == 3;
  }

  // Now and then: for what is written, or only for its sync.
  void fill_up() {
    const std::uint64_t choice = world_->up_to(19);
    disk_->set_full(choice < 2);
    disk_->fail_next_sync(".log", ForgetfulDisk::SyncFault::no_space, choice == 2 ? 1 : 0);
  }

  // From power on to power off, which may be while it opens.
  void live() {
    disk_->cut_after(1 + world_->up_to(world_->up_to(3) == 0 ? 40 : 400), world_->random()());
    Result<std::unique_ptr<Store>> store = open_store(options_);
    ASSERT_TRUE(store) << "refused: " << store.error().message;
    const Result<broker::Recovered> recovered = (*store)->recover();
    ASSERT_TRUE(recovered) << "refused: " << recovered.error().message;
    ASSERT_EQ(world_->compare(**store, *recovered), "");
    if (disk_->is_off()) return;
    ASSERT_GT(recovered->start_number, start_number_);
    start_number_ = recovered->start_number;
    const std::uint64_t commits = world_->up_to(60);
    for (std::uint64_t i = 0; i < commits && !disk_->is_off(); ++i) {
      broker::CommitBatch batch = world_->propose();
      if (fills_up_) fill_up();
      Status stored = (*store)->commit(batch);
      if (!stored && fills_up_) {
        // For want of space: definitely not stored.
        ASSERT_EQ(stored.error().code, ErrorCode::resource_exhausted) << stored.error().message;
        if (world_->up_to(2) == 0) continue;
        disk_->set_full(false);
        static_cast<void>(
            eventually([&] { return (stored = (*store)->commit(batch)).has_value(); }));
      }
      ASSERT_TRUE(stored) << stored.error().message;
      if (disk_->is_off()) {
        world_->doubt();
      } else {
        world_->accept(options_.sync == SyncPolicy::commit);
      }
    }
    disk_->set_full(false);
    disk_->fail_next_sync(".log", ForgetfulDisk::SyncFault::no_space, 0);
    if (world_->up_to(3) == 0) store->reset();  // An orderly end, or one that is cut short.
    disk_->cut_now(world_->random()());
  }

  std::unique_ptr<ForgetfulDisk> disk_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<StoredWorld> world_;
  StoreOptions options_;
  bool fills_up_ = false;
  std::uint64_t start_number_ = 0;
};

TEST_P(PowerLoss, NothingAcknowledgedIsLostCommitsAreWholeAndItAlwaysOpensAgain) {
  constexpr std::uint64_t kCutsOfADirectory = 13;
  for (std::uint64_t cut = 0; cut < cuts_of_a_life(); ++cut) {
    const std::uint64_t seed = GetParam() + kLives * (cut / kCutsOfADirectory);
    if (cut % kCutsOfADirectory == 0) {
      begin(seed);
      start_number_ = 0;
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ", cut " + std::to_string(cut));
    ASSERT_NO_FATAL_FAILURE(live());
    disk_->power_on();
  }
}

INSTANTIATE_TEST_SUITE_P(Lives, PowerLoss, testing::Range(0u, kLives));

}  // namespace
}  // namespace ordo::store_rocksdb
