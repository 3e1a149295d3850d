// What happens to the head of a lane that cannot make progress: dead letters, and lanes that are
// held.
#include <algorithm>
#include <string>
#include <utility>

#include "ordo/broker/message_codec.h"
#include "ordo/broker/planted_bugs.h"
#include "ordo/broker/subscription.h"
#include "ordo/core/check.h"

namespace ordo::broker {

bool Subscription::counts_attempts() const {
  return setup_.config.failure_policy == FailurePolicy::park ||
         setup_.config.dead_letter_policy.has_value();
}

std::uint32_t Subscription::attempts_max() const {
  if (setup_.config.dead_letter_policy)
    return setup_.config.dead_letter_policy->max_delivery_attempts + (ORDO_BUG(14) ? 1 : 0);
  return setup_.config.failure_policy == FailurePolicy::park ? setup_.config.park_attempts : 0;
}

bool Subscription::give_up_head(std::uint32_t index, Step& step) {
  if (is_expiring_) return false;  // It may be the next that goes.
  const Item& head = lanes_.item(lanes_[index].first_item);
  if (head.is_condemned || setup_.config.dead_letter_policy) {
    return send_dead_letter(index, step);
  }
  hold(index, LaneHold::parked);
  return false;
}

bool Subscription::send_dead_letter(std::uint32_t index, Step& step) {
  Lane& lane = lanes_[index];
  const Item& head = lanes_.item(lane.first_item);
  if (setup_.dead_letter_partitions == 0) {
    if (head.is_condemned) {
      spare_head(index, dead_letter_topic_gone(), step);
    } else {
      hold(index, LaneHold::dead_letter_gone);
    }
    return false;
  }
  if (is_seek_expected_) {
    begin_backoff(index, step.now.steady + kCommitRetryTime);
    return false;
  }
  const Message message = find_message(index, head.offset);
  if (!message) {
    if (!load_message(index, head.offset, step))
      begin_backoff(index, step.now.steady + kCommitRetryTime);
    return false;
  }
  if (!message.is_intact()) {
    keep_back(index, message, kNoIndex, step);
    return false;
  }
  if (has_unexamined_ && is_unwanted(message)) {
    const std::uint64_t serial = lane.serial;
    settle(lane.first_item, Settled::filtered, step);
    return lane.is_taken && lane.serial == serial && lane.list == &ready_;
  }
  lane.phase = LanePhase::dead_lettering;
  ++dead_letters_under_way_;
  const std::string_view key = message.key();
  const std::uint32_t partition =
      key.empty() ? static_cast<std::uint32_t>(head.offset.value() % setup_.dead_letter_partitions)
                  : partition_of(key, setup_.dead_letter_partitions);
  // A row of its own, which is true whatever else is written before or after it.
  CommitBatch settlement;
  settlement.emplace_back(PutRow{row_key(owner(), RowKind::acked, head.offset.value()),
                                 encode_number(head.offset.next().value())});
  settlement.emplace_back(EraseRow{row_key(owner(), RowKind::attempts, head.offset.value())});
  const TicketNumber ticket = common_.tickets.issue(
      {TicketUse::Kind::dead_letter, setup_.subscription, index, lane.serial, head.offset});
  step.emit(SendDeadLetter{PartitionAddress{setup_.dead_letter_topic, partition}, ticket,
                           dead_letter_body(message.body(), {setup_.config.name, head.deliveries,
                                                             message.publish_time()}),
                           std::move(settlement)});
  return false;
}

void Subscription::dead_letter_done(const TicketUse& use, const std::optional<Error>& error,
                                    Step& step) {
  Lane& lane = lanes_[use.lane];
  ORDO_CHECK(lane.is_taken && lane.serial == use.serial);
  ORDO_CHECK(lane.phase == LanePhase::dead_lettering);
  --dead_letters_under_way_;
  lane.phase = LanePhase::open;
  Item& head = lanes_.item(lane.first_item);
  if (!error || ORDO_BUG(16)) {
    head.has_row = false;
    journal_.acked().touch({head.offset.value()});
    settle(lane.first_item, Settled::dead_lettered, step);
    return;
  }
  const bool is_gone = error->code == ErrorCode::not_found;
  if (head.is_condemned) {  // By an operator, who may ask again.
    spare_head(use.lane, is_gone ? dead_letter_topic_gone() : *error, step);
  } else if (!is_gone) {
    begin_backoff(use.lane, step.now.steady + kRetryTime);
  } else if (lane.hold == LaneHold::none) {
    hold(use.lane, LaneHold::dead_letter_gone);
  }
  review(use.lane, step);
}

Error Subscription::dead_letter_topic_gone() const {
  std::string text = "The dead-letter topic";
  if (setup_.config.dead_letter_policy) text += " " + setup_.config.dead_letter_policy->topic;
  return {ErrorCode::failed_precondition, text + " is gone"};
}

// It could not be dead-lettered as an operator wanted, and goes on as if nobody had asked.
void Subscription::spare_head(std::uint32_t index, Error why, Step& step) {
  answer_condemned(index, std::move(why), step);
  const Item& head = lanes_.item(lanes_[index].first_item);
  const bool had_failed = head.failures > 0 && setup_.config.retry_policy;
  begin_backoff(index, step.now.steady + (had_failed ? backoff_after(head.failures)
                                                     : std::chrono::nanoseconds::zero()));
}

// Whoever asked for the head to be dead-lettered is told what became of it.
void Subscription::answer_condemned(std::uint32_t index, std::optional<Error> error, Step& step) {
  const auto found = condemned_.find(index);
  if (found == condemned_.end()) return;
  lanes_.item(lanes_[index].first_item).is_condemned = false;
  step.emit(VerbReply{found->second, std::move(error)});
  condemned_.erase(found);
}

// ------------------------------------------------------------------------------------ holds

namespace {

bool is_written(const HeldLaneRow& held) {
  return held.hold == LaneHold::parked || held.hold == LaneHold::paused;
}

}  // namespace

// 0: nothing of it is known, or in memory.
Offset Subscription::head_offset(const Lane& lane) const {
  if (lane.first_item != kNoIndex) return lanes_.item(lane.first_item).offset;
  if (lane.tail.empty() || common_.tails.front_is_spilled(lane.tail)) return Offset(0);
  return common_.tails.front(lane.tail);
}

HeldLaneRow Subscription::hold_row(const Lane& lane) const {
  return {lane.key, lane.key.empty() ? head_offset(lane) : lane.held_for, lane.hold};
}

void Subscription::hold(std::uint32_t index, LaneHold reason) {
  Lane& lane = lanes_[index];
  lane.hold = reason;
  lane.held_for = reason == LaneHold::parked ? head_offset(lane) : Offset(0);
  if (reason == LaneHold::parked) ++parked_count_;
  if (is_written(hold_row(lane))) journal_.put_hold(hold_row(lane));
}

void Subscription::release_hold(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.hold == LaneHold::parked) --parked_count_;
  if (is_written(hold_row(lane))) journal_.erase_hold(hold_row(lane));
  lane.hold = LaneHold::none;
  lane.held_for = Offset(0);
}

