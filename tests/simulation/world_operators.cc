// Subscriptions that come and go, operators, seeks, and the end.
#include <algorithm>
#include <string>
#include <utility>

#include "ordo/core/check.h"
#include "tests/simulation/world.h"

namespace ordo::simulation {

using broker::CatalogKey;
using broker::CommitBatch;
using broker::CursorNumber;
using broker::RequestNumber;
using std::chrono::milliseconds;
using std::chrono::seconds;

// ---------------------------------------------------------------------- subscriptions

void World::create(std::uint32_t index) {
  Subscription& subscription = subscriptions_[index];
  subscription.is_wanted = true;
  if (!is_up_ || subscription.exists || subscription.is_attached) return;
  const std::uint32_t life = life_;
  subscription.number = CursorNumber(static_cast<std::uint32_t>(++last_number_));
  subscription.is_attached = true;
  subscription.answers = 0;
  subscription.rows.clear();
  trace("create s" + std::to_string(index));
  for (const Address address : addresses(plan_.subscriptions[index].topic)) {
    checker_.attach(index, subscription.number, address);
    step(address, broker::Attach{RequestNumber(subscription.number.value()), setup(index)});
    if (!is_up_ || life != life_) return;
  }
}

void World::store_subscription(std::uint32_t index) {
  const CursorNumber number = subscriptions_[index].number;
  commit_rows(subscriptions_[index].rows, [this, index, number](std::optional<Error> error) {
    if (error && error->code == ErrorCode::resource_exhausted) {
      after_in_life(milliseconds(100), [this, index] { store_subscription(index); });
      return;
    }
    if (error) return;
    subscriptions_[index].exists = true;
    checker_.subscription_exists(number);
  });
}

// The catalog's row goes first: a crash leaves a subscription that is whole, or none.
void World::remove(std::uint32_t index) {
  Subscription& subscription = subscriptions_[index];
  if (!is_up_ || !subscription.exists) return;
  trace("delete s" + std::to_string(index));
  subscription.is_wanted = false;
  commit_rows({broker::EraseCatalog{CatalogKey{2, std::to_string(index)}}},
              [this, index](const std::optional<Error>& error) {
                if (!error) detach(index);
              });
}

void World::detach(std::uint32_t index) {
  Subscription& subscription = subscriptions_[index];
  if (!subscription.exists) return;
  if (checker_.live_count(subscription.number) > 0) marks_.hit(Mark::subscription_deleted);
  const std::uint32_t life = life_;
  const CursorNumber number = subscription.number;
  subscription.exists = subscription.is_attached = false;
  for (const Address address : addresses(plan_.subscriptions[index].topic)) {
    step(address, broker::Detach{number, Error{ErrorCode::not_found, "Deleted"}});
    if (!is_up_ || life != life_) return;
  }
  if (dice_.chance(50)) after(dice_.time({}, seconds(2)), [this, index] { create(index); });
}

// ---------------------------------------------------------------------- operators

void World::operate() {
  const auto index = static_cast<std::uint32_t>(dice_.below(subscriptions_.size()));
  const Subscription& subscription = subscriptions_[index];
  if (!is_up_ || !subscription.exists) return;
  const std::string key = "k" + std::to_string(dice_.below(plan_.keys));
  const Address address{plan_.subscriptions[index].topic_number(),
                        broker::partition_of(key, plan_.partitions)};
  step(address, broker::OperateKey{new_request(), subscription.number, key,
                                   static_cast<broker::OperateKey::Verb>(dice_.below(4))});
}

void World::seek() {
  const auto index = static_cast<std::uint32_t>(dice_.below(subscriptions_.size()));
  const Subscription& subscription = subscriptions_[index];
  if (!is_up_ || !subscription.exists) return;
  std::optional<CursorNumber> snapshot;
  for (const auto& [number, taken] : snapshots_) {
    if (taken.exists && taken.subscription == index && dice_.chance(70)) snapshot = number;
  }
  const WallTime start = now().wall - (now_ - TimePoint{});
  const WallTime time = dice_.chance(20) ? now().wall : start + dice_.time({}, now_ - TimePoint{});
  const CursorNumber number = subscription.number;
  const std::uint32_t life = life_;
  trace("seek s" + std::to_string(index));
  for (const Address address : addresses(plan_.subscriptions[index].topic)) {
    if (snapshot) {
      step(address, broker::SeekToSnapshot{new_request(), number, *snapshot});
    } else {
      step(address, broker::SeekToTime{new_request(), number, time});
    }
    if (!is_up_ || life != life_) return;
  }
  if (dice_.chance(30)) after(dice_.time({}, milliseconds(100)), [this] { seek(); });
}

void World::take_snapshot() {
  const auto index = static_cast<std::uint32_t>(dice_.below(subscriptions_.size()));
  const Subscription& subscription = subscriptions_[index];
  if (!is_up_ || !subscription.exists || checker_.is_seeking(subscription.number)) return;
  const CursorNumber number(static_cast<std::uint32_t>(++last_number_));
  snapshots_[number].subscription = index;
  const std::uint32_t life = life_;
  trace("snapshot of s" + std::to_string(index));
  for (const Address address : addresses(plan_.subscriptions[index].topic)) {
    step(address, broker::TakeSnapshot{RequestNumber(number.value()), subscription.number, number});
    if (!is_up_ || life != life_) return;
  }
}

void World::on(Address, broker::SnapshotTaken& effect) {
  const CursorNumber number(static_cast<std::uint32_t>(effect.request.value()));
  const auto found = snapshots_.find(number);
  if (found == snapshots_.end()) return;
  if (effect.error) {
    snapshots_.erase(found);
    return;
  }
  if (++found->second.answers < plan_.partitions) return;
  commit_rows({broker::PutCatalog{CatalogKey{3, std::to_string(number.value())},
                                  std::to_string(number.value()) + ":" +
                                      std::to_string(found->second.subscription)}},
              [this, number](std::optional<Error> error) {
                if (error) {  // Unless it is not known: then a restart finds it, or not.
                  if (error->code == ErrorCode::resource_exhausted) snapshots_.erase(number);
                  return;
                }
                snapshots_[number].exists = true;
                checker_.snapshot_exists(number);
              });
}

void World::drop_snapshot() {
  if (!is_up_ || snapshots_.empty() || !snapshots_.begin()->second.exists) return;
  const CursorNumber number = snapshots_.begin()->first;
  commit_rows({broker::EraseCatalog{CatalogKey{3, std::to_string(number.value())}}},
              [this, number](const std::optional<Error>& error) {
                const auto found = snapshots_.find(number);
                if (error || found == snapshots_.end()) return;
                const std::uint32_t topic = plan_.subscriptions[found->second.subscription].topic;
                snapshots_.erase(found);
                checker_.drop_snapshot(number);
                const std::uint32_t life = life_;
                for (const Address address : addresses(topic)) {
                  step(address, broker::DropSnapshot{number});
                  if (!is_up_ || life != life_) return;
                }
              });
}

void World::retain_topic() {
  const auto topic = static_cast<std::uint32_t>(dice_.below(plan_.topics + 1));
  std::optional<Nanoseconds>& retention = topic_retention_[topic];
  retention.reset();
  if (dice_.chance(70)) retention = dice_.time(seconds(1), plan_.safety_time);
  marks_.hit(Mark::topic_retention_changed);
  const std::uint32_t life = life_;
  for (const Address address : addresses(topic)) {
    step(address, broker::RetainTopic{retention});
    if (!is_up_ || life != life_) return;
  }
}

void World::set_dead_topic(bool is_gone) {
  is_dead_topic_gone_ = is_gone;
  if (!is_up_) return;
  trace(is_gone ? "the dead-letter topic is gone" : "the dead-letter topic is back");
  if (is_gone && dice_.chance(50)) return;  // The partitions find out by themselves.
  const std::uint32_t life = life_;
  for (std::uint32_t i = 0; i < subscriptions_.size(); ++i) {
    if (!subscriptions_[i].is_attached || !plan_.subscriptions[i].config.dead_letter_policy)
      continue;
    for (const Address address : addresses(plan_.subscriptions[i].topic)) {
      step(address, broker::Reconfigure{setup(i)});
      if (!is_up_ || life != life_) return;
    }
  }
}

// ---------------------------------------------------------------------- damage

void World::damage() {
  const auto all = addresses(static_cast<std::uint32_t>(dice_.below(plan_.topics)));
  const Address address = dice_.pick(all);
  const std::optional<std::uint64_t> offset = checker_.pick_stored(address, dice_.next());
  if (!is_up_ || !offset) return;
  is_recovering_ = true;  // This read does not fail.
  const auto read = store_->read(address, broker::Offset(*offset), 1, 1);
  is_recovering_ = false;
  if (!read || read->batches.empty()) return;
  const broker::MessageBatch& batch = *read->batches.front();
  const bool is_known = std::any_of(damages_.begin(), damages_.end(), [&](const Damage& other) {
    return other.address == address && other.offset >= batch.first_offset &&
           other.offset < batch.end_offset();
  });
  if (is_known || batch.first_offset > broker::Offset(*offset)) return;
  damages_.push_back({address, broker::Offset(*offset), dice_.chance(50)});
  if (!damages_.back().is_hidden) disk_->damage(address, broker::Offset(*offset));
  trace("damage of offset " + std::to_string(*offset));
  checker_.damaged(address, batch.first_offset.value(), batch.end_offset().value());
}

// Takes the damage that the store notices away for a time, or brings it back. A crash may have
// lost it, or the message, together with what was not synced.
void World::set_damage(bool is_damaged) {
  std::erase_if(damages_, [&](const Damage& damage) {
    const auto read = store_->read(damage.address, damage.offset, 1, 1);
    if (read && (read->batches.empty() || read->batches.front()->first_offset > damage.offset))
      return true;
    if (damage.is_hidden) return false;
    const bool was_damaged = !read && read.error().code == ErrorCode::data_loss;
    if (was_damaged == is_damaged) return false;
    return !disk_->damage(damage.address, damage.offset);
  });
}

void World::garble(Address address, broker::ReadBatches& read) const {
  for (auto& batch : read.batches) {
    for (const Damage& damage : damages_) {
      if (!damage.is_hidden || damage.address != address || damage.offset < batch->first_offset ||
          damage.offset >= batch->end_offset())
        continue;
      auto changed = std::make_shared<broker::MessageBatch>(*batch);
      changed->bytes[changed->entries[damage.offset - batch->first_offset].body_at] ^= 1;
      batch = std::move(changed);
    }
  }
}

void World::ask() {
  for (std::uint32_t topic = 0; topic <= plan_.topics; ++topic) {
    for (const Address address : addresses(topic))
      step(address, broker::AskStats{new_request()});
  }
}

// Lets go what is parked or paused.
void World::sweep() {
  for (std::uint32_t i = 0; i < subscriptions_.size(); ++i) {
    if (!subscriptions_[i].exists) continue;
    for (const Address address : addresses(plan_.subscriptions[i].topic)) {
      broker::ListKeys list;
      list.request = new_request();
      list.subscription = subscriptions_[i].number;
      list.lanes_max = 1 + static_cast<std::uint32_t>(list.request.value() % 20);
      if (list.request.value() % 2 == 0) list.order = broker::KeyOrder::deepest;
      lists_[list.request.value()] = list;
      step(address, list);
      peek(address, subscriptions_[i].number, broker::Offset());
      // Messages without a key that are parked are no blocked keys.
      if (is_draining_ &&
          plan_.subscriptions[i].config.failure_policy == broker::FailurePolicy::park)
        step(address, broker::OperateKey{new_request(), subscriptions_[i].number, "",
                                         broker::OperateKey::Verb::resume});
    }
  }
}

void World::on(Address address, broker::KeysReply& effect) {
  marks_.hit(Mark::blocked_keys_listed);
  const auto found = lists_.find(effect.request.value());
  if (found == lists_.end()) return;
  broker::ListKeys list = found->second;
  const CursorNumber number = list.subscription;
  lists_.erase(found);
  if (effect.next > 0) {
    list.request = new_request();
    list.from = effect.next;
    lists_[list.request.value()] = list;
    after_in_life({}, [this, address, list] { step(address, list); });
  }
  for (const broker::KeyFacts& key : effect.keys) {
    if (key.reason == broker::BlockReason::dead_letter_gone)
      marks_.hit(Mark::dead_letter_topic_gone);
    checker_.listed(address, number, key);
    if (!is_draining_) continue;
    if (key.reason != broker::BlockReason::parked && key.reason != broker::BlockReason::paused &&
        key.reason != broker::BlockReason::data_loss)
      continue;
    after_in_life({}, [this, address, number, text = key.key] {
      step(address,
           broker::OperateKey{new_request(), number, text, broker::OperateKey::Verb::resume});
    });
  }
}

void World::peek(Address address, CursorNumber subscription, broker::Offset from) {
  broker::Peek peek;
  peek.request = new_request();
  peek.subscription = subscription;
  peek.from = from;
  peek.messages_max = 1 + peek.request.value() % 10;
  peek.offsets_max = 1 + peek.request.value() % 30;
  peeks_[peek.request.value()] = subscription;
  step(address, std::move(peek));
}

void World::on(Address address, broker::PeekReply& effect) {
  const auto found = peeks_.find(effect.request.value());
  if (found == peeks_.end()) return;
  const CursorNumber number = found->second;
  peeks_.erase(found);
  for (const broker::PeekedMessage& message : effect.messages)
    checker_.peeked(address, number, message);
  if (effect.next > broker::Offset())
    after_in_life({}, [this, address, number, next = effect.next] { peek(address, number, next); });
}

void World::plan_operators() {
  const auto sometime = [&](void (World::*what)()) {
    after(dice_.time({}, plan_.safety_time), [this, what] {
      if (is_up_) (this->*what)();
    });
  };
  for (std::uint64_t i = plan_.has_verbs ? dice_.between(1, 12) : 0; i > 0; --i)
    sometime(&World::operate);
  for (std::uint64_t i = plan_.has_seeks ? dice_.between(1, 4) : 0; i > 0; --i)
    sometime(&World::seek);
  for (std::uint64_t i = plan_.has_snapshots ? dice_.between(1, 3) : 0; i > 0; --i) {
    sometime(&World::take_snapshot);
    if (dice_.chance(30)) sometime(&World::drop_snapshot);
  }
  for (std::uint64_t i = plan_.changes_retention ? dice_.between(1, 3) : 0; i > 0; --i)
    sometime(&World::retain_topic);
  for (std::uint32_t i = 0; i < plan_.damages; ++i) {
    sometime(&World::damage);
    sometime(&World::sweep);
  }
  for (int i = 0; i < 2; ++i) {
    sometime(&World::ask);
    sometime(&World::sweep);
  }
  for (std::uint32_t i = 0; i < plan_.subscriptions.size(); ++i) {
    if (plan_.subscriptions[i].is_late) {
      after(dice_.time({}, plan_.safety_time / 2), [this, i] {
        if (checker_.has_commit_under_way()) marks_.hit(Mark::subscription_created);
        create(i);
      });
    }
    if (plan_.has_deletions && dice_.chance(50))
      after(dice_.time({}, plan_.safety_time), [this, i] { remove(i); });
  }
  if (plan_.loses_dead_letter_topic) {
    const Nanoseconds gone = dice_.time({}, plan_.safety_time);
    after(gone, [this] { set_dead_topic(true); });
    after(gone + plan_.safety_time / 10, [this] { sweep(); });
    after(gone + dice_.time({}, plan_.safety_time), [this] {
      if (is_dead_topic_gone_) set_dead_topic(false);
    });
  }
}

// ---------------------------------------------------------------------- the end

void World::drain() {
  trace("faults end");
  is_draining_ = true;
  if (is_store_failed_ && is_up_) crash();
  run_events(now_ + seconds(3));  // It is up again by then.
  set_dead_topic(false);
  set_damage(false);
  damages_.clear();
  for (int i = 0; i < 400 && checker_.violation().empty() && events_run_ <= kEventsMax; ++i) {
    run_events(now_ + milliseconds(500));
    checker_.take_idle();
    ask();
    if (checker_.take_idle() && checker_.is_drained()) break;
    sweep();
  }
  run_events(now_ + seconds(3));
  if (!checker_.violation().empty() || events_run_ > kEventsMax) return;
  is_end_ = true;
  ask();
  if (checker_.violation().empty()) checker_.finish(*store_);
}

}  // namespace ordo::simulation
