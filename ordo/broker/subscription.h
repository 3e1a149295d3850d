// Subscription: one subscription in one partition: what of the log it has seen, which messages
// wait, who holds which, and what is settled.
//
//   Subscription subscription(setup, common, state, now);
//   subscription.open_consumer(open);
//   subscription.grant(grant, step);
//   subscription.acknowledge(acknowledge, step);
//   subscription.pump(step);                       // at the end of every step: routes and delivers
//
// A message is routed when the cursor passes it: to its lane's tail if the lane is not empty, else
// it is the head of a new lane. The cursor moves while a consumer has credit, so a backlog nobody
// asks for stays in the store, and a blocked key never stops it. Leased messages are not held in
// memory: a redelivery looks into the cache, or reads.
//
// What is where:  subscription.cc         consumers, deliveries, credit
//                 subscription_route.cc   the cursor, reads, spilled tails
//                 subscription_settle.cc  acks, nacks, expiries, the place of a lane
//                 subscription_hold.cc    dead letters; lanes that are held; data loss
//                 subscription_operate.cc what operators do
//                 subscription_seek.cc    seek, retention
//                 subscription_report.cc  keys, stats
//                 subscription_peek.cc    what is there, for those who only look
//
// Threads: one owner.
// Bounds:  PartitionOptions: leases, lanes, bytes of tails. Reads under way: kLoadsMax.
// Cost:    O(1) for each message, O(log leases) for its deadline.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ordo/broker/consumers.h"
#include "ordo/broker/cursor_journal.h"
#include "ordo/broker/hot_keys.h"
#include "ordo/broker/lane_table.h"
#include "ordo/broker/partition_common.h"
#include "ordo/lane/deadline_heap.h"

namespace ordo::broker {

class Subscription {
 public:
  // `state`: what its rows say. `first`: the log begins there.
  Subscription(SubscriptionSetup setup, PartitionCommon& common, const CursorState& state, Now now);
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  const SubscriptionSetup& setup() const { return setup_; }
  const AckedIntervals& acked() const { return journal_.acked(); }
  RowOwner owner() const { return journal_.owner(); }

  void reconfigure(SubscriptionSetup setup, Step& step);
  // Closes its consumers and takes its spilled tails away. Nothing may be called after it.
  void detach(const Error& reason, Step& step);

  void open_consumer(const OpenConsumer& open);
  void grant(const GrantCredit& grant, Step& step);
  void set_deadline(const SetConsumerDeadline& set);
  void close_consumer(const CloseConsumer& close, Step& step);

  void acknowledge(const Acknowledge& acknowledge, Step& step);
  void modify_deadline(const ModifyDeadline& modify, Step& step);

  // Routes and delivers what can be, then credit and commits. At the end of every step.
  void pump(Step& step);
  void run_due(Step& step);
  std::optional<TimePoint> next_due() const;

  void rows_committed(const std::optional<Error>& error, Step& step);
  void cursor_read(std::uint64_t serial, Result<ReadBatches>&& result, Step& step);
  void lane_read(const TicketUse& use, Result<ReadBatches>&& result, Step& step);
  void chunk_read(const TicketUse& use, const Result<std::string>& result, Step& step);
  void dead_letter_done(const TicketUse& use, const std::optional<Error>& error, Step& step);

  // Deliveries stop until the seek is committed. False: it cannot begin yet.
  bool begin_seek(RequestNumber request, AckedIntervals target, Step& step);
  bool can_seek() const { return !seek_ && dead_letters_under_way_ == 0; }
  bool is_seeking() const { return seek_.has_value(); }
  // A seek waits until it can begin: no dead letter sets out until then.
  void expect_seek() { is_seek_expected_ = true; }
  void seek_committed(const std::optional<Error>& error, Step& step);

  // Messages below are too old.
  void expire_below(Offset offset, Step& step);

  void operate_key(const OperateKey& operate, Step& step);
  // All but the request's number.
  KeysReply list_keys(const ListKeys& list, TimePoint now) const;
  // From what is in memory, or from what was read. `missing`: where it had to stop because the next
  // message is in neither.
  PeekReply peek(const Peek& peek, const ReadBatches* read, std::optional<Offset>& missing) const;
  // As peek() shows one that cannot be read.
  PeekedMessage peek_unreadable(Offset offset) const;
  SubscriptionStats stats() const;
  // When the message at the low-water mark was published.
  void learn_oldest(Offset low_water, WallTime time) { oldest_ = {low_water, time}; }
  std::size_t memory_bytes() const;

 private:
  static constexpr std::size_t kLoadsMax = 256;
  static constexpr std::chrono::seconds kRetryTime{1};  // Of reads and dead letters that failed.
  static constexpr std::chrono::seconds kDeathTime{1};  // A dead stream's leases end so much later.
  static constexpr std::chrono::seconds kCreditTime{1};  // Unused beside one that is unlimited.
  static constexpr std::size_t kRecentCount = 256;

  std::vector<ConsumerNumber> open_consumers();

  // A read for heads of lanes: a lane whose head lies in one that is under way waits for it.
  struct LaneRead {
    struct Waiter {
      std::uint32_t lane;
      std::uint64_t serial;
      Offset offset;
    };
    Offset end;
    std::vector<Waiter> waiters;
  };

