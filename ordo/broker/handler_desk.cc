#include "ordo/broker/handler_desk.h"

#include <algorithm>
#include <optional>
#include <set>

namespace ordo::broker {

namespace {

void add_unseen(GivenBack& back, const AckId& id) {
  back.ids.push_back(id);
  ++back.unseen;
}

}  // namespace

void HandlerDesk::deliver(HeldMessage held) {
  if (!held->is_ordered) {
    outstanding_.insert(held);
    free_.push_back(std::move(held));
    return;
  }
  if (!unanswered_.empty() && refuse_behind_unanswered(*held)) return;
  drop_from(*held);
  outstanding_.insert(held);
  const std::string_view key = held->message.key();
  keyed_.push_admitted(key, std::move(held));
}

void HandlerDesk::turn_away(const Held& held) {
  if (held.is_ordered) drop_from(held);
}

// True: it was sent before the broker knew of what was given back, which may make it void.
bool HandlerDesk::refuse_behind_unanswered(const Held& held) {
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

// The broker has begun again at `held`: what waits from there on is void, and needs no answer.
void HandlerDesk::drop_from(const Held& held) {
  const std::string_view key = held.message.key();
  const HeldMessage* newest = keyed_.newest(key);
  if (newest == nullptr || (*newest)->offset() < held.offset()) return;
  std::vector<HeldMessage> kept;
  while (auto waiting = keyed_.drop_waiting(key)) {
    if ((*waiting)->offset() < held.offset()) {
      kept.push_back(std::move(*waiting));
    } else if (outstanding_.erase(*waiting) > 0) {
      ++skipped_;
    }
  }
  for (HeldMessage& before : kept)
    keyed_.push_admitted(key, std::move(before));
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

// If its lease had run out, those behind it are void, even where it counted because nothing had
// been delivered again.
GivenBack HandlerDesk::ack_settled(const Held& held) {
  GivenBack back;
  if (!has_come_again(held)) {
    give_back_behind(held, back);
    expect_answer(std::string(held.message.key()), back);
  }
  keyed_.finish(held.lane);
  return back;
}

GivenBack HandlerDesk::nack(const HeldMessage& held) {
  GivenBack back;
  if (outstanding_.erase(held) == 0) return back;
  back.ids.push_back(held->message.ack_id());
  if (!held->is_ordered) return back;
  if (!has_come_again(*held)) {
    give_back_behind(*held, back);
    expect_answer(std::string(held->message.key()), back);
  }
  keyed_.finish(held->lane);
  return back;
}

// What counted has made void all that was delivered behind it and not taken meanwhile. What did not
// count was somebody else's, or settled: then those may be the next.
GivenBack HandlerDesk::given_back(const GivenBack& sent,
                                  const std::vector<SettleOutcome>& outcomes) {
  GivenBack back;
  const auto found = unanswered_.find(sent.key);
  if (found == unanswered_.end() || found->second.fence != sent.ids.front().fence) return back;
  std::optional<Offset> void_behind;
  for (std::size_t i = 0; i < sent.ids.size() && i < outcomes.size(); ++i) {
    if (outcomes[i] != SettleOutcome::done) continue;
    if (!void_behind || sent.ids[i].offset < *void_behind) void_behind = sent.ids[i].offset;
  }
  const std::vector<AckId> untaken = std::move(found->second.untaken);
  unanswered_.erase(found);
  for (const AckId& id : untaken) {
    if (!void_behind || id.offset <= *void_behind) add_unseen(back, id);
  }
  expect_answer(sent.key, back);
  return back;
}

// What was not taken because of an earlier one goes with it.
void HandlerDesk::expect_answer(const std::string& key, GivenBack& back) {
  if (back.ids.empty()) return;
  Unanswered& unanswered = unanswered_[key];
  for (const AckId& id : unanswered.untaken)
    add_unseen(back, id);
  unanswered = {back.ids.front().offset, back.ids.front().fence, {}};
  back.key = key;
}

// What waits is in the order of offsets, so the oldest tells.
// REQUIRES: its turn is not over.
bool HandlerDesk::has_come_again(const Held& held) {
  if (keyed_.item_count(held.lane) < 2) return false;
  const std::uint32_t oldest = keyed_.place_behind(keyed_.head_place(held.lane));
  return keyed_.item_at(oldest)->offset() <= held.offset();
}

void HandlerDesk::give_back_behind(const Held& held, GivenBack& back) {
  while (const auto behind = keyed_.drop_waiting(held.message.key())) {
    if (outstanding_.erase(*behind) == 0) continue;
    add_unseen(back, (*behind)->message.ack_id());
    ++skipped_;
  }
}

// A lease that is lost needs no answer; whether those behind it are void is not known.
GivenBack HandlerDesk::let_go_lost(const std::string& key) {
  GivenBack back;
  std::vector<HeldMessage> kept;
  bool is_behind = false;
  while (auto waiting = keyed_.drop_waiting(key)) {
    is_behind = is_behind || (*waiting)->is_lost;
    if (!is_behind) {
      kept.push_back(std::move(*waiting));
    } else if (outstanding_.erase(*waiting) > 0) {
      ++skipped_;
      if (!(*waiting)->is_lost) add_unseen(back, (*waiting)->message.ack_id());
    }
  }
  for (HeldMessage& held : kept)
    keyed_.push_admitted(key, std::move(held));
  expect_answer(key, back);
  return back;
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

std::vector<GivenBack> HandlerDesk::extended(const std::vector<HeldMessage>& asked,
                                             const std::vector<SettleOutcome>& outcomes,
                                             TimePoint asked_at) {
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
  std::vector<GivenBack> backs;
  for (const std::string& key : keys) {
    GivenBack back = let_go_lost(key);
    if (!back.ids.empty()) backs.push_back(std::move(back));
  }
  if (!is_any_free_lost) return backs;
  std::erase_if(free_, [this](const HeldMessage& held) {
    if (!held->is_lost) return false;
    outstanding_.erase(held);
    ++skipped_;
    return true;
  });
  return backs;
}

GivenBack HandlerDesk::give_back_waiting() {
  GivenBack back;
  const auto give_back = [&](const HeldMessage& held) {
    if (outstanding_.erase(held) > 0) add_unseen(back, held->message.ack_id());
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
  for (const auto& [key, unanswered] : unanswered_) {
    for (const AckId& id : unanswered.untaken)
      add_unseen(back, id);
  }
  unanswered_.clear();
  return back;
}

GivenBack HandlerDesk::give_back_all() {
  const GivenBack waiting = give_back_waiting();
  GivenBack back;
  for (const HeldMessage& held : outstanding_)
    back.ids.push_back(held->message.ack_id());
  outstanding_.clear();
  back.ids.insert(back.ids.end(), waiting.ids.begin(), waiting.ids.end());
  back.unseen = waiting.unseen;
  return back;
}

}  // namespace ordo::broker
