// What the partitions ask for, done.
#include <algorithm>
#include <utility>
#include <variant>

#include "ordo/core/check.h"
#include "tests/simulation/world.h"

namespace ordo::simulation {

using broker::CommitBatch;
using broker::StoreFaults;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

bool appends(const CommitBatch& batch) {
  return std::any_of(batch.begin(), batch.end(), [](const broker::CommitOp& op) {
    return std::holds_alternative<broker::Append>(op);
  });
}

}  // namespace

// ---------------------------------------------------------------------- faults of the store

StoreFaults::Commit World::Faults::on_commit(const CommitBatch& batch) {
  if (world_.is_draining_) return Commit::none;
  const auto happens = [&](std::uint32_t per_thousand) {
    return per_thousand > 0 && world_.dice_.below(1'000) < per_thousand;
  };
  if (appends(batch)) {
    if (happens(world_.plan_.commit_full_per_thousand)) {
      world_.marks_.hit(Mark::store_full);
      return Commit::full;
    }
  } else if (happens(world_.plan_.rows_full_per_thousand)) {
    world_.marks_.hit(Mark::rows_refused);
    return Commit::full;
  }
  if (happens(world_.plan_.commit_error_per_thousand)) {
    const bool is_kept = world_.dice_.chance(50);
    world_.marks_.hit(is_kept ? Mark::store_failed_kept : Mark::store_failed_lost);
    return is_kept ? Commit::error_kept : Commit::error_not_kept;
  }
  return Commit::none;
}

std::optional<Error> World::Faults::on_read(Address, broker::Offset) {
  if (world_.is_draining_ || world_.is_recovering_ ||
      world_.dice_.below(1'000) >= world_.plan_.read_error_per_thousand)
    return std::nullopt;
  world_.marks_.hit(Mark::read_failed);
  return Error{ErrorCode::unavailable, "The read failed"};
}

std::optional<Error> World::Faults::on_spill(const broker::SpillKey&) {
  const bool is_read = world_.is_reading_spill_;
  const std::uint32_t per_thousand =
      is_read ? world_.plan_.read_error_per_thousand : world_.plan_.spill_error_per_thousand;
  if (world_.is_draining_ || world_.dice_.below(1'000) >= per_thousand) return std::nullopt;
  world_.marks_.hit(is_read ? Mark::spill_read_failed : Mark::spill_write_failed);
  return Error{ErrorCode::unavailable, is_read ? "The read failed" : "The write failed"};
}

// ---------------------------------------------------------------------- committer

void World::enqueue(WaitingCommit commit) {
  waiting_.push_back(std::move(commit));
  if (is_committing_) return;
  is_committing_ = true;
  after_in_life(dice_.time({}, microseconds(200)), [this] { start_commit(); });
}

void World::commit_rows(CommitBatch ops, std::function<void(std::optional<Error>)> done) {
  enqueue({{}, {}, std::move(ops), std::move(done), std::nullopt});
}

void World::start_commit() {
  committing_ = std::move(waiting_);
  waiting_.clear();
  if (committing_.size() > 1) marks_.hit(Mark::merged_commit);
  // It reaches the disk at some time between its begin and its end.
  is_applied_ = dice_.chance(50);
  if (is_applied_) apply_commit();
  if (!is_up_) return;
  after_in_life(dice_.time({}, is_draining_ ? milliseconds(1) : plan_.commit_delay_max),
                [this] { finish_commit(); });
}

void World::store(std::vector<WaitingCommit*> commits) {
  CommitBatch merged;
  for (const WaitingCommit* commit : commits)
    merged.insert(merged.end(), commit->ops.begin(), commit->ops.end());
  const Status stored = store_->commit(merged);
  for (WaitingCommit* commit : commits) {
    if (!stored) commit->error = stored.error();
    if (stored && !commit->done) checker_.commit_stored(commit->address, commit->ticket);
  }
  for (const auto& [subscription, uid] : checker_.take_dead()) {
    if (auto* history = this->history(subscription)) history->dead(std::to_string(uid), now_);
  }
}

// As the committer of the broker does it: what is refused for want of space is tried again without
// the messages; any other error ends the store.
void World::apply_commit() {
  std::vector<WaitingCommit*> all, rows;
  for (WaitingCommit& commit : committing_) {
    all.push_back(&commit);
    if (!appends(commit.ops)) rows.push_back(&commit);
  }
  store(all);
  const auto code = [&] {
    const auto failed = std::find_if(all.begin(), all.end(), [](auto* c) { return c->error; });
    return failed == all.end() ? std::optional<ErrorCode>() : (*failed)->error->code;
  };
  if (code() == ErrorCode::resource_exhausted && !rows.empty() && rows.size() < all.size()) {
    for (WaitingCommit* commit : rows)
      commit->error.reset();
    store(rows);
  }
  for (WaitingCommit* commit : all) {
    if (!commit->error || commit->error->code == ErrorCode::resource_exhausted) continue;
    commit->error->code = ErrorCode::unavailable;
    if (!commit->done) checker_.commit_doubted(commit->address, commit->ticket);
    if (!is_store_failed_) {
      is_store_failed_ = true;
      trace("the store fails");
      after_in_life(dice_.time({}, milliseconds(200)), [this] { crash(); });
    }
  }
  if (is_crash_due()) crash();
}

void World::finish_commit() {
  if (!is_applied_) apply_commit();
  if (!is_up_) return;
  const std::uint32_t life = life_;
  std::vector<WaitingCommit> done = std::move(committing_);
  committing_.clear();
  for (WaitingCommit& commit : done) {
    if (commit.done) {
      commit.done(commit.error);
    } else {
      step(commit.address, broker::Committed{commit.ticket, commit.error});
    }
    if (!is_up_ || life != life_ || !checker_.violation().empty()) return;
  }
  is_committing_ = false;
  if (waiting_.empty()) return;
  is_committing_ = true;
  after_in_life(dice_.time({}, microseconds(200)), [this] { start_commit(); });
}

void World::on(Address address, broker::Commit& effect) {
  checker_.commit_asked(address, effect);
  enqueue({address, effect.ticket, std::move(effect.ops), nullptr, std::nullopt});
}

// ---------------------------------------------------------------------- answers

void World::on(Address address, broker::PublishReply& effect) {
  checker_.publish_replied(address, effect);
  const auto asked = publishes_.find(effect.request.value());
  if (asked == publishes_.end()) return;
  if (effect.first_id) {
    record(asked->second, *effect.first_id, "ok");
  } else {
    const bool is_refused = effect.first_id.error().code == ErrorCode::resource_exhausted;
    record(asked->second, std::nullopt, is_refused ? "fail" : "unknown");
  }
  publishes_.erase(asked);
}

void World::on(Address address, broker::SettleReply& effect) {
  checker_.settle_replied(address, effect);
  const auto found = history_settles_.find(effect.request.value());
  if (found == history_settles_.end()) return;
  for (std::size_t i = 0; i < found->second.size() && i < effect.outcomes.size(); ++i) {
    if (effect.outcomes[i] == broker::SettleOutcome::not_now) continue;
    found->second[i].first->answered(
        found->second[i].second, effect.outcomes[i] == broker::SettleOutcome::done ? "ok" : "fail",
        now_);
  }
  history_settles_.erase(found);
}

void World::on(Address, broker::Attached& effect) {
  for (std::uint32_t i = 0; i < subscriptions_.size(); ++i) {
    Subscription& subscription = subscriptions_[i];
    if (subscription.number.value() != effect.request.value() || subscription.exists) continue;
    subscription.rows.insert(subscription.rows.end(), effect.rows.begin(), effect.rows.end());
    if (++subscription.answers < plan_.partitions) return;
    subscription.rows.push_back(broker::PutCatalog{broker::CatalogKey{2, std::to_string(i)},
                                                   std::to_string(subscription.number.value())});
    store_subscription(i);
    return;
  }
}

void World::on(Address address, broker::Sought& effect) {
  checker_.sought(address, effect);
}

void World::on(Address address, broker::VerbReply& effect) {
  checker_.operated(address, effect);
}

void World::on(Address address, broker::StatsReply& effect) {
  checker_.stats(address, effect.stats, is_end_);
}

// ---------------------------------------------------------------------- deliveries and credit

void World::on(Address address, broker::Deliver& effect) {
  checker_.deliver(address, effect);
  const std::optional<std::size_t> client = client_of(effect.consumer);
  if (!client || !checker_.violation().empty()) return;
  std::uint64_t bytes = 0;
  for (const broker::Delivery& delivery : effect.deliveries)
    bytes += delivery.message.size();
  broker::CreditDesk::Grants grants;
  clients_[*client].desk->deliver(address.index, effect.deliveries.size(), bytes, grants);
  grant(*client, grants);
  for (const broker::Delivery& delivery : effect.deliveries)
    delivered(*client, delivery);
}

void World::on(Address address, broker::KeptBack& effect) {
  checker_.kept_back(address, effect);
}

void World::on(Address address, broker::WantCredit& effect) {
  const std::optional<std::size_t> client = client_of(effect.consumer);
  if (!client) return;
  broker::CreditDesk::Grants grants;
  clients_[*client].desk->want(address.index, grants);
  if (grants.empty()) marks_.hit(Mark::credit_exhausted);
  grant(*client, grants);
}

void World::on(Address address, broker::ReturnCredit& effect) {
  const std::optional<std::size_t> client = client_of(effect.consumer);
  if (!client) return;
  broker::CreditDesk::Grants grants;
  clients_[*client].desk->give_back(address.index, grants);
  if (!grants.empty() && grants.front().partition != address.index) marks_.hit(Mark::credit_moved);
  grant(*client, grants);
}

void World::on(Address address, broker::ReleaseCredit& effect) {
  const std::optional<std::size_t> client = client_of(effect.consumer);
  if (!client) return;
  broker::CreditDesk::Grants grants;
  clients_[*client].desk->release(address.index, effect.messages, effect.bytes, grants);
  grant(*client, grants);
}

void World::on(Address, broker::ConsumerClosed& effect) {
  if (const std::optional<std::size_t> client = client_of(effect.consumer))
    disconnect(*client, std::nullopt);
}

// ---------------------------------------------------------------------- reads and spills

void World::on(Address address, broker::Read& effect) {
  after_in_life(dice_.time({}, is_draining_ ? milliseconds(1) : plan_.read_delay_max),
                [this, address, effect] {
                  auto result =
                      store_->read(address, effect.from, effect.messages_max, effect.bytes_max);
                  if (!result && result.error().code == ErrorCode::data_loss)
                    marks_.hit(Mark::damage_read);
                  if (result) garble(address, *result);
                  if (result && !result->batches.empty())
                    marks_.hit(effect.messages_max == 1 ? Mark::cold_head_read : Mark::cold_read);
                  step(address, broker::ReadDone{effect.ticket, std::move(result)});
                });
}

void World::on(Address address, broker::FindTime& effect) {
  checker_.time_asked(address, effect.ticket);
  after_in_life(
      dice_.time({}, is_draining_ ? milliseconds(1) : plan_.read_delay_max),
      [this, address, effect] {
        step(address, broker::TimeFound{effect.ticket, store_->find_time(address, effect.time)});
      });
}

void World::on(Address, broker::WriteSpill& effect) {
  if (store_->write_spill(effect.key, effect.bytes)) marks_.hit(Mark::spilled);
}

void World::on(Address address, broker::ReadSpill& effect) {
  after_in_life(dice_.time({}, is_draining_ ? milliseconds(1) : plan_.read_delay_max),
                [this, address, effect] {
                  is_reading_spill_ = true;
                  Result<std::string> result = store_->read_spill(effect.key);
                  is_reading_spill_ = false;
                  if (result) {
                    marks_.hit(Mark::spill_read_back);
                    ORDO_CHECK(store_->erase_spill(effect.key, 1).has_value());
                  } else if (result.error().code == ErrorCode::not_found) {
                    marks_.hit(Mark::spill_lost);
                  }
                  step(address, broker::SpillRead{effect.ticket, std::move(result)});
                });
}

void World::on(Address, broker::EraseSpill& effect) {
  marks_.hit(Mark::spill_erased);
  ORDO_CHECK(store_->erase_spill(effect.first, effect.chunk_count).has_value());
}

// ---------------------------------------------------------------------- dead letters

void World::on(Address source, broker::SendDeadLetter& effect) {
  checker_.dead_letter_sent(source, effect);
  if (!checker_.violation().empty()) return;
  const Nanoseconds delay = dice_.time({}, milliseconds(2));
  if (is_dead_topic_gone_ || !partitions_.contains(effect.to)) {
    after_in_life(delay, [this, source, ticket = effect.ticket] {
      step(source, broker::DeadLetterDone{ticket, Error{ErrorCode::not_found, "No such topic"}});
    });
    return;
  }
  after_in_life(delay, [this, source, effect] {
    checker_.dead_letter_arrives(effect.to, source, effect.ticket);
    step(effect.to,
         broker::TakeDeadLetter{source, effect.ticket, effect.message, effect.settlement});
  });
}

void World::on(Address address, broker::AnswerDeadLetter& effect) {
  checker_.dead_letter_answered(address, effect);
  after_in_life(dice_.time({}, milliseconds(2)), [this, effect] {
    step(effect.source, broker::DeadLetterDone{effect.ticket, effect.error});
  });
}

}  // namespace ordo::simulation
