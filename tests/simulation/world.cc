#include "tests/simulation/world.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <variant>

#include "ordo/broker/filter.h"
#include "ordo/core/check.h"
#include "tests/simulation/describe.h"

namespace ordo::simulation {

using broker::CursorNumber;

World::World(Plan plan, Marks& marks, WorldOptions options)
    : plan_(std::move(plan)),
      marks_(marks),
      options_(std::move(options)),
      dice_(plan_.seed ^ 0x5ca1ab1e),
      checker_(plan_, marks_),
      now_(std::chrono::seconds(1)) {}

World::~World() = default;

// ---------------------------------------------------------------------- time

void World::after(Nanoseconds delay, std::function<void()> run) {
  events_.push_back({now_ + delay, ++last_order_, 0, std::move(run)});
  std::push_heap(events_.begin(), events_.end());
}

void World::after_in_life(Nanoseconds delay, std::function<void()> run) {
  events_.push_back({now_ + delay, ++last_order_, life_, std::move(run)});
  std::push_heap(events_.begin(), events_.end());
}

void World::run_events(TimePoint until) {
  while (checker_.violation().empty() && !events_.empty() && events_.front().time <= until) {
    std::pop_heap(events_.begin(), events_.end());
    Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.time;
    checker_.set_now(now());
    if (event.life != 0 && (event.life != life_ || !is_up_)) continue;
    if (++events_run_ > kEventsMax) return;
    event.run();
  }
  if (checker_.violation().empty()) now_ = std::max(now_, until);
  checker_.set_now(now());
}

void World::trace(const std::string& text) const {
  if (!options_.is_traced) return;
  const double seconds = std::chrono::duration<double>(now_.time_since_epoch()).count();
  std::printf("%10.6f %s\n", seconds, text.c_str());
}

// ---------------------------------------------------------------------- broker

std::vector<World::Address> World::addresses(std::uint32_t topic) const {
  std::vector<Address> result;
  for (std::uint32_t index = 0; index < plan_.partitions; ++index)
    result.push_back({broker::TopicNumber(topic + 1), index});
  return result;
}

broker::SubscriptionSetup World::setup(std::uint32_t index) const {
  const SubscriptionPlan& plan = plan_.subscriptions[index];
  broker::SubscriptionSetup result;
  result.subscription = subscriptions_[index].number;
  result.config = plan.config;
  if (plan.taste != Taste::all) {
    Result<broker::Filter> filter = broker::Filter::parse(plan.config.filter);
    ORDO_CHECK(filter.has_value());
    result.filter = std::make_shared<const broker::Filter>(*std::move(filter));
  }
  if (plan.config.dead_letter_policy) {
    result.dead_letter_topic = dead_topic();
    result.dead_letter_partitions = is_dead_topic_gone_ ? 0 : plan_.partitions;
  }
  return result;
}

void World::start_broker() {
  ++life_;
  is_up_ = true;
  is_store_failed_ = false;
  const bool is_synced = plan_.sync_interval.count() == 0;
  store_ = std::make_unique<broker::MemoryStore>(
      disk_, &faults_,
      is_synced ? broker::SyncPolicy::every_commit : broker::SyncPolicy::on_request);
  Result<broker::Recovered> recovered = store_->recover();
  ORDO_CHECK(recovered.has_value());
  std::vector<CursorNumber> subscriptions, snapshots;
  for (Subscription& subscription : subscriptions_)
    subscription.exists = subscription.is_attached = false;
  for (const auto& [key, value] : recovered->catalog) {
    const CursorNumber number(static_cast<std::uint32_t>(std::stoul(value)));
    if (key.kind == 3) {  // One that was dropped is back if that was lost.
      snapshots.push_back(number);
      snapshots_[number].subscription =
          static_cast<std::uint32_t>(std::stoul(value.substr(value.find(':') + 1)));
      continue;
    }
    Subscription& subscription = subscriptions_[std::stoul(key.name)];
    subscription.number = number;
    subscription.exists = subscription.is_attached = true;
    subscriptions.push_back(number);
  }
  std::erase_if(snapshots_, [&](const auto& snapshot) {
    return std::find(snapshots.begin(), snapshots.end(), snapshot.first) == snapshots.end();
  });
  for (auto& [number, snapshot] : snapshots_)
    snapshot.exists = true;
  is_recovering_ = true;
  set_damage(false);
  checker_.recover(*store_, subscriptions, snapshots);
  set_damage(true);
  is_recovering_ = false;
  if (!is_synced) sync();
  trace("start " + std::to_string(recovered->start_number));
  for (auto& [number, history] : histories_)
    history->start(now_);
  for (std::uint32_t topic = 0; topic <= plan_.topics; ++topic) {
    for (const Address address : addresses(topic)) {
      broker::PartitionStart start;
      start.address = address;
      start.start_number = recovered->start_number;
      start.topic_retention = topic_retention_[topic];
      if (const auto log = recovered->partitions.find(address); log != recovered->partitions.end())
        start.log = log->second;
      for (std::uint32_t i = 0; i < subscriptions_.size(); ++i) {
        if (subscriptions_[i].exists && plan_.subscriptions[i].topic == topic)
          start.subscriptions.push_back(setup(i));
      }
      for (const auto& [number, snapshot] : snapshots_) {
        if (plan_.subscriptions[snapshot.subscription].topic == topic)
          start.snapshots.push_back(number);
      }
      for (const auto& [key, value] : recovered->rows) {
        if (key.partition == address) start.rows.emplace(key, value);
      }
      partitions_[address] =
          std::make_unique<broker::Partition>(std::move(start), plan_.options, now());
      arm(address);
    }
  }
  effects_until_crash_ = dice_.between(1, plan_.effects_between_crashes + 1);
  for (std::uint32_t i = 0; i < subscriptions_.size(); ++i) {
    if (subscriptions_[i].is_wanted && !subscriptions_[i].exists) create(i);
  }
}

void World::sync() {
  store_->sync();
  checker_.synced();
  after_in_life(plan_.sync_interval, [this] { sync(); });
}

bool World::is_crash_due() {
  if (is_draining_ || crashes_left_ == 0 || --effects_until_crash_ > 0) return false;
  --crashes_left_;
  return true;
}

void World::crash() {
  trace("crash");
  is_up_ = false;
  const std::size_t unsynced = disk_->unsynced_commits();
  const bool loses_tail = unsynced > 0 && dice_.chance(70);
  if (loses_tail) {
    trace("what was not synced is lost");
    marks_.hit(Mark::tail_lost);
    checker_.lose_unsynced();
  }
  checker_.crash();
  for (auto& [number, history] : histories_)
    history->crash(now_);
  disk_->crash(loses_tail ? 0 : unsynced);
  partitions_.clear();
  armed_.clear();
  waiting_.clear();
  committing_.clear();
  is_committing_ = false;
  history_settles_.clear();
  for (const auto& [request, asked] : publishes_)
    record(asked, std::nullopt, "unknown");
  publishes_.clear();
  for (std::size_t i = 0; i < clients_.size(); ++i)
    disconnect(i, std::nullopt);
  after(dice_.time(std::chrono::milliseconds(1), std::chrono::seconds(2)),
        [this] { start_broker(); });
}

void World::run_due(Address address) {
  const std::uint32_t life = life_;
  broker::Partition& partition = *partitions_.at(address);
  const std::optional<TimePoint> due = partition.next_due();
  if (!due || *due > now_) return;
  checker_.timers(address);
  broker::Effects effects;
  partition.run_due(now(), effects);
  perform(address, effects);
  if (is_up_ && life == life_) arm(address);
}

void World::step(Address address, broker::Input input) {
  if (!is_up_ || !partitions_.contains(address)) return;
  const std::uint32_t life = life_;
  run_due(address);
  if (!is_up_ || life != life_) return;
  checker_.timers(address);
  if (options_.is_traced) trace(describe(address) + " < " + describe(input));
  tell(address, input);
  broker::Effects effects;
  partitions_.at(address)->step(std::move(input), now(), effects);
  perform(address, effects);
  if (is_up_ && life == life_) arm(address);
}

void World::arm(Address address) {
  const std::optional<TimePoint> due = partitions_.at(address)->next_due();
  if (!due) return;
  const TimePoint time =
      std::max(*due, now_) + dice_.time({}, is_draining_ ? Nanoseconds{} : plan_.timer_delay_max);
  const auto armed = armed_.find(address);
  if (armed != armed_.end() && armed->second <= time && armed->second >= now_) return;
  armed_[address] = time;
  after_in_life(time - now_, [this, address, time] {
    if (const auto found = armed_.find(address); found != armed_.end() && found->second == time)
      armed_.erase(found);
    run_due(address);
    if (is_up_ && partitions_.contains(address)) arm(address);
  });
}

void World::tell(Address address, broker::Input& input) {
  if (auto* committed = std::get_if<broker::Committed>(&input)) {
    checker_.commit_told(address, *committed);
  } else if (auto* acknowledge = std::get_if<broker::Acknowledge>(&input)) {
    checker_.acknowledge(address, *acknowledge);
  } else if (auto* modify = std::get_if<broker::ModifyDeadline>(&input)) {
    checker_.modify_deadline(address, *modify);
  } else if (auto* detach = std::get_if<broker::Detach>(&input)) {
    checker_.detach(address, detach->subscription);
  } else if (auto* close = std::get_if<broker::CloseConsumer>(&input)) {
    checker_.close_consumer(address, *close);
  } else if (auto* done = std::get_if<broker::DeadLetterDone>(&input)) {
    checker_.dead_letter_done(address, *done);
  } else if (auto* operate = std::get_if<broker::OperateKey>(&input)) {
    checker_.operate(address, *operate);
  } else if (auto* time = std::get_if<broker::SeekToTime>(&input)) {
    checker_.seek(address, time->subscription, {time->request, time->time, {}, {}, {}, 0, 0});
  } else if (auto* snapshot = std::get_if<broker::SeekToSnapshot>(&input)) {
    checker_.seek(address, snapshot->subscription,
                  {snapshot->request, {}, snapshot->snapshot, {}, {}, 0, 0});
  } else if (auto* found = std::get_if<broker::TimeFound>(&input)) {
    checker_.time_found(address, *found);
  } else if (auto* take = std::get_if<broker::TakeSnapshot>(&input)) {
    checker_.take_snapshot(address, take->subscription, take->snapshot);
  }
}

void World::perform(Address address, broker::Effects& effects) {
  const std::uint32_t life = life_;
  bool is_first = true;
  for (broker::Effect& effect : effects) {
    if (is_crash_due()) {
      if (!is_first) marks_.hit(Mark::crash_inside_a_step);
      crash();
      return;
    }
    is_first = false;
    if (options_.is_traced) trace(describe(address) + " > " + describe(effect));
    std::visit([&](auto& e) { on(address, e); }, effect);
    if (!is_up_ || life != life_ || !checker_.violation().empty()) return;
  }
}

// ---------------------------------------------------------------------- histories

void World::open_histories() {
  if (options_.history_folder.empty() || plan_.has_seeks || plan_.has_verbs ||
      plan_.has_deletions || plan_.sync_interval.count() > 0 || plan_.damages > 0)
    return;
  for (std::uint32_t i = 0; i < plan_.subscriptions.size(); ++i) {
    const SubscriptionPlan& plan = plan_.subscriptions[i];
    if (plan.is_late || plan.config.message_retention < std::chrono::hours(1) ||
        plan.topic == plan_.topics ||
        plan.config.failure_policy == broker::FailurePolicy::skip_after ||
        plan.config.failure_policy == broker::FailurePolicy::park)
      continue;
    const bool is_plain = plan.config.ordered_window == 1;
    histories_[i] = std::make_unique<SubscriptionHistory>(HistoryMeta{
        .subscription = "s" + std::to_string(i),
        .topic = "t" + std::to_string(plan.topic),
        .is_ordered = plan.config.enable_message_ordering && is_plain,
        .is_exactly_once = plan.config.enable_exactly_once_delivery && is_plain,
        .deadline_ms =
            static_cast<std::uint64_t>(plan.config.ack_deadline / std::chrono::milliseconds(1)),
        .attempts_max = plan.config.dead_letter_policy && is_plain ? plan.attempts_max() : 0});
  }
}

SubscriptionHistory* World::history(CursorNumber number) {
  for (auto& [index, history] : histories_) {
    if (subscriptions_[index].number == number) return history.get();
  }
  return nullptr;
}

void World::record(const Asked& asked, std::optional<broker::MessageId> first_id,
                   std::string_view outcome) {
  for (std::size_t i = 0; i < asked.uids.size(); ++i) {
    const Published& published = checker_.published()[asked.uids[i]];
    auto message = history_message(asked.uids[i], &asked, i);
    if (first_id) {
      message.offset = published.offset;
      message.message = first_id->value() + i;
    }
    for (auto& [index, history] : histories_) {
      const Taste taste = plan_.subscriptions[index].taste;
      message.is_skipped = taste != Taste::all && (taste == Taste::only_red) != published.is_red;
      history->publish(message, asked.sent, now_, outcome);
    }
  }
}

SubscriptionHistory::Publish World::history_message(Uid uid, const Asked* asked,
                                                    std::size_t index) const {
  const Published& published = checker_.published()[uid];
  SubscriptionHistory::Publish result;
  result.uid = std::to_string(uid);
  result.key = published.key;
  result.topic = "t" + std::to_string(published.partition.topic.value() - 1);
  if (asked != nullptr) result.batch = "b" + std::to_string(asked->uids.front());
  result.index = index;
  return result;
}

void World::write_histories() {
  for (auto& [index, history] : histories_) {
    history->end(checker_.violation().empty(), now_);
    ORDO_CHECK(history->write(options_.history_folder + "/seed_" + std::to_string(plan_.seed) +
                              "_s" + std::to_string(index) + ".jsonl"));
  }
}

// ---------------------------------------------------------------------- a run

std::string World::run() {
  if (options_.is_traced) std::printf("%s\n", describe(plan_).c_str());
  checker_.set_now(now());
  crashes_left_ = plan_.crashes;
  subscriptions_.resize(plan_.subscriptions.size());
  open_histories();
  for (std::uint32_t i = 0; i < subscriptions_.size(); ++i)
    subscriptions_[i].is_wanted = !plan_.subscriptions[i].is_late;
  start_broker();
  for (const ClientPlan& client : plan_.clients) {
    clients_.emplace_back();
    clients_.back().plan = client;
    const std::size_t index = clients_.size() - 1;
    after(dice_.time({}, std::chrono::milliseconds(200)), [this, index] { connect(index); });
  }
  for (std::uint32_t i = 0; i < plan_.publishes; ++i)
    after(dice_.time({}, plan_.safety_time * 8 / 10), [this] { publish(); });
  plan_operators();
  run_events(now_ + plan_.safety_time);
  if (checker_.violation().empty()) drain();
  if (events_run_ > kEventsMax) return "RUNAWAY: too many events";
  write_histories();
  return checker_.violation();
}

}  // namespace ordo::simulation
