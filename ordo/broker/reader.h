// Reader: threads that read from the store for the partitions, which never wait for a disk.
//
//   Reader reader(store, threads);
//   reader.push({host, Read{ticket, from, 1'000, 1 << 20}});    // -> ReadDone to that partition
//
// Threads: owns `thread_count`. push(): any thread, never waits.
// Bounds:  what partitions may have under way: a few reads for each subscription.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <variant>

#include "ordo/broker/partition_io.h"
#include "ordo/broker/store.h"
#include "ordo/runtime/channel.h"
#include "ordo/runtime/threads.h"

namespace ordo::broker {

class PartitionHost;

struct ReadJob {
  std::shared_ptr<PartitionHost> host;
  std::variant<Read, FindTime, ReadSpill> effect;
};

class Reader {
 public:
  // `on_damage` is told, by a thread of the reader, of data that cannot be read any more; not twice
  // in a row of the same.
  Reader(Store& store, std::size_t thread_count, std::function<void(const Error&)> on_damage);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { close(); }

  // Dropped after close().
  void push(ReadJob job);
  // Ends the threads; what waits is not read. Idempotent.
  void close();

  std::uint64_t read_count() const { return reads_.load(std::memory_order_relaxed); }

 private:
  void run();
  void perform(ReadJob& job);
  void report(const Error& error);

  Store& store_;
  Channel<ReadJob> jobs_;
  std::atomic<std::uint64_t> reads_{0};
  std::atomic<bool> closing_{false};
  const std::function<void(const Error&)> on_damage_;
  std::mutex mutex_;  // Guards reported_.
  std::string reported_;
  WorkerSet workers_;
};

}  // namespace ordo::broker
