#include "ordo/broker/subscriber.h"

#include <algorithm>
#include <limits>
#include <stop_token>
#include <utility>

#include "ordo/broker/subscriber_core.h"
#include "ordo/engine/settings.h"

namespace ordo {

Status check_options(const SubscriberOptions& options) {
  const auto bad = [](const char* text) { return Error{ErrorCode::invalid_argument, text}; };
  if (options.handlers < 1 || options.handlers > 256)
    return bad("handlers must be between 1 and 256.");
  if (options.outstanding_messages_max < 1)
    return bad("outstanding_messages_max must be at least 1.");
  if (options.outstanding_bytes_max < 1) return bad("outstanding_bytes_max must be at least 1.");
  if (options.ack_deadline && (*options.ack_deadline < std::chrono::seconds(1) ||
                               *options.ack_deadline > std::chrono::seconds(600)))
    return bad("ack_deadline must be between 1 and 600 seconds.");
  if (options.extension_max < std::chrono::nanoseconds(0))
    return bad("extension_max must not be negative.");
  return {};
}

namespace broker {

SubscriberCore::SubscriberCore(const SubscriberSettings& settings, AsyncHandler async,
                               Handler handler)
    : settings_(settings),
      async_(std::move(async)),
      handler_(std::move(handler)),
      clock_(settings.clock != nullptr ? *settings.clock : system_clock()),
      keyed_(std::numeric_limits<std::uint32_t>::max()),
      workers_("ordo-handle", [this](std::size_t, const std::stop_token&) { work(); }) {}

SubscriberCore::~SubscriberCore() {
  join();
}

void SubscriberCore::start(Stream stream) {
  stream_ = std::move(stream);
  workers_.grow(settings_.options.handlers);
  schedule_extension();
}

void SubscriberCore::deliver(std::vector<Delivery>&& deliveries) {
  const TimePoint now = clock_.now();
  std::vector<AckId> unwanted;
  std::size_t woken = 0;
  {
    const std::lock_guard lock(mutex_);
    for (Delivery& delivery : deliveries) {
      ++stats_.received;
      if (is_closing_) {
        unwanted.push_back(delivery.ack_id);
        continue;
      }
      auto held = std::make_shared<Held>(std::move(delivery));
      held->extended_at = now;
      held->give_up_at = engine::saturating_add(now, settings_.options.extension_max);
      held->is_ordered = settings_.is_ordered && !held->message.key().empty();
      outstanding_.insert(held);
      if (held->is_ordered) {
        const std::string_view key = held->message.key();
        keyed_.push_admitted(key, std::move(held));
      } else {
        free_.push_back(std::move(held));
      }
    }
    woken = std::min(keyed_.ready_count() + free_.size(), settings_.options.handlers);
    stats_.nacked += unwanted.size();
  }
  if (woken == 1) {
    work_.notify_one();
  } else if (woken > 1) {
    work_.notify_all();
  }
  if (!unwanted.empty()) send_nacks(std::move(unwanted));
}

void SubscriberCore::closed(const Error& reason) {
  if (settings_.options.on_closed) settings_.options.on_closed(reason);
}

void SubscriberCore::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    while (!has_ready() && !is_ended_)
      (void)clock_.wait_until(lock, work_, TimePoint::max());
    if (is_ended_) return;
    const std::shared_ptr<Held> held = take();
    lock.unlock();
    handle(held);
    lock.lock();
  }
}

// Keys and those without one take turns.
std::shared_ptr<Held> SubscriberCore::take() {
  turn_of_free_ = !turn_of_free_;
  std::shared_ptr<Held> held;
  if (!free_.empty() && (turn_of_free_ || keyed_.ready_count() == 0)) {
    held = std::move(free_.front());
    free_.pop_front();
  } else {
    auto turn = keyed_.take();
    held = turn->item;
    held->lane = turn->lane;
  }
  held->is_begun = true;
  return held;
}

void SubscriberCore::handle(const std::shared_ptr<Held>& held) {
  try {
    if (async_) return async_(held->message, AckHandle(shared_from_this(), held));
    (void)settle(held, handler_(held->message), {});
  } catch (...) {
    // The one place where a handler's exception ends: it is a nack.
    {
      const std::lock_guard lock(mutex_);
      ++stats_.threw;
    }
    (void)settle(held, HandlerAnswer::nack, {});
  }
}

bool SubscriberCore::settle(const std::shared_ptr<Held>& held, HandlerAnswer answer,
                            std::function<void(Status)> done) {
  std::vector<AckId> nacks;
  bool is_ready = false;
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_ || outstanding_.erase(held) == 0) return false;
    if (answer == HandlerAnswer::nack) {
      ++stats_.nacked;
      nacks.push_back(held->message.ack_id());
      if (held->is_ordered) skip_behind(*held, nacks);
    } else {
      ++stats_.acked;
    }
    if (held->is_ordered) keyed_.finish(held->lane);
    is_ready = has_ready();
    ++sending_;
  }
  if (is_ready) work_.notify_one();
  if (answer == HandlerAnswer::nack) {
    send_nacks(std::move(nacks));
  } else {
    send_ack(held->message.ack_id(), std::move(done));
  }
  const std::lock_guard lock(mutex_);
  --sending_;
  if (is_settled()) settled_.notify_all();
  return true;
}

// They would be handled before the one that failed comes again.
void SubscriberCore::skip_behind(const Held& held, std::vector<AckId>& nacks) {
  while (auto behind = keyed_.drop_waiting(held.message.key())) {
    outstanding_.erase(*behind);
    nacks.push_back((*behind)->message.ack_id());
    ++stats_.skipped;
  }
}

