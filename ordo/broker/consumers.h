// Consumers: who takes the deliveries of a subscription in a partition, and how much each may hold.
//
//   std::uint32_t index = consumers.open(open);
//   consumers.grant(index, 100, 1 << 20, now);
//   if (consumers.any_available()) { index = consumers.next(); consumers.use(index, size, now); }
//   consumers.take_dry([&](Consumer& consumer) { ask for credit });
//
// A consumer with credit is available; they take turns. One without is dry until it has been asked
// whether it wants more (WantCredit), the one that was served longest ago first, and then silent
// until it is granted some.
//
// Threads: one owner.
// Bounds:  one record for each consumer that is open or holds leases.
// Cost:    O(1) each; one hash lookup by number. To become dry: O(dry ones served later).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ordo/broker/lane_table.h"
#include "ordo/broker/partition_io.h"
#include "ordo/lane/slab.h"

namespace ordo::broker {

// Credit of this size or more is never used up and never returned.
inline constexpr std::int64_t kUnlimitedCredit = std::int64_t{1} << 61;

struct Consumer {
  enum class Place : std::uint8_t { none, available, dry };

  ConsumerNumber number;
  std::optional<std::chrono::nanoseconds> ack_deadline;
  std::int64_t messages = 0;  // Credit.
  std::int64_t bytes = 0;
  std::uint32_t next = kNoIndex;
  std::uint32_t previous = kNoIndex;
  Place place = Place::none;
  bool is_open = false;
  bool returns_at_once = false;
  std::uint64_t served = 0;  // Rises with every delivery to anybody: when it had its last one.
  TimePoint credit_since;    // Of the last grant or delivery.
  std::uint64_t lease_count = 0;
  std::uint64_t released_messages = 0;  // Leases that ended in this step.
  std::uint64_t released_bytes = 0;
  std::size_t outbox_bytes = 0;
  std::vector<Delivery> outbox;  // Of this step.

  bool has_credit() const { return messages > 0 && bytes > 0; }
  bool is_unlimited() const { return messages >= kUnlimitedCredit && bytes >= kUnlimitedCredit; }
};

class Consumers {
 public:
  Consumers() = default;
  Consumers(const Consumers&) = delete;
  Consumers& operator=(const Consumers&) = delete;

  // REQUIRES: no consumer of this number is open.
  std::uint32_t open(const OpenConsumer& open);
  // kNoIndex: not open.
  std::uint32_t find(ConsumerNumber number) const;

  Consumer& operator[](std::uint32_t index) { return consumers_[index]; }
  const Consumer& operator[](std::uint32_t index) const { return consumers_[index]; }

  void grant(std::uint32_t index, std::uint64_t messages, std::uint64_t bytes, TimePoint now);
  // Of one message. When messages or bytes are used up the rest of the other is void.
  void use(std::uint32_t index, std::size_t bytes, TimePoint now);
  void take_credit(std::uint32_t index);  // All of it.

  // It takes nothing any more; its record goes with its last lease.
  void close(std::uint32_t index);
  void begin_lease(std::uint32_t index) { ++consumers_[index].lease_count; }
  void end_lease(std::uint32_t index);

  bool any_available() const { return available_.first != kNoIndex; }
  bool any_unlimited() const { return unlimited_count_ > 0; }               // And available.
  bool any_limited() const { return unlimited_count_ < available_count_; }  // The same.
  bool is_available(std::uint32_t index) const {
    return index != kNoIndex && consumers_[index].place == Consumer::Place::available;
  }
  // The one whose turn it is; it goes to the end of the row.
  // REQUIRES: any_available().
  std::uint32_t next();

  // Calls for each dry consumer; they are silent from then on.
  template <class Ask>
  void take_dry(Ask&& ask) {
    while (dry_.first != kNoIndex) {
      const std::uint32_t index = dry_.first;
      unlink(index);
      ask(consumers_[index]);
    }
  }
  // The same for one of them.
  template <class Ask>
  void take_dry(std::uint32_t index, Ask&& ask) {
    if (consumers_[index].place != Consumer::Place::dry) return;
    unlink(index);
    ask(consumers_[index]);
  }

  template <class Visit>
  void for_each_available(Visit&& visit) {
    for (std::uint32_t index = available_.first; index != kNoIndex;) {
      const std::uint32_t following = consumers_[index].next;
      visit(index);
      index = following;
    }
  }
  template <class Visit>
  void for_each_open(Visit&& visit) {
    for (const auto& [number, index] : by_number_)
      visit(index);
  }

  std::size_t open_count() const { return by_number_.size(); }

 private:
  struct Row {
    std::uint32_t first = kNoIndex;
    std::uint32_t last = kNoIndex;
  };

  Row& row_of(Consumer::Place place) {
    return place == Consumer::Place::available ? available_ : dry_;
  }
  void link(std::uint32_t index, Consumer::Place place);
  void unlink(std::uint32_t index);

  Slab<Consumer> consumers_;
  std::unordered_map<ConsumerNumber, std::uint32_t> by_number_;
  Row available_;
  Row dry_;
  std::size_t available_count_ = 0;
  std::size_t unlimited_count_ = 0;  // Of the available ones.
  std::uint64_t served_ = 0;
};

}  // namespace ordo::broker
