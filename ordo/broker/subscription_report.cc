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

}  // namespace

std::vector<BlockedKey> Subscription::blocked_keys(std::size_t count_max) const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t index = 0; index < lanes_.lane_index_end(); ++index) {
    const Lane& lane = lanes_[index];
    if (lane.is_taken && (!lane.key.empty() || lane.hold == LaneHold::data_loss))
      found.push_back(index);
  }
  const std::size_t count = std::min(count_max, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count), found.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      return std::pair(lanes_[a].head_since, lanes_[a].serial) <
                             std::pair(lanes_[b].head_since, lanes_[b].serial);
                    });
  found.resize(count);
  std::vector<BlockedKey> result;
  for (const std::uint32_t index : found) {
    const Lane& lane = lanes_[index];
    BlockedKey key;
    key.key = lane.key;
    key.reason = reason_of(lane);
    key.last_failure = name_of(lane.last_failure);
    key.blocked_since = lane.head_since;
    key.waiting = lane.tail.count;
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
    result.push_back(std::move(key));
  }
  return result;
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
