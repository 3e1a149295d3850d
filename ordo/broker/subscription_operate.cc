// What operators do to a key: pause, resume, skip its head, dead-letter its head.
#include <string>
#include <utility>

#include "ordo/broker/subscription.h"

namespace ordo::broker {
namespace {

Error refusal(std::string why) {
  return {ErrorCode::failed_precondition, std::move(why)};
}

}  // namespace

void Subscription::operate_key(const OperateKey& operate, Step& step) {
  const std::uint32_t lane = find_operated(operate);
  if (lane == kNoIndex) {
    step.emit(VerbReply{operate.request,
                        Error{ErrorCode::not_found, "Nothing waits under the key " + operate.key}});
    return;
  }
  std::optional<Error> error = operate_lane(lane, operate, step);
  if (error) {
    step.emit(VerbReply{operate.request, std::move(error)});
  } else if (operate.verb != OperateKey::Verb::dead_letter_head) {  // That has its own end.
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
    if (found == kNoIndex || head_offset(lane) < head_offset(lanes_[found])) found = index;
  }
  return found;
}

std::optional<Error> Subscription::operate_lane(std::uint32_t index, const OperateKey& operate,
                                                Step& step) {
  switch (operate.verb) {
    case OperateKey::Verb::pause:
      if (lanes_[index].hold == LaneHold::parked) return refusal("The key is parked already");
      if (lanes_[index].hold != LaneHold::paused) hold(index, LaneHold::paused);
      review(index, step);
      return std::nullopt;
    case OperateKey::Verb::resume:
      return resume(index, step);
    case OperateKey::Verb::skip_head:
      return skip_head(index, step);
    case OperateKey::Verb::dead_letter_head:
      return condemn_head(index, operate.request, step);
  }
  return std::nullopt;
}

std::optional<Error> Subscription::resume(std::uint32_t index, Step& step) {
  Lane& lane = lanes_[index];
  if (lane.hold == LaneHold::none) return refusal("The key is neither paused nor parked");
  if (lane.hold == LaneHold::dead_letter_gone && setup_.dead_letter_partitions == 0)
    return dead_letter_topic_gone();
  const bool has_head = lane.first_item != kNoIndex || !lane.tail.empty() || has_unread();
  if (lane.hold == LaneHold::parked && has_head) {
    if (std::optional<Error> error = prepare_head(index, step)) return error;
    Item& head = lanes_.item(lane.first_item);  // Its attempts start anew.
    if (head.has_row) journal_.erase_attempts(head.offset);
    head.deliveries = head.asked_attempts = head.stored_attempts = head.failures = 0;
    head.has_row = false;
  }
  release_hold(index);
  review(index, step);
  return std::nullopt;
}

// Messages that cannot be read and whose keys are not known go together, as they are listed.
std::optional<Error> Subscription::skip_head(std::uint32_t index, Step& step) {
  Lane& lane = lanes_[index];
  const std::uint64_t serial = lane.serial;
  const bool goes_whole = lane.key.empty() && lane.hold == LaneHold::data_loss;
  if (std::optional<Error> error = prepare_head(index, step)) return error;
  do {
    settle(lane.first_item, Settled::skipped, step);
  } while (goes_whole && lane.is_taken && lane.serial == serial && !prepare_head(index, step));
  return std::nullopt;
}

// It is answered when the dead letter is stored, or cannot be.
std::optional<Error> Subscription::condemn_head(std::uint32_t index, RequestNumber request,
                                                Step& step) {
  if (setup_.dead_letter_partitions == 0)
    return refusal("The subscription has no dead-letter topic");
  if (std::optional<Error> error = prepare_head(index, step)) return error;
  if (lanes_[index].phase == LanePhase::backoff) end_backoff(index);
  lanes_.item(lanes_[index].first_item).is_condemned = true;
  condemned_.emplace(index, request);
  review(index, step);
  return std::nullopt;
}

// Makes sure that the head of a lane is at hand and nobody's.
std::optional<Error> Subscription::prepare_head(std::uint32_t index, Step& step) {
  Lane& lane = lanes_[index];
  if (lane.leased_count > 0) return refusal("The head of the key is in flight");
  if (lane.phase == LanePhase::dead_lettering || condemned_.contains(index))
    return refusal("The head of the key is being dead-lettered");
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
