// What a subscription tells about itself.
#include <algorithm>
#include <string>
#include <utility>

#include "ordo/broker/subscription.h"

namespace ordo::broker {
namespace {

const char* name_of(Failure failure) {
  switch (failure) {
    case Failure::none:
      return "";
    case Failure::nack:
      return "nack";
    case Failure::expired:
      return "deadline expired";
    case Failure::stream_lost:
      return "stream lost";
    case Failure::unseen:
      return "given back";
    case Failure::unreadable:
      return "could not be read";
  }
  return "";
}

std::uint64_t depth_of(const Lane& lane) {
  return lane.tail.count + lane.leased_count;
}

}  // namespace

BlockReason reason_of(const Lane& lane) {
  switch (lane.hold) {
    case LaneHold::parked:
      return BlockReason::parked;
    case LaneHold::paused:
      return BlockReason::paused;
    case LaneHold::dead_letter_gone:
      return BlockReason::dead_letter_gone;
    case LaneHold::data_loss:
      return BlockReason::data_loss;
    case LaneHold::none:
      break;
  }
  if (lane.leased_count > 0) return BlockReason::in_flight;
  switch (lane.phase) {
    case LanePhase::backoff:
      return BlockReason::backoff;
    case LanePhase::storing:
    case LanePhase::dead_lettering:
      return BlockReason::storing;
    case LanePhase::open:
    case LanePhase::loading:
      break;
  }
  return BlockReason::no_consumer;
}

bool Subscription::is_stuck(const Lane& lane, TimePoint now) const {
  if (lane.hold != LaneHold::none || lane.phase == LanePhase::backoff ||
      lane.phase == LanePhase::dead_lettering)
    return true;
  if (lane.first_item != kNoIndex && lanes_.item(lane.first_item).failures > 0) return true;
  return now - lane.head_since >= kStuckTime;
}

KeysReply Subscription::list_keys(const ListKeys& list, TimePoint now) const {
  KeysReply reply;
  if (list.order == KeyOrder::hottest) {
    reply.keys = hottest_keys(list, now);
    return reply;
  }
  const std::uint32_t all = lanes_.lane_index_end();
  const std::uint32_t begin = std::min(list.from, all);
  const std::uint32_t end = begin + std::min(list.lanes_max, all - begin);
  if (end < all) reply.next = end;
  std::vector<std::uint32_t> found;
  for (std::uint32_t index = begin; index < end; ++index) {
    const Lane& lane = lanes_[index];
    if (!lane.is_taken || (lane.key.empty() && lane.hold != LaneHold::data_loss)) continue;
    if (list.stuck_only && !is_stuck(lane, now)) continue;
    found.push_back(index);
  }
  const auto comes_first = [&](std::uint32_t a, std::uint32_t b) {
    if (list.order == KeyOrder::deepest && depth_of(lanes_[a]) != depth_of(lanes_[b]))
      return depth_of(lanes_[a]) > depth_of(lanes_[b]);
    return std::pair(lanes_[a].head_since, lanes_[a].serial) <
           std::pair(lanes_[b].head_since, lanes_[b].serial);
  };
  const std::size_t count = std::min(list.count_max, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count), found.end(),
                    comes_first);
  found.resize(count);
  for (const std::uint32_t index : found)
    reply.keys.push_back(facts_of(lanes_[index], now));
  return reply;
}

// Also those that have nothing left to do.
std::vector<KeyFacts> Subscription::hottest_keys(const ListKeys& list, TimePoint now) const {
  std::vector<KeyFacts> keys;
  for (HotKey& hot : hot_keys_.top(HotKeys::kPlaces, now)) {
    if (keys.size() == list.count_max) break;
    const std::uint32_t lane = lanes_.find(hot.key);
    if (lane != kNoIndex) {
      if (!list.stuck_only || is_stuck(lanes_[lane], now))
        keys.push_back(facts_of(lanes_[lane], now));
    } else if (!list.stuck_only) {
      KeyFacts idle;
      idle.key = std::move(hot.key);
      idle.reason = BlockReason::no_message;
      idle.blocked_since = now;
      idle.per_second = hot.per_second;
      keys.push_back(std::move(idle));
    }
  }
  return keys;
}

KeyFacts Subscription::facts_of(const Lane& lane, TimePoint now) const {
  KeyFacts key;
  key.key = lane.key;
  key.reason = reason_of(lane);
  key.is_stuck = is_stuck(lane, now);
  key.last_failure = name_of(lane.last_failure);
  key.blocked_since = lane.head_since;
  key.waiting = lane.tail.count;
  if (!lane.key.empty()) key.per_second = hot_keys_.per_second(lane.hash, lane.key, now);
  if (lane.first_item != kNoIndex) {
    const Item& head = lanes_.item(lane.first_item);
    key.head_offset = head.offset;
    key.head_id = head.id;
    key.attempts = head.deliveries;
    if (head.is_leased) key.holder = consumers_[head.consumer].number;
    for (std::uint32_t at = head.next; at != kNoIndex; at = lanes_.item(at).next)
      ++key.waiting;
  } else if (!lane.tail.empty() && !common_.tails.front_is_spilled(lane.tail)) {
    key.head_offset = common_.tails.front(lane.tail);
    --key.waiting;
  }
  if (key.head_id == MessageId() && key.head_offset != Offset()) {
    const Message message = common_.cache.find(key.head_offset);
    if (message) key.head_id = message.id();
  }
  if (lane.hold == LaneHold::data_loss) {
    key.last_failure = "data loss: offset " + std::to_string(lane.held_for.value());
    if (lane.key.empty() && key.waiting > 0)
      key.last_failure += " to " + std::to_string(lane.held_for.value() + key.waiting);
    key.last_failure += " cannot be read";
  }
  return key;
}

SubscriptionStats Subscription::stats() const {
  SubscriptionStats stats = counts_;
  stats.lanes = lanes_.key_count();
  stats.parked_lanes = parked_count_;
  stats.unread = common_.end > cursor_ ? common_.end - cursor_ : 0;
  stats.acked_intervals = journal_.acked().interval_count();
  const Offset low_water = journal_.acked().low_water();
  if (low_water < common_.end) {
    const Message message = common_.cache.find(low_water);
    if (message) {
      stats.oldest_unacked = message.publish_time();
    } else if (oldest_.low_water == low_water) {
      stats.oldest_unacked = oldest_.time;
    }
  }
  return stats;
}

std::size_t Subscription::memory_bytes() const {
  std::size_t bytes = lanes_.memory_bytes() + journal_.acked().interval_count() * 64;
  for (const auto& [lane, message] : loaded_)
    bytes += message.size();
  for (const std::shared_ptr<const MessageBatch>& batch : read_ahead_)
    bytes += batch->bytes.size();
  return bytes;
}

}  // namespace ordo::broker
