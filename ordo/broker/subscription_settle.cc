// How the messages of a subscription are settled or come back, and where that leaves their lane.
#include <algorithm>
#include <utility>

#include "ordo/broker/planted_bugs.h"
#include "ordo/broker/subscription.h"
#include "ordo/core/check.h"

namespace ordo::broker {

void Subscription::acknowledge(const Acknowledge& acknowledge, Step& step) {
  SettleReply reply{acknowledge.request, {}};
  reply.outcomes.reserve(acknowledge.ids.size());
  for (const AckId& id : acknowledge.ids)
    reply.outcomes.push_back(acknowledge_one(id, step));
  if (acknowledge.confirm) {
    journal_.confirm(std::move(reply), step);
  } else {
    journal_.settled(step.now.steady);
  }
}

SettleOutcome Subscription::acknowledge_one(const AckId& id, Step& step) {
  const std::uint32_t index = lanes_.find_item(id.offset);
  if (index == kNoIndex) {
    if (!recent_.empty()) {
      const Recent& recent = recent_[id.offset.value() % kRecentCount];
      if (recent.offset == id.offset && recent.fence == id.fence) return SettleOutcome::done;
    }
    ++counts_.stale_acks;
    return SettleOutcome::stale;
  }
  Item& item = lanes_.item(index);
  if ((item.fence != id.fence && !ORDO_BUG(3)) || item.fence == Fence() ||
      (lanes_[item.lane].phase == LanePhase::dead_lettering && !ORDO_BUG(4))) {
    ++counts_.stale_acks;
    return SettleOutcome::stale;
  }
  if (recent_.empty()) recent_.resize(kRecentCount);
  recent_[id.offset.value() % kRecentCount] = {id.offset, id.fence};
  settle(index, Settled::acked, step);
  return SettleOutcome::done;
}

void Subscription::modify_deadline(const ModifyDeadline& modify, Step& step) {
  SettleReply reply{modify.request, {}};
  reply.outcomes.reserve(modify.ids.size());
  for (std::size_t i = 0; i < modify.ids.size(); ++i) {
    const bool is_unseen = modify.ids.size() - i <= modify.unseen;
    reply.outcomes.push_back(modify_one(modify.ids[i], modify.deadline, is_unseen, step));
  }
  if (modify.confirm) step.emit(std::move(reply));
}

SettleOutcome Subscription::modify_one(const AckId& id, std::chrono::nanoseconds deadline,
                                       bool is_unseen, Step& step) {
  const std::uint32_t index = lanes_.find_item(id.offset);
  if (index == kNoIndex) return SettleOutcome::stale;
  Item& item = lanes_.item(index);
  if (!item.is_leased || item.fence != id.fence) return SettleOutcome::stale;
  item.is_touched = true;
  if (deadline <= std::chrono::nanoseconds::zero()) {
    fail(index, is_unseen ? Failure::unseen : Failure::nack, step);
  } else {
    lease_heap_.remove(item.place, lease_moved());
    lease_heap_.push(step.now.steady + deadline, index, lease_moved());
  }
  return SettleOutcome::done;
}

void Subscription::end_lease(std::uint32_t index) {
  Item& item = lanes_.item(index);
  item.is_leased = false;
  lease_heap_.remove(item.place, lease_moved());
  --lanes_[item.lane].leased_count;
  leased_bytes_ -= item.size;
  --counts_.leased;
  ++counts_.waiting;
  Consumer& consumer = consumers_[item.consumer];
  if (consumer.released_messages == 0) released_.push_back(item.consumer);
  consumer.released_messages += ORDO_BUG(26) ? 0 : 1;
  consumer.released_bytes += item.size;
  if (!consumer.is_open && consumer.lease_count == 1) closed_with_leases_.erase(consumer.number);
  consumers_.end_lease(item.consumer);
}

void Subscription::settle(std::uint32_t index, Settled how, Step& step) {
  Item& item = lanes_.item(index);
  const std::uint32_t lane_index = item.lane;
  Lane& lane = lanes_[lane_index];
  if (item.is_leased) {
    end_lease(index);
  } else if (lane.phase == LanePhase::backoff) {
    end_backoff(lane_index);  // It was this one that had failed: those behind it are void.
  } else if (lane.phase == LanePhase::storing) {
    lane.phase = LanePhase::open;  // Likewise.
  }
  --counts_.waiting;
  if (item.has_row) journal_.erase_attempts(item.offset);
  if (!unreadable_keys_.empty()) erase_unreadable(item.offset);
  if (item.is_condemned) {
    answer_condemned(lane_index,
                     how == Settled::dead_lettered
                         ? std::nullopt
                         : std::optional(Error{ErrorCode::failed_precondition,
                                               "The head of the key was settled otherwise"}),
                     step);
  }
  const bool is_held_for_it = lane.hold == LaneHold::paused
                                  ? lane.key.empty()
                                  : lane.held_for == Offset(0) || lane.held_for == item.offset;
  if (lane.hold != LaneHold::none && lane.first_item == index && is_held_for_it)
    release_hold(lane_index);  // What it was held for is gone.
  journal_.acked().add(item.offset, item.offset.next());
  if (lane.first_item == index) {
    lane.head_since = step.now.steady;
    lane.last_failure = Failure::none;
  }
  lanes_.remove_item(index);
  switch (how) {
    case Settled::acked:
      ++counts_.acked;
      break;
    case Settled::dead_lettered:
      ++counts_.dead_lettered;
      break;
    case Settled::skipped:
      ++counts_.skipped;
      break;
    case Settled::expired:
      ++counts_.expired;
      break;
    case Settled::filtered:
      ++counts_.filtered;
      --counts_.routed;
      break;
    case Settled::absent:
      --counts_.routed;
      break;
  }
  if (how != Settled::acked) journal_.settled(step.now.steady);
  review(lane_index, step);
}

// The message comes back to its place, and with it all later ones of its lane that are out.
void Subscription::fail(std::uint32_t index, Failure reason, Step& step) {
  Item& item = lanes_.item(index);
  const std::uint32_t lane_index = item.lane;
  Lane& lane = lanes_[lane_index];
  end_lease(index);
  for (std::uint32_t later = item.next; later != kNoIndex; later = lanes_.item(later).next) {
    if (ORDO_BUG(6)) break;
    if (lanes_.item(later).is_leased) {
      end_lease(later);
      --lanes_.item(later).deliveries;  // It did not fail itself.
    }
    if (!ORDO_BUG(5)) lanes_.item(later).fence = Fence();
  }
  lane.last_failure = reason;
  // Attempts are one, nacks and expiries. What a lost stream had, or nobody was handed, is
  // delivered as if for the first time, under the number that was written down for it.
  const bool counts = reason == Failure::nack || reason == Failure::expired;
  if (!counts) --item.deliveries;
  if (counts && item.failures++ == 0) item.failing_since = step.now.steady;
  if (counts && setup_.config.failure_policy == FailurePolicy::skip_after &&
      step.now.steady - item.failing_since >= setup_.config.skip_after) {
    settle(index, Settled::skipped, step);
    return;
  }
  if (!is_exhausted(item)) {
    if (counts && counts_attempts()) {
      item.has_row = true;
      item.asked_attempts = item.deliveries + 1;
      journal_.store_attempts(item.offset, item.asked_attempts);
    }
    if (counts && setup_.config.retry_policy)
      begin_backoff(lane_index, step.now.steady + backoff_after(item.failures));
  }
  review(lane_index, step);
}

std::chrono::nanoseconds Subscription::backoff_after(std::uint32_t failures) const {
  const RetryPolicy& policy = *setup_.config.retry_policy;
  std::chrono::nanoseconds delay = policy.minimum_backoff;
  for (std::uint32_t i = 1; i < failures && i < 64 && delay < policy.maximum_backoff; ++i)
    delay *= ORDO_BUG(9) ? 1 : 2;
  return std::min(delay, policy.maximum_backoff);
}

void Subscription::begin_backoff(std::uint32_t index, TimePoint due) {
  Lane& lane = lanes_[index];
  if (lane.phase == LanePhase::backoff) end_backoff(index);
  lane.phase = LanePhase::backoff;
  backoff_heap_.push(ORDO_BUG(10) ? TimePoint{} : due, index, backoff_moved());
}

void Subscription::end_backoff(std::uint32_t index) {
  Lane& lane = lanes_[index];
  backoff_heap_.remove(lane.place, backoff_moved());
  lane.phase = LanePhase::open;
}

void Subscription::unlist(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.list == nullptr) return;
  lane.list->remove(index);
}