// ------------------------------------------------------------------------------------ data loss

// `offset` of the lane is stored, but not as it was. Nothing of its key overtakes it.
void Subscription::hold_unreadable(std::uint32_t index, Offset offset, Step& step) {
  Lane& lane = lanes_[index];
  lane.last_failure = Failure::unreadable;
  answer_condemned(
      index,
      Error{ErrorCode::data_loss, "Offset " + std::to_string(offset.value()) + " cannot be read"},
      step);
  if (!lane.key.empty()) note_unreadable(offset, lane.key);
  stop_at_loss(index, offset);
}

// A lane that is paused or parked meets it when it is resumed.
void Subscription::stop_at_loss(std::uint32_t index, Offset offset) {
  Lane& lane = lanes_[index];
  const bool is_first = lane.hold == LaneHold::data_loss && offset < lane.held_for;
  if (lane.hold != LaneHold::none && !is_first) return;
  lane.hold = LaneHold::data_loss;
  lane.held_for = offset;
}

// Whose message it is is known after a restart too, whatever else happens to the key.
void Subscription::note_unreadable(Offset offset, const std::string& key) {
  Unreadable& known = unreadable_keys_[offset.value()];
  known.key = key;
  if (!std::exchange(known.has_row, true)) journal_.put_hold({key, offset, LaneHold::data_loss});
}

