#include "tests/simulation/checker.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>

#include "ordo/broker/message_codec.h"
#include "ordo/core/check.h"

namespace ordo::simulation {

using broker::AckId;
using broker::ConsumerNumber;
using broker::CursorNumber;
using broker::Offset;
using broker::PartitionAddress;

namespace {

Uid uid_of(std::string_view body) {
  const Result<broker::MessageView> view = broker::decode_message(body);
  if (!view || view->data.empty()) return 0;
  Uid uid = 0;
  std::from_chars(view->data.data(), view->data.data() + view->data.size(), uid);
  return uid;
}

}  // namespace

Checker::Checker(const Plan& plan, Marks& marks) : plan_(plan), marks_(marks) {
  published_.emplace_back();  // Uid 0 is none.
}

void Checker::bad(std::string_view code, const std::string& text) {
  if (violation_.empty()) violation_ = std::string(code) + ": " + text;
}

std::string Checker::where(const SubscriptionModel& subscription, Address address,
                           std::uint64_t offset) const {
  std::string text = "s" + std::to_string(subscription.index) + " t" +
                     std::to_string(address.topic.value()) + "/" + std::to_string(address.index) +
                     " offset " + std::to_string(offset);
  if (const auto model = partitions_.find(address); model != partitions_.end()) {
    if (const auto entry = model->second.log.find(offset); entry != model->second.log.end()) {
      text += " (uid " + std::to_string(entry->second.uid) + " key '" + entry->second.key + "')";
    }
  }
  return text;
}

SubscriptionModel* Checker::find(CursorNumber number) {
  const auto found = subscriptions_.find(number);
  return found == subscriptions_.end() ? nullptr : &found->second;
}

PartitionCopies* Checker::find_copies(CursorNumber number, std::uint32_t index) {
  SubscriptionModel* subscription = find(number);
  if (subscription == nullptr || index >= subscription->partitions.size()) return nullptr;
  return &subscription->partitions[index];
}

// ---------------------------------------------------------------------- publishing, commits

Uid Checker::new_message(Address address, std::string key, bool is_red) {
  published_.push_back({std::move(key), is_red, address, 0});
  return published_.size() - 1;
}

void Checker::publish(Address address, broker::RequestNumber request,
                      const std::vector<Uid>& uids) {
  partition(address).arrivals.push_back({request, uids, std::nullopt});
}

void Checker::publish_replied(Address address, const broker::PublishReply& reply) {
  PartitionModel& model = partition(address);
  if (reply.first_id) {
    const auto stored = model.answerable.find(reply.request.value());
    if (stored == model.answerable.end() || model.log[stored->second].id != *reply.first_id) {
      bad("REPLY_BEFORE_STORE",
          "request " + std::to_string(reply.request.value()) + " was answered with id " +
              std::to_string(reply.first_id->value()) + ", but no such message is stored");
      return;
    }
    model.answerable.erase(stored);
    return;
  }
  const auto refused = std::find_if(model.arrivals.begin(), model.arrivals.end(),
                                    [&](const Arrival& a) { return a.request == reply.request; });
  if (refused == model.arrivals.end()) return;  // It failed with its commit.
  model.arrivals.erase(refused);
  marks_.hit(Mark::publish_refused);
  if (reply.first_id.error().code != ErrorCode::resource_exhausted)
    bad("REFUSAL", "a publish was refused with: " + reply.first_id.error().message);
}

void Checker::appended(PartitionModel& model, const broker::MessageBatch& batch,
                       CommitModel& commit) {
  const std::uint64_t first = batch.first_offset.value();
  if (first < model.next) {
    bad("OFFSET", "offsets from " + std::to_string(first) + " were given before");
    return;
  }
  if (first > model.next || model.has_gap) marks_.hit(Mark::gap_after_failed_commit);
  model.has_gap = false;
  std::vector<Uid> expected;
  while (expected.size() < batch.count() && !model.arrivals.empty()) {
    const Arrival& arrival = model.arrivals.front();
    expected.insert(expected.end(), arrival.uids.begin(), arrival.uids.end());
    commit.arrivals.push_back(arrival);
    model.arrivals.pop_front();
  }
  if (expected.size() != batch.count()) {
    bad("TORN_REQUEST", "an append of " + std::to_string(batch.count()) + " messages for " +
                            std::to_string(expected.size()) + " that were published");
    return;
  }
  for (std::uint32_t i = 0; i < batch.count(); ++i) {
    const broker::MessageBatch::Entry& stored = batch.entries[i];
    const auto body = std::string_view(batch.bytes).substr(stored.body_at, stored.body_size);
    const Uid uid = uid_of(body);
    if (uid != expected[i]) {
      bad("PUBLISH_ORDER", "uid " + std::to_string(uid) + " is stored where " +
                               std::to_string(expected[i]) + " was published");
      return;
    }
    LogEntry entry;
    entry.uid = uid;
    entry.publish_time = batch.publish_time;
    entry.key = published_[uid].key;
    entry.is_red = published_[uid].is_red;
    entry.size = stored.body_size;
    if (!model.log.empty() && model.log.rbegin()->second.publish_time > entry.publish_time &&
        model.log.rbegin()->second.presence != Presence::gone)
      bad("PUBLISH_TIME", "the publish time of uid " + std::to_string(uid) + " falls");
    entry.dead_letter = commit.arrivals.back().dead_letter;
    if (!entry.dead_letter) published_[uid].offset = first + i;
    model.log[first + i] = std::move(entry);
    commit.offsets.push_back(first + i);
  }
  model.next = batch.end_offset().value();
}

void Checker::check_trim(Address address, const broker::Trim& trim) {
  marks_.hit(Mark::trimmed);
  PartitionModel& model = partition(address);
  const std::uint64_t before = trim.before.value();
  model.trimmed = std::max(model.trimmed, before);
  const auto check = [&](const std::vector<Copy>& copies, const std::string& who) {
    for (std::uint64_t offset = 1; offset < std::min<std::uint64_t>(before, copies.size());
         ++offset) {
      if (copies[offset].is_here && copies[offset].fate == Fate::open)
        bad("TRIM", who + " still needs offset " + std::to_string(offset) + ", trimmed before " +
                        std::to_string(before));
    }
  };
  for (auto& [number, subscription] : subscriptions_) {
    if (!is_here(subscription, address)) continue;
    check(subscription.partitions[address.index].copies, "s" + std::to_string(subscription.index));
  }
  for (auto& [number, snapshot] : snapshots_) {
    if (!snapshot.exists ||
        plan_.subscriptions[snapshot.subscription].topic_number() != address.topic)
      continue;
    check(snapshot.partitions[address.index], "a snapshot");
  }
}

void Checker::commit_asked(Address address, const broker::Commit& commit) {
  PartitionModel& model = partition(address);
  CommitModel& under_way = model.commits[commit.ticket.value()];
  for (const broker::CommitOp& op : commit.ops) {
    if (const auto* append = std::get_if<broker::Append>(&op)) {
      if (append->partition != address) bad("FOREIGN", "an append to another partition");
      appended(model, *append->batch, under_way);
      under_way.batches.push_back(append->batch);
    } else if (const auto* trim = std::get_if<broker::Trim>(&op)) {
      check_trim(address, *trim);
    } else if (const auto* erase = std::get_if<broker::EraseRows>(&op)) {
      SubscriptionModel* subscription = find(erase->cursor);
      if (subscription == nullptr || !is_here(*subscription, address)) continue;
      apply_seek(*subscription, address, commit.ticket);
      under_way.sought.push_back(erase->cursor);
    }
  }
}

void Checker::commit_stored(Address address, broker::TicketNumber ticket) {
  PartitionModel& model = partition(address);
  CommitModel& commit = model.commits[ticket.value()];
  commit.is_stored = true;
  for (const auto& batch : commit.batches) {
    if (batch->first_id <= model.last_id)
      bad("MESSAGE_ID", "id " + std::to_string(batch->first_id.value()) + " does not rise");
    model.last_id = batch->first_id + (batch->count() - 1);
    for (std::uint64_t i = 0; i < batch->count(); ++i) {
      LogEntry& entry = model.log[batch->first_offset.value() + i];
      entry.presence = Presence::stored;
      entry.id = batch->first_id + i;
    }
  }
  for (const Arrival& arrival : commit.arrivals) {
    if (arrival.dead_letter) dead_letter_stored(*arrival.dead_letter, arrival.uids.front());
  }
}

void Checker::dead_letter_stored(const AckId& source, Uid uid) {
  SubscriptionModel* subscription = find(source.subscription);
  if (subscription == nullptr) return;
  Copy& copy = subscription->partitions[source.partition].copy(source.offset.value());
  const Address address{subscription->plan->topic_number(), source.partition};
  const std::string place = where(*subscription, address, source.offset.value());
  if (copy.is_dead) bad("DEAD_TWICE", place + " is dead-lettered twice");
  if (copy.fate == Fate::settled)
    bad("DEAD_AFTER_ACK", place + " was settled and is dead-lettered");
  copy.fate = Fate::settled;
  copy.is_durable = copy.is_dead = true;
  marks_.hit(Mark::dead_letter_done);
  dead_.emplace_back(source.subscription, uid);
}

void Checker::add_copy(SubscriptionModel& subscription, std::uint32_t index, std::uint64_t offset,
                       const LogEntry& entry) {
  PartitionCopies& copies = subscription.partitions[index];
  Copy& copy = copies.copy(offset);
  if (copy.is_here) return;
  copy.is_here = true;
  KeyState& key = copies.keys[entry.key];
  ORDO_CHECK(key.offsets.empty() || key.offsets.back() < offset);
  key.offsets.push_back(offset);
}

void Checker::make_visible(Address address, std::uint64_t offset, const LogEntry& entry) {
  for (auto& [number, subscription] : subscriptions_) {
    if (!is_here(subscription, address)) continue;
    PartitionCopies& copies = subscription.partitions[address.index];
    if (offset < copies.start) continue;
    if (subscription.wants(entry)) {
      add_copy(subscription, address.index, offset, entry);
    } else if (!entry.key.empty()) {
      marks_.hit(Mark::filtered);
    }
  }
}

void Checker::vanish(Address address, const CommitModel& commit) {
  PartitionModel& model = partition(address);
  for (const std::uint64_t offset : commit.offsets) {
    model.log[offset].presence = Presence::gone;
    model.has_gap = true;
  }
}

void Checker::commit_told(Address address, const broker::Committed& committed) {
  PartitionModel& model = partition(address);
  const auto found = model.commits.find(committed.ticket.value());
  ORDO_CHECK(found != model.commits.end());
  const CommitModel commit = std::move(found->second);
  model.commits.erase(found);
  for (const CursorNumber number : commit.sought) {
    if (PartitionCopies* copies = find_copies(number, address.index)) {
      if (committed.error) seek_failed(*find(number), address, *committed.error);
      copies->seeking.reset();
      copies->before_seek.clear();
    }
  }
  if (committed.error) {
    if (committed.error->code == ErrorCode::resource_exhausted) vanish(address, commit);
    return;
  }
  std::size_t at = 0;
  for (const Arrival& arrival : commit.arrivals) {
    if (!arrival.dead_letter && at < commit.offsets.size())
      model.answerable[arrival.request.value()] = commit.offsets[at];
    at += arrival.uids.size();
  }
  for (const std::uint64_t offset : commit.offsets) {
    LogEntry& entry = model.log[offset];
    entry.presence = Presence::visible;
    model.end_visible = offset + 1;
    make_visible(address, offset, entry);
  }
}

bool Checker::has_commit_under_way() const {
  return std::any_of(partitions_.begin(), partitions_.end(),
                     [](const auto& model) { return !model.second.commits.empty(); });
}

// ---------------------------------------------------------------------- subscriptions

void Checker::attach(std::uint32_t index, CursorNumber number, Address address) {
  SubscriptionModel& subscription = subscriptions_[number];
  subscription.index = index;
  subscription.plan = &plan_.subscriptions[index];
  subscription.partitions.resize(plan_.partitions);
  subscription.partitions[address.index].start = partition(address).end_visible;
}

void Checker::subscription_exists(CursorNumber number) {
  subscriptions_.at(number).exists = true;
}

void Checker::detach(Address address, CursorNumber number) {
  SubscriptionModel& subscription = subscriptions_.at(number);
  PartitionCopies& copies = subscription.partitions[address.index];
  for (const std::uint64_t offset : std::vector<std::uint64_t>(copies.live))
    end_lease(subscription, address, offset);
  copies.is_detached = true;
  subscription.is_deleted =
      std::all_of(subscription.partitions.begin(), subscription.partitions.end(),
                  [](const PartitionCopies& other) { return other.is_detached; });
  for (auto& [consumer, model] : consumers_) {
    if (model.subscription == number) model.closed_in.insert(address.index);
  }
}

void Checker::open_consumer(ConsumerNumber consumer, CursorNumber subscription,
                            const ClientPlan& client) {
  ConsumerModel& model = consumers_[consumer];
  model.subscription = subscription;
  model.limits = client.limits;
  model.ack_deadline =
      client.ack_deadline.value_or(subscriptions_.at(subscription).plan->config.ack_deadline);
}

void Checker::close_consumer(Address address, const broker::CloseConsumer& close) {
  const ConsumerNumber number = close.consumer;
  const auto how = close.how;
  ConsumerModel& consumer = consumers_.at(number);
  consumer.closed_in.insert(address.index);
  SubscriptionModel& subscription = subscriptions_.at(consumer.subscription);
  if (how == broker::CloseConsumer::How::keep_leases) return;
  const bool is_release = how == broker::CloseConsumer::How::release;
  if (consumer.live_messages > 0)
    marks_.hit(is_release ? Mark::consumer_released : Mark::consumer_died);
  if (!is_release && subscription.plan->config.enable_exactly_once_delivery) return;
  PartitionCopies& copies = subscription.partitions[address.index];
  for (const std::uint64_t offset : std::vector<std::uint64_t>(copies.live)) {
    Copy& copy = copies.copy(offset);
    if (copy.consumer != number) continue;
    doubt(subscription, address, offset);
    if (is_release) end_lease(subscription, address, offset);
    rewind(subscription, address, offset, false);
  }
}

}  // namespace ordo::simulation
