// Dead letters, verbs, seeks, snapshots and counters.
#include <algorithm>
#include <string>
#include <utility>

#include "ordo/broker/message_codec.h"
#include "ordo/core/check.h"
#include "tests/simulation/checker.h"

namespace ordo::simulation {

using broker::AckId;
using broker::CursorNumber;

// ---------------------------------------------------------------------- dead letters

void Checker::dead_letter_sent(Address source, const broker::SendDeadLetter& sent) {
  const auto view = broker::decode_message(sent.message.bytes);
  if (!view) {
    bad("DEAD_LETTER", "a dead letter that is no message");
    return;
  }
  const Uid uid = std::strtoull(std::string(view->data).c_str(), nullptr, 10);
  CursorNumber number;
  for (const broker::CommitOp& op : sent.settlement) {
    if (const auto* put = std::get_if<broker::PutRow>(&op)) number = put->key.cursor;
    if (const auto* erase = std::get_if<broker::EraseRow>(&op)) number = erase->key.cursor;
  }
  SubscriptionModel* subscription = find(number);
  if (subscription == nullptr || uid == 0 || uid >= published_.size()) {
    bad("DEAD_LETTER", "a dead letter of nothing that is known, uid " + std::to_string(uid));
    return;
  }
  const std::uint64_t offset = published_[uid].offset;
  const std::string place = where(*subscription, source, offset);
  if (view->ordering_key != published_[uid].key || sent.message.key() != published_[uid].key)
    bad("DEAD_LETTER", place + " has lost its key");
  for (const std::string_view name :
       {"DeliveryCount", "Subscription", "SubscriptionProject", "TopicPublishTime"}) {
    if (!view->attribute("CloudPubSubDeadLetterSource" + std::string(name)))
      bad("DEAD_LETTER", place + " does not name its " + std::string(name));
  }
  if ((view->attribute("colour") == "red") != published_[uid].is_red)
    bad("DEAD_LETTER", place + " has lost its attributes");
  PartitionCopies& copies = subscription->partitions[source.index];
  Copy& copy = copies.copy(offset);
  age(*subscription, source);
  if (copy.fate == Fate::settled) bad("DEAD_AFTER_ACK", place + " is settled and dead-lettered");
  if (copy.is_live && !copy.is_shaky)
    bad("DEAD_LETTER", place + " is dead-lettered while its lease runs");
  end_lease(*subscription, source, offset);
  const KeyState& key = copies.keys[published_[uid].key];
  if (!key.may_dead_letter) {
    if (copy.is_exact && !copy.is_doubted && copy.failures < subscription->plan->attempts_max())
      bad("DEAD_EARLY",
          place + " is dead-lettered after " + std::to_string(copy.failures) + " failures");
    if (subscription->plan->config.failure_policy != broker::FailurePolicy::dead_letter)
      bad("DEAD_LETTER", place + " is dead-lettered without a policy");
  }
  copy.is_dead_letter_under_way = true;
  dead_letters_[{source, sent.ticket.value()}] =
      AckId{number, source.index, broker::Offset(offset), broker::Fence(copy.fence)};
}

void Checker::dead_letter_arrives(Address target, Address source, broker::TicketNumber ticket) {
  const AckId id = dead_letters_.at({source, ticket.value()});
  const Uid uid = partition(source).log[id.offset.value()].uid;
  partition(target).arrivals.push_back({broker::RequestNumber(), {uid}, id});
}

void Checker::dead_letter_answered(Address target, const broker::AnswerDeadLetter& answer) {
  const auto found = dead_letters_.find({answer.source, answer.ticket.value()});
  if (found == dead_letters_.end()) return;
  std::erase_if(partition(target).arrivals,
                [&](const Arrival& a) { return a.dead_letter == found->second; });
}

void Checker::dead_letter_done(Address source, const broker::DeadLetterDone& done) {
  const auto found = dead_letters_.find({source, done.ticket.value()});
  if (found == dead_letters_.end()) {
    bad("DEAD_LETTER", "an answer to no dead letter");
    return;
  }
  const AckId id = found->second;
  dead_letters_.erase(found);
  PartitionCopies* copies = find_copies(id.subscription, id.partition);
  if (copies == nullptr) return;
  Copy& copy = copies->copy(id.offset.value());
  copy.is_dead_letter_under_way = false;
  if (!done.error) return;
  if (done.error->code == ErrorCode::resource_exhausted) marks_.hit(Mark::dead_letter_refused);
  if (done.error->code == ErrorCode::not_found) marks_.hit(Mark::dead_letter_topic_gone);
  if (copy.is_dead && done.error->code == ErrorCode::resource_exhausted)
    bad("DEAD_LETTER", "refused for want of space and yet stored");
}

// ---------------------------------------------------------------------- verbs

bool Checker::has_open(CursorNumber number, Address address, const std::string& key) const {
  const auto subscription = subscriptions_.find(number);
  if (subscription == subscriptions_.end()) return false;
  const PartitionCopies& copies = subscription->second.partitions[address.index];
  const auto found = copies.keys.find(key);
  if (found == copies.keys.end()) return false;
  return std::any_of(
      found->second.offsets.begin(), found->second.offsets.end(),
      [&](std::uint64_t offset) { return copies.copies[offset].fate == Fate::open; });
}

std::size_t Checker::live_count(CursorNumber number) const {
  std::size_t count = 0;
  if (const auto found = subscriptions_.find(number); found != subscriptions_.end()) {
    for (const PartitionCopies& copies : found->second.partitions)
      count += copies.live.size();
  }
  return count;
}

namespace {

bool is_in_flight(const PartitionCopies& copies, const KeyState& key) {
  return std::any_of(key.offsets.begin(), key.offsets.end(), [&](std::uint64_t offset) {
    return copies.copies[offset].is_live && !copies.copies[offset].is_shaky;
  });
}

}  // namespace

void Checker::operate(Address address, const broker::OperateKey& operate) {
  using Verb = broker::OperateKey::Verb;
  SubscriptionModel& subscription = subscriptions_.at(operate.subscription);
  PartitionCopies& copies = subscription.partitions[address.index];
  KeyState& key = copies.keys[operate.key];
  AskedVerb asked{operate, 0, true};
  key.last_verb = operate.request.value();
  switch (operate.verb) {
    case Verb::pause:
      break;
    case Verb::resume:
      key.is_stopped = key.is_paused = false;
      for (std::uint64_t offset = 1; offset < copies.copies.size(); ++offset) {
        Copy& copy = copies.copy(offset);
        if (!copy.is_here) continue;
        if (!operate.key.empty() && partition(address).log[offset].key != operate.key) continue;
        copy.is_exact = false;
        copy.is_doubted = true;
        copy.last_attempt = 0;
        copy.not_before = {};
      }
      break;
    case Verb::skip_head:
      if (has_damage(address, key)) {  // Its head is not the first that is open.
        asked.is_certain = false;
        key.is_stopped = key.is_paused;
        for (const std::uint64_t offset : key.offsets) {
          if (copies.copy(offset).fate != Fate::open) continue;
          copies.copy(offset).fate = Fate::maybe_settled;
          doubt(subscription, address, offset);
        }
        break;
      }
      if (is_in_flight(copies, key)) break;
      if (!key.is_paused) key.is_stopped = false;
      for (const std::uint64_t offset : key.offsets) {
        Copy& copy = copies.copy(offset);
        if (copy.fate == Fate::settled) continue;
        if (copy.fate == Fate::maybe_settled) {
          asked.is_certain = false;
          continue;
        }
        asked.head = offset;
        if (copy.is_dead_letter_under_way || copy.is_live) asked.is_certain = false;
        copy.fate = Fate::maybe_settled;
        copy.is_shaky = true;
        break;
      }
      break;
    case Verb::dead_letter_head:
      if (!has_damage(address, key) && is_in_flight(copies, key)) break;
      key.may_dead_letter = true;
      key.is_stopped = key.is_paused;  // A pause stays; a park ends with its head.
      for (const std::uint64_t offset : key.offsets) {
        Copy& copy = copies.copy(offset);
        if (copy.fate == Fate::settled) continue;
        copy.is_shaky = true;
        if (copy.fate == Fate::open && !has_damage(address, key)) break;
      }
      break;
  }
  verbs_[operate.request.value()] = std::move(asked);
}

void Checker::operated(Address address, const broker::VerbReply& reply) {
  using Verb = broker::OperateKey::Verb;
  const auto found = verbs_.find(reply.request.value());
  if (found == verbs_.end()) return;
  const AskedVerb asked = std::move(found->second);
  verbs_.erase(found);
  if (reply.error) return;
  PartitionCopies* copies = find_copies(asked.operate.subscription, address.index);
  if (copies == nullptr) return;
  KeyState& key = copies->keys[asked.operate.key];
  switch (asked.operate.verb) {
    case Verb::pause:
      if (key.last_verb == reply.request.value()) key.is_stopped = key.is_paused = true;
      marks_.hit(Mark::paused);
      break;
    case Verb::resume:
      marks_.hit(Mark::resumed);
      break;
    case Verb::skip_head:
      marks_.hit(Mark::head_skipped);
      if (asked.head == 0 || !asked.is_certain) break;
      if (Copy& copy = copies->copy(asked.head); copy.fate != Fate::open) {
        copy.fate = Fate::settled;
        copy.is_durable = true;
      } else {
        bad("SKIPPED", "offset " + std::to_string(asked.head) + " was skipped and delivered again");
      }
      break;
    case Verb::dead_letter_head:
      marks_.hit(Mark::head_dead_lettered);
      break;
  }
}

// ---------------------------------------------------------------------- seeks and snapshots

void Checker::seek(Address address, CursorNumber subscription, const Seeking& seeking) {
  if (PartitionCopies* copies = find_copies(subscription, address.index)) {
    if (copies->has_seek()) marks_.hit(Mark::seek_overlapping);
    Seeking asked = seeking;
    asked.asked_end = partition(address).end_visible;
    if (asked.time) {
      copies->asked_seeks.push_back(asked);
    } else {
      copies->found_seeks.push_back(asked);
    }
  }
}

void Checker::time_asked(Address address, broker::TicketNumber ticket) {
  for (auto& [number, subscription] : subscriptions_) {
    if (subscription.plan->topic_number() != address.topic) continue;
    for (Seeking& asked : subscription.partitions[address.index].asked_seeks) {
      if (asked.find) continue;
      asked.find = ticket;
      return;
    }
  }
}

void Checker::time_found(Address address, const broker::TimeFound& found) {
  if (!found.result) return;
  for (auto& [number, subscription] : subscriptions_) {
    if (subscription.plan->topic_number() != address.topic) continue;
    PartitionCopies& copies = subscription.partitions[address.index];
    std::erase_if(copies.asked_seeks, [&](const Seeking& asked) {
      if (asked.find != found.ticket) return false;
      copies.found_seeks.push_back(asked);
      return true;
    });
  }
}

bool Checker::is_seeking(CursorNumber number) const {
  const auto found = subscriptions_.find(number);
  return found != subscriptions_.end() &&
         std::any_of(found->second.partitions.begin(), found->second.partitions.end(),
                     [](const PartitionCopies& copies) { return copies.has_seek(); });
}

void Checker::void_leases(SubscriptionModel& subscription, Address address) {
  PartitionCopies& copies = subscription.partitions[address.index];
  if (!copies.live.empty()) marks_.hit(Mark::seek_with_leases);
  for (const std::uint64_t offset : std::vector<std::uint64_t>(copies.live))
    end_lease(subscription, address, offset);
}

void Checker::rebuild_keys(SubscriptionModel& subscription, Address address) {
  PartitionCopies& copies = subscription.partitions[address.index];
  for (auto& [text, key] : copies.keys) {
    key.offsets.clear();
    key.settled_prefix = 0;
  }
  for (const auto& [offset, entry] : partition(address).log) {
    if (offset < copies.copies.size() && copies.copies[offset].is_here)
      copies.keys[entry.key].offsets.push_back(offset);
  }
}

void Checker::apply_seek(SubscriptionModel& subscription, Address address,
                         broker::TicketNumber ticket) {
  PartitionCopies& copies = subscription.partitions[address.index];
  if (copies.seeking) bad("SEEK", "a seek begins while another is under way");
  if (copies.found_seeks.empty()) {
    bad("ERASED", "the rows of s" + std::to_string(subscription.index) + " are erased unasked");
    return;
  }
  copies.seeking = copies.found_seeks.front();
  copies.found_seeks.pop_front();
  copies.seeking->ticket = ticket;
  copies.seeking->end = partition(address).end_visible;
  void_leases(subscription, address);
  copies.before_seek = copies.copies;
  const std::vector<Copy>* snapshot = nullptr;
  if (!copies.seeking->time) {
    snapshot = &snapshots_.at(copies.seeking->snapshot).partitions[address.index];
    marks_.hit(Mark::seek_to_snapshot);
  }
  PartitionModel& model = partition(address);
  for (const auto& [offset, entry] : model.log) {
    if (!subscription.wants(entry)) continue;
    if (entry.presence != Presence::visible) {
      // Being stored: the store may have known it already.
      if (entry.presence != Presence::gone && copies.seeking->time &&
          entry.publish_time < *copies.seeking->time)
        copies.copy(offset).fate = Fate::maybe_settled;
      continue;
    }
    Copy fresh;
    Copy& copy = copies.copy(offset);
    fresh.is_here = true;
    fresh.fence = copy.fence;  // It is void now.
    fresh.epoch = copy.epoch;
    fresh.is_void = true;
    if (snapshot != nullptr) {
      if (offset < snapshot->size() && (*snapshot)[offset].fate != Fate::open)
        fresh.fate = (*snapshot)[offset].fate;
      if (offset < snapshot->size() && !(*snapshot)[offset].is_here) fresh.fate = Fate::settled;
    } else if (entry.publish_time < *copies.seeking->time) {
      // What was being stored when it was asked for may have been found, or not.
      fresh.fate = offset < copies.seeking->asked_end ? Fate::settled : Fate::maybe_settled;
    }
    if (offset < model.trimmed && fresh.fate == Fate::open)
      fresh.fate = Fate::maybe_settled;  // It may be there still.
    fresh.is_durable = fresh.fate == Fate::settled;
    if (copy.is_here && copy.fate == Fate::open && fresh.fate == Fate::settled)
      marks_.hit(Mark::seek_skips);
    if (copy.fate == Fate::settled && fresh.fate == Fate::open) marks_.hit(Mark::seek_replays);
    copy = fresh;
  }
  for (auto& [request, verb] : verbs_)
    verb.is_certain = false;
  for (auto& [text, key] : copies.keys) {
    if (key.is_paused) marks_.hit(Mark::seek_with_pause);
    key.is_stopped = key.is_paused;  // A pause belongs to the key.
    key.last_verb = 0;
  }
  rebuild_keys(subscription, address);
}

void Checker::seek_failed(SubscriptionModel& subscription, Address address, const Error& error) {
  PartitionCopies& copies = subscription.partitions[address.index];
  if (error.code == ErrorCode::resource_exhausted) {
    const std::vector<Copy> after = std::move(copies.copies);
    copies.copies = copies.before_seek;
    for (std::size_t offset = 1; offset < after.size(); ++offset) {
      Copy& copy = copies.copy(offset);
      if (offset >= copies.seeking->end) copy = after[offset];
      copy.is_void = true;
      copy.is_doubted = true;
      copy.not_before = {};
    }
  } else {
    copies.has_doubtful_seek = true;
    for (Copy& copy : copies.copies) {
      copy.fate = Fate::maybe_settled;
      copy.is_durable = copy.is_exact = false;
      copy.is_doubted = true;
    }
  }
  rebuild_keys(subscription, address);
}

void Checker::sought(Address address, const broker::Sought& sought) {
  for (auto& [number, subscription] : subscriptions_) {
    if (subscription.plan->topic_number() != address.topic) continue;
    PartitionCopies& copies = subscription.partitions[address.index];
    const auto is_it = [&](const Seeking& seek) { return seek.request == sought.request; };
    std::erase_if(copies.asked_seeks, is_it);
    std::erase_if(copies.found_seeks, is_it);
  }
}

void Checker::take_snapshot(Address address, CursorNumber subscription, CursorNumber number) {
  SnapshotModel& snapshot = snapshots_[number];
  const SubscriptionModel& source = subscriptions_.at(subscription);
  snapshot.subscription = source.index;
  snapshot.partitions.resize(plan_.partitions);
  std::vector<Copy>& copies = snapshot.partitions[address.index];
  copies = source.partitions[address.index].copies;
  copies.resize(partition(address).end_visible);
  for (Copy& copy : copies) {  // Whether it is told already is not to be seen from here.
    if (copy.is_dead_letter_under_way) copy.fate = Fate::maybe_settled;
  }
}

// ---------------------------------------------------------------------- damage

std::optional<std::uint64_t> Checker::pick_stored(Address address, std::uint64_t choice) const {
  const auto model = partitions_.find(address);
  if (model == partitions_.end()) return std::nullopt;
  std::vector<std::uint64_t> offsets;
  for (const auto& [offset, entry] : model->second.log) {
    if (offset >= model->second.trimmed && entry.presence == Presence::visible)
      offsets.push_back(offset);
  }
  if (offsets.empty()) return std::nullopt;
  return offsets[choice % offsets.size()];
}

void Checker::damaged(Address address, std::uint64_t first, std::uint64_t end) {
  marks_.hit(Mark::damaged);
  PartitionModel& model = partition(address);
  for (auto entry = model.log.lower_bound(first); entry != model.log.end() && entry->first < end;
       ++entry)
    entry->second.was_damaged = true;
}

bool Checker::has_damage(Address address, const KeyState& key) {
  return std::any_of(key.offsets.begin(), key.offsets.end(), [&](std::uint64_t offset) {
    return partition(address).log[offset].was_damaged;
  });
}

void Checker::kept_back(Address address, const broker::KeptBack& kept_back) {
  marks_.hit(Mark::damage_kept_back);
  const std::uint64_t offset = kept_back.offset.value();
  const LogEntry& entry = partition(address).log[offset];
  if (!entry.was_damaged || entry.key != kept_back.key || entry.id != kept_back.id)
    bad("KEPT_BACK", "offset " + std::to_string(offset) + " was kept back and is as published");
  const auto consumer = consumers_.find(kept_back.consumer);
  if (consumer == consumers_.end()) return;
  SubscriptionModel& subscription = subscriptions_.at(consumer->second.subscription);
  subscription.partitions[address.index].copy(offset).lost_epoch = epoch_;
}

void Checker::listed(Address address, CursorNumber number, const broker::KeyFacts& key) {
  if (key.reason != broker::BlockReason::data_loss) return;
  marks_.hit(key.key.empty() ? Mark::damage_without_key : Mark::damage_blocks_key);
  const std::uint64_t offset = key.head_offset.value();
  PartitionCopies* copies = find_copies(number, address.index);
  if (copies == nullptr || offset == 0) return;
  const LogEntry& entry = partition(address).log[offset];
  if (!key.key.empty() && entry.was_damaged && entry.key == key.key)
    copies->copy(offset).lost_epoch = epoch_;
}

// Who only looks sees what is there: nothing that is settled for good, and what is in flight as
// such.
void Checker::peeked(Address address, CursorNumber number, const broker::PeekedMessage& peeked) {
  SubscriptionModel* subscription = find(number);
  PartitionCopies* copies = find_copies(number, address.index);
  if (subscription == nullptr || copies == nullptr || copies->has_seek()) return;
  marks_.hit(Mark::peeked);
  const std::uint64_t offset = peeked.offset.value();
  const std::string place = where(*subscription, address, offset);
  const LogEntry& entry = partition(address).log[offset];
  if (peeked.message && (peeked.message.id() != entry.id || peeked.message.key() != entry.key))
    bad("PEEK", place + " is shown and is another message");
  const Copy& copy = copies->copy(offset);
  // That a dead letter is stored its source learns later.
  const bool is_settled =
      copy.fate == Fate::settled && copy.is_durable && !copy.is_dead_letter_under_way;
  if (is_settled && !copies->has_doubtful_seek) bad("PEEK", place + " is shown and is settled");
  const bool is_in_flight = peeked.state == broker::PeekState::in_flight;
  if (!copies->is_shaky && !copy.is_shaky && peeked.message && is_in_flight != copy.is_live)
    bad("PEEK", place + (is_in_flight ? " is shown as in flight and is not"
                                      : " is in flight and not shown so"));
}

// ---------------------------------------------------------------------- counters

void Checker::stats(Address address, const broker::PartitionStats& stats, bool is_end) {
  for (const broker::SubscriptionStats& s : stats.subscriptions) {
    SubscriptionModel* subscription = find(s.subscription);
    if (subscription == nullptr) continue;
    const std::string place = where(*subscription, address, 0);
    if (s.routed != s.acked + s.dead_lettered + s.skipped + s.expired + s.waiting + s.leased) {
      bad("CONSERVATION",
          place + ": routed " + std::to_string(s.routed) + ", acked " + std::to_string(s.acked) +
              ", dead-lettered " + std::to_string(s.dead_lettered) + ", skipped " +
              std::to_string(s.skipped) + ", expired " + std::to_string(s.expired) + ", waiting " +
              std::to_string(s.waiting) + ", leased " + std::to_string(s.leased));
    }
    const PartitionCopies& copies = subscription->partitions[address.index];
    if (!copies.is_shaky && !copies.has_seek() && s.leased != copies.live.size()) {
      bad("LEASES", place + ": " + std::to_string(s.leased) + " leased, " +
                        std::to_string(copies.live.size()) + " seen");
    }
    if (s.waiting + s.leased + s.lanes + s.unread > 0) is_idle_ = false;
    if (!is_end) continue;
    if (s.waiting + s.leased + s.lanes + s.parked_lanes + s.unread != 0) {
      bad("NOT_EMPTY", place + ": waiting " + std::to_string(s.waiting) + ", leased " +
                           std::to_string(s.leased) + ", lanes " + std::to_string(s.lanes) +
                           ", parked " + std::to_string(s.parked_lanes) + ", unread " +
                           std::to_string(s.unread));
    }
    if (s.acked_intervals > 1)
      bad("NOT_EMPTY", place + ": " + std::to_string(s.acked_intervals) + " intervals are left");
  }
}

}  // namespace ordo::simulation