  enum class Settled : std::uint8_t { acked, dead_lettered, skipped, expired, filtered, absent };

  // subscription.cc
  void deliver_all(Step& step);
  bool deliver_ready(Step& step);
  bool may_deliver_now(std::uint32_t lane, std::uint32_t item, bool& stop);
  std::uint32_t choose_consumer(std::uint32_t lane);
  void deliver(std::uint32_t item, const Message& message, std::uint32_t consumer, Step& step);
  void keep_back(std::uint32_t lane, const Message& message, std::uint32_t consumer, Step& step);
  void send_outbox(Consumer& consumer, Step& step);
  void balance_credit(bool has_delivered, Step& step);
  void return_credit(Step& step);
  void wake_one();
  void drop_woken();
  void send_released(Step& step);
  bool has_lease_room() const {
    return lease_heap_.count() < common_.options.leases_max &&
           leased_bytes_ < common_.options.lease_bytes_max;
  }
  bool has_unread() const { return cursor_ < common_.end; }
  bool can_read_on() const {
    return has_unread() && !read_again_at_ && lanes_.lane_count() < common_.options.lanes_max;
  }
  void release_untouched(ConsumerNumber consumer, Step& step);
  void release_leases_of(std::uint32_t consumer, bool untouched_only, Step& step);

  // subscription_route.cc
  bool route_next(Step& step);
  void route(const Message& message, Step& step);
  void route_unreadable(Step& step);
  bool is_unwanted(const Message& message) const;
  Message next_unread();
  void ask_for_cursor(Step& step);
  std::uint32_t promote(std::uint32_t lane);
  void begin_item(Item& item);
  bool load_message(std::uint32_t lane, Offset offset, Step& step);
  void lane_loaded(const LaneRead::Waiter& waiter, Offset from, const Result<ReadBatches>& result,
                   Step& step);
  Message find_message(std::uint32_t lane, Offset offset);
  void load_chunk(std::uint32_t lane, Step& step);
  void spill_if_needed(Lane& lane, Step& step);

  // subscription_settle.cc
  SettleOutcome acknowledge_one(const AckId& id, Step& step);
  SettleOutcome modify_one(const AckId& id, std::chrono::nanoseconds deadline, bool is_unseen,
                           Step& step);
  void settle(std::uint32_t item, Settled how, Step& step);
  void fail(std::uint32_t item, Failure reason, Step& step);
  void end_lease(std::uint32_t item);
  void review(std::uint32_t lane, Step& step);
  bool is_deliverable(std::uint32_t lane, Step& step);
  void unlist(std::uint32_t lane);
  void list_ready(std::uint32_t lane);
  void list_waiting(std::uint32_t lane);
  LaneList& waiting_for(std::uint32_t consumer);
  void begin_backoff(std::uint32_t lane, TimePoint due);
  void end_backoff(std::uint32_t lane);
  std::chrono::nanoseconds backoff_after(std::uint32_t failures) const;
  auto lease_moved() {
    return [this](std::uint32_t item, std::uint32_t place) { lanes_.item(item).place = place; };
  }
  auto backoff_moved() {
    return [this](std::uint32_t lane, std::uint32_t place) { lanes_[lane].place = place; };
  }

  // subscription_hold.cc, subscription_operate.cc
  bool counts_attempts() const;
  std::uint32_t attempts_max() const;  // 0: no end.
  bool is_exhausted(const Item& item) const {
    return item.is_condemned || (attempts_max() > 0 && item.deliveries >= attempts_max());
  }
  bool is_before_loss(const Lane& lane) const;
  // It is not delivered behind others that are out: if one of those fails it comes back too, and
  // where deliveries are counted that may happen once to a message, or it would be given up for
  // the failures of others.
  bool goes_alone(const Item& item) const {
    return item.failures > 0 || is_exhausted(item) || (counts_attempts() && item.deliveries > 0);
  }
  // True: the head was not wanted and is gone, and the next is ready.
  bool give_up_head(std::uint32_t lane, Step& step);
  bool send_dead_letter(std::uint32_t lane, Step& step);
  void hold_unreadable(std::uint32_t lane, Offset offset, Step& step);
  void stop_at_loss(std::uint32_t lane, Offset offset);
  void note_unreadable(Offset offset, const std::string& key);
  void erase_unreadable(Offset offset);
  void found_readable(Offset offset, Step& step);
  void forget_unreadable(Offset begin, Offset end, Step& step);
  void restore_unreadable(const HeldLaneRow& held, Now now);
  void hold(std::uint32_t lane, LaneHold reason);
  void release_hold(std::uint32_t lane);
  HeldLaneRow hold_row(const Lane& lane) const;
  Offset head_offset(const Lane& lane) const;
  void spare_head(std::uint32_t lane, Error why, Step& step);
  void answer_condemned(std::uint32_t lane, std::optional<Error> error, Step& step);
  Error dead_letter_topic_gone() const;
  std::optional<Error> resume(std::uint32_t lane, Step& step);
  std::optional<Error> skip_head(std::uint32_t lane, Step& step);
  std::optional<Error> condemn_head(std::uint32_t lane, RequestNumber request, Step& step);
  std::uint32_t find_operated(const OperateKey& operate) const;
  std::optional<Error> operate_lane(std::uint32_t lane, const OperateKey& operate, Step& step);
  std::optional<Error> prepare_head(std::uint32_t lane, Step& step);
  void restore_holds(const std::vector<HeldLaneRow>& holds, Now now);

