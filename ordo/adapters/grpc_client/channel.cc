#include "ordo/adapters/grpc_client/channel.h"

#include <utility>

#include "ordo/adapters/grpc_client/connect.h"
#include "ordo/adapters/grpc_client/session.h"
#include "ordo/core/check.h"
#include "ordo/core/units.h"

namespace ordo::grpc_client {

Stream::Stream(std::shared_ptr<Session> session, std::shared_ptr<StreamState> state)
    : session_(std::move(session)),
      state_(std::move(state)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    cancel();
    session_ = std::move(other.session_);
    state_ = std::move(other.state_);
  }
  return *this;
}

Status Stream::write(std::string_view message) {
  Status written = session_->write(*state_, message);
  session_->send_some();
  return written;
}

void Stream::half_close() {
  session_->half_close(*state_);
  session_->send_some();
}

Status Stream::flush(TimePoint deadline) {
  while (!state_->end && (!state_->unsent.empty() || session_->has_output())) {
    if (!session_->turn(deadline, -1))
      return Error{ErrorCode::deadline_exceeded, "the server did not take what was written"};
  }
  return state_->end && !*state_->end ? *state_->end : Status();
}

Result<Event> Stream::read_ready() {
  if (std::optional<std::string> message = session_->take_message(*state_))
    return Event{std::move(message), false};
  if (!state_->end) return Event{};
  if (!*state_->end) return state_->end->error();
  return Event{{}, true};
}

Result<Event> Stream::read(TimePoint deadline, int wake_fd) {
  while (state_->messages.empty() && !state_->end) {
    if (!session_->turn(deadline, wake_fd)) break;
  }
  return read_ready();
}

void Stream::cancel() {
  if (state_ == nullptr) return;
  session_->cancel(*state_);
  state_.reset();
}

Channel::~Channel() = default;

Result<std::unique_ptr<Channel>> Channel::connect(const Address& address,
                                                  const ChannelOptions& options) {
  const Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
  Result<sockets::Descriptor> socket = connect_to(address, options.connect_timeout, clock);
  if (!socket) return socket.error();
  return std::make_unique<Channel>(std::make_shared<Session>(address, std::move(*socket), options));
}

Stream Channel::open(std::string_view path, std::optional<std::chrono::nanoseconds> timeout) {
  return {session_, session_->open(path, timeout)};
}

Result<std::string> Channel::answer_of(Stream& stream, std::string_view path, TimePoint deadline) {
  std::optional<std::string> answer;
  for (;;) {
    Result<Event> event = stream.read(deadline);
    if (!event) return event.error();
    if (event->message) {
      answer = std::move(event->message);
    } else if (!event->is_end) {
      return Error{ErrorCode::deadline_exceeded, "no answer from " + address().text() + " in time"};
    } else {
      break;
    }
  }
  if (!answer)
    return Error{ErrorCode::internal, std::string(path) + " was answered without a message"};
  return std::move(*answer);
}

Result<std::string> Channel::call(std::string_view path, std::string_view request,
                                  std::chrono::nanoseconds timeout) {
  const TimePoint deadline = session_->clock().now() + timeout;
  Stream stream = open(path, timeout);
  if (Status written = stream.write(request); !written) return written.error();
  stream.half_close();
  return answer_of(stream, path, deadline);
}

Status Channel::ping(std::chrono::nanoseconds timeout) {
  const TimePoint deadline = session_->clock().now() + timeout;
  const std::uint64_t before = session_->pongs();
  session_->send_ping();
  while (session_->pongs() == before) {
    if (session_->lost()) return *session_->lost();
    if (!session_->turn(deadline, -1)) {
      return Error{ErrorCode::deadline_exceeded,
                   address().text() + " did not answer a ping within " + format_duration(timeout)};
    }
  }
  return {};
}

bool Channel::is_lost() const {
  return session_->lost().has_value();
}

const Address& Channel::address() const {
  return session_->address();
}

const Clock& Channel::clock() const {
  return session_->clock();
}

}  // namespace ordo::grpc_client
