#include "ordo/adapters/grpc_client/session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include "ordo/adapters/grpc_client/connect.h"
#include "ordo/adapters/grpc_client/status_text.h"
#include "ordo/core/check.h"

namespace ordo::grpc_client {
namespace {

constexpr std::size_t kPrefixBytes = 5;
constexpr std::size_t kOutputBytesMax = std::size_t{64} << 10;

nghttp2_nv field(std::string_view name, std::string_view value) {
  // The library copies them and takes pointers to bytes it does not change.
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string_view view_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

struct SessionCalls {
  static Session& of(void* user_data) { return *static_cast<Session*>(user_data); }
  static StreamState* find(Session& session, std::int32_t id) {
    const auto found = session.streams_.find(id);
    return found == session.streams_.end() ? nullptr : found->second.get();
  }

  // NOLINTNEXTLINE(readability-function-size): as the library calls it.
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user_data) {
    Session& session = of(user_data);
    if (StreamState* stream = find(session, frame->hd.stream_id))
      session.take_header(*stream, view_of(name, name_size), view_of(value, value_size));
    return 0;
  }

  // NOLINTNEXTLINE(readability-function-size): as the library calls it.
  static int on_data(nghttp2_session* library, std::uint8_t, std::int32_t id,
                     const std::uint8_t* data, std::size_t size, void* user_data) {
    nghttp2_session_consume_connection(library, size);
    Session& session = of(user_data);
    if (StreamState* stream = find(session, id)) session.take_data(*stream, view_of(data, size));
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    Session& session = of(user_data);
    session.has_heard_ = true;
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0)
      ++session.pongs_;
    return 0;
  }

  // A request that cannot be sent any more, because the server is about to go.
  static int on_not_sent(nghttp2_session*, const nghttp2_frame* frame, int, void* user_data) {
    if (frame->hd.type == NGHTTP2_HEADERS)
      of(user_data).close_stream(frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t error_code,
                      void* user_data) {
    of(user_data).close_stream(id, error_code);
    return 0;
  }

  // NOLINTNEXTLINE(readability-function-size): as the library calls it.
  static ssize_t read_source(nghttp2_session*, std::int32_t, std::uint8_t* buffer, std::size_t size,
                             std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& stream = *static_cast<StreamState*>(source->ptr);
    const std::size_t rest = stream.unsent.size() - stream.sent;
    const std::size_t count = std::min(rest, size);
    std::memcpy(buffer, stream.unsent.data() + stream.sent, count);
    stream.sent += count;
    if (stream.sent == stream.unsent.size()) {
      stream.unsent.clear();
      stream.sent = 0;
      if (stream.is_half_closed) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
      } else if (count == 0) {
        return NGHTTP2_ERR_DEFERRED;
      }
    }
    return static_cast<ssize_t>(count);
  }
};

Session::Session(Address address, sockets::Descriptor socket, const ChannelOptions& options)
    : address_(std::move(address)),
      authority_(address_.text()),
      socket_(std::move(socket)),
      message_bytes_max_(options.message_bytes_max),
      clock_(options.clock != nullptr ? *options.clock : system_clock()) {
  nghttp2_session_callbacks* calls = nullptr;
  ORDO_CHECK(nghttp2_session_callbacks_new(&calls) == 0);
  nghttp2_session_callbacks_set_on_header_callback(calls, SessionCalls::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, SessionCalls::on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(calls, SessionCalls::on_frame);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(calls, SessionCalls::on_not_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(calls, SessionCalls::on_close);
  nghttp2_option* settings = nullptr;
  ORDO_CHECK(nghttp2_option_new(&settings) == 0);
  nghttp2_option_set_no_auto_window_update(settings, 1);
  ORDO_CHECK(nghttp2_session_client_new2(&session_, calls, this, settings) == 0);
  nghttp2_option_del(settings);
  nghttp2_session_callbacks_del(calls);
  const std::array<nghttp2_settings_entry, 2> entries = {{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, Channel::kWindowBytes},
  }};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, entries.data(), entries.size());
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                        static_cast<std::int32_t>(Channel::kWindowBytes * 4));
}

Session::~Session() {
  nghttp2_session_del(session_);
}

std::shared_ptr<StreamState> Session::open(std::string_view path,
                                           std::optional<std::chrono::nanoseconds> timeout) {
  auto stream = std::make_shared<StreamState>();
  if (lost_) {
    stream->end = *lost_;
    return stream;
  }
  std::vector<nghttp2_nv> fields = {
      field(":method", "POST"),    field(":scheme", "http"),
      field(":path", path),        field(":authority", authority_),
      field("te", "trailers"),     field("content-type", "application/grpc"),
      field("user-agent", "ordo"),
  };
  std::string timeout_value;
  if (timeout) {
    timeout_value = timeout_text(timeout->count());
    fields.push_back(field("grpc-timeout", timeout_value));
  }
  nghttp2_data_provider provider{};
  provider.source.ptr = stream.get();
  provider.read_callback = SessionCalls::read_source;
  stream->id =
      nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(), &provider, nullptr);
  if (stream->id < 0) {
    stream->end = Error{ErrorCode::unavailable, "this connection has no streams left"};
    return stream;
  }
  streams_[stream->id] = stream;
  return stream;
}

Status Session::write(StreamState& stream, std::string_view message) {
  ORDO_CHECK(!stream.is_half_closed);
  if (stream.end) return stream.end->has_value() ? Status() : *stream.end;
  if (message.size() > message_bytes_max_) {
    return Error{ErrorCode::resource_exhausted, "a message of " + std::to_string(message.size()) +
                                                    " bytes is longer than " +
                                                    std::to_string(message_bytes_max_)};
  }
  stream.unsent.append(message_prefix(message.size())).append(message);
  nghttp2_session_resume_data(session_, stream.id);
  return {};
}

