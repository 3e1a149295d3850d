// The cursor of a subscription, and how messages come into memory.
#include <algorithm>
#include <iterator>
#include <utility>

#include "ordo/broker/filter.h"
#include "ordo/broker/planted_bugs.h"
#include "ordo/broker/subscription.h"
#include "ordo/core/check.h"

namespace ordo::broker {
namespace {

Message message_in(const Result<ReadBatches>& result, Offset offset) {
  if (!result) return {};
  for (const std::shared_ptr<const MessageBatch>& batch : result->batches) {
    if (offset >= batch->first_offset && offset < batch->end_offset())
      return Message(batch, static_cast<std::uint32_t>(offset - batch->first_offset));
  }
  return {};
}

// Nothing was ever stored at `offset`: what follows it can be read.
bool is_gap(const Result<ReadBatches>& result, Offset offset) {
  return result && !result->batches.empty() && result->batches.front()->first_offset > offset;
}

}  // namespace

// Looks at the next message behind the cursor. False: there is none, or it must be read first.
bool Subscription::route_next(Step& step) {
  cursor_ = journal_.acked().first_open(cursor_);
  if (!has_unread() || lanes_.lane_count() >= common_.options.lanes_max) return false;
  while (!read_ahead_.empty() && read_ahead_.front()->end_offset() <= cursor_)
    read_ahead_.pop_front();
  const Message message = next_unread();
  if (message) {
    route(message, step);
    return true;
  }
  if (!read_ahead_.empty() || common_.cache.covers(cursor_)) {  // A gap: it never existed.
    Offset next = read_ahead_.empty() ? cursor_.next() : read_ahead_.front()->first_offset;
    if (ORDO_BUG(18)) ++next;
    journal_.acked().add(cursor_, next);
    if (!unreadable_keys_.empty()) forget_unreadable(cursor_, next, step);
    cursor_ = next;
    return true;
  }
  ask_for_cursor(step);
  return false;
}

Message Subscription::next_unread() {
  if (read_ahead_.empty()) return common_.cache.find(cursor_);
  const std::shared_ptr<const MessageBatch>& batch = read_ahead_.front();
  if (cursor_ < batch->first_offset) return {};
  return Message(batch, static_cast<std::uint32_t>(cursor_ - batch->first_offset));
}

void Subscription::route(const Message& message, Step& step) {
  const Offset offset = message.offset();
  cursor_ = offset.next();
  if (offset < routed_below_ && lanes_.find_item(offset) != kNoIndex) return;
  if (!unreadable_keys_.empty()) found_readable(offset, step);
  if (setup_.filter && !message.is_intact()) {
    has_unexamined_ = true;
  } else if (is_unwanted(message)) {
    ++counts_.filtered;
    journal_.acked().add(offset, cursor_);
    return;
  }
  ++counts_.routed;
  ++counts_.waiting;
  std::uint32_t lane = kNoIndex;
  const std::string_view key =
      setup_.config.enable_message_ordering ? message.key() : std::string_view();
  if (!key.empty()) {
    const std::uint32_t hash = LaneTable::hash_of_key(key);
    lane = lanes_.find(hash, key);
    if (ORDO_BUG(11) && lane != kNoIndex && lanes_[lane].phase == LanePhase::backoff) {
      lane = lanes_.open(0, {}, step.now.steady);
    } else if (lane != kNoIndex) {
      const bool was_empty = lanes_[lane].tail.empty();
      common_.tails.push(lanes_[lane].tail, offset);
      spill_if_needed(lanes_[lane], step);
      if (was_empty) review(lane, step);
      return;
    } else {
      lane = lanes_.open(hash, key, step.now.steady);
    }
  } else {
    lane = lanes_.open(0, {}, step.now.steady);
  }
  const std::uint32_t index = lanes_.append_item(lane, offset);
  Item& item = lanes_.item(index);
  begin_item(item);
  if (key.empty() && !earlier_holds_.empty()) {
    const auto held = earlier_holds_.find(offset.value());
    if (held != earlier_holds_.end()) {
      hold(lane, held->second);
      earlier_holds_.erase(held);
    }
  }
  if (counts_attempts() || lanes_[lane].hold != LaneHold::none) {
    review(lane, step);
  } else if (message.is_intact()) [[likely]] {
    deliver(index, message, consumers_.next(), step);
  } else {
    keep_back(lane, message, consumers_.next(), step);
  }
}

bool Subscription::is_unwanted(const Message& message) const {
  return setup_.filter && !setup_.filter->matches(message) && !ORDO_BUG(17);
}

// The message at the cursor is stored, but cannot be read. It stays unsettled and is listed. Its
// key is mostly not known, so nothing can wait for it, and what follows goes on.
void Subscription::route_unreadable(Step& step) {
  const Offset offset = cursor_;
  cursor_ = offset.next();
  if (offset < routed_below_ && lanes_.find_item(offset) != kNoIndex) return;
  ++counts_.routed;
  ++counts_.waiting;
  has_unexamined_ = true;
  const auto known = unreadable_keys_.find(offset.value());
  const std::string key = known == unreadable_keys_.end() ? std::string() : known->second.key;
  const std::uint32_t hash = key.empty() ? 0 : LaneTable::hash_of_key(key);
  std::uint32_t lane = key.empty() ? kNoIndex : lanes_.find(hash, key);
  if (key.empty() && unreadable_.end == offset && lanes_[unreadable_.lane].is_taken &&
      lanes_[unreadable_.lane].serial == unreadable_.serial)
    lane = unreadable_.lane;
  if (lane != kNoIndex && (lanes_[lane].first_item != kNoIndex || !lanes_[lane].tail.empty())) {
    common_.tails.push(lanes_[lane].tail, offset);
    spill_if_needed(lanes_[lane], step);
  } else {
    if (lane == kNoIndex) lane = lanes_.open(hash, key, step.now.steady);
    begin_item(lanes_.item(lanes_.append_item(lane, offset)));
    hold_unreadable(lane, offset, step);
  }
  if (key.empty()) unreadable_ = {lane, lanes_[lane].serial, cursor_};
}

void Subscription::begin_item(Item& item) {
  if (item.offset < earlier_delivered_below_) item.deliveries = 1;
  if (earlier_attempts_.empty()) return;
  const auto earlier = earlier_attempts_.find(item.offset.value());
  if (earlier == earlier_attempts_.end()) return;
  item.deliveries = std::max(item.deliveries, earlier->second);
  item.asked_attempts = item.stored_attempts = item.deliveries;
  item.has_row = true;
  earlier_attempts_.erase(earlier);
}

// Makes the first of the tail an item. kNoIndex: it has been settled meanwhile.
std::uint32_t Subscription::promote(std::uint32_t index) {
  Lane& lane = lanes_[index];
  const Offset offset = common_.tails.pop(lane.tail);
  if (journal_.acked().contains(offset)) {
    --counts_.waiting;
    ++counts_.expired;
    return kNoIndex;
  }
  const std::uint32_t item = lanes_.append_item(index, offset);
  begin_item(lanes_.item(item));
  return item;
}

void Subscription::spill_if_needed(Lane& lane, Step& step) {
  if (!common_.tails.wants_to_spill(lane.tail)) return;
  std::uint64_t chunk = lane.tail.spilled_first + lane.tail.spilled_chunks;
  for (std::string& bytes : common_.tails.spill(lane.tail)) {
    step.emit(WriteSpill{SpillKey{setup_.subscription, common_.address, lane.serial, chunk++},
                         std::move(bytes)});
  }
}

void Subscription::load_chunk(std::uint32_t index, Step& step) {
  Lane& lane = lanes_[index];
  unlist(index);
  lane.phase = LanePhase::loading;
  if (lane.is_chunk_loading) return;
  lane.is_chunk_loading = true;
  ++loads_;
  const TicketNumber ticket =
      common_.tickets.issue({TicketUse::Kind::spill, setup_.subscription, index, lane.serial});
  step.emit(ReadSpill{ticket, SpillKey{setup_.subscription, common_.address, lane.serial,
                                       lane.tail.spilled_first}});
}

void Subscription::chunk_read(const TicketUse& use, const Result<std::string>& result, Step& step) {
  --loads_;
  Lane& lane = lanes_[use.lane];
  if (!lane.is_taken || lane.serial != use.serial) return;
  lane.is_chunk_loading = false;
  const bool is_lost = !result && (result.error().code == ErrorCode::not_found ||
                                   result.error().code == ErrorCode::data_loss);
  if (is_lost && can_seek()) {
    start_over(step);
    return;
  }
  const bool is_refilled = result && common_.tails.front_is_spilled(lane.tail) &&
                           common_.tails.refill(lane.tail, *result);
  if (lane.phase != LanePhase::loading) return;
  lane.phase = LanePhase::open;
  if (!is_refilled) {
    lane.last_failure = Failure::unreadable;
    begin_backoff(use.lane, step.now.steady + kRetryTime);
  }
  review(use.lane, step);
}

void Subscription::ask_for_cursor(Step& step) {
  if (is_reading_ || (read_again_at_ && *read_again_at_ > step.now.steady)) return;
  read_again_at_.reset();
  is_reading_ = true;
  read_from_ = cursor_;
  const TicketNumber ticket = common_.tickets.issue(
      {TicketUse::Kind::read_cursor, setup_.subscription, kNoIndex, ++read_serial_});
  step.emit(
      Read{ticket, cursor_, common_.options.read_messages_max, common_.options.read_bytes_max});
}

void Subscription::cursor_read(std::uint64_t serial, Result<ReadBatches>&& result, Step& step) {
  if (serial != read_serial_) return;  // A seek has put the cursor elsewhere.
  is_reading_ = false;
  if (!result && result.error().code == ErrorCode::data_loss) {
    if (cursor_ == read_from_) route_unreadable(step);
    return;
  }
  if (!result || result->batches.empty()) {
    read_again_at_ = step.now.steady + kRetryTime;
    return;
  }
  for (std::shared_ptr<const MessageBatch>& batch : result->batches) {
    common_.cache.keep(batch);
    read_ahead_.push_back(std::move(batch));
  }
}

Message Subscription::find_message(std::uint32_t lane, Offset offset) {
  if (!loaded_.empty()) {
    const auto loaded = loaded_.find(lane);
    if (loaded != loaded_.end()) {
      const Message message = std::move(loaded->second);
      loaded_.erase(loaded);
      if (message.offset() == offset) return message;
    }
  }
  return common_.cache.find(offset);
}

// Has the head of a lane read. False: too many reads are under way.
bool Subscription::load_message(std::uint32_t index, Offset offset, Step& step) {
  const auto after = lane_reads_.upper_bound(offset);
  auto read = after == lane_reads_.begin() ? lane_reads_.end() : std::prev(after);
  if (read == lane_reads_.end() || read->second.end <= offset) {
    if (loads_ >= kLoadsMax) return false;
    // Lanes that go on side by side have their heads side by side: then one read is for many.
    const std::size_t messages_max = std::max<std::size_t>(1, common_.options.read_messages_max);
    const bool is_near =
        offset < lane_read_end_ + messages_max && offset + messages_max >= lane_read_end_;
    lane_read_messages_ = is_near ? std::min(lane_read_messages_ * 2, messages_max) : 1;
    lane_read_end_ = offset + lane_read_messages_;
    read = lane_reads_.emplace(offset, LaneRead{lane_read_end_, {}}).first;
    ++loads_;
    const TicketNumber ticket = common_.tickets.issue(
        {TicketUse::Kind::read_lane, setup_.subscription, kNoIndex, 0, offset});
    step.emit(Read{ticket, offset, lane_read_messages_, common_.options.read_bytes_max});
  }
  unlist(index);
  lanes_[index].phase = LanePhase::loading;
  read->second.waiters.push_back({index, lanes_[index].serial, offset});
  return true;
}

void Subscription::lane_read(const TicketUse& use, Result<ReadBatches>&& result, Step& step) {
  --loads_;
  const auto found = lane_reads_.find(use.offset);
  ORDO_CHECK(found != lane_reads_.end());
  const LaneRead read = std::move(found->second);
  lane_reads_.erase(found);
  if (result) {
    for (const std::shared_ptr<const MessageBatch>& batch : result->batches)
      common_.cache.keep(batch);
  }
  for (auto waiter = read.waiters.rbegin(); waiter != read.waiters.rend(); ++waiter)
    lane_loaded(*waiter, use.offset, result, step);
}

// A lane that waited for a read goes on: what it waits for is in the cache, or asked for again.
void Subscription::lane_loaded(const LaneRead::Waiter& waiter, Offset from,
                               const Result<ReadBatches>& result, Step& step) {
  Lane& lane = lanes_[waiter.lane];
  if (!lane.is_taken || lane.serial != waiter.serial || lane.phase != LanePhase::loading) return;
  lane.phase = LanePhase::open;
  const std::uint32_t item = lanes_.next_item(lane);
  if (item != kNoIndex && lanes_.item(item).offset == waiter.offset) {
    const Message message = message_in(result, waiter.offset);
    const bool was_unknown =
        has_unexamined_ && lane.key.empty() && lanes_.item(item).id == MessageId();
    if (was_unknown && waiter.offset == from && is_gap(result, from)) {
      settle(item, Settled::absent, step);  // What could not be read lies behind it.
      return;
    }
    if (message && waiter.offset == from) {
      loaded_[waiter.lane] = message;  // The cache may be too small for it.
    } else if (!result && result.error().code == ErrorCode::data_loss) {
      // Of those that shared the read the others ask for themselves.
      if (waiter.offset == from) hold_unreadable(waiter.lane, from, step);
    } else if (!message && (!result || waiter.offset == from)) {
      lane.last_failure = Failure::unreadable;
      begin_backoff(waiter.lane, step.now.steady + kRetryTime);
    }
  }
  review(waiter.lane, step);
  if (lane.list == &ready_) ready_.move_to_front(waiter.lane);  // Before others are read.
}

}  // namespace ordo::broker
