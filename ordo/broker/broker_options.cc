#include "ordo/broker/broker_options.h"

#include <algorithm>
#include <string>

namespace ordo {
namespace {

Status check_range(std::size_t value, const std::string& field, std::size_t least,
                   std::size_t most) {
  if (value >= least && value <= most) return {};
  return Error{ErrorCode::invalid_argument, field + " is " + std::to_string(value) +
                                                "; it must be between " + std::to_string(least) +
                                                " and " + std::to_string(most) + "."};
}

}  // namespace

Status check_options(const BrokerOptions& options) {
  constexpr std::size_t kTerabyte = std::size_t{1} << 40;
  if (Status status = check_range(options.threads, "threads", 1, 64); !status) return status;
  if (Status status = check_range(options.reader_threads, "reader_threads", 1, 16); !status)
    return status;
  if (Status status = check_range(options.memory_max, "memory_max", 16u << 20, kTerabyte); !status)
    return status;
  if (Status status = check_range(options.partitions_max, "partitions_max", 1, 4096); !status)
    return status;
  if (Status status = check_range(options.consumers_max, "consumers_max", 1, 1'000'000); !status)
    return status;
  if (Status status = check_range(options.live_bytes_max, "live_bytes_max", 1, kTerabyte); !status)
    return status;
  if (Status status = check_range(options.ordered_window, "ordered_window", 1, 1'000); !status)
    return status;
  if (options.ack_deadline_min < std::chrono::seconds(1) ||
      options.ack_deadline_min > std::chrono::seconds(600))
    return Error{ErrorCode::invalid_argument,
                 "ack_deadline_min must be between 1 and 600 seconds."};
  return {};
}

broker::PartitionOptions partition_options(const BrokerOptions& options) {
  constexpr std::size_t kLeast = 64u << 10;
  const std::size_t share = options.memory_max / 2 / options.partitions_max;
  broker::PartitionOptions partition;
  // Broker has admitted it; a single large request always fits.
  partition.pending_publish_bytes_max = std::max(publish_bytes_max(options), std::size_t{16} << 20);
  partition.cache_bytes_max = std::max(share / 2, kLeast);
  partition.tail_bytes_max = std::max(share / 4, kLeast);
  partition.ready_bytes_max = std::max(share / 4, kLeast);
  partition.lease_bytes_max = std::max(options.memory_max / 32, kLeast);
  return partition;
}

std::size_t publish_bytes_max(const BrokerOptions& options) {
  return options.memory_max / 8;
}

}  // namespace ordo
