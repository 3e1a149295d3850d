// BrokerOptions: the bounds of a broker, and what runs it.
//
//   BrokerOptions options{.threads = 4, .memory_max = std::size_t{4} << 30};
//
// Threads: plain values.
// Bounds:  the allowed values are in docs/limits.md; others are an invalid_argument of open().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "ordo/broker/partition.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo {

struct BrokerOptions {
  std::size_t threads = 2;         // That run partitions; 1 to 64.
  std::size_t reader_threads = 1;  // That read old messages for them; 1 to 16.
  // A caller may run an idle partition itself, which saves waking a thread. Callbacks are then
  // called inside calls of the broker too.
  bool callers_run = true;

  // What messages and positions may take in memory, over all: an eighth for publishes under way,
  // half of it in equal shares for partitions_max partitions, the rest for what is read ahead and
  // with consumers.
  std::size_t memory_max = std::size_t{2} << 30;  // At least 16 MiB.
  std::size_t partitions_max = 256;               // Over all topics; 1 to 4,096.
  std::size_t consumers_max = 10'000;             // Streams and pulls at a time.
  std::size_t live_bytes_max = 16u << 20;         // Of a topic, waiting for live subscriptions.

  std::chrono::nanoseconds ack_deadline_min = std::chrono::seconds(1);
  // Messages of a key in flight, of a new subscription whose labels do not say; 1 to 1,000.
  std::uint32_t ordered_window = 1;

  // Told, once each, of damage (data_loss) and of a store that takes nothing any more. Called by a
  // thread of the broker; must be short.
  std::function<void(const Error&)> on_error{};
  Clock* clock = nullptr;  // system_clock() if null.
};

// invalid_argument naming the field, or nothing.
Status check_options(const BrokerOptions& options);

// The share of one partition.
broker::PartitionOptions partition_options(const BrokerOptions& options);
// The bytes of publishes that may be under way.
std::size_t publish_bytes_max(const BrokerOptions& options);

}  // namespace ordo
