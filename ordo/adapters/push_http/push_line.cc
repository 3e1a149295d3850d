#include "ordo/adapters/push_http/push_line.h"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "ordo/core/log.h"

namespace ordo::push_http {
namespace {

using std::chrono::seconds;

// The longest there is. We give back in time what is not accepted: what is sent with a lease that
// has run out could come behind its successors.
constexpr seconds kLease{600};
constexpr seconds kPushTimeMax{590};  // From its delivery on, waiting for a connection included.
// A pause of this length is worth a line in the log.
constexpr seconds kStuckPause{1};

std::string reason_of(const PostResult& result) {
  switch (result.outcome) {
    case PostOutcome::refused:
      return "status " + std::to_string(result.status);
    case PostOutcome::timed_out:
      return "no answer before the ack deadline";
    case PostOutcome::unreachable:
      return "nobody listens there";
    default:
      return "the connection ended without a proper answer";
  }
}

void count(PushCounters& counters, PostOutcome outcome) {
  switch (outcome) {
    case PostOutcome::accepted:
      return counters.accepted.add();
    case PostOutcome::refused:
      return counters.refused.add();
    case PostOutcome::timed_out:
      return counters.timed_out.add();
    case PostOutcome::unreachable:
      return counters.unreachable.add();
    case PostOutcome::aborted:
      return counters.given_back.add();
    default:
      return counters.broken.add();
  }
}

}  // namespace

PushLine::PushLine(std::string name, Aim aim, const Office& office)
    : name_(std::move(name)),
      office_(office),
      aim_(std::move(aim)),
      window_(office.window),
      pause_(*office.context),
      limit_(window_.size()) {}

Status PushLine::open(Broker& broker) {
  const std::weak_ptr<PushLine> weak = weak_from_this();
  broker::ConsumerEvents events;
  events.deliver = [context = office_.context, weak](std::vector<broker::Delivery>&& deliveries) {
    boost::asio::post(*context, [weak, got = std::move(deliveries)]() mutable {
      if (const auto self = weak.lock()) self->deliver(std::move(got));
    });
  };
  events.closed = [context = office_.context, weak](const Error&) {
    boost::asio::post(*context, [weak] {
      if (const auto self = weak.lock()) self->leave();
    });
  };
  StreamOptions options;
  options.messages_max = limit_;
  options.bytes_max = kBytesMax;
  options.ack_deadline = kLease;
  options.pushes = true;
  Result<Stream> opened = broker.open_stream(name_, options, std::move(events));
  if (!opened) return std::move(opened).error();
  stream_ = std::move(*opened);
  return {};
}

void PushLine::aim_at(Aim aim) {
  const broker::PushEndpoint& before = aim_.target->endpoint;
  const broker::PushEndpoint& now = aim.target->endpoint;
  const bool is_elsewhere = before.authority != now.authority || before.target != now.target;
  aim_ = std::move(aim);
  if (!is_elsewhere || !window_.paused_until()) return;
  window_.resume();  // Who was down is not who is asked now.
  follow_window();
}

void PushLine::leave() {
  if (std::exchange(is_leaving_, true)) return;
  pause_.cancel();
  const std::weak_ptr<PushLine> weak = weak_from_this();
  stream_.close(broker::CloseConsumer::How::keep_leases, [context = office_.context, weak] {
    boost::asio::post(*context, [weak] {
      const auto self = weak.lock();
      if (!self) return;
      self->is_quiet_ = true;
      self->end_if_done();
    });
  });
}

void PushLine::deliver(std::vector<broker::Delivery>&& deliveries) {
  std::vector<broker::AckId> unseen;
  for (broker::Delivery& delivery : deliveries) {
    if (is_leaving_ || window_.paused_until()) {
      unseen.push_back(delivery.ack_id);
    } else {
      push(std::move(delivery));
    }
  }
  if (unseen.empty()) return;
  const std::size_t count = unseen.size();
  office_.counters.given_back.add(count);
  stream_.give_back(std::move(unseen), count);
}

void PushLine::push(broker::Delivery&& delivery) {
  ++under_way_;
  Post post;
  post.host = aim_.target->endpoint.host;
  post.port = aim_.target->endpoint.port;
  post.time_max = aim_.time_max;
  post.until = office_.clock.now() + kPushTimeMax;
  post.answered = [self = shared_from_this(), id = delivery.ack_id, round = window_.round()](
                      const PostResult& result) { self->finish(id, round, result); };
  post.make_request = [target = aim_.target, delivery = std::move(delivery)] {
    return push_request(*target, delivery);
  };
  office_.poster.post(std::move(post));
}

void PushLine::finish(const broker::AckId& id, std::uint64_t round, const PostResult& result) {
  --under_way_;
  count(office_.counters, result.outcome);
  if (result.outcome == PostOutcome::accepted) {
    stream_.acknowledge({id});
    window_.succeed();
  } else if (result.outcome == PostOutcome::aborted) {
    stream_.give_back({id}, 1);
  } else {
    stream_.give_back({id}, 0);
    const bool is_refused = result.outcome == PostOutcome::refused;
    window_.fail(round, is_refused ? PushWindow::Failure::refused : PushWindow::Failure::unanswered,
                 office_.clock.now());
  }
  say_if_stuck(result);
  if (!is_leaving_) follow_window();
  end_if_done();
}

void PushLine::follow_window() {
  if (const std::optional<TimePoint> until = window_.paused_until()) {
    pause_.expires_after(std::chrono::duration_cast<boost::asio::steady_timer::duration>(
        *until - office_.clock.now()));
    pause_.async_wait([weak = weak_from_this(), until](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (error || !self || self->is_leaving_ || self->window_.paused_until() != until) return;
      self->window_.resume();
      self->follow_window();
    });
  }
  if (std::exchange(limit_, window_.size()) != window_.size()) stream_.limit_messages(limit_);
}

// Once when nothing has been accepted for a while, and once when it is again.
void PushLine::say_if_stuck(const PostResult& result) {
  if (window_.pause() >= kStuckPause && !std::exchange(is_stuck_, true)) {
    log_line("ordo: pushes of " + name_ + " to " + aim_.target->endpoint.authority + " fail: " +
             reason_of(result) + "; they are tried again, with longer and longer pauses");
  } else if (result.outcome == PostOutcome::accepted && std::exchange(is_stuck_, false)) {
    log_line("ordo: pushes of " + name_ + " are accepted again");
  }
}

void PushLine::end_if_done() {
  if (is_leaving_ && is_quiet_ && under_way_ == 0) office_.ended(shared_from_this());
}

}  // namespace ordo::push_http