  // subscription_report.cc, subscription_peek.cc
  KeyFacts facts_of(const Lane& lane, TimePoint now) const;
  bool is_stuck(const Lane& lane, TimePoint now) const;
  std::vector<KeyFacts> hottest_keys(const ListKeys& list, TimePoint now) const;
  PeekedMessage peeked(const Message& message) const;
  void set_head_state(PeekedMessage& peeked, const Lane& lane) const;
  Message message_at(Offset offset, const ReadBatches* read) const;
  bool is_gap_at(Offset offset, const ReadBatches* read) const;

  // subscription_seek.cc
  std::vector<HeldLaneRow> held_lanes() const;
  void start_over(Step& step);
  void forget_lanes(Step& step);
  void forget_lane(std::uint32_t lane, Step& step);
  void drop_tail(Lane& lane, Step& step);
  void move_cursor(Offset offset);

  SubscriptionSetup setup_;
  PartitionCommon& common_;
  CursorJournal journal_;
  LaneTable lanes_;
  LaneList ready_;  // Something can be delivered.
  // By consumer: the same, but only to this one, which holds the rest of the window.
  std::deque<LaneList> waiting_;
  Consumers consumers_;
  DeadlineHeap lease_heap_;
  DeadlineHeap backoff_heap_;

  Offset cursor_;
  Offset routed_below_;  // Heads below were found by the cursor before it went back.
  std::deque<std::shared_ptr<const MessageBatch>> read_ahead_;  // From the cursor on.
  bool is_reading_ = false;
  Offset read_from_;
  std::uint64_t read_serial_ = 0;
  std::optional<TimePoint> read_again_at_;
  std::map<Offset, LaneRead> lane_reads_;              // By where they begin.
  std::size_t lane_read_messages_ = 1;                 // Doubles while they lie close together.
  Offset lane_read_end_;                               // Of the last one.
  std::size_t loads_ = 0;                              // Reads of heads and of spilled chunks.
  std::unordered_map<std::uint32_t, Message> loaded_;  // Heads of lanes, read and not delivered.

  std::uint64_t fence_counter_ = 0;
  bool is_expiring_ = false;  // What retention gives up is leaving its lane.
  std::size_t leased_bytes_ = 0;
  std::vector<std::uint32_t> outboxes_;    // Consumers with deliveries in this step.
  std::vector<KeptBack> kept_back_;        // In this step.
  std::vector<std::uint32_t> released_;    // Consumers whose leases ended in this step.
  std::vector<std::uint32_t> waited_for_;  // Consumers a lane waits for, to be asked for credit.
  std::deque<std::uint32_t> woken_;        // Consumers with credit that lanes wait for.
  std::optional<TimePoint> credit_due_;    // Credit that is not used until then is returned.
  std::deque<std::pair<TimePoint, ConsumerNumber>> dead_consumers_;  // Released when due.
  std::unordered_map<ConsumerNumber, std::uint32_t> closed_with_leases_;

  // From before a restart or a seek that failed: how often messages may have been delivered.
  std::map<std::uint64_t, std::uint32_t> earlier_attempts_;
  Offset earlier_delivered_below_;
  std::map<std::uint64_t, LaneHold> earlier_holds_;  // Of messages without key.
  // Messages that could not be read, by offset. Those that are not settled are written down.
  struct Unreadable {
    std::string key;
    bool has_row = false;
  };
  std::map<std::uint64_t, Unreadable> unreadable_keys_;
  struct UnreadableRange {
    std::uint32_t lane = kNoIndex;
    std::uint64_t serial = 0;
    Offset end;
  };
  UnreadableRange unreadable_;   // The last one the cursor met.
  bool has_unexamined_ = false;  // Something was routed without having been looked at.
  // Who waits for the head of a lane to be dead-lettered.
  std::unordered_map<std::uint32_t, RequestNumber> condemned_;

  struct Recent {
    Offset offset;
    Fence fence;
  };
  std::vector<Recent> recent_;  // Settled not long ago, by their delivery.

  struct Seek {
    RequestNumber request;
    AckedIntervals target;
    std::vector<Effect> replies;
    std::vector<HeldLaneRow> kept;   // Held afterwards as before,
    std::vector<HeldLaneRow> holds;  // and if it fails.
  };
  std::optional<Seek> seek_;
  bool is_seek_expected_ = false;
  std::size_t dead_letters_under_way_ = 0;
  std::size_t parked_count_ = 0;

  struct Oldest {
    Offset low_water;
    WallTime time;
  };
  Oldest oldest_;

  SubscriptionStats counts_;  // Those that only rise, and what waits.
  HotKeys hot_keys_;
};

}  // namespace ordo::broker
