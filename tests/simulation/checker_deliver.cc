// Deliveries, leases and what ends them.
#include <algorithm>
#include <string>
#include <utility>

#include "ordo/broker/message_codec.h"
#include "ordo/core/check.h"
#include "tests/simulation/checker.h"

namespace ordo::simulation {

using broker::AckId;
using broker::ConsumerNumber;
using broker::SettleOutcome;

void Checker::end_lease(SubscriptionModel& subscription, Address address, std::uint64_t offset) {
  PartitionCopies& copies = subscription.partitions[address.index];
  Copy& copy = copies.copy(offset);
  if (!copy.is_live) return;
  copy.is_live = false;
  std::erase(copies.live, offset);
  stop_counting(address, offset, copy);
}

void Checker::stop_counting(Address address, std::uint64_t offset, Copy& copy) {
  if (!std::exchange(copy.is_counted, false)) return;
  ConsumerModel& consumer = consumers_.at(copy.consumer);
  --consumer.live_messages;
  consumer.live_bytes -= partition(address).log[offset].size;
}

// From now on its lease may have ended unseen.
void Checker::doubt(SubscriptionModel& subscription, Address address, std::uint64_t offset) {
  PartitionCopies& copies = subscription.partitions[address.index];
  Copy& copy = copies.copy(offset);
  copy.is_shaky = copies.is_shaky = copy.is_doubted = true;
  copy.not_before = {};
  stop_counting(address, offset, copy);
}

// A rewind: later messages of the key that are outstanding come back as well.
// Uncertain: a lost stream may have done it, or will.
void Checker::rewind(SubscriptionModel& subscription, Address address, std::uint64_t offset,
                     bool is_certain) {
  const std::string& key = partition(address).log[offset].key;
  if (!subscription.is_ordered() || key.empty()) return;
  PartitionCopies& copies = subscription.partitions[address.index];
  const std::vector<std::uint64_t>& offsets = copies.keys[key].offsets;
  for (auto later = std::upper_bound(offsets.begin(), offsets.end(), offset);
       later != offsets.end(); ++later) {
    Copy& copy = copies.copy(*later);
    if (copy.fence == 0 || copy.epoch != epoch_ || copy.is_void || copy.fate == Fate::settled)
      continue;
    if (copy.is_live) marks_.hit(Mark::rewind);
    copy.not_before = {};
    const bool has_damage =
        partition(address).log[offset].was_damaged || partition(address).log[*later].was_damaged;
    if (is_certain && !has_damage && copy.fate == Fate::open) {
      end_lease(subscription, address, *later);
      copy.is_void = true;
    } else {
      doubt(subscription, address, *later);
    }
  }
}

void Checker::fail(SubscriptionModel& subscription, Address address, std::uint64_t offset,
                   TimePoint at) {
  const broker::SubscriptionConfig& config = subscription.plan->config;
  PartitionCopies& copies = subscription.partitions[address.index];
  Copy& copy = copies.copy(offset);
  ++copy.failures;
  if (!copy.is_shaky) copy.has_failed = true;
  KeyState& key = copies.keys[partition(address).log[offset].key];
  if (config.retry_policy && !copy.is_doubted) {
    auto backoff = config.retry_policy->minimum_backoff;
    for (std::uint32_t i = 1; i < copy.failures && backoff < config.retry_policy->maximum_backoff;
         ++i)
      backoff *= 2;
    copy.not_before = at + std::min(backoff, config.retry_policy->maximum_backoff);
    if (key.offsets.back() != offset) marks_.hit(Mark::backoff_blocks_key);
  }
  if (config.failure_policy == broker::FailurePolicy::skip_after) {
    if (!copy.first_failure) copy.first_failure = now_.steady;
    if (now_.steady - *copy.first_failure >= config.skip_after) {
      copy.fate = Fate::maybe_settled;
      marks_.hit(Mark::skip_after);
    }
  }
  if (config.failure_policy == broker::FailurePolicy::park &&
      copy.failures >= config.park_attempts) {
    marks_.hit(Mark::parked);
    if (copy.is_exact && !copy.is_doubted && subscription.is_ordered() &&
        !partition(address).log[offset].key.empty() && !partition(address).log[offset].was_damaged)
      key.is_stopped = true;
  }
  rewind(subscription, address, offset, !copy.is_shaky);
}

void Checker::timers(Address address) {
  for (auto& [number, subscription] : subscriptions_) {
    if (subscription.plan->topic_number() != address.topic) continue;
    age(subscription, address);
    PartitionCopies& copies = subscription.partitions[address.index];
    for (;;) {
      // The earliest first; of equals the first of the key.
      std::uint64_t earliest = 0;
      for (const std::uint64_t offset : copies.live) {
        const Copy& copy = copies.copy(offset);
        if (copy.lease_end > now_.steady) continue;
        if (earliest == 0 || copy.lease_end < copies.copy(earliest).lease_end ||
            (copy.lease_end == copies.copy(earliest).lease_end && offset < earliest))
          earliest = offset;
      }
      if (earliest == 0) break;
      const TimePoint at = copies.copy(earliest).lease_end;
      end_lease(subscription, address, earliest);
      fail(subscription, address, earliest, at);
    }
  }
}

void Checker::age(SubscriptionModel& subscription, Address address) {
  const broker::SubscriptionConfig& config = subscription.plan->config;
  if (config.message_retention > std::chrono::hours(1)) return;
  PartitionCopies& copies = subscription.partitions[address.index];
  for (const auto& [offset, entry] : partition(address).log) {
    Copy& copy = copies.copy(offset);
    if (!copy.is_here || copy.fate != Fate::open) continue;
    if (entry.publish_time + config.message_retention > now_.wall) continue;
    end_lease(subscription, address, offset);
    copy.fate = Fate::maybe_settled;
    doubt(subscription, address, offset);
    KeyState& key = copies.keys[entry.key];
    key.is_stopped = key.is_paused;
    rewind(subscription, address, offset, false);
    marks_.hit(Mark::expired_by_retention);
  }
}

// ---------------------------------------------------------------------- deliveries

void Checker::check_content(SubscriptionModel& subscription, Address address,
                            const broker::Delivery& delivery) {
  const std::uint64_t offset = delivery.message.offset().value();
  const std::string place = where(subscription, address, offset);
  PartitionModel& model = partition(address);
  const auto found = model.log.find(offset);
  if (found == model.log.end() || found->second.presence != Presence::visible) {
    bad("PHANTOM", place + " was delivered, but is not known to be stored");
    return;
  }
  const LogEntry& entry = found->second;
  if (!delivery.message.is_intact()) bad("CORRUPT", place + " does not match its checksum");
  if (delivery.message.key() != entry.key) bad("CORRUPT", place + " has another key");
  if (delivery.message.id() != entry.id) bad("CORRUPT", place + " has another id");
  if (delivery.message.publish_time() != entry.publish_time)
    bad("CORRUPT", place + " has another publish time");
  const auto view = broker::decode_message(delivery.message.body());
  if (!view || view->data.substr(0, view->data.find(';')) != std::to_string(entry.uid))
    bad("CORRUPT", place + " has another body");
  if (!subscription.wants(entry)) bad("FILTER", place + " does not pass the filter");
  if (!subscription.partitions[address.index].copy(offset).is_here)
    bad("TOO_EARLY", place + " was published before the subscription began");
}

// False: it may be behind one that is out, which would take it along.
bool Checker::check_order(SubscriptionModel& subscription, Address address, std::uint64_t offset,
                          const LogEntry& entry, ConsumerNumber consumer) {
  if (!subscription.is_ordered() || entry.key.empty()) return true;
  const std::uint32_t window = subscription.plan->config.ordered_window;
  bool is_certain = true;
  PartitionCopies& copies = subscription.partitions[address.index];
  KeyState& key = copies.keys[entry.key];
  if (went_alone(copies.copy(offset), entry)) return false;
  std::uint32_t outstanding = 1;
  while (key.settled_prefix < key.offsets.size() &&
         copies.copy(key.offsets[key.settled_prefix]).fate == Fate::settled &&
         copies.copy(key.offsets[key.settled_prefix]).is_durable)
    ++key.settled_prefix;
  for (std::size_t i = key.settled_prefix; i < key.offsets.size() && key.offsets[i] < offset; ++i) {
    Copy& earlier = copies.copy(key.offsets[i]);
    if (earlier.fate == Fate::settled) continue;
    if (went_alone(earlier, partition(address).log[key.offsets[i]])) {
      is_certain = false;
      continue;
    }
    if (earlier.fate == Fate::maybe_settled) {
      if (window > 1 && earlier.epoch == epoch_) {
        is_certain = false;  // Or it is out.
      } else {
        earlier.fate = Fate::settled;  // It was.
      }
      continue;
    }
    if (!earlier.is_live) {
      bad("ORDER", where(subscription, address, offset) + " was delivered before offset " +
                       std::to_string(key.offsets[i]) + " of its key was settled");
      return true;
    }
    if (earlier.is_shaky) {
      is_certain = false;
      continue;
    }
    if (earlier.consumer != consumer) {
      bad("TWO_CONSUMERS", where(subscription, address, offset) + " was delivered while offset " +
                               std::to_string(key.offsets[i]) + " is with another consumer");
      return true;
    }
    ++outstanding;
  }
  if (outstanding > window) {
    bad("WINDOW", where(subscription, address, offset) + ": " + std::to_string(outstanding) +
                      " of the key are outstanding, the window is " + std::to_string(window));
  }
  if (window > 1 && outstanding == window) marks_.hit(Mark::window_full);
  if (key.is_stopped)
    bad("STOPPED",
        where(subscription, address, offset) + " was delivered though its key is parked or paused");
  if (key.last_consumer != ConsumerNumber() && key.last_consumer != consumer)
    marks_.hit(Mark::key_moved);
  key.last_consumer = consumer;
  return is_certain;
}

void Checker::check_attempt(SubscriptionModel& subscription, Address address, Copy& copy,
                            const broker::Delivery& delivery) {
  const std::string place = where(subscription, address, delivery.message.offset().value());
  const SubscriptionPlan& plan = *subscription.plan;
  if (!plan.counts_attempts()) {
    if (delivery.attempt != 0) bad("ATTEMPT", place + " has an attempt number without a policy");
    return;
  }
  const std::string number = std::to_string(delivery.attempt);
  if (copy.is_exact && !copy.is_doubted && delivery.attempt != 1 + copy.failures) {
    bad("ATTEMPT",
        place + " attempt " + number + " after " + std::to_string(copy.failures) + " failures");
  }
  const bool is_next = copy.has_failed || copy.epoch != epoch_;
  if (delivery.attempt < copy.last_attempt + (is_next ? 1 : 0))
    bad("ATTEMPT", place + " attempt " + number + " comes again");
  if (delivery.attempt == copy.last_attempt) marks_.hit(Mark::attempt_not_counted);
  if (delivery.attempt > plan.attempts_max())
    bad("ATTEMPT", place + " attempt " + number + " of " + std::to_string(plan.attempts_max()));
  if (copy.deliveries > 0 && copy.epoch != epoch_) marks_.hit(Mark::attempts_after_crash);
  copy.last_attempt = delivery.attempt;
}

// Rises within a key, and from one life of the broker to the next.
void Checker::check_fence(const SubscriptionModel& subscription, PartitionCopies& copies,
                          const Copy& copy, const broker::Delivery& delivery,
                          const std::string& place) {
  const std::uint64_t fence = delivery.ack_id.fence.value();
  KeyState& key = copies.keys[std::string(delivery.message.key())];
  const bool has_order = subscription.is_ordered() && !delivery.message.key().empty();
  if (fence <= copy.fence || fence <= copies.earlier_fence ||
      (has_order && fence <= key.last_fence))
    bad("FENCE", place + " has a fence that does not rise");
  key.last_fence = fence;
  copies.highest_fence = std::max(copies.highest_fence, fence);
}

void Checker::check_room(ConsumerModel& consumer, const broker::Delivery& delivery) {
  const auto messages = static_cast<std::int64_t>(consumer.live_messages);
  const auto bytes = static_cast<std::int64_t>(consumer.live_bytes);
  const std::string number = std::to_string(delivery.message.offset().value());
  if (consumer.limits.messages > 0 && messages >= consumer.limits.messages) {
    bad("FLOW_CONTROL", "offset " + number + " is delivered beyond " +
                            std::to_string(consumer.limits.messages) + " messages outstanding");
  }
  if (consumer.limits.bytes > 0 && bytes >= consumer.limits.bytes) {
    bad("FLOW_CONTROL", "offset " + number + " is delivered beyond " +
                            std::to_string(consumer.limits.bytes) + " bytes outstanding");
  }
}

void Checker::start_lease(SubscriptionModel& subscription, Address address, Copy& copy,
                          const broker::Delivery& delivery, ConsumerNumber number) {
  ConsumerModel& consumer = consumers_.at(number);
  copy.fate = Fate::open;
  copy.fence = delivery.ack_id.fence.value();
  copy.consumer = number;
  copy.epoch = epoch_;
  copy.is_live = true;
  copy.is_void = copy.is_shaky = copy.is_touched = copy.has_failed = false;
  copy.lease_end = now_.steady + consumer.ack_deadline;
  ++copy.deliveries;
  subscription.partitions[address.index].live.push_back(delivery.message.offset().value());
  copy.is_counted = true;
  ++consumer.live_messages;
  consumer.live_bytes += delivery.message.size();
}

void Checker::deliver(Address address, const broker::Deliver& deliver) {
  const auto found = consumers_.find(deliver.consumer);
  if (found == consumers_.end() || !found->second.is_open ||
      found->second.closed_in.contains(address.index)) {
    bad("CLOSED", "a delivery to a consumer that is closed");
    return;
  }
  ConsumerModel& consumer = found->second;
  SubscriptionModel& subscription = subscriptions_.at(consumer.subscription);
  PartitionCopies& copies = subscription.partitions[address.index];
  age(subscription, address);
  if (deliver.deliveries.empty()) bad("EMPTY", "a delivery of nothing");
  if (deliver.deliveries.size() > plan_.options.deliver_messages_max)
    bad("BOUND", "too many deliveries at once");
  if (!is_here(subscription, address)) bad("DELETED", "a delivery of a deleted subscription");
  for (const broker::Delivery& delivery : deliver.deliveries) {
    const std::uint64_t offset = delivery.message.offset().value();
    const std::string place = where(subscription, address, offset);
    if (delivery.ack_id.subscription != consumer.subscription ||
        delivery.ack_id.partition != address.index || delivery.ack_id.offset.value() != offset)
      bad("ACK_ID", place + " has an ack id of something else");
    check_content(subscription, address, delivery);
    if (!violation_.empty()) return;
    Copy& copy = copies.copy(offset);
    if (copies.seeking) bad("SEEK", place + " was delivered while a seek is under way");
    check_fence(subscription, copies, copy, delivery, place);
    if (copy.fate == Fate::settled)
      bad("DELIVERED_AFTER_SETTLED", place + " is delivered again although it was settled");
    if (copy.is_live && !copy.is_shaky)
      bad("EARLY_REDELIVERY", place + " is delivered while its lease runs");
    end_lease(subscription, address, offset);
    if (copy.is_dead_letter_under_way)
      bad("DELIVERED_WHILE_DYING", place + " is delivered while its dead letter is under way");
    if (copy.deliveries > 0 && copy.epoch == epoch_ && now_.steady < copy.not_before)
      bad("BACKOFF", place + " is delivered before its back-off ended");
    const LogEntry& entry = partition(address).log[offset];
    if (entry.dead_letter) marks_.hit(Mark::dead_letter_delivered);
    const bool is_certain = check_order(subscription, address, offset, entry, deliver.consumer);
    check_attempt(subscription, address, copy, delivery);
    check_room(consumer, delivery);
    if (copy.fate == Fate::maybe_settled && copy.epoch != epoch_)
      marks_.hit(Mark::unconfirmed_ack_undone);
    const KeyState& key = copies.keys[entry.key];
    if (copy.deliveries > 0 && !entry.key.empty() && key.offsets.back() != offset)
      marks_.hit(Mark::redelivered_in_place);
    start_lease(subscription, address, copy, delivery, deliver.consumer);
    if (!is_certain) doubt(subscription, address, offset);
  }
}

// ---------------------------------------------------------------------- acks and deadlines

void Checker::settle(SubscriptionModel& subscription, Address address, std::uint64_t offset,
                     Fate fate) {
  PartitionCopies& copies = subscription.partitions[address.index];
  end_lease(subscription, address, offset);
  Copy& copy = copies.copy(offset);
  copy.fate = fate;
  copy.settled_by = copy.fence;
  KeyState& key = copies.keys[partition(address).log[offset].key];
  key.is_stopped = key.is_paused;  // A parked head that is settled lets its key go.
}

Checker::Expect Checker::expect_ack(SubscriptionModel& subscription, Address address,
                                    const AckId& id) {
  age(subscription, address);
  PartitionCopies& copies = subscription.partitions[address.index];
  Copy& copy = copies.copy(id.offset.value());
  const std::uint64_t fence = id.fence.value();
  if (copy.fence != fence) {
    marks_.hit(Mark::late_ack_after_redelivery);
    return Expect::stale;
  }
  if (copy.epoch != epoch_) {
    marks_.hit(Mark::ack_from_before_a_crash);
    return copy.fate == Fate::open ? Expect::stale : Expect::either;
  }
  if (copy.is_void) {
    marks_.hit(Mark::ack_of_void_delivery);
    return Expect::stale;
  }
  if (copy.is_dead || copy.is_dead_letter_under_way) return Expect::stale;
  if (copy.fate == Fate::settled) {
    marks_.hit(Mark::double_ack);
    return Expect::either;
  }
  copy.is_touched = true;
  if (copy.is_shaky || copy.fate == Fate::maybe_settled) {
    settle(subscription, address, id.offset.value(), Fate::maybe_settled);
    return Expect::either;
  }
  if (!copy.is_live) marks_.hit(Mark::ack_of_expired_not_redelivered);
  settle(subscription, address, id.offset.value(), Fate::settled);
  return Expect::done;
}

void Checker::acknowledge(Address address, const broker::Acknowledge& acknowledge) {
  std::vector<AskedSettle>& asked = settles_[acknowledge.request.value()];
  for (const AckId& id : acknowledge.ids) {
    SubscriptionModel* subscription = find(id.subscription);
    Expect expect = Expect::stale;
    if (subscription != nullptr && is_here(*subscription, address))
      expect = expect_ack(*subscription, address, id);
    asked.push_back({id, expect, true});
  }
  if (!acknowledge.confirm) settles_.erase(acknowledge.request.value());
}

Checker::Expect Checker::expect_modify(SubscriptionModel& subscription, Address address,
                                       const AckId& id, std::chrono::nanoseconds deadline) {
  PartitionCopies& copies = subscription.partitions[address.index];
  const std::uint64_t offset = id.offset.value();
  Copy& copy = copies.copy(offset);
  if (copy.fence != id.fence.value() || copy.epoch != epoch_ || copy.is_void) return Expect::stale;
  if (copy.is_dead || copy.is_dead_letter_under_way) return Expect::stale;
  if (copy.fate != Fate::open) {  // If it is not settled it may have failed now.
    copy.is_doubted = true;
    if (!copy.first_failure) copy.first_failure = now_.steady;
    return Expect::either;
  }
  if (!copy.is_live) {
    if (copy.is_shaky) return Expect::either;
    marks_.hit(Mark::late_deadline_change);
    return deadline.count() > 0 ? Expect::stale : Expect::either;
  }
  copy.is_touched = true;
  const bool is_shaky = copy.is_shaky;
  if (deadline.count() == 0) {
    end_lease(subscription, address, offset);
    fail(subscription, address, offset, now_.steady);
  } else {
    copy.lease_end = now_.steady + deadline;
    marks_.hit(Mark::lease_extended);
  }
  return is_shaky ? Expect::either : Expect::done;
}

void Checker::modify_deadline(Address address, const broker::ModifyDeadline& modify) {
  std::vector<AskedSettle>& asked = settles_[modify.request.value()];
  for (const AckId& id : modify.ids) {
    SubscriptionModel* subscription = find(id.subscription);
    Expect expect = Expect::stale;
    if (subscription != nullptr && is_here(*subscription, address))
      expect = expect_modify(*subscription, address, id, modify.deadline);
    asked.push_back({id, expect, false});
  }
  if (!modify.confirm) settles_.erase(modify.request.value());
}

void Checker::settle_replied(Address address, const broker::SettleReply& reply) {
  const auto found = settles_.find(reply.request.value());
  if (found == settles_.end()) {
    bad("REPLY", "an answer to a request that wants none");
    return;
  }
  const std::vector<AskedSettle> asked = std::move(found->second);
  settles_.erase(found);
  if (asked.size() != reply.outcomes.size()) {
    bad("REPLY", "outcomes for " + std::to_string(reply.outcomes.size()) + " of " +
                     std::to_string(asked.size()) + " ids");
    return;
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    SubscriptionModel* subscription = find(asked[i].id.subscription);
    if (subscription == nullptr || !is_here(*subscription, address)) continue;
    const SettleOutcome outcome = reply.outcomes[i];
    const std::string place = where(*subscription, address, asked[i].id.offset.value());
    if (asked[i].expect == Expect::stale && outcome == SettleOutcome::done)
      bad("STALE_ACK", place + (asked[i].is_ack ? ": ack" : ": deadline change") +
                           " of a superseded or void delivery was confirmed");
    if (asked[i].expect == Expect::done && outcome == SettleOutcome::stale)
      bad("ACK_REFUSED", place + (asked[i].is_ack ? ": ack" : ": deadline change") +
                             " of the newest delivery was refused");
    if (!asked[i].is_ack) continue;
    Copy& copy = subscription->partitions[address.index].copy(asked[i].id.offset.value());
    if (copy.fence != asked[i].id.fence.value() || copy.is_void) continue;
    if (outcome == SettleOutcome::done && asked[i].expect != Expect::stale) {
      end_lease(*subscription, address, asked[i].id.offset.value());
      copy.fate = Fate::settled;
      copy.is_durable = true;
    } else if (outcome == SettleOutcome::not_now && !copy.is_durable) {
      copy.fate = Fate::maybe_settled;
    }
  }
}

}  // namespace ordo::simulation
