// Looking at a subscription without touching it: its keys, and the messages it has not settled.
//
//   list_keys(hosts, subscription, {.order = KeyOrder::deepest}, [](auto keys) { show(keys); });
//   peek(hosts, subscription, true, {.messages_max = 20}, [](Result<PeekPage> page) { ... });
//
// Each partition is asked piece by piece, the next when the one before was answered, so that it
// does its work in between however much there is to look at. What is shown was so when its piece
// was looked at; the pieces are not of the same moment.
//
// Threads: any. The callbacks are called once, by a thread of a partition or by this one; they must
//          be short.
// Bounds:  count_max keys; messages_max messages and bytes_max bytes, of which one message may
//          overshoot, and as much from each partition while it is put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ordo/broker/consumer_desk.h"
#include "ordo/broker/partition_io.h"
#include "ordo/core/result.h"

namespace ordo {

struct KeyListOptions {
  static constexpr std::size_t kCountMax = 1'000;

  std::size_t count_max = 100;  // 1 to kCountMax.
  broker::KeyOrder order = broker::KeyOrder::longest_blocked;
  bool stuck_only = false;  // Without those that are only busy.
};

struct PeekOptions {
  static constexpr std::size_t kMessagesMax = 1'000;
  static constexpr std::size_t kBytesMax = std::size_t{3} << 20;

  std::string key{};                             // Those of this key only; empty: all.
  std::size_t messages_max = 100;                // 1 to kMessagesMax.
  std::size_t bytes_max = std::size_t{1} << 20;  // 1 to kBytesMax.
  std::string page_token{};                      // Of the page before; empty: the oldest.
};

// In the order of their ids. Messages of one key are in order, over all pages.
struct PeekPage {
  std::vector<broker::PeekedMessage> messages;
  std::string next_page_token;  // Empty: there are no more. A page may be empty and have one.
};

// invalid_argument naming the field, or nothing.
Status check_options(const KeyListOptions& options);
Status check_options(const PeekOptions& options);

namespace broker {

using OnKeys = std::function<void(std::vector<KeyFacts>&&)>;
using OnPeeked = std::function<void(Result<PeekPage>&&)>;

// The first in the order asked for, of all partitions. REQUIRES: options were checked.
void list_keys(const Hosts& hosts, CursorNumber subscription, const KeyListOptions& options,
               OnKeys on_keys);

// An error: the token is none of ours, and the callback is not called. REQUIRES: options were
// checked.
Status peek(const Hosts& hosts, CursorNumber subscription, bool is_ordered,
            const PeekOptions& options, OnPeeked on_peeked);

}  // namespace broker
}  // namespace ordo