void Subscription::list_ready(std::uint32_t index) {
  ready_.push_back(index);
}

LaneList& Subscription::waiting_for(std::uint32_t consumer) {
  while (waiting_.size() <= consumer)
    waiting_.emplace_back(lanes_);
  return waiting_[consumer];
}

void Subscription::list_waiting(std::uint32_t index) {
  waiting_for(lanes_[index].consumer).push_back(index);
  waited_for_.push_back(lanes_[index].consumer);
}

// Puts a lane where it belongs after something about it has changed.
void Subscription::review(std::uint32_t index, Step& step) {
  Lane& lane = lanes_[index];
  if (lane.first_item == kNoIndex && lane.tail.empty() && lane.phase == LanePhase::open &&
      lane.hold == LaneHold::none) {
    unlist(index);
    if (!loaded_.empty()) loaded_.erase(index);
    lanes_.erase(index);
    return;
  }
  if (is_deliverable(index, step)) {
    if (lane.list == &ready_) return;
    unlist(index);
    list_ready(index);
  } else {
    unlist(index);
  }
}

// What comes before the message that cannot be read does not wait for it.
bool Subscription::is_before_loss(const Lane& lane) const {
  if (lane.hold != LaneHold::data_loss) return false;
  if (const std::uint32_t item = lanes_.next_item(lane); item != kNoIndex)
    return lanes_.item(item).offset < lane.held_for;
  if (lane.tail.empty()) return false;
  if (common_.tails.front_is_spilled(lane.tail)) return true;  // It is looked at when it is read.
  return common_.tails.front(lane.tail) < lane.held_for;
}

