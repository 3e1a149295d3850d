#include "ordo/broker/consumers.h"

#include <algorithm>

#include "ordo/core/check.h"

namespace ordo::broker {
namespace {

constexpr std::int64_t kCreditMax = std::int64_t{1} << 62;

std::int64_t added(std::int64_t credit, std::uint64_t more) {
  const auto room = static_cast<std::uint64_t>(kCreditMax - std::min(credit, kCreditMax));
  return credit + static_cast<std::int64_t>(std::min(more, room));
}

}  // namespace

std::uint32_t Consumers::open(const OpenConsumer& open) {
  const std::uint32_t index = consumers_.acquire();
  Consumer& consumer = consumers_[index];
  consumer = Consumer{};
  consumer.number = open.consumer;
  consumer.ack_deadline = open.ack_deadline;
  consumer.returns_at_once = open.returns_at_once;
  consumer.is_open = true;
  ORDO_CHECK(by_number_.emplace(open.consumer, index).second);
  link(index, Consumer::Place::dry);
  return index;
}

std::uint32_t Consumers::find(ConsumerNumber number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? kNoIndex : found->second;
}

void Consumers::grant(std::uint32_t index, std::uint64_t messages, std::uint64_t bytes,
                      TimePoint now) {
  Consumer& consumer = consumers_[index];
  unlink(index);
  consumer.messages = added(consumer.messages, messages);
  consumer.bytes = added(consumer.bytes, bytes);
  consumer.credit_since = now;
  link(index, consumer.has_credit() ? Consumer::Place::available : Consumer::Place::dry);
}

void Consumers::use(std::uint32_t index, std::size_t bytes, TimePoint now) {
  Consumer& consumer = consumers_[index];
  consumer.served = ++served_;
  consumer.credit_since = now;
  if (consumer.messages < kUnlimitedCredit) --consumer.messages;
  if (consumer.bytes < kUnlimitedCredit) consumer.bytes -= static_cast<std::int64_t>(bytes);
  if (!consumer.has_credit()) take_credit(index);
}

void Consumers::take_credit(std::uint32_t index) {
  unlink(index);
  consumers_[index].messages = 0;
  consumers_[index].bytes = 0;
  link(index, Consumer::Place::dry);
}

void Consumers::close(std::uint32_t index) {
  Consumer& consumer = consumers_[index];
  unlink(index);
  by_number_.erase(consumer.number);
  consumer.is_open = false;
  if (consumer.lease_count == 0) consumers_.release(index);
}

void Consumers::end_lease(std::uint32_t index) {
  Consumer& consumer = consumers_[index];
  if (--consumer.lease_count == 0 && !consumer.is_open) consumers_.release(index);
}

std::uint32_t Consumers::next() {
  const std::uint32_t index = available_.first;
  ORDO_CHECK(index != kNoIndex);
  if (available_.last != index) {
    unlink(index);
    link(index, Consumer::Place::available);
  }
  return index;
}

void Consumers::link(std::uint32_t index, Consumer::Place place) {
  Row& row = row_of(place);
  Consumer& consumer = consumers_[index];
  consumer.place = place;
  std::uint32_t before = row.last;
  if (place == Consumer::Place::available) {
    ++available_count_;
    if (consumer.is_unlimited()) ++unlimited_count_;
  } else {
    while (before != kNoIndex && consumers_[before].served > consumer.served)
      before = consumers_[before].previous;
  }
  std::uint32_t& from_before = before == kNoIndex ? row.first : consumers_[before].next;
  consumer.previous = before;
  consumer.next = from_before;
  (consumer.next == kNoIndex ? row.last : consumers_[consumer.next].previous) = index;
  from_before = index;
}

void Consumers::unlink(std::uint32_t index) {
  Consumer& consumer = consumers_[index];
  if (consumer.place == Consumer::Place::none) return;
  Row& row = row_of(consumer.place);
  if (consumer.place == Consumer::Place::available) {
    --available_count_;
    if (consumer.is_unlimited()) --unlimited_count_;
  }
  (consumer.previous == kNoIndex ? row.first : consumers_[consumer.previous].next) = consumer.next;
  (consumer.next == kNoIndex ? row.last : consumers_[consumer.next].previous) = consumer.previous;
  consumer.place = Consumer::Place::none;
}

}  // namespace ordo::broker
