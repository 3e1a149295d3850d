#include "ordo/app/settling.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <poll.h>
#include <utility>

#include "ordo/app/child_run.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

constexpr std::chrono::nanoseconds kBackoffMin = std::chrono::milliseconds(100);
constexpr std::chrono::nanoseconds kBackoffMax = std::chrono::seconds(5);

// How a call ended; nothing: it has not.
std::optional<Status> end_of(grpc_client::Stream& stream) {
  for (;;) {
    const Result<grpc_client::Event> event = stream.read_ready();
    if (!event) return event.error();
    if (event->is_end) return Status();
    if (!event->message) return std::nullopt;
  }
}

}  // namespace

Status Settling::go_on(pubsub_client::Client& client) {
  if (Status taken = take_answers(client); !taken) return taken;
  if (client.channel().clock().now() < send_at_) return {};
  send(client, What::ack, acks_);
  send(client, What::give_back, nacks_);
  send(client, What::extend, extensions_);
  return {};
}

void Settling::send(pubsub_client::Client& client, What what, std::vector<std::string>& ids) {
  while (!ids.empty() && calls_.size() < kCallsMax) {
    const auto end =
        ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), std::size_t{kIdsMax}));
    Call call{what, {}, client.channel().clock().now() + kPatience, {}};
    call.ids.assign(std::make_move_iterator(ids.begin()), std::make_move_iterator(end));
    ids.erase(ids.begin(), end);
    call.stream = what == What::ack ? client.begin_acknowledge(subscription_, call.ids)
                                    : client.begin_modify_deadline(
                                          subscription_, call.ids,
                                          what == What::extend ? kLease : std::chrono::seconds(0));
    calls_.push_back(std::move(call));
  }
}

Status Settling::take_answers(pubsub_client::Client& client) {
  for (auto call = calls_.begin(); call != calls_.end();) {
    const std::optional<Status> end = end_of(call->stream);
    if (!end) {
      ++call;
      continue;
    }
    if (*end) {
      backoff_ = {};
    } else if (Status taken = take_refusal(client, *call, end->error()); !taken) {
      return taken;
    }
    call = calls_.erase(call);
  }
  if (!calls_.empty() && client.channel().clock().now() >= calls_.front().deadline) {
    return Error{ErrorCode::deadline_exceeded,
                 "no answer from " + client.channel().address().text() + " in time"};
  }
  return {};
}

Status Settling::take_refusal(pubsub_client::Client& client, Call& call, const Error& why) {
  constexpr const char* kNames[] = {"acks", "nacks", "lease extensions"};
  const char* const name = kNames[static_cast<std::size_t>(call.what)];
  // An exactly-once subscription refuses what comes too late.
  if (why.code == ErrorCode::invalid_argument) {
    log_line(std::string("ordo: some ") + name + " came too late: " + why.message);
    return {};
  }
  if (why.code != ErrorCode::unavailable || client.channel().is_lost()) return why;
  if (backoff_.count() == 0)
    log_line(std::string("ordo: some ") + name + " are to be said again: " + why.message);
  backoff_ = std::clamp(backoff_ * 2, kBackoffMin, kBackoffMax);
  send_at_ = client.channel().clock().now() + backoff_;
  if (call.what == What::extend) return {};  // There is a next time.
  std::vector<std::string>& again = call.what == What::ack ? acks_ : nacks_;
  again.insert(again.begin(), std::make_move_iterator(call.ids.begin()),
               std::make_move_iterator(call.ids.end()));
  return {};
}

TimePoint Settling::next_look() const {
  const TimePoint answer = calls_.empty() ? TimePoint::max() : calls_.front().deadline;
  const bool sends_later = has_waiting() && calls_.size() < kCallsMax;
  return sends_later ? std::min(answer, send_at_) : answer;
}

void Settling::wait(pubsub_client::Client& client, TimePoint until, int wake_fd) {
  if (!calls_.empty()) {
    static_cast<void>(calls_.front().stream.read(until, wake_fd));  // Told by go_on().
    return;
  }
  pollfd waited{wake_fd, POLLIN, 0};
  ::poll(&waited, 1, poll_timeout(until, client.channel().clock().now()));
}

void Settling::forget() {
  acks_.clear();
  nacks_.clear();
  extensions_.clear();
  calls_.clear();
  backoff_ = {};
  send_at_ = {};
}

}  // namespace ordo::app
