// What a partition does from time to time and by request: retention, trimming, seeks, snapshots,
// stats.
#include <algorithm>
#include <utility>

#include "ordo/broker/partition_core.h"
#include "ordo/broker/planted_bugs.h"
#include "ordo/core/check.h"

namespace ordo::broker {

void Partition::Core::house_keep(CommitOp op, Step& step) {
  CommitBatch ops;
  ops.push_back(std::move(op));
  const TicketNumber ticket =
      common_.tickets.issue({.kind = TicketUse::Kind::housekeeping, .cursor = {}});
  step.emit(Commit{ticket, std::move(ops)});
}

void Partition::Core::upkeep(Step& step) {
  upkeep_due_.reset();
  settled_since_trim_ = 0;
  trim(step);
  schedule_retention(step.now.steady);
}

// ------------------------------------------------------------------------------------ trimming

// How long messages are kept although all have acknowledged them.
std::optional<std::chrono::nanoseconds> Partition::Core::keep_time() const {
  std::optional<std::chrono::nanoseconds> keep = topic_retention_;
  for (const auto& [number, subscription] : subscriptions_) {
    const SubscriptionConfig& config = subscription->setup().config;
    if (config.retain_acked_messages && (!keep || config.message_retention > *keep))
      keep = config.message_retention;
  }
  return keep;
}

bool Partition::Core::is_seeking() const {
  return !pending_seeks_.empty() || !waiting_seeks_.empty() ||
         std::any_of(subscriptions_.begin(), subscriptions_.end(),
                     [](const auto& entry) { return entry.second->is_seeking(); });
}

Offset Partition::Core::lowest_needed() const {
  Offset lowest = common_.end;
  for (const auto& [number, subscription] : subscriptions_) {
    if (ORDO_BUG(23) && subscription == subscriptions_.begin()->second) continue;
    lowest = std::min(lowest, subscription->acked().low_water());
  }
  for (const auto& [number, acked] : snapshots_) {
    if (!ORDO_BUG(22)) lowest = std::min(lowest, acked.low_water());
  }
  return lowest;
}

void Partition::Core::trim(Step& step) {
  if (is_seeking()) {  // What it goes back to must stay.
    expect_upkeep(step.now.steady);
    return;
  }
  const Offset lowest = lowest_needed();
  common_.cache.forget_below(lowest);
  const Offset before = keep_time() ? std::min(lowest, kept_from_) : lowest;
  if (before <= common_.first) return;
  common_.first = before;
  house_keep(Trim{common_.address, before}, step);
}

// ------------------------------------------------------------------------------------ retention

// Looks again while there is something that may get too old.
void Partition::Core::schedule_retention(TimePoint now) {
  std::optional<std::chrono::nanoseconds> shortest;
  const auto consider = [&](std::chrono::nanoseconds time) {
    if (!shortest || time < *shortest) shortest = time;
  };
  for (const auto& [number, subscription] : subscriptions_) {
    if (subscription->acked().low_water() < common_.end)
      consider(subscription->setup().config.message_retention);
  }
  const std::optional<std::chrono::nanoseconds> keep = keep_time();
  if (keep && common_.first < common_.end) consider(*keep);
  if (!shortest) return;
  const TimePoint due =
      now + std::clamp<std::chrono::nanoseconds>(*shortest / 16, std::chrono::milliseconds(100),
                                                 std::chrono::minutes(1));
  if (!retention_due_ || due < *retention_due_) retention_due_ = due;
}

void Partition::Core::check_retention(Step& step) {
  retention_due_.reset();
  for (const auto& [number, subscription] : subscriptions_) {
    const Offset low_water = subscription->acked().low_water();
    if (low_water >= common_.end) continue;
    const WallTime oldest = step.now.wall - subscription->setup().config.message_retention;
    const Message first = common_.cache.find(low_water);
    if (first && first.publish_time() >= oldest) continue;
    const TicketNumber ticket =
        common_.tickets.issue({.kind = TicketUse::Kind::find_retention, .cursor = number});
    step.emit(FindTime{ticket, oldest});
  }
  const std::optional<std::chrono::nanoseconds> keep = keep_time();
  if (keep && common_.first < lowest_needed()) {
    const TicketNumber ticket =
        common_.tickets.issue({.kind = TicketUse::Kind::find_kept, .cursor = {}});
    step.emit(FindTime{ticket, step.now.wall - *keep});
  }
  schedule_retention(step.now.steady);
}

void Partition::Core::on(TimeFound&& input, Step& step) {
  const std::optional<TicketUse> use = common_.tickets.redeem(input.ticket);
  ORDO_CHECK(use.has_value());
  if (use->kind == TicketUse::Kind::find_seek) {
    const auto found = pending_seeks_.find(use->serial);
    PendingSeek seek = std::move(found->second);
    pending_seeks_.erase(found);
    if (!input.result) {
      step.emit(Sought{seek.request, input.result.error()});
      return;
    }
    seek.target = AckedIntervals(*input.result);
    waiting_seeks_.push_back(std::move(seek));
    return;
  }
  if (!input.result) return;  // Looked for again at the next check.
  const Offset found = std::min(*input.result, common_.end);
  if (use->kind == TicketUse::Kind::find_kept) {
    kept_from_ = std::max(kept_from_, found);
    trim(step);
    return;
  }
  ORDO_CHECK(use->kind == TicketUse::Kind::find_retention);
  if (Subscription* subscription = touch(use->cursor)) subscription->expire_below(found, step);
  expect_upkeep(step.now.steady);
}

void Partition::Core::on(RetainTopic&& input, Step& step) {
  topic_retention_ = input.retention;
  expect_upkeep(step.now.steady);
}

// ------------------------------------------------------------------------------------ seeks

void Partition::Core::on(SeekToTime&& input, Step& step) {
  const std::uint64_t serial = ++last_serial_;
  pending_seeks_.emplace(serial, PendingSeek{input.request, input.subscription, AckedIntervals()});
  const TicketNumber ticket =
      common_.tickets.issue({TicketUse::Kind::find_seek, input.subscription, kNoIndex, serial});
  step.emit(FindTime{ticket, input.time});
}

void Partition::Core::on(SeekToSnapshot&& input, Step& step) {
  const auto snapshot = snapshots_.find(input.snapshot);
  if (snapshot == snapshots_.end()) {
    step.emit(Sought{input.request, Error{ErrorCode::not_found, "Snapshot does not exist"}});
    return;
  }
  waiting_seeks_.push_back(PendingSeek{input.request, input.subscription, snapshot->second});
}

// Those whose subscription is neither seeking nor has a dead letter on its way.
void Partition::Core::start_seeks(Step& step) {
  for (std::size_t count = waiting_seeks_.size(); count > 0; --count) {
    PendingSeek seek = std::move(waiting_seeks_.front());
    waiting_seeks_.pop_front();
    Subscription* subscription = find(seek.subscription);
    if (subscription == nullptr) {
      step.emit(Sought{seek.request, Error{ErrorCode::not_found, "Subscription does not exist"}});
    } else if (subscription->can_seek()) {
      subscription->begin_seek(seek.request, std::move(seek.target), step);
      are_all_touched_ = true;
    } else {
      subscription->expect_seek();
      waiting_seeks_.push_back(std::move(seek));
    }
  }
}

// ------------------------------------------------------------------------------------ snapshots

void Partition::Core::on(TakeSnapshot&& input, Step& step) {
  const Subscription* subscription = find(input.subscription);
  if (subscription == nullptr) {
    step.emit(SnapshotTaken{input.request,
                            Error{ErrorCode::not_found, "Subscription does not exist"},
                            WallTime::max()});
    return;
  }
  const std::uint64_t serial = ++last_serial_;
  PendingSnapshot& pending = pending_snapshots_[serial];
  pending.request = input.request;
  pending.snapshot = input.snapshot;
  snapshots_.insert_or_assign(input.snapshot, subscription->acked());
  const Offset low_water = subscription->acked().low_water();
  if (low_water < common_.end) {
    const Message oldest = common_.cache.find(low_water);
    if (!oldest) {
      const TicketNumber ticket = common_.tickets.issue(
          {TicketUse::Kind::read_snapshot, input.subscription, kNoIndex, serial});
      step.emit(Read{ticket, low_water, 1, common_.options.read_bytes_max});
      return;
    }
    pending.oldest_unacked = oldest.publish_time();
  }
  commit_snapshot(serial, step);
}

void Partition::Core::snapshot_read(std::uint64_t serial, const Result<ReadBatches>& result,
                                    Step& step) {
  PendingSnapshot& pending = pending_snapshots_.at(serial);
  if (!result && result.error().code != ErrorCode::data_loss) {
    step.emit(SnapshotTaken{pending.request, result.error(), WallTime::max()});
    snapshots_.erase(pending.snapshot);
    pending_snapshots_.erase(serial);
    return;
  }
  // Of what cannot be read any more the time is not known, and counts as now.
  if (result && !result->batches.empty())
    pending.oldest_unacked = result->batches.front()->publish_time;
  commit_snapshot(serial, step);
}

void Partition::Core::commit_snapshot(std::uint64_t serial, Step& step) {
  const PendingSnapshot& pending = pending_snapshots_.at(serial);
  CommitBatch rows;
  const auto snapshot = snapshots_.find(pending.snapshot);
  if (snapshot == snapshots_.end()) {  // Dropped meanwhile.
    step.emit(SnapshotTaken{pending.request, Error{ErrorCode::not_found, "Snapshot does not exist"},
                            WallTime::max()});
    pending_snapshots_.erase(serial);
    return;
  }
  snapshot->second.append_all_rows(RowOwner{pending.snapshot, common_.address}, rows);
  const TicketNumber ticket =
      common_.tickets.issue({TicketUse::Kind::snapshot, pending.snapshot, kNoIndex, serial});
  step.emit(Commit{ticket, std::move(rows)});
}

void Partition::Core::snapshot_committed(std::uint64_t serial, const std::optional<Error>& error,
                                         Step& step) {
  const PendingSnapshot pending = pending_snapshots_.at(serial);
  pending_snapshots_.erase(serial);
  if (error) snapshots_.erase(pending.snapshot);
  step.emit(SnapshotTaken{pending.request, error, pending.oldest_unacked});
}

void Partition::Core::on(DropSnapshot&& input, Step& step) {
  if (snapshots_.erase(input.snapshot) == 0) return;
  house_keep(EraseRows{input.snapshot, common_.address}, step);
  expect_upkeep(step.now.steady);
}

// ------------------------------------------------------------------------------------ stats

void Partition::Core::on(AskStats&& input, Step& step) {
  PartitionStats stats;
  stats.first = common_.first;
  stats.end = common_.end;
  stats.published = published_;
  stats.publish_failures = publish_failures_;
  stats.memory_bytes = common_.cache.bytes() + common_.tails.in_memory_bytes() + pending_bytes_;
  const std::uint64_t serial = ++last_serial_;
  PendingStats pending;
  for (const auto& [number, subscription] : subscriptions_) {
    stats.memory_bytes += subscription->memory_bytes();
    stats.subscriptions.push_back(subscription->stats());
    const Offset low_water = subscription->acked().low_water();
    if (!input.may_read || low_water >= common_.end || stats.subscriptions.back().oldest_unacked)
      continue;
    ++pending.reads;
    const TicketNumber ticket =
        common_.tickets.issue({TicketUse::Kind::read_stats, number, kNoIndex, serial, low_water});
    step.emit(Read{ticket, low_water, 1, common_.options.read_bytes_max});
  }
  pending.reply = {input.request, std::move(stats)};
  if (pending.reads > 0) {
    pending_stats_.emplace(serial, std::move(pending));
  } else {
    step.emit(std::move(pending.reply));
  }
}

void Partition::Core::stats_read(const TicketUse& use, const Result<ReadBatches>& result,
                                 Step& step) {
  const auto found = pending_stats_.find(use.serial);
  PendingStats& pending = found->second;
  if (result && !result->batches.empty()) {
    const WallTime time = result->batches.front()->publish_time;
    for (SubscriptionStats& stats : pending.reply.stats.subscriptions) {
      if (stats.subscription == use.cursor) stats.oldest_unacked = time;
    }
    if (Subscription* subscription = find(use.cursor)) subscription->learn_oldest(use.offset, time);
  }
  if (--pending.reads > 0) return;
  step.emit(std::move(pending.reply));
  pending_stats_.erase(found);
}

}  // namespace ordo::broker
