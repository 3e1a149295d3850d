#include "ordo/broker/cursor_journal.h"

#include <algorithm>
#include <iterator>

#include "ordo/broker/planted_bugs.h"
#include "ordo/core/check.h"

namespace ordo::broker {

void CursorJournal::confirm(Effect reply, Step& step) {
  if (is_dirty() && !ORDO_BUG(19)) {
    replies_.push_back(std::move(reply));
    wish(step.now.steady);
  } else if (under_way_ && !under_way_->is_void) {
    under_way_->replies.push_back(std::move(reply));
  } else {
    step.emit(std::move(reply));
  }
}

void CursorJournal::store_attempts(Offset offset, std::uint32_t attempts) {
  rows_[Name{RowKind::attempts, offset.value(), {}}] = attempts;
  stored_.push_back({offset, attempts});
  wish(TimePoint{});
}

void CursorJournal::erase_attempts(Offset offset) {
  rows_[Name{RowKind::attempts, offset.value(), {}}] = std::nullopt;
}

void CursorJournal::raise_delivered_below(Offset offset) {
  if (offset <= delivered_below_wanted_) return;
  delivered_below_wanted_ = offset;
  rows_[Name{RowKind::delivered, 0, {}}] = offset.value();
  wish(TimePoint{});
}

void CursorJournal::put_hold(const HeldLaneRow& held) {
  const RowKey key = hold_key(owner_, held);
  rows_[Name{RowKind::held_lane, key.position, key.text}] = hold_value(held);
  wish(TimePoint{});
}

void CursorJournal::erase_hold(const HeldLaneRow& held) {
  const RowKey key = hold_key(owner_, held);
  rows_[Name{RowKind::held_lane, key.position, key.text}] = std::nullopt;
  wish(TimePoint{});
}

void CursorJournal::flush(PartitionCommon& common, Step& step) {
  if (!is_dirty()) {
    due_.reset();
    return;
  }
  if (!due_) due_ = step.now.steady + kIdleCollectTime;
  if (under_way_ || *due_ > step.now.steady || not_before_ > step.now.steady) return;
  UnderWay next;
  next.begins = acked_.take_touched();
  next.rows = std::exchange(rows_, {});
  next.replies = std::exchange(replies_, {});
  next.stored = std::exchange(stored_, {});
  next.delivered_below = std::max(delivered_below_, delivered_below_wanted_);
  due_.reset();
  CommitBatch batch;
  batch.reserve(next.begins.size() + next.rows.size());
  acked_.append_rows(owner_, next.begins, batch);
  for (const auto& [name, value] : next.rows) {
    RowKey key = row_key(owner_, name.kind, name.position, name.text);
    if (value) {
      batch.emplace_back(PutRow{std::move(key), encode_number(*value)});
    } else {
      batch.emplace_back(EraseRow{std::move(key)});
    }
  }
  const TicketNumber ticket =
      common.tickets.issue({.kind = TicketUse::Kind::rows, .cursor = owner_.cursor});
  step.emit(Commit{ticket, std::move(batch)});
  under_way_ = std::move(next);
}

void CursorJournal::committed(const std::optional<Error>& error, Step& step,
                              std::vector<StoredAttempts>& stored) {
  ORDO_CHECK(under_way_.has_value());
  UnderWay done = std::move(*under_way_);
  under_way_.reset();
  if (!error) {
    for (Effect& reply : done.replies)
      step.emit(std::move(reply));
    delivered_below_ = std::max(delivered_below_, done.delivered_below);
    if (!done.is_void) stored = std::move(done.stored);
    return;
  }
  const bool is_full = error->code == ErrorCode::resource_exhausted;
  if (!is_full || done.is_void) {
    for (Effect& reply : done.replies) {
      refuse(reply, *error);
      step.emit(std::move(reply));
    }
    done.replies.clear();
  }
  // Void or not: the seek may fail too.
  not_before_ = step.now.steady + (is_full ? kCommitRetryTime : kIdleCollectTime);
  take_back(std::move(done));
  wish(step.now.steady);
}

void CursorJournal::refuse(Effect& reply, const Error& error) {
  if (auto* settled = std::get_if<SettleReply>(&reply)) {
    std::replace(settled->outcomes.begin(), settled->outcomes.end(), SettleOutcome::done,
                 SettleOutcome::not_now);
  } else if (auto* verb = std::get_if<VerbReply>(&reply)) {
    verb->error = error;
  }
}

void CursorJournal::take_back(UnderWay&& failed) {
  if (!ORDO_BUG(20)) acked_.touch(failed.begins);
  rows_.merge(failed.rows);  // What was said since then stands.
  replies_.insert(replies_.begin(), std::make_move_iterator(failed.replies.begin()),
                  std::make_move_iterator(failed.replies.end()));
  stored_.insert(stored_.begin(), failed.stored.begin(), failed.stored.end());
}

std::optional<TimePoint> CursorJournal::next_due() const {
  if (under_way_ || !is_dirty() || !due_) return std::nullopt;
  return std::max(*due_, not_before_);
}

std::vector<Effect> CursorJournal::abandon() {
  if (under_way_) under_way_->is_void = true;
  return std::exchange(replies_, {});
}

std::vector<Effect> CursorJournal::give_up(const Error& reason) {
  std::vector<Effect> replies = std::exchange(replies_, {});
  if (under_way_) {
    replies.insert(replies.begin(), std::make_move_iterator(under_way_->replies.begin()),
                   std::make_move_iterator(under_way_->replies.end()));
    under_way_->replies.clear();
  }
  for (Effect& reply : replies)
    refuse(reply, reason);
  return replies;
}

CommitBatch CursorJournal::replacement(const AckedIntervals& acked,
                                       const std::vector<HeldLaneRow>& holds) const {
  CommitBatch batch;
  batch.emplace_back(EraseRows{ORDO_BUG(24) ? CursorNumber(~0u) : owner_.cursor, owner_.partition});
  acked.append_all_rows(owner_, batch);
  for (const HeldLaneRow& held : holds)
    batch.emplace_back(PutRow{hold_key(owner_, held), encode_number(hold_value(held))});
  return batch;
}

void CursorJournal::replace(AckedIntervals acked) {
  acked_ = std::move(acked);
  acked_.take_touched();
  rows_.clear();
  stored_.clear();
  due_.reset();
  delivered_below_ = Offset(0);
  delivered_below_wanted_ = Offset(0);
}

}  // namespace ordo::broker
