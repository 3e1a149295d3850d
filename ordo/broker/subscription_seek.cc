// How a subscription is put elsewhere, and how messages get too old for it.
#include <algorithm>
#include <utility>

#include "ordo/broker/subscription.h"
#include "ordo/core/check.h"

namespace ordo::broker {

void Subscription::forget_lane(std::uint32_t index, Step& step) {
  Lane& lane = lanes_[index];
  unlist(index);
  if (lane.phase == LanePhase::backoff) end_backoff(index);
  while (lane.first_item != kNoIndex) {
    const std::uint32_t item = lane.first_item;
    answer_condemned(
        index,
        Error{ErrorCode::unavailable, "The head of the key was put back meanwhile; try again"},
        step);
    if (lanes_.item(item).is_leased) end_lease(item);
    if (lanes_.item(item).deliveries > 0)
      earlier_attempts_[lanes_.item(item).offset.value()] = lanes_.item(item).deliveries;
    lanes_.remove_item(item);
  }
  drop_tail(lane, step);
  lanes_.erase(index);
}

void Subscription::drop_tail(Lane& lane, Step& step) {
  if (lane.tail.spilled_chunks > 0) {
    step.emit(EraseSpill{
        SpillKey{setup_.subscription, common_.address, lane.serial, lane.tail.spilled_first},
        lane.tail.spilled_chunks});
  }
  common_.tails.clear(lane.tail);
}

void Subscription::move_cursor(Offset offset) {
  cursor_ = offset;
  read_ahead_.clear();
  is_reading_ = false;
  read_again_at_.reset();
  ++read_serial_;
}

// As after a restart: nothing is out, nothing is known beyond what is settled.
void Subscription::forget_lanes(Step& step) {
  for (std::uint32_t lane = 0; lane < lanes_.lane_index_end(); ++lane) {
    if (lanes_[lane].is_taken) forget_lane(lane, step);
  }
  ORDO_CHECK(counts_.leased == 0);
  counts_.routed -= counts_.waiting;
  counts_.waiting = 0;
  parked_count_ = 0;
  loaded_.clear();
  recent_.clear();
  routed_below_ = Offset(0);
  move_cursor(cursor_);
}

std::vector<HeldLaneRow> Subscription::held_lanes() const {
  std::vector<HeldLaneRow> holds;
  for (std::uint32_t index = 0; index < lanes_.lane_index_end(); ++index) {
    const Lane& lane = lanes_[index];
    if (lane.is_taken && lane.hold != LaneHold::none && lane.hold != LaneHold::data_loss)
      holds.push_back(hold_row(lane));
  }
  for (const auto& [offset, known] : unreadable_keys_)
    holds.push_back({known.key, Offset(offset), LaneHold::data_loss});
  return holds;
}

// A spilled chunk was not kept: what waits behind the heads is known no more, and found out again.
// What is out stays out.
void Subscription::start_over(Step& step) {
  routed_below_ = std::max(routed_below_, cursor_);
  move_cursor(journal_.acked().low_water());
  for (std::uint32_t index = 0; index < lanes_.lane_index_end(); ++index) {
    Lane& lane = lanes_[index];
    if (!lane.is_taken) continue;
    counts_.routed -= lane.tail.count;
    counts_.waiting -= lane.tail.count;
    drop_tail(lane, step);
    lanes_.renew_serial(index);  // What is being read for it is not wanted any more.
    lane.is_chunk_loading = false;
    if (lane.phase == LanePhase::loading) lane.phase = LanePhase::open;
    review(index, step);
  }
}

bool Subscription::begin_seek(RequestNumber request, AckedIntervals target, Step& step) {
  if (!can_seek()) return false;
  target.add(Offset(0), common_.first);
  std::vector<HeldLaneRow> holds = held_lanes();
  // A pause belongs to the key, and what cannot be read is not read elsewhere.
  std::vector<HeldLaneRow> kept;
  for (const HeldLaneRow& held : holds) {
    if (!held.key.empty() && (held.hold == LaneHold::paused ||
                              (held.hold == LaneHold::data_loss && !target.contains(held.offset))))
      kept.push_back(held);
  }
  forget_lanes(step);
  is_seek_expected_ = false;
  const TicketNumber ticket =
      common_.tickets.issue({.kind = TicketUse::Kind::seek, .cursor = setup_.subscription});
  step.emit(Commit{ticket, journal_.replacement(target, kept)});
  seek_ = Seek{request, std::move(target), journal_.abandon(), std::move(kept), std::move(holds)};
  return true;
}

void Subscription::seek_committed(const std::optional<Error>& error, Step& step) {
  ORDO_CHECK(seek_.has_value());
  Seek seek = std::move(*seek_);
  seek_.reset();
  if (error) {
    journal_.acked().touch_all();
    restore_holds(seek.holds, step.now);
    for (Effect& reply : seek.replies)
      journal_.confirm(std::move(reply), step);
  } else {
    journal_.replace(std::move(seek.target));
    earlier_attempts_.clear();
    earlier_delivered_below_ = Offset(0);
    earlier_holds_.clear();
    for (auto& [offset, known] : unreadable_keys_)
      known.has_row = false;
    restore_holds(seek.kept, step.now);
    for (Effect& reply : seek.replies)
      step.emit(std::move(reply));
    for (Effect& reply : journal_.take_replies())
      step.emit(std::move(reply));
  }
  cursor_ = journal_.acked().low_water();
  step.emit(Sought{seek.request, error});
}

void Subscription::expire_below(Offset offset, Step& step) {
  if (seek_) return;
  // What is on its way to a dead-letter topic is there until that is answered, and so is what waits
  // behind it.
  for (std::uint32_t index = 0; index < lanes_.lane_index_end(); ++index) {
    const Lane& lane = lanes_[index];
    if (lane.is_taken && lane.phase == LanePhase::dead_lettering)
      offset = std::min(offset, lanes_.item(lane.first_item).offset);
  }
  if (offset <= journal_.acked().low_water()) return;
  for (std::uint32_t index = 0; index < lanes_.lane_index_end(); ++index) {
    Lane& lane = lanes_[index];
    if (!lane.is_taken || lane.phase == LanePhase::dead_lettering) continue;
    const std::uint64_t serial = lane.serial;
    if (lane.held_for > Offset(0) && lane.held_for < offset && lane.first_item == kNoIndex)
      release_hold(index);  // Nobody has looked at what it was held for since the start.
    while (!lane.tail.empty() && !common_.tails.front_is_spilled(lane.tail) &&
           common_.tails.front(lane.tail) < offset) {
      common_.tails.pop(lane.tail);
      --counts_.waiting;
      ++counts_.expired;
    }
    // The lane may go with its last message. None is given up any more that goes next.
    is_expiring_ = true;
    while (lane.is_taken && lane.serial == serial && lane.first_item != kNoIndex &&
           lanes_.item(lane.first_item).offset < offset) {
      settle(lane.first_item, Settled::expired, step);
    }
    is_expiring_ = false;
    if (lane.is_taken && lane.serial == serial) review(index, step);
  }
  // What was written down of those that nobody looked at since the start goes too.
  for (auto at = earlier_attempts_.begin();
       at != earlier_attempts_.end() && at->first < offset.value();
       at = earlier_attempts_.erase(at))
    journal_.erase_attempts(Offset(at->first));
  for (auto at = earlier_holds_.begin(); at != earlier_holds_.end() && at->first < offset.value();
       at = earlier_holds_.erase(at))
    journal_.erase_hold({{}, Offset(at->first), at->second});
  while (!unreadable_keys_.empty() && unreadable_keys_.begin()->first < offset.value()) {
    erase_unreadable(Offset(unreadable_keys_.begin()->first));
    unreadable_keys_.erase(unreadable_keys_.begin());
  }
  journal_.acked().add(Offset(0), offset);
  journal_.settled(step.now.steady);
  cursor_ = std::max(cursor_, offset);
}

}  // namespace ordo::broker
