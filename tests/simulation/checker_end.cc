// Crashes, what a restart finds, and what has to be true at the end.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "ordo/core/check.h"
#include "tests/simulation/checker.h"

namespace ordo::simulation {

using broker::CursorNumber;
using broker::Offset;

void Checker::crash_copies(SubscriptionModel& subscription, std::uint32_t index) {
  const Address address{subscription.plan->topic_number(), index};
  PartitionCopies& copies = subscription.partitions[index];
  for (const std::uint64_t offset : std::vector<std::uint64_t>(copies.live))
    end_lease(subscription, address, offset);
  if (copies.seeking) {
    marks_.hit(Mark::seek_crash);
    const auto commit = partition(address).commits.find(copies.seeking->ticket->value());
    if (commit != partition(address).commits.end() && commit->second.is_doubted) {
      copies.has_doubtful_seek = true;
    } else if (commit != partition(address).commits.end() && !commit->second.is_stored) {
      copies.copies = copies.before_seek;
      rebuild_keys(subscription, address);
    }
  }
  if (std::exchange(copies.has_doubtful_seek, false)) {
    for (Copy& copy : copies.copies) {
      copy.fate = Fate::maybe_settled;
      copy.is_durable = false;
      copy.last_attempt = 0;  // If it was stored it has erased them, whatever came after it.
    }
  }
  copies.seeking.reset();
  copies.asked_seeks.clear();
  copies.found_seeks.clear();
  copies.before_seek.clear();
  copies.is_shaky = false;
  copies.earlier_fence = copies.highest_fence;
  for (Copy& copy : copies.copies) {
    if (!copy.is_here) continue;
    copy.is_live = false;
    if (copy.fate == Fate::settled && !copy.is_durable) copy.fate = Fate::maybe_settled;
    if (copy.fate == Fate::settled && copy.settled_by != 0) marks_.hit(Mark::confirmed_ack_kept);
    if (copy.is_dead_letter_under_way)
      marks_.hit(copy.is_dead ? Mark::dead_letter_crash_after_store
                              : Mark::dead_letter_crash_before_store);
    copy.is_dead_letter_under_way = false;
    copy.is_exact = false;
    copy.is_doubted = true;
    copy.not_before = {};
  }
  for (auto& [text, key] : copies.keys)
    key.is_stopped = key.is_paused;
}

// Everything is as it was then, but for fences, which rise whatever was lost, and for damage.
void Checker::lose_unsynced() {
  for (auto& [address, model] : synced_.partitions) {
    for (auto& [offset, entry] : model.log)
      entry.was_damaged = partitions_.at(address).log[offset].was_damaged;
  }
  for (auto& [number, subscription] : synced_.subscriptions) {
    const SubscriptionModel& now = subscriptions_.at(number);
    for (std::size_t index = 0; index < now.partitions.size(); ++index)
      subscription.partitions[index].highest_fence = now.partitions[index].highest_fence;
  }
  partitions_ = synced_.partitions;
  subscriptions_ = synced_.subscriptions;
  snapshots_ = synced_.snapshots;
}

void Checker::crash() {
  for (auto& [number, subscription] : subscriptions_) {
    for (std::uint32_t index = 0; index < subscription.partitions.size(); ++index)
      crash_copies(subscription, index);
  }
  for (auto& [address, model] : partitions_) {
    for (const auto& [ticket, commit] : model.commits) {
      if (commit.offsets.empty()) continue;
      marks_.hit(commit.is_stored ? Mark::crash_between_append_and_reply
                                  : Mark::crash_before_append);
      if (!commit.is_stored && !commit.is_doubted) vanish(address, commit);
    }
    if (!model.answerable.empty()) marks_.hit(Mark::crash_between_append_and_reply);
    model.answerable.clear();
    model.commits.clear();
    model.arrivals.clear();
    model.has_gap = false;
  }
  for (auto& [number, consumer] : consumers_)
    consumer.is_open = false;
  settles_.clear();
  verbs_.clear();
  dead_letters_.clear();
  ++epoch_;
}

void Checker::recover_partition(broker::Store& store, Address address, PartitionModel& model) {
  std::map<std::uint64_t, broker::MessageId> found;
  Offset at(1);
  for (;;) {
    const auto batches = store.read(address, at, 1'000, 1u << 30);
    ORDO_CHECK(batches.has_value());
    if (batches->batches.empty()) break;
    for (const auto& batch : batches->batches) {
      for (Offset offset = batch->first_offset; offset < batch->end_offset(); ++offset)
        found[offset.value()] = batch->first_id + (offset - batch->first_offset);
    }
    at = batches->next;
  }
  std::uint64_t next = model.trimmed;
  for (auto& [offset, entry] : model.log) {
    const bool is_found = found.contains(offset);
    if (is_found && entry.presence == Presence::gone)
      bad("RESURRECTED", "offset " + std::to_string(offset) + " was refused and is stored");
    if (!is_found && offset >= model.trimmed &&
        (entry.presence == Presence::visible || entry.presence == Presence::stored))
      bad("LOST", "offset " + std::to_string(offset) + " was stored and is gone");
    if (entry.presence == Presence::emitted && !is_found) entry.presence = Presence::gone;
    if (entry.presence == Presence::emitted && is_found && entry.dead_letter)
      dead_letter_stored(*entry.dead_letter, entry.uid);
    if (entry.presence != Presence::gone) {
      entry.presence = Presence::visible;
      if (is_found) entry.id = found[offset];
      model.last_id = std::max(model.last_id, entry.id);
      next = std::max(next, offset + 1);
    }
  }
  model.log.erase(model.log.lower_bound(next), model.log.end());
  model.next = model.end_visible = next;
  for (const auto& [offset, entry] : model.log) {
    if (entry.presence == Presence::visible) make_visible(address, offset, entry);
  }
  for (auto& [number, subscription] : subscriptions_) {
    if (subscription.plan->topic_number() != address.topic) continue;
    for (Copy& copy : subscription.partitions[address.index].copies)
      copy.is_exact = false;  // It may count as delivered though nobody saw that.
  }
}

void Checker::recover(broker::Store& store, const std::vector<CursorNumber>& subscriptions,
                      const std::vector<CursorNumber>& snapshots) {
  for (auto& [number, subscription] : subscriptions_) {
    const bool is_found =
        std::find(subscriptions.begin(), subscriptions.end(), number) != subscriptions.end();
    if (!is_found) subscription.is_deleted = true;
    if (is_found) {
      subscription.exists = true;
      subscription.is_deleted = false;
      for (PartitionCopies& copies : subscription.partitions)
        copies.is_detached = false;
    }
  }
  for (auto& [number, snapshot] : snapshots_)
    snapshot.exists = std::find(snapshots.begin(), snapshots.end(), number) != snapshots.end();
  for (auto& [address, model] : partitions_)
    recover_partition(store, address, model);
}

bool Checker::is_drained() const {
  return !has_commit_under_way() && is_settled();
}

bool Checker::is_settled() const {
  if (!dead_letters_.empty()) return false;
  for (const auto& [number, subscription] : subscriptions_) {
    if (subscription.is_deleted) continue;
    for (const PartitionCopies& copies : subscription.partitions) {
      if (!copies.live.empty()) return false;
      for (const Copy& copy : copies.copies) {
        if (copy.is_here && copy.fate == Fate::open) return false;
      }
    }
  }
  return true;
}

std::string Checker::owed() const {
  std::string text;
  for (const auto& [number, subscription] : subscriptions_) {
    if (subscription.is_deleted) continue;
    for (std::uint32_t index = 0; index < subscription.partitions.size(); ++index) {
      const PartitionCopies& copies = subscription.partitions[index];
      for (std::uint64_t offset = 1; offset < copies.copies.size(); ++offset) {
        const Copy& copy = copies.copies[offset];
        if (!copy.is_here || copy.fate != Fate::open) continue;
        text += "\n  " + where(subscription, {subscription.plan->topic_number(), index}, offset) +
                ": delivered " + std::to_string(copy.deliveries) + " times" +
                (copy.is_live ? ", leased" : "") +
                (copy.is_dead_letter_under_way ? ", dead letter under way" : "");
      }
    }
  }
  return text;
}

void Checker::finish(broker::Store& store) {
  // A trim may be under way: retention goes on. What else is shows in what was not answered.
  if (!is_settled()) bad("STUCK", "not everything was settled:" + owed());
  for (auto& [address, model] : partitions_) {
    for (const auto& [offset, entry] : model.log) {
      if (entry.presence != Presence::gone || offset < model.trimmed) continue;
      const auto batches = store.read(address, Offset(offset), 1, 1);
      if (batches && !batches->batches.empty() &&
          batches->batches.front()->first_offset <= Offset(offset))
        bad("RESURRECTED", "offset " + std::to_string(offset) + " was refused and is stored");
    }
    if (!model.answerable.empty()) bad("UNANSWERED", "a publish was stored and never answered");
    if (!model.arrivals.empty()) bad("UNANSWERED", "a publish was neither stored nor refused");
  }
  if (!settles_.empty()) bad("UNANSWERED", "an ack or deadline change was never answered");
  if (!verbs_.empty()) bad("UNANSWERED", "a verb was never answered");
}

}  // namespace ordo::simulation
