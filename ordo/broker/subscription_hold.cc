// What happens to the head of a lane that cannot make progress: dead letters, parking, pausing, and
// what operators do about it.
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

void Subscription::give_up_head(std::uint32_t index, Step& step) {
  const Item& head = lanes_.item(lanes_[index].first_item);
  if (head.is_condemned || setup_.config.dead_letter_policy) {
    send_dead_letter(index, step);
  } else {
    hold(index, LaneHold::parked);
  }
}

void Subscription::send_dead_letter(std::uint32_t index, Step& step) {
  Lane& lane = lanes_[index];
  const Item& head = lanes_.item(lane.first_item);
  if (setup_.dead_letter_partitions == 0) {
    hold(index, LaneHold::dead_letter_gone);
    return;
  }
  if (is_seek_expected_) {
    begin_backoff(index, step.now.steady + kCommitRetryTime);
    return;
  }
  const Message message = find_message(index, head.offset);
  if (!message) {
    if (!load_message(index, head.offset, step))
      begin_backoff(index, step.now.steady + kCommitRetryTime);
    return;
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
}

void Subscription::dead_letter_done(const TicketUse& use, const std::optional<Error>& error,
                                    Step& step) {
  Lane& lane = lanes_[use.lane];
  ORDO_CHECK(lane.is_taken && lane.serial == use.serial);
  ORDO_CHECK(lane.phase == LanePhase::dead_lettering);
  --dead_letters_under_way_;
  lane.phase = LanePhase::open;
  if (!error || ORDO_BUG(16)) {
    Item& head = lanes_.item(lane.first_item);
    head.has_row = false;
    journal_.acked().touch({head.offset.value()});
    settle(lane.first_item, Settled::dead_lettered, step);
    return;
  }
  if (error->code == ErrorCode::not_found) {
    hold(use.lane, LaneHold::dead_letter_gone);
  } else {
    begin_backoff(use.lane, step.now.steady + kRetryTime);
  }
  review(use.lane, step);
}

Offset Subscription::hold_position(const Lane& lane) const {
  return lane.key.empty() ? lanes_.item(lane.first_item).offset : Offset(0);
}

void Subscription::hold(std::uint32_t index, LaneHold reason) {
  Lane& lane = lanes_[index];
  lane.hold = reason;
  if (reason == LaneHold::parked) ++parked_count_;
  if (reason == LaneHold::parked || reason == LaneHold::paused)
    journal_.put_hold(lane.key, hold_position(lane), reason);
}

void Subscription::release_hold(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.hold == LaneHold::parked) --parked_count_;
  if (lane.hold == LaneHold::parked || lane.hold == LaneHold::paused)
    journal_.erase_hold(lane.key, hold_position(lane));
  lane.hold = LaneHold::none;
}

// Lanes that were held before a restart, though nothing of them is known yet.
void Subscription::restore_holds(const std::vector<HeldLaneRow>& holds, Now now) {
  for (const HeldLaneRow& held : holds) {
    if (held.hold != LaneHold::parked && held.hold != LaneHold::paused) continue;
    if (held.key.empty()) {
      earlier_holds_.emplace(held.offset.value(), held.hold);
      continue;
    }
    const std::uint32_t hash = LaneTable::hash_of_key(held.key);
    if (lanes_.find(hash, held.key) != kNoIndex) continue;
    lanes_[lanes_.open(hash, held.key, now.steady)].hold =
        ORDO_BUG(29) ? LaneHold::none : held.hold;
    if (held.hold == LaneHold::parked) ++parked_count_;
  }
}

void Subscription::operate_key(const OperateKey& operate, Step& step) {
  const std::uint32_t lane = find_operated(operate);
  if (lane == kNoIndex) {
    step.emit(VerbReply{operate.request,
                        Error{ErrorCode::not_found, "Nothing waits under the key " + operate.key}});
    return;
  }
  std::optional<Error> error = operate_lane(lane, operate.verb, step);
  if (error) {
    step.emit(VerbReply{operate.request, std::move(error)});
  } else {
    journal_.confirm(VerbReply{operate.request, std::nullopt}, step);
  }
}

// Without a key: the oldest message without one that is out of service.
std::uint32_t Subscription::find_operated(const OperateKey& operate) const {
  if (!operate.key.empty()) return lanes_.find(operate.key);
  std::uint32_t found = kNoIndex;
  for (std::uint32_t index = 0; index < lanes_.lane_index_end(); ++index) {
    const Lane& lane = lanes_[index];
    if (!lane.is_taken || !lane.key.empty() || lane.hold == LaneHold::none) continue;
    if (found == kNoIndex || hold_position(lane) < hold_position(lanes_[found])) found = index;
  }
  return found;
}

std::optional<Error> Subscription::operate_lane(std::uint32_t index, OperateKey::Verb verb,
                                                Step& step) {
  Lane& lane = lanes_[index];
  const auto refuse = [](const char* why) { return Error{ErrorCode::failed_precondition, why}; };
  switch (verb) {
    case OperateKey::Verb::pause:
      if (lane.hold == LaneHold::parked) return refuse("The key is parked already");
      if (lane.hold != LaneHold::paused) hold(index, LaneHold::paused);
      break;
    case OperateKey::Verb::resume: {
      if (lane.hold == LaneHold::none) return refuse("The key is neither paused nor parked");
      const bool has_head = lane.first_item != kNoIndex || !lane.tail.empty() || has_unread();
      if (lane.hold == LaneHold::parked && has_head) {
        if (std::optional<Error> error = prepare_head(index, step)) return error;
        Item& head = lanes_.item(lane.first_item);  // Its attempts start anew.
        if (head.has_row) journal_.erase_attempts(head.offset);
        head.deliveries = head.asked_attempts = head.stored_attempts = head.failures = 0;
        head.has_row = false;
      }
      release_hold(index);
      break;
    }
    case OperateKey::Verb::skip_head: {
      if (std::optional<Error> error = prepare_head(index, step)) return error;
      settle(lane.first_item, Settled::skipped, step);
      return std::nullopt;
    }
    case OperateKey::Verb::dead_letter_head: {
      if (setup_.dead_letter_partitions == 0)
        return refuse("The subscription has no dead-letter topic");
      if (std::optional<Error> error = prepare_head(index, step)) return error;
      if (lane.hold != LaneHold::none) release_hold(index);
      if (lane.phase == LanePhase::backoff) end_backoff(index);
      lanes_.item(lane.first_item).is_condemned = true;
      break;
    }
  }
  review(index, step);
  return std::nullopt;
}

// Makes sure that the head of a lane is at hand and nobody's.
std::optional<Error> Subscription::prepare_head(std::uint32_t index, Step& step) {
  Lane& lane = lanes_[index];
  if (lane.leased_count > 0)
    return Error{ErrorCode::failed_precondition, "The head of the key is in flight"};
  if (lane.phase == LanePhase::dead_lettering)
    return Error{ErrorCode::failed_precondition, "The head of the key is being dead-lettered"};
  while (lane.first_item == kNoIndex) {
    if (lane.tail.empty())
      return Error{ErrorCode::not_found, "No message of the key is known to wait"};
    if (common_.tails.front_is_spilled(lane.tail)) {
      if (lane.phase == LanePhase::open) load_chunk(index, step);
      return Error{ErrorCode::unavailable, "The head of the key is not in memory; try again"};
    }
    promote(index);
  }
  return std::nullopt;
}

}  // namespace ordo::broker
