#include "ordo/broker/credit_desk.h"

#include <algorithm>

#include "ordo/core/check.h"

namespace ordo::broker {
namespace {

constexpr auto kTop = static_cast<std::int64_t>(CreditDesk::kUnlimited);

std::int64_t to_signed(std::uint64_t amount) {
  return static_cast<std::int64_t>(std::min(amount, CreditDesk::kUnlimited));
}

}  // namespace

CreditDesk::CreditDesk(CreditLimits limits, std::uint32_t partition_count)
    : limits_(limits),
      has_message_limit_(limits.messages > 0),
      seats_(partition_count) {
  ORDO_CHECK(partition_count > 0);
  // Above what any consumer can hold a limit means nothing; so sums cannot overflow.
  limits_.messages = std::min(limits_.messages, kTop);
  limits_.bytes = std::min(limits_.bytes, kTop);
}

void CreditDesk::want(std::uint32_t partition, Grants& grants) {
  ORDO_CHECK(partition < seats_.size());
  set(seats_[partition], 0, 0);
  set_wants(seats_[partition], true);
  grant_free(grants);
}

void CreditDesk::deliver(std::uint32_t partition, std::uint64_t messages, std::uint64_t bytes,
                         Grants& grants) {
  ORDO_CHECK(partition < seats_.size());
  Seat& seat = seats_[partition];
  leased_messages_ += to_signed(messages);
  leased_bytes_ += to_signed(bytes);
  set(seat, std::max<std::int64_t>(seat.messages - to_signed(messages), 0),
      std::max<std::int64_t>(seat.bytes - to_signed(bytes), 0));
  grant_free(grants);  // Void credit may be of use to others.
}

void CreditDesk::give_back(std::uint32_t partition, Grants& grants) {
  ORDO_CHECK(partition < seats_.size());
  set(seats_[partition], 0, 0);
  set_wants(seats_[partition], false);
  grant_free(grants);
}

void CreditDesk::release(std::uint32_t partition, std::uint64_t messages, std::uint64_t bytes,
                         Grants& grants) {
  ORDO_CHECK(partition < seats_.size());
  if (limits_.is_one_shot) return;
  ORDO_CHECK(to_signed(messages) <= leased_messages_ && to_signed(bytes) <= leased_bytes_);
  leased_messages_ -= to_signed(messages);
  leased_bytes_ -= to_signed(bytes);
  grant_free(grants);
}

void CreditDesk::limit_messages(std::int64_t messages, Grants& grants) {
  ORDO_CHECK(has_message_limit() && messages >= 0);
  limits_.messages = std::min(messages, kTop);
  grant_free(grants);
}

void CreditDesk::set(Seat& seat, std::int64_t messages, std::int64_t bytes) {
  if (messages == 0 || bytes == 0) messages = bytes = 0;
  holding_ += (messages > 0 ? 1 : 0) - (seat.messages > 0 ? 1 : 0);
  if (has_message_limit()) unused_messages_ += messages - seat.messages;
  if (has_byte_limit()) unused_bytes_ += bytes - seat.bytes;
  seat.messages = messages;
  seat.bytes = bytes;
}

void CreditDesk::set_wants(Seat& seat, bool wants) {
  wanting_ += (wants ? 1 : 0) - (seat.wants ? 1 : 0);
  seat.wants = wants;
}

// Grants the partition, which holds nothing, its share. False if there is nothing to share.
bool CreditDesk::grant_one(std::uint32_t partition, Grants& grants) {
  const auto share_of = [&](std::int64_t free) {
    return std::max<std::int64_t>(free / std::max<std::int64_t>(wanting_, 1), 1);
  };
  std::int64_t messages = kTop;
  std::int64_t bytes = kTop;
  if (has_message_limit()) {
    const std::int64_t free = limits_.messages - leased_messages_ - unused_messages_;
    if (free <= 0) return false;
    messages = share_of(free);
  }
  if (has_byte_limit()) {
    const std::int64_t free =
        limits_.bytes - leased_bytes_ - unused_bytes_ - holding_ * kMessageBytesMax;
    if (free <= 0) return false;
    bytes = share_of(free);
  }
  set(seats_[partition], messages, bytes);
  grants.push_back(
      {partition, static_cast<std::uint64_t>(messages), static_cast<std::uint64_t>(bytes)});
  return true;
}

// Goes round once, from the one after the last that got something.
void CreditDesk::grant_free(Grants& grants) {
  const auto count = static_cast<std::uint32_t>(seats_.size());
  const std::uint32_t first = next_;
  for (std::uint32_t step = 0; step < count && wanting_ > 0; ++step) {
    const std::uint32_t partition = (first + step) % count;
    if (!seats_[partition].wants) continue;
    if (!grant_one(partition, grants)) return;
    set_wants(seats_[partition], false);
    next_ = (partition + 1) % count;
  }
}

}  // namespace ordo::broker
