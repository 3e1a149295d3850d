#include "ordo/broker/subscriber.h"

#include <algorithm>
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
namespace {

// What whoever asked hears of an acknowledgement.
Status status_of(SettleOutcome outcome) {
  if (outcome == SettleOutcome::done) return {};
  if (outcome == SettleOutcome::stale)
    return Error{ErrorCode::failed_precondition,
                 "The acknowledgement came too late: the message was delivered again."};
  return Error{ErrorCode::unavailable, "The acknowledgement could not be stored."};
}

}  // namespace

SubscriberCore::SubscriberCore(const SubscriberSettings& settings, AsyncHandler async,
                               Handler handler)
    : settings_(settings),
      async_(std::move(async)),
      handler_(std::move(handler)),
      clock_(settings.clock != nullptr ? *settings.clock : system_clock()),
      desk_(settings.lease),
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
  GivenBack unwanted;
  std::size_t woken = 0;
  {
    const std::lock_guard lock(mutex_);
    for (Delivery& delivery : deliveries) {
      ++stats_.received;
      auto held = std::make_shared<Held>(std::move(delivery));
      held->leased_at = now;
      held->give_up_at = engine::saturating_add(now, settings_.options.extension_max);
      held->is_ordered = settings_.is_ordered && !held->message.key().empty();
      if (is_closing_) {
        desk_.turn_away(*held);
        unwanted.ids.push_back(held->message.ack_id());
      } else {
        desk_.deliver(std::move(held));
      }
    }
    woken = std::min(desk_.ready_count(), settings_.options.handlers);
    unwanted.unseen = unwanted.ids.size();
    stats_.nacked += unwanted.unseen;
    if (is_settled()) settled_.notify_all();
  }
  if (woken == 1) {
    work_.notify_one();
  } else if (woken > 1) {
    work_.notify_all();
  }
  give_back(std::move(unwanted));
}

void SubscriberCore::closed(const Error& reason) {
  if (settings_.options.on_closed) settings_.options.on_closed(reason);
}

void SubscriberCore::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    while (!desk_.has_ready() && !is_ended_)
      (void)clock_.wait_until(lock, work_, TimePoint::max());
    if (is_ended_) return;
    const std::shared_ptr<Held> held = desk_.take();
    lock.unlock();
    handle(held);
    lock.lock();
  }
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
  return answer == HandlerAnswer::nack ? send_nack(held) : send_ack(held, std::move(done));
}

bool SubscriberCore::send_ack(const std::shared_ptr<Held>& held, std::function<void(Status)> done) {
  bool ends_turn = false;
  bool is_confirmed = false;
  bool is_ready = false;
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_) return false;
    const HandlerDesk::AckWay way = desk_.ack(held, clock_.now());
    if (way == HandlerDesk::AckWay::refused) return false;
    ++stats_.acked;
    ++sending_;
    ends_turn = way == HandlerDesk::AckWay::ask;
    is_confirmed = done || settings_.options.confirm_acks || ends_turn;
    if (is_confirmed) ++unconfirmed_;
    is_ready = desk_.has_ready();
  }
  if (is_ready) work_.notify_one();
  if (!is_confirmed) {
    stream_.acknowledge({held->message.ack_id()});
  } else {
    auto on_settled = [weak = weak_from_this(), held, ends_turn,
                       done = std::move(done)](std::vector<SettleOutcome>&& outcomes) {
      const auto self = weak.lock();
      if (self) self->ack_settled(*held, outcomes.front(), ends_turn);
      if (done) done(status_of(outcomes.front()));
      if (self) self->confirmed();
    };
    stream_.acknowledge({held->message.ack_id()}, std::move(on_settled));
  }
  sent();
  return true;
}

bool SubscriberCore::send_nack(const std::shared_ptr<Held>& held) {
  GivenBack back;
  bool is_ready = false;
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_) return false;
    back = desk_.nack(held);
    if (back.ids.empty()) return false;
    ++stats_.nacked;
    ++sending_;
    is_ready = desk_.has_ready();
  }
  if (is_ready) work_.notify_one();
  give_back(std::move(back));
  sent();
  return true;
}

