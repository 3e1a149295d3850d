// HandlerDesk: what a subscriber holds, from delivery to settlement, and whose turn it is.
//
//   HandlerDesk desk(lease);
//   desk.deliver(held);                          // of the broker
//   while (desk.has_ready()) start(desk.take());
//   GivenBack back = desk.nack(held);            // the handler's answer; n and those behind it
//   back = desk.given_back(back, outcomes);      // what the broker said of that; what goes next
//
// Messages of a key are handed out one at a time. With a window above one others of it wait here,
// and more are on their way; they are void as soon as one before them comes back to the broker, by
// a nack or because its lease ran out, and must not be handled before that one. So:
//
//   - after a nack those behind it are given back;
//   - a delivery makes void what waits here from its offset on: the broker has begun again there;
//   - a lease that the broker does not extend is lost, and what waits behind it is given back;
//   - an ack whose lease may have run out ends its turn only when the broker has answered it, and
//     those behind it are given back, whether it counted or not: they may be void already;
//   - from then on until the broker has answered what was given back, nothing behind the first of
//     it is taken, unless that one, or an earlier one, has come again. If the first did not go back
//     by this (somebody else had it), what was not taken may be the next, and is given back too.
//
// So once n is not settled here, nothing of its key above n is handled here before n has come
// again, or the broker has settled it.
//
// Threads: none of its own, no locks; call it from the one thread that owns it.
// Bounds:  those of the deliveries; and one record for each key with something given back that is
//          not answered.
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

// What goes back to the broker, in one request.
struct GivenBack {
  std::string key;         // Of all of them, if the outcomes are to be told to given_back().
  std::vector<AckId> ids;  // Those of a key in their order.
  std::size_t unseen = 0;  // So many of the last were handed to nobody: that is no failed attempt.
};

class HandlerDesk {
 public:
  using HeldMessage = std::shared_ptr<Held>;

  explicit HandlerDesk(std::chrono::nanoseconds lease)
      : lease_(lease),
        keyed_(std::numeric_limits<std::uint32_t>::max()) {}

  void deliver(HeldMessage held);
  // Likewise of one that is not taken, and is given back by the caller.
  void turn_away(const Held& held);

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
  // The broker has answered an ack that was asked for.
  GivenBack ack_settled(const Held& held);

  // It, then those that are given back with it. Nothing: it was settled before.
  GivenBack nack(const HeldMessage& held);

  // The outcomes of what one of these gave back under a key; returns what is to go back next.
  GivenBack given_back(const GivenBack& sent, const std::vector<SettleOutcome>& outcomes);

  // Those whose lease should be extended now; outcomes come with extended().
  std::vector<HeldMessage> due_for_extension(TimePoint now) const;
  std::vector<GivenBack> extended(const std::vector<HeldMessage>& asked,
                                  const std::vector<SettleOutcome>& outcomes, TimePoint asked_at);

  // For the end, when nothing is delivered any more: what has not begun, or everything.
  GivenBack give_back_waiting();
  GivenBack give_back_all();

  std::size_t outstanding_count() const { return outstanding_.size(); }
  std::uint64_t skipped_count() const { return skipped_; }  // Let go without being handled.

 private:
  // Something was given back, and the broker has not answered.
  struct Unanswered {
    Offset offset;  // Of the first.
    Fence fence;
    std::vector<AckId> untaken;  // Delivered meanwhile.
  };

  bool may_be_lost(const Held& held, TimePoint now) const;
  bool refuse_behind_unanswered(const Held& held);
  void give_back_behind(const Held& held, GivenBack& back);
  GivenBack let_go_lost(const std::string& key);
  void expect_answer(const std::string& key, GivenBack& back);
  bool has_come_again(const Held& held);
  void drop_from(const Held& held);

  const std::chrono::nanoseconds lease_;
  KeyedQueue<std::string, HeldMessage> keyed_;
  std::deque<HeldMessage> free_;  // Those that keep no order.
  std::unordered_set<HeldMessage> outstanding_;
  std::unordered_map<std::string, Unanswered> unanswered_;  // By key.
  std::uint64_t skipped_ = 0;
  bool turn_of_free_ = false;
};

}  // namespace ordo::broker
