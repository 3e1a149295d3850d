#include "ordo/broker/subscription.h"

#include <algorithm>
#include <utility>

#include "ordo/broker/planted_bugs.h"
#include "ordo/broker/push_endpoint.h"
#include "ordo/core/check.h"

namespace ordo::broker {

Subscription::Subscription(SubscriptionSetup setup, PartitionCommon& common,
                           const CursorState& state, Now now)
    : setup_(std::move(setup)),
      common_(common),
      journal_(RowOwner{setup_.subscription, common.address}, AckedIntervals(state, common.first),
               state.delivered_below),
      ready_(lanes_),
      cursor_(journal_.acked().low_water()),
      earlier_attempts_(state.attempts),
      earlier_delivered_below_(std::min(state.delivered_below, common.end)) {
  counts_.subscription = setup_.subscription;
  restore_holds(state.held, now);
}

void Subscription::reconfigure(SubscriptionSetup setup, Step& step) {
  if (setup.config.push.has_value() != setup_.config.push.has_value()) {
    const Error reason = *refuse_consumer(setup.config, setup_.config.push.has_value());
    for (const ConsumerNumber number : open_consumers()) {
      close_consumer({number}, step);
      step.emit(ConsumerClosed{number, reason});
    }
  }
  setup_ = std::move(setup);
  for (std::uint32_t lane = 0; lane < lanes_.lane_index_end(); ++lane) {
    if (!lanes_[lane].is_taken) continue;
    if (lanes_[lane].hold == LaneHold::dead_letter_gone) release_hold(lane);
    review(lane, step);
  }
}

void Subscription::detach(const Error& reason, Step& step) {
  forget_lanes(step);
  if (seek_) {
    for (Effect& reply : seek_->replies)
      step.emit(std::move(reply));
    step.emit(Sought{seek_->request, reason});
  }
  for (Effect& reply : journal_.give_up(reason))
    step.emit(std::move(reply));
  for (const ConsumerNumber number : open_consumers())
    step.emit(ConsumerClosed{number, reason});
}

// Sorted, so that every run is the same.
std::vector<ConsumerNumber> Subscription::open_consumers() {
  std::vector<ConsumerNumber> numbers;
  consumers_.for_each_open(
      [&](std::uint32_t index) { numbers.push_back(consumers_[index].number); });
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void Subscription::open_consumer(const OpenConsumer& open) {
  consumers_.open(open);
}

void Subscription::grant(const GrantCredit& grant, Step& step) {
  const std::uint32_t index = consumers_.find(grant.consumer);
  if (index == kNoIndex) return;
  consumers_.grant(index, grant.messages, grant.bytes, step.now.steady);
  if (waiting_for(index).empty()) return;
  if (std::find(woken_.begin(), woken_.end(), index) == woken_.end()) woken_.push_back(index);
}

void Subscription::set_deadline(const SetConsumerDeadline& set) {
  const std::uint32_t index = consumers_.find(set.consumer);
  if (index != kNoIndex) consumers_[index].ack_deadline = set.ack_deadline;
}

void Subscription::close_consumer(const CloseConsumer& close, Step& step) {
  const std::uint32_t index = consumers_.find(close.consumer);
  if (index == kNoIndex) return;
  const bool holds_leases = consumers_[index].lease_count > 0;
  if (holds_leases) closed_with_leases_[close.consumer] = index;
  consumers_.close(index);
  if (!holds_leases) return;
  if (close.how == CloseConsumer::How::release) release_leases_of(index, false, step);
  if (close.how == CloseConsumer::How::died && !setup_.config.enable_exactly_once_delivery)
    dead_consumers_.emplace_back(step.now.steady + kDeathTime, close.consumer);
}

void Subscription::release_untouched(ConsumerNumber consumer, Step& step) {
  const auto closed = closed_with_leases_.find(consumer);
  if (closed != closed_with_leases_.end()) release_leases_of(closed->second, true, step);
}

void Subscription::release_leases_of(std::uint32_t consumer, bool untouched_only, Step& step) {
  // In the order of their offsets, so that what is returned keeps its place in every run.
  std::vector<Offset> offsets;
  for (std::uint32_t lane = 0; lane < lanes_.lane_index_end(); ++lane) {
    if (!lanes_[lane].is_taken) continue;
    for (std::uint32_t at = lanes_[lane].first_item; at != kNoIndex; at = lanes_.item(at).next) {
      const Item& item = lanes_.item(at);
      if (item.is_leased && item.consumer == consumer && !(untouched_only && item.is_touched))
        offsets.push_back(item.offset);
    }
  }
  std::sort(offsets.begin(), offsets.end());
  for (const Offset offset : offsets) {
    const std::uint32_t item = lanes_.find_item(offset);
    if (item != kNoIndex && lanes_.item(item).is_leased) fail(item, Failure::stream_lost, step);
  }
}

void Subscription::pump(Step& step) {
  if (!seek_ || ORDO_BUG(2)) deliver_all(step);
  const bool has_delivered = !outboxes_.empty();
  send_released(step);
  for (const std::uint32_t index : outboxes_)
    send_outbox(consumers_[index], step);
  outboxes_.clear();
  for (KeptBack& kept_back : kept_back_)
    step.emit(std::move(kept_back));
  kept_back_.clear();
  balance_credit(has_delivered, step);
  if (!seek_) journal_.flush(common_, step);
}

void Subscription::deliver_all(Step& step) {
  while (consumers_.any_available() && has_lease_room()) {
    if (!woken_.empty()) wake_one();
    if (!ready_.empty()) {
      if (!deliver_ready(step)) return;
    } else if (!route_next(step)) {
      return;
    }
  }
}

// The first of the lanes that waited for a consumer which has credit again is the next.
void Subscription::wake_one() {
  while (!woken_.empty()) {
    const std::uint32_t consumer = woken_.front();
    LaneList& waiting = waiting_for(consumer);
    if (consumers_.is_available(consumer) && !waiting.empty()) {
      const std::uint32_t lane = waiting.front();
      unlist(lane);
      ready_.push_front(lane);
      return;
    }
    if (!waiting.empty()) waited_for_.push_back(consumer);
    woken_.pop_front();
  }
}

// Those whose credit is used up again, or that no lane waits for.
void Subscription::drop_woken() {
  std::erase_if(woken_, [this](std::uint32_t consumer) {
    if (waiting_for(consumer).empty()) return true;
    if (consumers_.is_available(consumer)) return false;
    waited_for_.push_back(consumer);
    return true;
  });
}

// Delivers the next message of the lane that waited longest, or finds out what it waits for.
// False: nothing can be delivered before something else happens.
bool Subscription::deliver_ready(Step& step) {
  const std::uint32_t index = ready_.front();
  Lane& lane = lanes_[index];
  std::uint32_t item = lanes_.next_item(lane);
  if (item == kNoIndex) {
    if (common_.tails.front_is_spilled(lane.tail)) {
      load_chunk(index, step);
      return true;
    }
    item = promote(index);
    if (item == kNoIndex || is_exhausted(lanes_.item(item)) ||
        (lane.leased_count > 0 && goes_alone(lanes_.item(item)))) {
      review(index, step);
      return true;
    }
  }
  bool stop = false;
  if (!may_deliver_now(index, item, stop)) return !stop;
  const std::uint32_t consumer = choose_consumer(index);
  if (consumer == kNoIndex) {
    unlist(index);
    list_waiting(index);
    return true;
  }
  const Message message = find_message(index, lanes_.item(item).offset);
  if (!message) return load_message(index, lanes_.item(item).offset, step);
  if (!message.is_intact()) {
    keep_back(index, message, consumer, step);
  } else if (has_unexamined_ && is_unwanted(message)) {
    settle(item, Settled::filtered, step);
    return true;
  } else {
    deliver(item, message, consumer, step);
  }
  review(index, step);
  return true;
}

// Where a policy counts: a delivery is written down before it is made.
bool Subscription::may_deliver_now(std::uint32_t lane, std::uint32_t index, bool& stop) {
  if (!counts_attempts()) return true;
  Item& item = lanes_.item(index);
  if (item.deliveries == 0) {
    const std::uint64_t ahead = std::max<std::uint64_t>(1, common_.options.delivered_ahead);
    if (item.offset + ahead / 2 >= journal_.delivered_below_wanted())
      journal_.raise_delivered_below(item.offset + ahead);
    stop = !ORDO_BUG(13) && item.offset >= journal_.delivered_below();
    return !stop;
  }
  if (item.stored_attempts > item.deliveries || ORDO_BUG(12)) return true;
  if (!item.has_row || item.asked_attempts <= item.deliveries) {
    item.has_row = true;
    item.asked_attempts = item.deliveries + 1;
    journal_.store_attempts(item.offset, item.deliveries + 1);
  }
  lanes_[lane].phase = LanePhase::storing;
  unlist(lane);
  return false;
}

// The last one it was delivered to is preferred, unless that has much more to do than the one whose
// turn it is. kNoIndex: the one that holds the rest of its window has no credit.
std::uint32_t Subscription::choose_consumer(std::uint32_t lane) {
  const std::uint32_t last = lanes_[lane].consumer;
  const bool is_available = consumers_.is_available(last);
  if (lanes_[lane].leased_count > 0 && !ORDO_BUG(8)) return is_available ? last : kNoIndex;
  const std::uint32_t next = consumers_.next();
  const bool is_busy =
      is_available && consumers_[last].lease_count > 2 * consumers_[next].lease_count + 1;
  return is_available && !is_busy ? last : next;
}

void Subscription::deliver(std::uint32_t index, const Message& message, std::uint32_t consumer,
                           Step& step) {
  Item& item = lanes_.item(index);
  Lane& lane = lanes_[item.lane];
  Consumer& taker = consumers_[consumer];
  item.fence = Fence(((ORDO_BUG(21) ? 0 : common_.start_number) << 40) | ++fence_counter_);
  item.size = static_cast<std::uint32_t>(message.size());
  item.is_leased = true;
  item.is_touched = false;
  if (!unreadable_keys_.empty()) erase_unreadable(item.offset);  // It can be read again.
  item.consumer = consumer;
  if (item.deliveries > 0 || item.id != MessageId()) ++counts_.redeliveries;
  ++item.deliveries;
  item.id = message.id();
  ++counts_.deliveries;
  if (!lane.key.empty()) hot_keys_.count(lane.hash, lane.key, step.now.steady);
  --counts_.waiting;
  ++counts_.leased;
  ++lane.leased_count;
  lane.consumer = consumer;
  leased_bytes_ += item.size;
  lease_heap_.push(step.now.steady + taker.ack_deadline.value_or(setup_.config.ack_deadline) -
                       std::chrono::milliseconds(ORDO_BUG(27) ? 1'000 : 0),
                   index, lease_moved());
  consumers_.begin_lease(consumer);
  consumers_.use(consumer, item.size, step.now.steady);
  if (taker.outbox.empty()) outboxes_.push_back(consumer);
  taker.outbox_bytes += item.size;
  taker.outbox.push_back(
      Delivery{message, AckId{setup_.subscription, common_.address.index, item.offset, item.fence},
               counts_attempts() ? item.deliveries : 0});
  if (taker.outbox.size() >= common_.options.deliver_messages_max ||
      taker.outbox_bytes >= common_.options.deliver_bytes_max) {
    send_outbox(taker, step);
  }
}

// Nobody is given bytes that are not what was published.
void Subscription::keep_back(std::uint32_t lane, const Message& message, std::uint32_t consumer,
                             Step& step) {
  common_.cache.forget_read(message.offset());
  hold_unreadable(lane, message.offset(), step);
  const ConsumerNumber number =
      consumer == kNoIndex ? ConsumerNumber() : consumers_[consumer].number;
  kept_back_.push_back({number, message.offset(), message.id(), std::string(message.key())});
}

void Subscription::send_outbox(Consumer& consumer, Step& step) {
  if (consumer.outbox.empty()) return;
  step.emit(Deliver{consumer.number, std::exchange(consumer.outbox, {})});
  consumer.outbox_bytes = 0;
}

void Subscription::send_released(Step& step) {
  for (const std::uint32_t index : released_) {
    Consumer& consumer = consumers_[index];
    const std::uint64_t messages = std::exchange(consumer.released_messages, 0);
    const std::uint64_t bytes = std::exchange(consumer.released_bytes, 0);
    if (consumer.is_open && messages > 0)
      step.emit(ReleaseCredit{consumer.number, messages, bytes});
  }
  released_.clear();
}

// Asks for credit where it is wanted, and returns what is of no use here. Beside an unlimited
// consumer nothing is ever left over: there the others are asked when it was given something.
void Subscription::balance_credit(bool has_delivered, Step& step) {
  const auto ask = [&](Consumer& consumer) { step.emit(WantCredit{consumer.number}); };
  // Without room for another lease no credit is of use, whoever waits for it: two consumers that
  // were asked for it would be asked in turns for ever, each when the other's was returned.
  const bool has_room = !seek_ && has_lease_room();
  if (has_room) drop_woken();
  const bool has_more = has_room && (!ready_.empty() || !woken_.empty() || can_read_on());
  if ((has_more && !consumers_.any_available()) || (has_delivered && consumers_.any_unlimited()))
    consumers_.take_dry(ask);
  if (has_room) {
    for (const std::uint32_t consumer : waited_for_) {
      if (consumers_[consumer].is_open) consumers_.take_dry(consumer, ask);
    }
    waited_for_.clear();
  }
  credit_due_.reset();
  if (has_more || is_reading_ || loads_ > 0 || !consumers_.any_limited()) return;
  return_credit(step);
}

void Subscription::return_credit(Step& step) {
  consumers_.for_each_available([&](std::uint32_t index) {
    const Consumer& consumer = consumers_[index];
    if (consumer.is_unlimited()) return;
    const TimePoint due = consumer.credit_since + kCreditTime;
    if (consumers_.any_unlimited() && !consumer.returns_at_once && due > step.now.steady) {
      if (!credit_due_ || due < *credit_due_) credit_due_ = due;
      return;
    }
    step.emit(ReturnCredit{consumer.number, static_cast<std::uint64_t>(consumer.messages),
                           static_cast<std::uint64_t>(consumer.bytes)});
    consumers_.take_credit(index);
  });
}

}  // namespace ordo::broker