void SubscriberCore::sent() {
  const std::lock_guard lock(mutex_);
  --sending_;
  if (is_settled()) settled_.notify_all();
}

void SubscriberCore::confirmed() {
  const std::lock_guard lock(mutex_);
  if (--unconfirmed_ == 0) settled_.notify_all();
}

void SubscriberCore::ack_settled(const Held& held, SettleOutcome outcome, bool ends_turn) {
  GivenBack back;
  {
    const std::lock_guard lock(mutex_);
    if (outcome == SettleOutcome::stale) ++stats_.stale_acks;
    if (ends_turn) back = desk_.ack_settled(held);
    if (desk_.has_ready()) work_.notify_one();
    if (is_settled()) settled_.notify_all();
  }
  give_back(std::move(back));
}

void SubscriberCore::give_back(GivenBack back) {
  if (back.ids.empty()) return;
  OnSettled on_settled;
  if (!back.key.empty()) {
    on_settled = [weak = weak_from_this(), back](std::vector<SettleOutcome>&& outcomes) {
      if (const auto self = weak.lock()) self->given_back(back, outcomes);
    };
  }
  stream_.give_back(std::move(back.ids), back.unseen, std::move(on_settled));
}

void SubscriberCore::given_back(const GivenBack& sent, const std::vector<SettleOutcome>& outcomes) {
  GivenBack next;
  {
    const std::lock_guard lock(mutex_);
    next = desk_.given_back(sent, outcomes);
  }
  give_back(std::move(next));
}

void SubscriberCore::schedule_extension() {
  if (settings_.options.extension_max == std::chrono::nanoseconds(0)) return;
  settings_.timer->schedule(clock_.now() + settings_.lease / 4, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->extend();
  });
}

// Every quarter of a lease.
void SubscriberCore::extend() {
  std::vector<std::shared_ptr<Held>> due;
  std::vector<AckId> ids;
  const TimePoint now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_) return;
    due = desk_.due_for_extension(now);
    stats_.extensions += due.size();
  }
  ids.reserve(due.size());
  for (const std::shared_ptr<Held>& held : due)
    ids.push_back(held->message.ack_id());
  if (!ids.empty()) {
    stream_.modify_ack_deadline(
        std::move(ids), settings_.lease,
        [weak = weak_from_this(), due = std::move(due), now](std::vector<SettleOutcome>&& out) {
          if (const auto self = weak.lock()) self->extended(due, out, now);
        });
  }
  schedule_extension();
}

void SubscriberCore::extended(const std::vector<std::shared_ptr<Held>>& asked,
                              const std::vector<SettleOutcome>& outcomes, TimePoint asked_at) {
  std::vector<GivenBack> backs;
  {
    const std::lock_guard lock(mutex_);
    backs = desk_.extended(asked, outcomes, asked_at);
    if (is_settled()) settled_.notify_all();
  }
  for (GivenBack& back : backs)
    give_back(std::move(back));
}

bool SubscriberCore::close(CloseHow how, TimePoint deadline) {
  GivenBack back;
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = !std::exchange(is_closing_, true);
    if (how == CloseHow::nack) back = desk_.give_back_waiting();
    stats_.nacked += back.ids.size();
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
  give_back(std::exchange(back, {}));
  bool is_complete = true;
  {
    std::unique_lock lock(mutex_);
    const auto is_done = [&] {
      return is_settled() && (how == CloseHow::nack || unconfirmed_ == 0);
    };
    while (!is_done() || !is_quiet_) {
      if (!clock_.wait_until(lock, settled_, deadline)) continue;
      is_complete = is_done();
      break;
    }
    back = desk_.give_back_all();
    stats_.nacked += back.ids.size();
    is_ended_ = true;
    work_.notify_all();
  }
  give_back(std::move(back));
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
  stats.skipped = desk_.skipped_count();
  stats.outstanding = desk_.outstanding_count();
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
