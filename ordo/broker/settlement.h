// Settling deliveries: acknowledgements and deadlines, spread over the partitions they belong to.
//
//   acknowledge(hosts, subscription, ids, [](std::vector<SettleOutcome>&& outcomes) { ... });
//
// Without a callback nothing is waited for: such an acknowledgement may be undone by a crash.
// Ids of other subscriptions are stale.
//
// Threads: any. The callback is called by a partition's thread, or at once if no id is valid.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "ordo/broker/consumer_desk.h"
#include "ordo/broker/partition_io.h"

namespace ordo::broker {

// One outcome for each id, in order.
using OnSettled = std::function<void(std::vector<SettleOutcome>&&)>;

void acknowledge(const Hosts& hosts, CursorNumber subscription, std::vector<AckId> ids,
                 OnSettled on_settled);
// A deadline of zero is a nack.
void modify_deadline(const Hosts& hosts, CursorNumber subscription, std::vector<AckId> ids,
                     std::chrono::nanoseconds deadline, OnSettled on_settled);
// A nack. The last `unseen` were handed to nobody: that is no failed attempt.
void give_back(const Hosts& hosts, CursorNumber subscription, std::vector<AckId> ids,
               std::size_t unseen, OnSettled on_settled);

}  // namespace ordo::broker
