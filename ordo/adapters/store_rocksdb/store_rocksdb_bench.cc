// How much of what the disk can do is left to a commit? The same bytes appended to a plain file
// with fdatasync are the limit. Batches of 100 messages of 1 KiB and of 100 B; merged: as many
// requests of one message in one commit as wait at the same time. Each policy of syncing.
//
// The folder is $ORDO_BENCH_DIR, else the current one: never a disk in memory by accident.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "ordo/adapters/store_rocksdb/rocksdb_store.h"
#include "ordo/core/clock.h"

namespace ordo::store_rocksdb {
namespace {

class BenchFolder {
 public:
  BenchFolder() {
    const char* given = std::getenv("ORDO_BENCH_DIR");
    std::string name = std::string(given != nullptr ? given : ".") + "/ordo-bench-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  ~BenchFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The time of each commit, for the percentiles.
class Latencies {
 public:
  template <class Function>
  void time(Function&& call) {
    const TimePoint begin = system_clock().now();
    call();
    taken_.push_back(
        std::chrono::duration<double, std::micro>(system_clock().now() - begin).count());
  }
  void report(benchmark::State& state) {
    if (taken_.empty()) return;
    std::sort(taken_.begin(), taken_.end());
    state.counters["p50_us"] = taken_[taken_.size() / 2];
    state.counters["p99_us"] = taken_[taken_.size() * 99 / 100];
  }

 private:
  std::vector<double> taken_;
};

broker::CommitBatch publishes(std::uint64_t& offset, std::size_t requests, std::size_t messages,
                              std::size_t bytes) {
  broker::CommitBatch batch;
  for (std::size_t i = 0; i < requests; ++i) {
    const std::vector<broker::MessageBody> bodies(messages, {std::string(bytes, 'x'), 0, 0});
    batch.push_back(
        broker::Append{{broker::TopicNumber(1), 0},
                       broker::MessageBatch::make(bodies, broker::Offset(offset), WallTime{})});
    offset += messages;
  }
  return batch;
}

// Arguments: requests in a commit, messages of a request, bytes of a message, policy.
void commit(benchmark::State& state) {
  const BenchFolder folder;
  const auto requests = static_cast<std::size_t>(state.range(0));
  const auto messages = static_cast<std::size_t>(state.range(1));
  const auto bytes = static_cast<std::size_t>(state.range(2));
  auto store = open_store(
      {.directory = folder.file("data"), .sync = static_cast<SyncPolicy>(state.range(3))});
  if (!store || !(*store)->recover()) return state.SkipWithError("the store does not open");
  std::uint64_t offset = 1;
  Latencies latencies;
  for (auto _ : state) {
    state.PauseTiming();
    broker::CommitBatch batch = publishes(offset, requests, messages, bytes);
    state.ResumeTiming();
    latencies.time([&] {
      if (!(*store)->commit(batch)) state.SkipWithError("a commit failed");
    });
  }
  latencies.report(state);
  const auto stored = static_cast<std::int64_t>(requests * messages) * state.iterations();
  state.SetItemsProcessed(stored);
  state.SetBytesProcessed(stored * static_cast<std::int64_t>(bytes));
}

// The limit: the same bytes at the end of a file.
void append_and_sync(benchmark::State& state) {
  const BenchFolder folder;
  const auto count = static_cast<std::size_t>(state.range(0) * state.range(1));
  const std::string bytes(count * static_cast<std::size_t>(state.range(2)), 'x');
  const int file = ::open(folder.file("log").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  Latencies latencies;
  for (auto _ : state) {
    latencies.time([&] {
      if (::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
          ::fdatasync(file) != 0)
        state.SkipWithError("a write failed");
    });
  }
  ::close(file);
  latencies.report(state);
  state.SetItemsProcessed(static_cast<std::int64_t>(count) * state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes.size()) * state.iterations());
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->UseRealTime()->Args({1, 100, 1024, 0})->Args({1, 100, 100, 0});
  for (const std::int64_t outstanding : {1, 64, 256})
    bench->Args({outstanding, 1, 1024, 0});
}

void policies(benchmark::internal::Benchmark* bench) {
  sizes(bench);
  bench->Args({1, 100, 1024, 1})->Args({1, 100, 1024, 2});
}

BENCHMARK(append_and_sync)->Apply(sizes);
BENCHMARK(commit)->Apply(policies);

}  // namespace
}  // namespace ordo::store_rocksdb
