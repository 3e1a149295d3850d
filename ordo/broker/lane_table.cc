#include "ordo/broker/lane_table.h"

#include "ordo/core/check.h"

namespace ordo::broker {

void LaneList::push_back(std::uint32_t index) {
  Lane& lane = lanes_[index];
  ORDO_CHECK(lane.list == nullptr);
  lane.list = this;
  lane.next = kNoIndex;
  lane.previous = last_;
  (last_ == kNoIndex ? first_ : lanes_[last_].next) = index;
  last_ = index;
  ++count_;
}

void LaneList::move_to_front(std::uint32_t index) {
  if (first_ == index) return;
  remove(index);
  push_front(index);
}

void LaneList::push_front(std::uint32_t index) {
  Lane& lane = lanes_[index];
  ORDO_CHECK(lane.list == nullptr);
  lane.list = this;
  lane.previous = kNoIndex;
  lane.next = first_;
  (first_ == kNoIndex ? last_ : lanes_[first_].previous) = index;
  first_ = index;
  ++count_;
}

void LaneList::remove(std::uint32_t index) {
  Lane& lane = lanes_[index];
  ORDO_CHECK(lane.list == this);
  lane.list = nullptr;
  (lane.previous == kNoIndex ? first_ : lanes_[lane.previous].next) = lane.next;
  (lane.next == kNoIndex ? last_ : lanes_[lane.next].previous) = lane.previous;
  --count_;
}

std::uint32_t LaneTable::open(std::uint32_t hash, std::string_view key, TimePoint now) {
  const std::uint32_t index = lanes_.acquire();
  Lane& lane = lanes_[index];
  lane.key.assign(key);
  lane.serial = next_serial_++;
  lane.hash = hash;
  lane.is_taken = true;
  lane.head_since = now;
  if (!key.empty()) by_key_.insert(hash, index);
  ++lane_count_;
  return index;
}

void LaneTable::erase(std::uint32_t index) {
  Lane& lane = lanes_[index];
  ORDO_CHECK(lane.is_taken && lane.list == nullptr && lane.first_item == kNoIndex &&
             lane.tail.empty());
  if (!lane.key.empty()) by_key_.erase(lane.hash, index);
  if (lane.key.capacity() > 256) lane.key = {};  // A rare long key does not stay with the slab.
  lane.is_taken = false;
  lane.is_chunk_loading = false;
  lane.consumer = kNoIndex;
  lane.phase = LanePhase::open;
  lane.hold = LaneHold::none;
  lane.held_for = Offset(0);
  lane.last_failure = Failure::none;
  --lane_count_;
  lanes_.release(index);
}

std::uint32_t LaneTable::append_item(std::uint32_t lane_index, Offset offset) {
  const std::uint32_t index = items_.acquire();
  Lane& lane = lanes_[lane_index];
  Item& item = items_[index];
  item = Item{};
  item.offset = offset;
  item.lane = lane_index;
  item.previous = lane.last_item;
  (lane.last_item == kNoIndex ? lane.first_item : items_[lane.last_item].next) = index;
  lane.last_item = index;
  by_offset_.insert(hash_of_offset(offset), index);
  ++item_count_;
  return index;
}

void LaneTable::remove_item(std::uint32_t index) {
  Item& item = items_[index];
  Lane& lane = lanes_[item.lane];
  (item.previous == kNoIndex ? lane.first_item : items_[item.previous].next) = item.next;
  (item.next == kNoIndex ? lane.last_item : items_[item.next].previous) = item.previous;
  by_offset_.erase(hash_of_offset(item.offset), index);
  items_.release(index);
  --item_count_;
}

std::uint32_t LaneTable::next_item(const Lane& lane) const {
  if (lane.leased_count == 0) return lane.first_item;
  // Leased ones come first: they are a prefix of what is unsettled. Behind a failed one nothing is
  // leased, so the last item tells whether there is any that waits.
  std::uint32_t index = lane.last_item;
  if (items_[index].is_leased) return kNoIndex;
  while (items_[index].previous != kNoIndex && !items_[items_[index].previous].is_leased)
    index = items_[index].previous;
  return index;
}

std::size_t LaneTable::memory_bytes() const {
  return lane_count_ * sizeof(Lane) + item_count_ * sizeof(Item);
}

}  // namespace ordo::broker
