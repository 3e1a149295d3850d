// HandlerDesk: what a subscriber holds, from delivery to settlement, and whose turn it is.
//
//   HandlerDesk desk(lease);
//   desk.deliver(held);                          // of the broker
//   while (desk.has_ready()) start(desk.take());
//   if (desk.nack(held, ids)) send(ids);         // the handler's answer; n and those behind it
//   desk.nack_settled(*held, outcome, ids);      // the broker's answer to that
//
// Messages of a key are handed out one at a time. With a window above one others of it wait here,
// and more are on their way; they are void as soon as one before them comes back to the broker, by
// a nack or because its lease ran out, and must not be handled before that one. So:
//
//   - after a nack those behind it are given back, and what is delivered before the broker has
//     answered is not taken, unless it begins with the one that failed or an earlier one;
//   - a delivery makes void what waits here from its offset on: the broker has begun again there;
//   - a lease that the broker does not extend is lost, and what waits under it;
//   - an ack whose lease may have run out ends its turn only when the broker has said that it
//     counted; if it did not, those behind it are given back.
//
// Threads: none of its own, no locks; call it from the one thread that owns it.
// Bounds:  those of the deliveries; and one record for each nack that is not answered.
// Cost:    O(1) for each message; where the broker begins again, what waits under that key.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ordo/broker/received_message.h"
#include "ordo/core/clock.h"
#include "ordo/lane/keyed_queue.h"

namespace ordo::broker {

// A delivered message that is not settled yet.
struct Held {
  explicit Held(Delivery delivery) : message(std::move(delivery)) {}

  Offset offset() const { return message.ack_id().offset; }

  const ReceivedMessage message;
  TimePoint leased_at;   // Its lease began then, or was last extended.
  TimePoint give_up_at;  // Not extended after this.
  LaneHandle lane;       // Of its turn, if it has a key that orders.
  bool is_ordered = false;
  bool is_begun = false;  // It was handed out.
  bool is_lost = false;   // The broker did not extend its lease.
};

class HandlerDesk {
 public:
  using HeldMessage = std::shared_ptr<Held>;

  explicit HandlerDesk(std::chrono::nanoseconds lease)
      : lease_(lease),
        keyed_(std::numeric_limits<std::uint32_t>::max()) {}

  void deliver(HeldMessage held);

  bool has_ready() const { return ready_count() > 0; }
  std::size_t ready_count() const { return free_.size() + keyed_.ready_count(); }
  // The next one; keys and messages without one take turns.
  // REQUIRES: has_ready().
  HeldMessage take();

  enum class AckWay : std::uint8_t {
    refused,  // It was settled before.
    send,     // To be sent; its turn is over.
    ask,      // To be sent and confirmed: its turn ends with ack_settled().
  };
  AckWay ack(const HeldMessage& held, TimePoint now);
  // Adds to `nacks` what is to be given back.
  void ack_settled(const Held& held, SettleOutcome outcome, std::vector<AckId>& nacks);

  // Adds it to `nacks`, then those that are given back with it; to be confirmed, with the outcome
  // of the first to nack_settled(). False: it was settled before.
  bool nack(const HeldMessage& held, std::vector<AckId>& nacks);
  void nack_settled(const Held& held, SettleOutcome outcome, std::vector<AckId>& nacks);

  // Those whose lease should be extended now; outcomes come with extended().
  std::vector<HeldMessage> due_for_extension(TimePoint now) const;
  void extended(const std::vector<HeldMessage>& asked, const std::vector<SettleOutcome>& outcomes,
                TimePoint asked_at);

  // For the end: what has not begun, or everything, is added to `nacks`. Returns how many.
  std::size_t give_back_waiting(std::vector<AckId>& nacks);
  std::size_t give_back_all(std::vector<AckId>& nacks);

  std::size_t outstanding_count() const { return outstanding_.size(); }
  std::uint64_t skipped_count() const { return skipped_; }  // Let go without being handled.

 private:
  // A nack that the broker has not answered.
  struct Unanswered {
    Offset offset;
    Fence fence;
    std::vector<AckId> untaken;  // Delivered meanwhile.
  };

  bool may_be_lost(const Held& held, TimePoint now) const;
  bool refuse_behind_nack(const Held& held);
  void give_back_behind(const Held& held, std::vector<AckId>& nacks);
  bool has_come_again(const Held& held);
  template <class IsVoid>
  void drop_void(const std::string& key, const IsVoid& is_void);

  const std::chrono::nanoseconds lease_;
  KeyedQueue<std::string, HeldMessage> keyed_;
  std::deque<HeldMessage> free_;  // Those that keep no order.
  std::unordered_set<HeldMessage> outstanding_;
  std::unordered_map<std::string, Unanswered> unanswered_;  // By key.
  std::uint64_t skipped_ = 0;
  bool turn_of_free_ = false;
};

}  // namespace ordo::broker
