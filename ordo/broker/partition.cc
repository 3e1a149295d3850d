#include "ordo/broker/partition.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "ordo/broker/partition_core.h"
#include "ordo/broker/planted_bugs.h"
#include "ordo/broker/push_endpoint.h"
#include "ordo/core/check.h"

namespace ordo::broker {

Partition::Partition(PartitionStart start, const PartitionOptions& options, Now now)
    : core_(std::make_unique<Core>(std::move(start), options, now)) {}

Partition::~Partition() = default;

void Partition::step(Input&& input, Now now, Effects& effects) {
  core_->step(std::move(input), now, effects);
}

void Partition::run_due(Now now, Effects& effects) {
  core_->run_due(now, effects);
}

std::optional<TimePoint> Partition::next_due() const {
  return core_->next_due();
}

Partition::Core::Core(PartitionStart start, const PartitionOptions& options, Now now)
    : common_(start.address, start.start_number, options),
      topic_retention_(start.topic_retention),
      next_offset_(start.log.end),
      last_publish_time_(start.log.last_publish_time) {
  common_.first = start.log.first;
  common_.end = start.log.end;
  kept_from_ = start.log.first;
  for (SubscriptionSetup& setup : start.subscriptions) {
    const CursorNumber number = setup.subscription;
    const CursorState state = read_cursor_rows(start.rows, {number, start.address});
    subscriptions_.emplace(number,
                           std::make_unique<Subscription>(std::move(setup), common_, state, now));
  }
  for (const CursorNumber snapshot : start.snapshots) {
    const CursorState state = read_cursor_rows(start.rows, {snapshot, start.address});
    snapshots_.emplace(snapshot, AckedIntervals(state, Offset(1)));
  }
  expect_upkeep(now.steady);
}

void Partition::Core::step(Input&& input, Now now, Effects& effects) {
  Step step{now, effects};
  std::visit([&](auto&& in) { on(std::forward<decltype(in)>(in), step); }, std::move(input));
  finish_step(step);
}

void Partition::Core::finish_step(Step& step) {
  if (!waiting_seeks_.empty()) start_seeks(step);
  if (are_all_touched_) {
    for (auto& [number, subscription] : subscriptions_)
      subscription->pump(step);
  } else if (is_one_touched_) {
    if (Subscription* subscription = find(touched_)) subscription->pump(step);
  }
  are_all_touched_ = is_one_touched_ = false;
}

void Partition::Core::run_due(Now now, Effects& effects) {
  Step step{now, effects};
  for (auto& [number, subscription] : subscriptions_)
    subscription->run_due(step);
  if (upkeep_due_ && *upkeep_due_ <= now.steady) upkeep(step);
  if (retention_due_ && *retention_due_ <= now.steady) check_retention(step);
  are_all_touched_ = true;
  finish_step(step);
}

std::optional<TimePoint> Partition::Core::next_due() const {
  std::optional<TimePoint> due = upkeep_due_;
  const auto earlier = [&](const std::optional<TimePoint>& time) {
    if (time && (!due || *time < *due)) due = time;
  };
  earlier(retention_due_);
  for (const auto& [number, subscription] : subscriptions_)
    earlier(subscription->next_due());
  return due;
}

Subscription* Partition::Core::find(CursorNumber subscription) {
  const auto found = subscriptions_.find(subscription);
  return found == subscriptions_.end() ? nullptr : found->second.get();
}

Subscription* Partition::Core::touch(CursorNumber subscription) {
  Subscription* found = find(subscription);
  if (found != nullptr) {
    touched_ = subscription;
    is_one_touched_ = true;
  }
  return found;
}

// ------------------------------------------------------------------------------------ the log

bool Partition::Core::append(PendingAppend pending, const std::vector<MessageBody>& bodies,
                             CommitBatch more, Step& step) {
  std::size_t bytes = 0;
  for (const MessageBody& body : bodies)
    bytes += body.bytes.size();
  if (pending_bytes_ > 0 && pending_bytes_ + bytes > common_.options.pending_publish_bytes_max)
    return false;
  last_publish_time_ = std::max(last_publish_time_, step.now.wall);
  pending.batch = MessageBatch::make(bodies, next_offset_, last_publish_time_);
  next_offset_ = pending.batch->end_offset();
  pending_bytes_ += bytes;
  pending.ticket = common_.tickets.issue({.kind = TicketUse::Kind::append, .cursor = {}});
  CommitBatch ops;
  ops.reserve(1 + more.size());
  ops.emplace_back(Append{common_.address, pending.batch});
  for (CommitOp& op : more)
    ops.push_back(std::move(op));
  step.emit(Commit{pending.ticket, std::move(ops)});
  if (ORDO_BUG(1) && !pending.is_dead_letter)
    step.emit(PublishReply{pending.request, pending.batch->first_id});
  pending_.push_back(std::move(pending));
  return true;
}

void Partition::Core::on(Publish&& input, Step& step) {
  ORDO_CHECK(!input.messages.empty());
  PendingAppend pending;
  pending.request = input.request;
  if (append(std::move(pending), input.messages, {}, step)) return;
  ++publish_failures_;
  step.emit(PublishReply{input.request,
                         Error{ErrorCode::resource_exhausted,
                               "Too much waits to be stored: at most " +
                                   std::to_string(common_.options.pending_publish_bytes_max) +
                                   " bytes may; try again"}});
}

void Partition::Core::on(TakeDeadLetter&& input, Step& step) {
  PendingAppend pending;
  pending.is_dead_letter = true;
  pending.source = input.source;
  pending.source_ticket = input.ticket;
  std::vector<MessageBody> bodies;
  bodies.push_back(std::move(input.message));
  if (ORDO_BUG(15)) input.settlement.clear();
  if (append(std::move(pending), bodies, std::move(input.settlement), step)) return;
  step.emit(AnswerDeadLetter{input.source, input.ticket,
                             Error{ErrorCode::resource_exhausted, "Too much waits to be stored"}});
}

void Partition::Core::appended(const std::optional<Error>& error, Step& step) {
  const PendingAppend pending = std::move(pending_.front());
  pending_.pop_front();
  pending_bytes_ -= pending.batch->bytes.size();
  if (error) {
    publish_failures_ += pending.is_dead_letter ? 0 : 1;
  } else {
    published_ += pending.batch->count();
    common_.end = pending.batch->end_offset();
    common_.cache.append(pending.batch);
    are_all_touched_ = true;
    expect_upkeep(step.now.steady);
  }
  answer(pending, error, step);
}

void Partition::Core::answer(const PendingAppend& pending, const std::optional<Error>& error,
                             Step& step) {
  if (pending.is_dead_letter) {
    step.emit(AnswerDeadLetter{pending.source, pending.source_ticket, error});
  } else if (!error) {
    step.emit(PublishReply{pending.request, pending.batch->first_id});
  } else if (error->code == ErrorCode::resource_exhausted) {
    step.emit(PublishReply{pending.request, *error});
  } else {
    step.emit(
        PublishReply{pending.request,
                     Error{ErrorCode::unavailable,
                           "It is not known whether the messages were stored: " + error->message}});
  }
}

void Partition::Core::on(Committed&& input, Step& step) {
  const std::optional<TicketUse> use = common_.tickets.redeem(input.ticket);
  ORDO_CHECK(use.has_value());
  switch (use->kind) {
    case TicketUse::Kind::append:
      ORDO_CHECK(!pending_.empty() && pending_.front().ticket == input.ticket);
      appended(input.error, step);
      break;
    case TicketUse::Kind::rows:
      if (Subscription* subscription = touch(use->cursor))
        subscription->rows_committed(input.error, step);
      break;
    case TicketUse::Kind::seek:
      if (Subscription* subscription = touch(use->cursor))
        subscription->seek_committed(input.error, step);
      break;
    case TicketUse::Kind::snapshot:
      snapshot_committed(use->serial, input.error, step);
      break;
    default:
      ORDO_CHECK(use->kind == TicketUse::Kind::housekeeping);
  }
}

// ------------------------------------------------------------------------------------ routes

void Partition::Core::on(Attach&& input, Step& step) {
  const CursorNumber number = input.setup.subscription;
  CursorState state;
  state.acked.emplace(0, common_.end.value() + (ORDO_BUG(30) ? 1 : 0));
  auto subscription =
      std::make_unique<Subscription>(std::move(input.setup), common_, state, step.now);
  CommitBatch rows;
  subscription->acked().append_all_rows(subscription->owner(), rows);
  ORDO_CHECK(subscriptions_.emplace(number, std::move(subscription)).second);
  step.emit(Attached{input.request, std::move(rows)});
}

void Partition::Core::on(Reconfigure&& input, Step& step) {
  const CursorNumber number = input.setup.subscription;
  Subscription* subscription = touch(number);
  if (subscription == nullptr) return;
  const bool was_push = subscription->setup().config.push.has_value();
  subscription->reconfigure(std::move(input.setup), step);
  if (subscription->setup().config.push.has_value() != was_push) forget_consumers(number);
}

void Partition::Core::forget_consumers(CursorNumber subscription) {
  std::erase_if(consumers_, [&](const auto& entry) { return entry.second == subscription; });
}

void Partition::Core::on(Detach&& input, Step& step) {
  Subscription* subscription = find(input.subscription);
  if (subscription == nullptr) return;
  subscription->detach(input.reason, step);
  subscriptions_.erase(input.subscription);
  forget_consumers(input.subscription);
  house_keep(EraseRows{input.subscription, common_.address}, step);
  expect_upkeep(step.now.steady);
}

void Partition::Core::on(OpenConsumer&& input, Step& step) {
  Subscription* subscription = touch(input.subscription);
  if (subscription == nullptr) {
    step.emit(ConsumerClosed{input.consumer,
                             Error{ErrorCode::not_found, "The subscription does not exist"}});
    return;
  }
  if (const auto refused = refuse_consumer(subscription->setup().config, input.pushes)) {
    step.emit(ConsumerClosed{input.consumer, *refused});
    return;
  }
  consumers_[input.consumer] = input.subscription;
  subscription->open_consumer(input);
}

void Partition::Core::on(GrantCredit&& input, Step& step) {
  const auto consumer = consumers_.find(input.consumer);
  if (consumer == consumers_.end()) return;
  if (Subscription* subscription = touch(consumer->second)) subscription->grant(input, step);
}

void Partition::Core::on(SetConsumerDeadline&& input, Step&) {
  const auto consumer = consumers_.find(input.consumer);
  if (consumer == consumers_.end()) return;
  if (Subscription* subscription = touch(consumer->second)) subscription->set_deadline(input);
}

void Partition::Core::on(CloseConsumer&& input, Step& step) {
  const auto consumer = consumers_.find(input.consumer);
  if (consumer == consumers_.end()) return;
  if (Subscription* subscription = touch(consumer->second))
    subscription->close_consumer(input, step);
  consumers_.erase(consumer);
}

// An ack or a changed deadline, of a subscription that may be gone.
template <class Reply, class SettleInput>
void Partition::Core::settle(const SettleInput& input, Step& step, Reply&& by_subscription) {
  Subscription* subscription = input.ids.empty() ? nullptr : touch(input.ids.front().subscription);
  if (subscription != nullptr) {
    by_subscription(*subscription);
  } else if (input.confirm) {
    step.emit(SettleReply{input.request,
                          std::vector<SettleOutcome>(input.ids.size(), SettleOutcome::stale)});
  }
}

void Partition::Core::on(Acknowledge&& input, Step& step) {
  settle(input, step, [&](Subscription& to) { to.acknowledge(input, step); });
  settled_since_trim_ += input.ids.size();
  if (settled_since_trim_ >= kTrimMessages) {
    settled_since_trim_ = 0;
    trim(step);
  }
  expect_upkeep(step.now.steady);
}

void Partition::Core::on(ModifyDeadline&& input, Step& step) {
  settle(input, step, [&](Subscription& to) { to.modify_deadline(input, step); });
}

void Partition::Core::on(ReadDone&& input, Step& step) {
  const std::optional<TicketUse> use = common_.tickets.redeem(input.ticket);
  ORDO_CHECK(use.has_value());
  if (use->kind == TicketUse::Kind::read_snapshot) {
    snapshot_read(use->serial, input.result, step);
    return;
  }
  if (use->kind == TicketUse::Kind::read_stats) {
    stats_read(*use, input.result, step);
    return;
  }
  if (use->kind == TicketUse::Kind::read_peek) {
    peek_read(*use, input.result, step);
    return;
  }
  Subscription* subscription = touch(use->cursor);
  if (subscription == nullptr) return;
  if (use->kind == TicketUse::Kind::read_cursor) {
    subscription->cursor_read(use->serial, std::move(input.result), step);
  } else {
    ORDO_CHECK(use->kind == TicketUse::Kind::read_lane);
    subscription->lane_read(*use, std::move(input.result), step);
  }
}

void Partition::Core::on(SpillRead&& input, Step& step) {
  const std::optional<TicketUse> use = common_.tickets.redeem(input.ticket);
  ORDO_CHECK(use && use->kind == TicketUse::Kind::spill);
  if (Subscription* subscription = touch(use->cursor))
    subscription->chunk_read(*use, input.result, step);
}

void Partition::Core::on(DeadLetterDone&& input, Step& step) {
  const std::optional<TicketUse> use = common_.tickets.redeem(input.ticket);
  ORDO_CHECK(use && use->kind == TicketUse::Kind::dead_letter);
  if (Subscription* subscription = touch(use->cursor))
    subscription->dead_letter_done(*use, input.error, step);
  expect_upkeep(step.now.steady);
}

void Partition::Core::on(OperateKey&& input, Step& step) {
  if (Subscription* subscription = touch(input.subscription)) {
    subscription->operate_key(input, step);
    return;
  }
  step.emit(
      VerbReply{input.request, Error{ErrorCode::not_found, "The subscription does not exist"}});
}

void Partition::Core::on(ListKeys&& input, Step& step) {
  const Subscription* subscription = find(input.subscription);
  KeysReply reply;
  if (subscription != nullptr) reply = subscription->list_keys(input, step.now.steady);
  reply.request = input.request;
  step.emit(std::move(reply));
}

}  // namespace ordo::broker