void Session::half_close(StreamState& stream) {
  if (std::exchange(stream.is_half_closed, true) || stream.end) return;
  nghttp2_session_resume_data(session_, stream.id);
}

void Session::cancel(StreamState& stream) {
  if (stream.end) return;
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_CANCEL);
  end(stream, Error{ErrorCode::cancelled, "the call was cancelled"});
  send_some();
}

void Session::end(StreamState& stream, Status status) {
  if (!stream.end) stream.end = std::move(status);
}

std::optional<std::string> Session::take_message(StreamState& stream) {
  if (stream.messages.empty()) return std::nullopt;
  WaitingMessage message = std::move(stream.messages.front());
  stream.messages.pop_front();
  if (!stream.end) {
    nghttp2_session_consume_stream(session_, stream.id, message.withheld);
    send_some();
  }
  return std::move(message.bytes);
}

bool Session::has_output() const {
  return !output_.empty() || nghttp2_session_want_write(session_) != 0;
}

void Session::send_some() {
  while (!lost_) {
    while (output_.size() < kOutputBytesMax) {
      const std::uint8_t* bytes = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      if (size < 0) return lose(nghttp2_strerror(static_cast<int>(size)));
      if (size == 0) break;
      output_.append(view_of(bytes, static_cast<std::size_t>(size)));
    }
    if (output_.empty()) return;
    const ssize_t sent = ::send(socket_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return lose(::strerrordesc_np(errno));
    output_.erase(0, static_cast<std::size_t>(sent));
  }
}

void Session::receive_some() {
  std::array<std::uint8_t, 65'536> buffer;  // NOLINT: filled by recv().
  const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (size < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return;
  if (size < 0) return lose(::strerrordesc_np(errno));
  if (size == 0) return lose("the other side closed it");
  const ssize_t taken =
      nghttp2_session_mem_recv(session_, buffer.data(), static_cast<std::size_t>(size));
  if (taken < 0) {
    lose(has_heard_ ? nghttp2_strerror(static_cast<int>(taken))
                    : "what listens there does not speak HTTP/2");
  }
}

bool Session::turn(TimePoint deadline, int wake_fd) {
  send_some();
  if (lost_) return true;
  const short events = has_output() ? POLLIN | POLLOUT : POLLIN;
  std::array<pollfd, 2> waited = {{{socket_.get(), events, 0}, {wake_fd, POLLIN, 0}}};
  const int ready =
      ::poll(waited.data(), wake_fd >= 0 ? 2 : 1, milliseconds_until(deadline, clock_.now()));
  if (ready == 0) return deadline > clock_.now();
  if (ready < 0) return errno == EINTR;
  if ((waited[0].revents & (POLLIN | POLLERR | POLLHUP)) != 0) receive_some();
  send_some();
  return waited[1].revents == 0;
}

void Session::send_ping() {
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
}

// Every call under way ends.
void Session::lose(std::string why) {
  if (lost_) return;
  lost_ = Error{ErrorCode::unavailable,
                "lost the connection to " + address_.text() + ": " + std::move(why)};
  for (const auto& [id, stream] : streams_)
    end(*stream, *lost_);
}

void Session::take_header(StreamState& stream, std::string_view name, std::string_view value) {
  if (name == ":status") stream.http_status = value;
  if (name == "grpc-status") stream.grpc_status = value;
  if (name == "grpc-message") stream.grpc_message = value;
}

// What belongs to a message that is not complete is given back to the window at once, so that a
// message may be longer than it; what completes one, when somebody takes the message.
void Session::take_data(StreamState& stream, std::string_view bytes) {
  while (!stream.end && !bytes.empty()) {
    const std::size_t begun = stream.input.size();
    const std::size_t wanted =
        begun < kPrefixBytes ? kPrefixBytes : kPrefixBytes + prefixed_size(stream.input);
    const std::size_t count = std::min(wanted - begun, bytes.size());
    stream.input.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    const bool has_prefix = stream.input.size() >= kPrefixBytes;
    const std::size_t size = has_prefix ? prefixed_size(stream.input) : 0;
    if (has_prefix && (stream.input[0] != 0 || size > message_bytes_max_)) {
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_CANCEL);
      return end(stream,
                 Error{ErrorCode::internal, "the answer is no message that this client reads"});
    }
    if (has_prefix && stream.input.size() == kPrefixBytes + size) {
      stream.messages.push_back({stream.input.substr(kPrefixBytes), count});
      stream.input.clear();
    } else {
      nghttp2_session_consume_stream(session_, stream.id, count);
    }
  }
}

Status Session::end_of(const StreamState& stream, std::uint32_t error_code) const {
  if (!stream.grpc_status.empty()) return status_of(stream.grpc_status, stream.grpc_message);
  if (!stream.http_status.empty() && stream.http_status != "200") {
    return Error{ErrorCode::unavailable, "what listens at " + address_.text() +
                                             " is no broker: it answered with HTTP status " +
                                             stream.http_status};
  }
  return Error{ErrorCode::unavailable,
               std::string("the call was broken off: ") + nghttp2_http2_strerror(error_code)};
}

void Session::close_stream(std::int32_t id, std::uint32_t error_code) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  end(*found->second, end_of(*found->second, error_code));
  streams_.erase(found);
}

}  // namespace ordo::grpc_client
