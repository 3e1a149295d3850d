#include "ordo/broker/handler_desk.h"

#include <algorithm>
#include <set>

namespace ordo::broker {

void HandlerDesk::deliver(HeldMessage held) {
  if (!held->is_ordered) {
    outstanding_.insert(held);
    free_.push_back(std::move(held));
    return;
  }
  if (!unanswered_.empty() && refuse_behind_nack(*held)) return;
  const std::string_view key = held->message.key();
  const HeldMessage* newest = keyed_.newest(key);
  if (newest != nullptr && (*newest)->offset() >= held->offset()) {
    drop_void(std::string(key),
              [from = held->offset()](const Held& other) { return other.offset() >= from; });
  }
  outstanding_.insert(held);
  keyed_.push_admitted(key, std::move(held));
}

// True: it was sent before the broker knew of a nack that makes it void.
bool HandlerDesk::refuse_behind_nack(const Held& held) {
  const auto found = unanswered_.find(std::string(held.message.key()));
  if (found == unanswered_.end()) return false;
  if (held.offset() <= found->second.offset) {
    unanswered_.erase(found);  // It came again already: what was not taken is void.
    return false;
  }
  found->second.untaken.push_back(held.message.ack_id());
  ++skipped_;
  return true;
}

HandlerDesk::HeldMessage HandlerDesk::take() {
  turn_of_free_ = !turn_of_free_;
  HeldMessage held;
  if (!free_.empty() && (turn_of_free_ || keyed_.ready_count() == 0)) {
    held = std::move(free_.front());
    free_.pop_front();
  } else {
    auto turn = keyed_.take();
    held = turn->item;
    held->lane = turn->lane;
  }
  held->is_begun = true;
  return held;
}

// The broker's lease began a little earlier than it is known here, and an ack takes its time to get
// there: the last quarter counts as lost.
bool HandlerDesk::may_be_lost(const Held& held, TimePoint now) const {
  return held.is_lost || now - held.leased_at >= lease_ - lease_ / 4;
}

HandlerDesk::AckWay HandlerDesk::ack(const HeldMessage& held, TimePoint now) {
  if (outstanding_.erase(held) == 0) return AckWay::refused;
  if (!held->is_ordered) return AckWay::send;
  if (may_be_lost(*held, now)) return AckWay::ask;
  keyed_.finish(held->lane);
  return AckWay::send;
}

void HandlerDesk::ack_settled(const Held& held, SettleOutcome outcome, std::vector<AckId>& nacks) {
  if (outcome != SettleOutcome::done) give_back_behind(held, nacks);
  keyed_.finish(held.lane);
}

bool HandlerDesk::nack(const HeldMessage& held, std::vector<AckId>& nacks) {
  if (outstanding_.erase(held) == 0) return false;
  nacks.push_back(held->message.ack_id());
  if (!held->is_ordered) return true;
  if (!has_come_again(*held)) {
    give_back_behind(*held, nacks);
    unanswered_.insert_or_assign(std::string(held->message.key()),
                                 Unanswered{held->offset(), held->message.fence(), {}});
  }
  keyed_.finish(held->lane);
  return true;
}

// A nack that counted has made void what was not taken meanwhile; if it did not, somebody else had
// that message, and those may be the next.
void HandlerDesk::nack_settled(const Held& held, SettleOutcome outcome, std::vector<AckId>& nacks) {
  if (unanswered_.empty()) return;
  const auto found = unanswered_.find(std::string(held.message.key()));
  if (found == unanswered_.end() || found->second.fence != held.message.fence()) return;
  if (outcome != SettleOutcome::done) {
    const std::vector<AckId>& untaken = found->second.untaken;
    nacks.insert(nacks.end(), untaken.begin(), untaken.end());
  }
  unanswered_.erase(found);
}

// What waits is in the order of offsets, so the oldest tells.
// REQUIRES: its turn is not over.
bool HandlerDesk::has_come_again(const Held& held) {
  if (keyed_.item_count(held.lane) < 2) return false;
  const std::uint32_t oldest = keyed_.place_behind(keyed_.head_place(held.lane));
  return keyed_.item_at(oldest)->offset() <= held.offset();
}

void HandlerDesk::give_back_behind(const Held& held, std::vector<AckId>& nacks) {
  if (has_come_again(held)) return;
  while (const auto behind = keyed_.drop_waiting(held.message.key())) {
    if (outstanding_.erase(*behind) == 0) continue;
    nacks.push_back((*behind)->message.ack_id());
    ++skipped_;
  }
}

// The broker has voided them: they need no answer.
template <class IsVoid>
void HandlerDesk::drop_void(const std::string& key, const IsVoid& is_void) {
  std::vector<HeldMessage> kept;
  while (auto waiting = keyed_.drop_waiting(key)) {
    if (!is_void(**waiting)) {
      kept.push_back(std::move(*waiting));
    } else if (outstanding_.erase(*waiting) > 0) {
      ++skipped_;
    }
  }
  for (HeldMessage& held : kept)
    keyed_.push_admitted(key, std::move(held));
}

// Every quarter of a lease: whatever would not last until the next two times.
std::vector<HandlerDesk::HeldMessage> HandlerDesk::due_for_extension(TimePoint now) const {
  std::vector<HeldMessage> due;
  for (const HeldMessage& held : outstanding_) {
    if (held->is_lost || now - held->leased_at < lease_ / 4 || now >= held->give_up_at) continue;
    due.push_back(held);
  }
  return due;
}

void HandlerDesk::extended(const std::vector<HeldMessage>& asked,
                           const std::vector<SettleOutcome>& outcomes, TimePoint asked_at) {
  std::set<std::string> keys;
  bool is_any_free_lost = false;
  for (std::size_t i = 0; i < asked.size() && i < outcomes.size(); ++i) {
    Held& held = *asked[i];
    if (outcomes[i] == SettleOutcome::done) held.leased_at = std::max(held.leased_at, asked_at);
    if (outcomes[i] != SettleOutcome::stale || !outstanding_.contains(asked[i])) continue;
    held.is_lost = true;
    if (held.is_begun) continue;
    if (held.is_ordered) {
      keys.emplace(held.message.key());
    } else {
      is_any_free_lost = true;
    }
  }
  for (const std::string& key : keys)
    drop_void(key, [](const Held& held) { return held.is_lost; });
  if (!is_any_free_lost) return;
  std::erase_if(free_, [this](const HeldMessage& held) {
    if (!held->is_lost) return false;
    outstanding_.erase(held);
    ++skipped_;
    return true;
  });
}

std::size_t HandlerDesk::give_back_waiting(std::vector<AckId>& nacks) {
  const std::size_t before = nacks.size();
  const auto give_back = [&](const HeldMessage& held) {
    if (outstanding_.erase(held) > 0) nacks.push_back(held->message.ack_id());
  };
  for (const HeldMessage& held : free_)
    give_back(held);
  free_.clear();
  std::vector<std::string> keys;
  keyed_.for_each_lane([&](const auto& info) { keys.push_back(info.key); });
  for (const std::string& key : keys) {
    while (const auto held = keyed_.drop_waiting(key))
      give_back(*held);
  }
  return nacks.size() - before;
}

std::size_t HandlerDesk::give_back_all(std::vector<AckId>& nacks) {
  const std::size_t before = nacks.size();
  (void)give_back_waiting(nacks);
  for (const HeldMessage& held : outstanding_)
    nacks.push_back(held->message.ack_id());
  outstanding_.clear();
  return nacks.size() - before;
}

}  // namespace ordo::broker