// It is settled, or can be read again.
void Subscription::erase_unreadable(Offset offset) {
  const auto known = unreadable_keys_.find(offset.value());
  if (known == unreadable_keys_.end() || !std::exchange(known->second.has_row, false)) return;
  journal_.erase_hold({known->second.key, offset, LaneHold::data_loss});
}

// The cursor met it, and it can be read again or is not there. Its key has waited for nothing.
void Subscription::found_readable(Offset offset, Step& step) {
  const auto known = unreadable_keys_.find(offset.value());
  if (known == unreadable_keys_.end()) return;
  erase_unreadable(offset);
  const std::uint32_t lane = lanes_.find(known->second.key);
  if (lane == kNoIndex || lanes_[lane].hold != LaneHold::data_loss ||
      lanes_[lane].held_for != offset)
    return;
  release_hold(lane);
  review(lane, step);
}

// Nothing is stored from `begin` to `end`: a repair has given up what could not be read there.
void Subscription::forget_unreadable(Offset begin, Offset end, Step& step) {
  auto known = unreadable_keys_.lower_bound(begin.value());
  while (known != unreadable_keys_.end() && known->first < end.value()) {
    found_readable(Offset(known->first), step);
    known = unreadable_keys_.erase(known);
  }
}

void Subscription::restore_unreadable(const HeldLaneRow& held, Now now) {
  if (held.key.empty()) return;
  // Before the row of the key is used for a pause.
  if (held.is_misplaced) journal_.erase_hold({held.key, Offset(0), LaneHold::paused});
  if (journal_.acked().contains(held.offset)) {
    journal_.erase_hold(held);
    return;
  }
  if (held.is_misplaced) journal_.put_hold(held);
  unreadable_keys_[held.offset.value()] = {held.key, true};
  const std::uint32_t hash = LaneTable::hash_of_key(held.key);
  std::uint32_t lane = lanes_.find(hash, held.key);
  if (lane == kNoIndex) lane = lanes_.open(hash, held.key, now.steady);
  lanes_[lane].last_failure = Failure::unreadable;
  stop_at_loss(lane, held.offset);
}

// Lanes that were held before a restart, though nothing of them is known yet.
void Subscription::restore_holds(const std::vector<HeldLaneRow>& holds, Now now) {
  for (const HeldLaneRow& held : holds) {
    if (held.hold == LaneHold::data_loss) restore_unreadable(held, now);
    if (!is_written(held)) continue;
    if (held.hold != LaneHold::paused && held.offset > Offset(0) &&
        journal_.acked().contains(held.offset)) {
      journal_.erase_hold(held);  // What it was held for is settled.
      continue;
    }
    if (held.key.empty()) {
      earlier_holds_.emplace(held.offset.value(), held.hold);
      continue;
    }
    const std::uint32_t hash = LaneTable::hash_of_key(held.key);
    std::uint32_t index = lanes_.find(hash, held.key);
    if (index == kNoIndex) index = lanes_.open(hash, held.key, now.steady);
    Lane& lane = lanes_[index];
    lane.hold = ORDO_BUG(29) ? LaneHold::none : held.hold;
    lane.held_for = held.offset;
    if (held.hold == LaneHold::parked) ++parked_count_;
  }
}

}  // namespace ordo::broker
