// The cold half of BusCore: who is subscribed, and what has been counted.
#include <algorithm>
#include <utility>

#include "ordo/bus/core.h"
#include "ordo/core/check.h"

namespace ordo::bus {

BusCore::BusCore(Settings settings)
    : settings_(std::move(settings)),
      bucket_span_(std::max<std::chrono::nanoseconds>(
          settings_.health_window / HealthWindow::kBuckets, std::chrono::nanoseconds(1))),
      next_bucket_at_(INT64_MIN) {
  rosters_[0] = new Roster({}, {}, settings_);
}

BusCore::~BusCore() {
  const Word word = word_.load(std::memory_order_seq_cst);
  for (const auto& [id, subscriber] : subscribers_) {
    subscriber->leave();
    subscriber->discard(tail_of(word), [](FrameNode* frame) {
      if (frame->drop_owner()) frame->destroy(frame);
    });
  }
  delete &roster_of(word);
}

void BusCore::close() {
  word_.fetch_or(kClosed, std::memory_order_seq_cst);
  bell_.ring();
  const PublisherGate::Pass pass(gate_);
  chain_.wake_all();
}

// Returns the tail at which the new roster came into force.
std::uint64_t BusCore::change_roster(Roster::Members members, Roster::Members leaving,
                                     Subscriber* newcomer) {
  auto next = std::make_unique<Roster>(std::move(members), std::move(leaving), settings_);
  // What was dropped for all moves from the old roster to its members: nobody may note the counters
  // of a health window before it has arrived.
  std::lock_guard health(health_mutex_);
  Word word = word_.load(std::memory_order_seq_cst);
  Roster* old = &roster_of(word);
  rosters_[(next_version(word) >> kTailBits) % 2].store(next.release(), std::memory_order_release);
  do {
    if (newcomer != nullptr) newcomer->begin_at(tail_of(word));
  } while (!word_.compare_exchange_weak(word, next_version(word), std::memory_order_seq_cst));
  gate_.await_leavers();
  const std::uint64_t dropped = old->dropped_for_all.load(std::memory_order_relaxed);
  dropped_for_all_ += dropped;
  for (const std::shared_ptr<Subscriber>& member : old->members())
    member->dropped_for_all.fetch_add(dropped, std::memory_order_relaxed);
  delete old;
  return tail_of(word);
}

std::shared_ptr<Subscriber> BusCore::subscribe(const std::string& id, Priority priority,
                                               const SubscribeOptions& options) {
  check_subscribe(id, priority, options);
  std::lock_guard lock(registry_mutex_);
  require(!subscribers_.contains(id), "subscriber '" + id + "' exists already: ids are unique");
  require(subscribers_.size() < kSubscribersMax,
          "subscriber '" + id + "' is one too many: " + std::to_string(kSubscribersMax) +
              " subscribers are the most a bus has");
  std::size_t seat = 0;
  while (seats_taken_.has(seat))
    ++seat;
  auto subscriber = std::make_shared<Subscriber>(id, priority, options, seat, log_);
  {
    std::lock_guard health(health_mutex_);
    subscriber->health_window.note(health_bucket(settings_.clock->rough_now()), {});
  }
  Roster::Members members = roster_of(word_.load(std::memory_order_seq_cst)).members();
  members.push_back(subscriber);
  seats_taken_.add(seat);
  subscribers_.emplace(id, subscriber);
  chain_.seat(seat, subscriber.get());
  change_roster(std::move(members), {}, subscriber.get());
  return subscriber;
}

void BusCore::unsubscribe(const std::string& id) {
  FrameNode* garbage = nullptr;
  {
    std::lock_guard lock(registry_mutex_);
    remove(find(id), garbage);
  }
  destroy(garbage);
}

void BusCore::unsubscribe(Subscriber& subscriber) {
  FrameNode* garbage = nullptr;
  {
    std::lock_guard lock(registry_mutex_);
    const auto found = subscribers_.find(subscriber.id());
    if (found == subscribers_.end() || found->second.get() != &subscriber) return;
    const std::shared_ptr<Subscriber> owner = found->second;
    remove(owner, garbage);
  }
  destroy(garbage);
}

void BusCore::remove(const std::shared_ptr<Subscriber>& subscriber, FrameNode*& garbage) {
  subscriber->leave();
  Roster::Members members = roster_of(word_.load(std::memory_order_seq_cst)).members();
  std::erase(members, subscriber);
  chain_.seat(subscriber->seat(), nullptr);
  const std::uint64_t end = change_roster(std::move(members), {subscriber}, nullptr);
  WakeChain::wake_one(*subscriber);
  bell_.ring();

  const std::uint64_t pending = subscriber->pending.load(std::memory_order_relaxed);
  const std::uint64_t skipped = subscriber->skipped.load(std::memory_order_relaxed);
  const std::uint64_t evicted = subscriber->evicted.load(std::memory_order_relaxed);
  const std::uint64_t dropped =
      skipped - subscriber->begin() - subscriber->passed.load(std::memory_order_relaxed) + pending +
      evicted + subscriber->dropped_for_all.load(std::memory_order_relaxed);
  ++departed_.subscribers;
  departed_.sent += end - skipped - evicted;
  departed_.dropped += dropped;
  if (subscriber->priority() == Priority::critical) departed_.critical_dropped += dropped;
  subscriber->discard(end, [&](FrameNode* frame) {
    ++departed_.discarded;
    if (!taken(frame)->drop_owner()) return;
    frame->set_next(garbage);
    garbage = frame;
  });
  seats_taken_.remove(subscriber->seat());
  subscribers_.erase(subscriber->id());
}

std::shared_ptr<Subscriber> BusCore::find(const std::string& id) const {
  const auto found = subscribers_.find(id);
  require(found != subscribers_.end(), "there is no subscriber '" + id + "'");
  return found->second;
}

// The counters are read one after the other; while a publish() runs they may be a frame apart.
HealthWindow::Counts BusCore::counts_of(const Subscriber& subscriber, Word word) const {
  const Roster& roster = roster_of(word);
  const std::uint64_t for_all = subscriber.dropped_for_all.load(std::memory_order_relaxed) +
                                roster.dropped_for_all.load(std::memory_order_relaxed);
  const std::uint64_t passed = subscriber.passed.load(std::memory_order_relaxed);
  const std::uint64_t skipped =
      subscriber.skipped.load(std::memory_order_relaxed) - subscriber.begin();
  const std::uint64_t positions = tail_of(word) - subscriber.begin();
  const std::uint64_t evicted = subscriber.evicted.load(std::memory_order_relaxed);
  return {.offered = std::max(positions, passed) - passed + for_all,
          .dropped = std::max(skipped, passed) - passed + evicted + for_all};
}

SubscriberStats BusCore::stats_of(Subscriber& subscriber, Word word) {
  const HealthWindow::Counts counts = counts_of(subscriber, word);
  SubscriberStats stats;
  stats.priority = subscriber.priority();
  stats.dropped = counts.dropped;
  stats.critical_dropped = stats.priority == Priority::critical ? stats.dropped : 0;
  stats.sent = std::max(counts.offered, counts.dropped) - counts.dropped;
  const std::uint64_t evicted = subscriber.evicted.load(std::memory_order_relaxed);
  const std::uint64_t popped = subscriber.popped.load(std::memory_order_relaxed);
  stats.received = std::max(popped, evicted) - evicted;
  stats.queued = std::max(stats.sent, stats.received) - stats.received;
  stats.health = health_of(subscriber);
  return stats;
}

BusStats BusCore::stats() {
  std::lock_guard lock(registry_mutex_);
  const Word word = word_.load(std::memory_order_seq_cst);
  BusStats stats;
  const std::uint64_t encores = encores_.load(std::memory_order_relaxed);
  stats.published = std::max(tail_of(word), encores) - encores + dropped_for_all_ +
                    roster_of(word).dropped_for_all.load(std::memory_order_relaxed);
  for (const auto& [id, subscriber] : subscribers_) {
    const SubscriberStats part = stats_of(*subscriber, word);
    stats.sent += part.sent;
    stats.dropped += part.dropped;
    stats.critical_dropped += part.critical_dropped;
    stats.subscribers.emplace(id, part);
  }
  stats.departed = departed_;
  return stats;
}

std::int64_t BusCore::health_bucket(TimePoint now) const {
  return now.time_since_epoch() / bucket_span_;
}

void BusCore::roll_health() {
  const TimePoint now = settings_.clock->rough_now();
  if (now.time_since_epoch().count() < next_bucket_at_.load(std::memory_order_relaxed)) [[likely]]
    return;
  std::unique_lock lock(health_mutex_, std::try_to_lock);
  if (!lock) return;  // Somebody else does it, or looks at it: the next publish() will.
  const PublisherGate::Pass pass(gate_);
  const Word word = word_.load(std::memory_order_seq_cst);
  const std::int64_t bucket = health_bucket(now);
  for (const std::shared_ptr<Subscriber>& subscriber : roster_of(word).members())
    subscriber->health_window.note(bucket, counts_of(*subscriber, word));
  next_bucket_at_.store((bucket + 1) * bucket_span_.count(), std::memory_order_relaxed);
}

Health BusCore::health_of(Subscriber& subscriber) {
  const std::int64_t bucket = health_bucket(settings_.clock->rough_now());
  std::lock_guard lock(health_mutex_);
  const Word word = word_.load(std::memory_order_seq_cst);
  return subscriber.health_window.judge(bucket, counts_of(subscriber, word));
}

Health BusCore::health(const std::string& id) {
  std::lock_guard lock(registry_mutex_);
  return health_of(*find(id));
}

std::vector<std::string> BusCore::unhealthy() {
  std::lock_guard lock(registry_mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, subscriber] : subscribers_) {
    const Health health = health_of(*subscriber);
    if (health == Health::degraded || health == Health::saturated) ids.push_back(id);
  }
  return ids;
}

}  // namespace ordo::bus
