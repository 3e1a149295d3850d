// What a subscription has not settled, for those who only look.
#include <algorithm>
#include <utility>

#include "ordo/broker/filter.h"
#include "ordo/broker/subscription.h"

namespace ordo::broker {

Message Subscription::message_at(Offset offset, const ReadBatches* read) const {
  if (read == nullptr) return common_.cache.find(offset);
  const auto batch = std::partition_point(
      read->batches.begin(), read->batches.end(),
      [&](const std::shared_ptr<const MessageBatch>& b) { return b->end_offset() <= offset; });
  if (batch == read->batches.end() || (*batch)->first_offset > offset) return {};
  return Message(*batch, static_cast<std::uint32_t>(offset - (*batch)->first_offset));
}

// Nothing was ever stored there.
bool Subscription::is_gap_at(Offset offset, const ReadBatches* read) const {
  if (read == nullptr) return common_.cache.covers(offset);
  return !read->batches.empty() && offset < read->batches.back()->first_offset;
}

PeekReply Subscription::peek(const Peek& peek, const ReadBatches* read,
                             std::optional<Offset>& missing) const {
  const AckedIntervals& acked = journal_.acked();
  PeekReply reply;
  std::size_t bytes = 0;
  std::size_t looked_at = 0;
  Offset at = acked.first_open(std::max(peek.from, acked.low_water()));
  for (; at < common_.end; at = acked.first_open(at.next())) {
    if (looked_at++ == peek.offsets_max || reply.messages.size() >= peek.messages_max) break;
    const Message message = message_at(at, read);
    if (!message) {
      if (is_gap_at(at, read)) continue;
      missing = at;
      break;
    }
    if (!peek.key.empty() && message.key() != peek.key) continue;
    if (!message.is_intact()) {
      reply.messages.push_back(peek_unreadable(at));
      continue;
    }
    if (at >= cursor_ && is_unwanted(message)) continue;
    if (bytes > 0 && bytes + message.size() > peek.bytes_max) break;
    bytes += message.size();
    reply.messages.push_back(peeked(message));
  }
  if (at < common_.end) reply.next = at;
  return reply;
}

PeekedMessage Subscription::peeked(const Message& message) const {
  PeekedMessage shown;
  shown.offset = message.offset();
  shown.message = message;
  const bool has_order = setup_.config.enable_message_ordering && !message.key().empty();
  const std::uint32_t index = lanes_.find_item(shown.offset);
  if (index != kNoIndex) {
    const Item& item = lanes_.item(index);
    const Lane& lane = lanes_[item.lane];
    shown.attempts = item.deliveries;
    if (item.is_leased) {
      shown.state = PeekState::in_flight;
      shown.holder = consumers_[item.consumer].number;
    } else if (lanes_.next_item(lane) == index && lane.leased_count == 0) {
      set_head_state(shown, lane);
    } else {
      shown.state = PeekState::waiting;
    }
    return shown;
  }
  shown.is_unread = shown.offset >= cursor_;
  const std::uint32_t lane = has_order ? lanes_.find(message.key()) : kNoIndex;
  if (lane == kNoIndex) return shown;
  shown.state = PeekState::waiting;
  const bool is_next = lanes_[lane].first_item == kNoIndex && !lanes_[lane].tail.empty() &&
                       !common_.tails.front_is_spilled(lanes_[lane].tail) &&
                       common_.tails.front(lanes_[lane].tail) == shown.offset;
  const bool is_alone = lanes_[lane].first_item == kNoIndex && lanes_[lane].tail.empty();
  if (is_next || is_alone) set_head_state(shown, lanes_[lane]);
  return shown;
}

void Subscription::set_head_state(PeekedMessage& peeked, const Lane& lane) const {
  peeked.reason = reason_of(lane);
  peeked.state = peeked.reason == BlockReason::no_consumer ? PeekState::ready : PeekState::blocked;
}

PeekedMessage Subscription::peek_unreadable(Offset offset) const {
  PeekedMessage shown;
  shown.offset = offset;
  shown.state = PeekState::blocked;
  shown.reason = BlockReason::data_loss;
  shown.is_unread = offset >= cursor_;
  return shown;
}

}  // namespace ordo::broker