// True: its next message may go as soon as a consumer takes it. A head that has failed too often is
// given up here, once nothing before it is out.
bool Subscription::is_deliverable(std::uint32_t index, Step& step) {
  const Lane& lane = lanes_[index];
  if (lane.phase != LanePhase::open) return false;
  const std::uint32_t item = lanes_.next_item(lane);
  if (lane.hold != LaneHold::none && !is_before_loss(lane)) {
    return lane.leased_count == 0 && item != kNoIndex && lanes_.item(item).is_condemned &&
           give_up_head(index, step);
  }
  if (item == kNoIndex && lane.tail.empty()) return false;
  if (lane.leased_count == 0) {
    if (item == kNoIndex || !is_exhausted(lanes_.item(item))) return true;
    return give_up_head(index, step);
  }
  // While something of it fails, a lane goes on one by one.
  const bool is_failing = lanes_.item(lane.first_item).failures > 0 ||
                          (item != kNoIndex && goes_alone(lanes_.item(item)));
  if (attempts_max() == 1) return false;
  return !is_failing && lane.leased_count < setup_.config.ordered_window + (ORDO_BUG(7) ? 1 : 0);
}

void Subscription::run_due(Step& step) {
  const TimePoint now = step.now.steady;
  while (!ORDO_BUG(28) && !lease_heap_.empty() && lease_heap_.front_time() <= now)
    fail(lease_heap_.front(), Failure::expired, step);
  while (!backoff_heap_.empty() && backoff_heap_.front_time() <= now) {
    const std::uint32_t lane = backoff_heap_.front();
    end_backoff(lane);
    review(lane, step);
  }
  while (!dead_consumers_.empty() && dead_consumers_.front().first <= now) {
    const ConsumerNumber consumer = dead_consumers_.front().second;
    dead_consumers_.pop_front();
    release_untouched(consumer, step);
  }
  // Whether it is still wanted is seen when the cursor moves.
  if (read_again_at_ && *read_again_at_ <= now) read_again_at_.reset();
}

std::optional<TimePoint> Subscription::next_due() const {
  std::optional<TimePoint> due = journal_.next_due();
  const auto earlier = [&](TimePoint time) {
    if (!due || time < *due) due = time;
  };
  if (seek_) due.reset();
  if (!lease_heap_.empty() && !ORDO_BUG(28)) earlier(lease_heap_.front_time());
  if (!backoff_heap_.empty()) earlier(backoff_heap_.front_time());
  if (!dead_consumers_.empty()) earlier(dead_consumers_.front().first);
  if (read_again_at_ && consumers_.open_count() > 0) earlier(*read_again_at_);
  if (credit_due_) earlier(*credit_due_);
  return due;
}

void Subscription::rows_committed(const std::optional<Error>& error, Step& step) {
  std::vector<CursorJournal::StoredAttempts> stored;
  journal_.committed(error, step, stored);
  for (const CursorJournal::StoredAttempts& attempts : stored) {
    const std::uint32_t index = lanes_.find_item(attempts.offset);
    if (index == kNoIndex) continue;
    Item& item = lanes_.item(index);
    item.stored_attempts = std::max(item.stored_attempts, attempts.attempts);
    Lane& lane = lanes_[item.lane];
    if (lane.phase != LanePhase::storing) continue;
    lane.phase = LanePhase::open;
    review(item.lane, step);
  }
}

}  // namespace ordo::broker
