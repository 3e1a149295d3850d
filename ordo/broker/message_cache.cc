#include "ordo/broker/message_cache.h"

#include <iterator>
#include <utility>

#include "ordo/core/check.h"

namespace ordo::broker {

void MessageCache::append(std::shared_ptr<const MessageBatch> batch) {
  ORDO_CHECK(batches_.empty() || batch->first_offset >= end_);
  while (!batches_.empty() && batch->end_offset() - first_ > span_max_)
    drop_oldest();
  if (batches_.empty()) first_ = end_ = batch->first_offset;
  while (batch->end_offset() - first_ > slots_.size())
    grow_slots();
  const std::size_t mask = slots_.size() - 1;
  const auto sequence =
      static_cast<std::uint32_t>((first_sequence_ + batches_.size()) & kSequenceMask);
  for (std::uint64_t at = end_.value(); at < batch->first_offset.value(); ++at)
    slots_[at & mask] = kNone;
  for (std::uint64_t at = batch->first_offset.value(); at < batch->end_offset().value(); ++at)
    slots_[at & mask] = sequence;
  end_ = batch->end_offset();
  newest_bytes_ += cost_of(*batch);
  batches_.push_back(std::move(batch));
  while (newest_bytes_ > newest_bytes_max_ && batches_.size() > 1)
    drop_oldest();
}

void MessageCache::grow_slots() {
  std::vector<std::uint32_t> slots(slots_.size() * 2, kNone);
  for (std::uint64_t at = first_.value(); at < end_.value(); ++at)
    slots[at & (slots.size() - 1)] = slots_[at & (slots_.size() - 1)];
  slots_ = std::move(slots);
}

void MessageCache::drop_oldest() {
  newest_bytes_ -= cost_of(*batches_.front());
  first_ = batches_.front()->end_offset();
  batches_.pop_front();
  first_sequence_ = (first_sequence_ + 1) & kSequenceMask;
}

void MessageCache::keep(std::shared_ptr<const MessageBatch> batch) {
  const Offset first = batch->first_offset;
  const std::size_t cost = cost_of(*batch);
  if (!read_.emplace(first, std::move(batch)).second) return;
  read_order_.push_back(first);
  read_bytes_ += cost;
  while (read_bytes_ > read_bytes_max_ && read_order_.size() > 1)
    drop_oldest_read();
}

void MessageCache::drop_oldest_read() {
  const auto oldest = read_.find(read_order_.front());
  read_order_.pop_front();
  if (oldest == read_.end()) return;
  read_bytes_ -= cost_of(*oldest->second);
  read_.erase(oldest);
}

Message MessageCache::find(Offset offset) const {
  if (covers(offset)) {
    if (offset >= end_) return {};
    const std::uint32_t sequence = slots_[offset.value() & (slots_.size() - 1)];
    if (sequence == kNone) return {};
    const auto& batch = batches_[(sequence - first_sequence_) & kSequenceMask];
    return Message(batch, static_cast<std::uint32_t>(offset - batch->first_offset));
  }
  auto after = read_.upper_bound(offset);
  if (after == read_.begin()) return {};
  const auto& batch = std::prev(after)->second;
  if (offset >= batch->end_offset()) return {};
  return Message(batch, static_cast<std::uint32_t>(offset - batch->first_offset));
}

void MessageCache::forget_read(Offset offset) {
  const auto after = read_.upper_bound(offset);
  if (after == read_.begin()) return;
  const auto batch = std::prev(after);
  if (offset >= batch->second->end_offset()) return;
  read_bytes_ -= cost_of(*batch->second);
  read_.erase(batch);
}

void MessageCache::forget_below(Offset offset) {
  while (!batches_.empty() && batches_.front()->end_offset() <= offset)
    drop_oldest();
  while (!read_order_.empty() && read_order_.front() < offset) {
    const auto oldest = read_.find(read_order_.front());
    if (oldest != read_.end() && oldest->second->end_offset() > offset) break;
    drop_oldest_read();
  }
}

}  // namespace ordo::broker
