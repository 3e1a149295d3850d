#include "ordo/adapters/store_rocksdb/rocksdb_store.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "tests/support/forgetful_disk.h"
#include "tests/support/store_contract.h"

namespace ordo::store_rocksdb {
namespace {

using broker::Store;
using broker::StoreContract;
using broker::StoreRig;
using broker::StoreRigMaker;
using testing_support::ForgetfulDisk;

// On a disk in memory; a crash is a power cut.
class MemoryRig final : public StoreRig {
 public:
  explicit MemoryRig(StoreOptions options) : options_(std::move(options)) {
    options_.directory = "/data";
    options_.env = env_.get();
  }

  std::unique_ptr<Store> open() override {
    Result<std::unique_ptr<Store>> store = open_store(options_);
    EXPECT_TRUE(store) << store.error().message;
    return store ? std::move(*store) : nullptr;
  }
  void crash(std::unique_ptr<Store> store) override {
    disk_.cut_now(1);
    store.reset();
    disk_.power_on();
  }
  bool set_full(bool is_full) override {
    disk_.set_free_bytes(is_full ? 1'000 : std::uint64_t{1} << 40);
    return true;
  }
  bool fail_next_commit() override {
    disk_.fail_next_sync(".log");
    return true;
  }

 private:
  ForgetfulDisk disk_;
  std::unique_ptr<rocksdb::Env> env_ = disk_.make_env();
  StoreOptions options_;
};

INSTANTIATE_TEST_SUITE_P(
    RocksdbStore, StoreContract,
    testing::Values(StoreRigMaker{"EveryCommit",
                                  [] { return std::make_unique<MemoryRig>(StoreOptions{}); }},
                    StoreRigMaker{"SmallBuffers",
                                  [] {
                                    return std::make_unique<MemoryRig>(StoreOptions{
                                        .watermark_interval = {}, .write_buffer_bytes = 64u << 10});
                                  }}),
    broker::store_rig_name);

}  // namespace
}  // namespace ordo::store_rocksdb