void SubscriberCore::send_ack(const AckId& id, std::function<void(Status)> done) {
  if (!done && !settings_.options.confirm_acks) return stream_.acknowledge({id});
  stream_.acknowledge({id}, [weak = weak_from_this(),
                             done = std::move(done)](std::vector<SettleOutcome>&& outcomes) {
    const bool is_stale = outcomes.front() == SettleOutcome::stale;
    if (const auto self = weak.lock(); self && is_stale) {
      const std::lock_guard lock(self->mutex_);
      ++self->stats_.stale_acks;
    }
    if (!done) return;
    if (outcomes.front() == SettleOutcome::done) return done({});
    done(is_stale ? Error{ErrorCode::failed_precondition,
                          "The acknowledgement came too late: the message was delivered again."}
                  : Error{ErrorCode::unavailable, "The acknowledgement could not be stored."});
  });
}

void SubscriberCore::send_nacks(std::vector<AckId> ids) {
  stream_.modify_ack_deadline(std::move(ids), std::chrono::nanoseconds(0));
}

void SubscriberCore::schedule_extension() {
  if (settings_.options.extension_max == std::chrono::nanoseconds(0)) return;
  settings_.timer->schedule(clock_.now() + settings_.lease / 4, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->extend();
  });
}

// Every quarter of a lease; whatever would not last until the next two times is extended.
void SubscriberCore::extend() {
  std::vector<AckId> ids;
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_) return;
    const TimePoint now = clock_.now();
    for (const std::shared_ptr<Held>& held : outstanding_) {
      if (now - held->extended_at < settings_.lease / 4 || now >= held->give_up_at) continue;
      held->extended_at = now;
      ids.push_back(held->message.ack_id());
    }
    stats_.extensions += ids.size();
  }
  if (!ids.empty()) stream_.modify_ack_deadline(std::move(ids), settings_.lease);
  schedule_extension();
}

void SubscriberCore::give_back_waiting(std::vector<AckId>& nacks) {
  const auto give_back = [&](const std::shared_ptr<Held>& held) {
    outstanding_.erase(held);
    nacks.push_back(held->message.ack_id());
    ++stats_.nacked;
  };
  for (const std::shared_ptr<Held>& held : free_)
    give_back(held);
  free_.clear();
  std::vector<std::string> keys;
  keyed_.for_each_lane([&](const auto& info) { keys.push_back(info.key); });
  for (const std::string& key : keys) {
    while (auto held = keyed_.drop_waiting(key))
      give_back(*held);
  }
}

bool SubscriberCore::close(CloseHow how, TimePoint deadline) {
  std::vector<AckId> nacks;
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = !std::exchange(is_closing_, true);
    if (how == CloseHow::nack) give_back_waiting(nacks);
  }
  if (is_first) {
    stream_.close(CloseConsumer::How::keep_leases, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        const std::lock_guard lock(self->mutex_);
        self->is_quiet_ = true;
        self->settled_.notify_all();
      }
    });
  }
  if (!nacks.empty()) send_nacks(std::exchange(nacks, {}));
  bool is_complete = true;
  {
    std::unique_lock lock(mutex_);
    while (!is_settled() || !is_quiet_) {
      if (!clock_.wait_until(lock, settled_, deadline)) continue;
      is_complete = is_settled();
      break;
    }
    give_back_waiting(nacks);
    for (const std::shared_ptr<Held>& held : outstanding_)
      nacks.push_back(held->message.ack_id());
    stats_.nacked += outstanding_.size();
    outstanding_.clear();
    is_ended_ = true;
    work_.notify_all();
  }
  if (!nacks.empty()) send_nacks(std::move(nacks));
  return is_complete;
}

void SubscriberCore::end() {
  // A handler that has begun is waited for; one that answers later may never do so.
  (void)close(CloseHow::nack, async_ ? TimePoint::min() : TimePoint::max());
  join();
}

void SubscriberCore::join() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    work_.notify_all();
  }
  workers_.stop();
}

SubscriberCounts SubscriberCore::stats() const {
  const std::lock_guard lock(mutex_);
  SubscriberCounts stats = stats_;
  stats.outstanding = outstanding_.size();
  return stats;
}

}  // namespace broker

struct AckHandle::Hold {
  std::shared_ptr<broker::SubscriberCore> core;
  std::shared_ptr<broker::Held> held;

  Hold(std::shared_ptr<broker::SubscriberCore> of, std::shared_ptr<broker::Held> what)
      : core(std::move(of)),
        held(std::move(what)) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { (void)core->settle(held, HandlerAnswer::nack, {}); }
};

AckHandle::AckHandle(std::shared_ptr<broker::SubscriberCore> core,
                     std::shared_ptr<broker::Held> held)
    : hold_(std::make_shared<Hold>(std::move(core), std::move(held))) {}

bool AckHandle::ack(std::function<void(Status)> done) const {
  return hold_ && hold_->core->settle(hold_->held, HandlerAnswer::ack, std::move(done));
}

bool AckHandle::nack() const {
  return hold_ && hold_->core->settle(hold_->held, HandlerAnswer::nack, {});
}

Subscriber& Subscriber::operator=(Subscriber&& other) noexcept {
  if (this != &other) {
    const Subscriber before(std::move(core_));
    core_ = std::move(other.core_);
  }
  return *this;
}

Subscriber::~Subscriber() {
  if (core_) core_->end();
}

bool Subscriber::close(CloseHow how, TimePoint deadline) {
  return core_->close(how, deadline);
}

SubscriberCounts Subscriber::stats() const {
  return core_->stats();
}

}  // namespace ordo
