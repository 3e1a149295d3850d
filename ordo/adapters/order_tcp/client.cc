#include "ordo/adapters/order_tcp/client.h"

#include <cerrno>
#include <memory>
#include <netdb.h>
#include <system_error>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "ordo/adapters/order_tcp/request_encoder.h"

namespace ordo::order_tcp {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} * 1024;

Error explain(std::string_view what, int error) {
  const bool is_late = error == EAGAIN || error == EWOULDBLOCK;
  std::string message(what);
  message.append(": ");
  message.append(is_late ? "no answer in time" : std::system_category().message(error));
  return {is_late ? ErrorCode::deadline_exceeded : ErrorCode::unavailable, std::move(message)};
}

void set_options(int socket, const ClientOptions& options) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (options.receive_buffer_bytes != 0) {
    const int size = static_cast<int>(options.receive_buffer_bytes);
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
  }
  const auto milliseconds = options.timeout.count();
  const timeval limit{.tv_sec = static_cast<time_t>(milliseconds / 1000),
                      .tv_usec = static_cast<suseconds_t>(milliseconds % 1000 * 1000)};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

}  // namespace

Client::Client(sockets::Descriptor socket, Encoding encoding)
    : socket_(std::move(socket)),
      encoding_(encoding) {}

Result<Client> Client::connect(const ClientOptions& options) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(options.port);
  const int looked_up = ::getaddrinfo(options.host.c_str(), port.c_str(), &hints, &found);
  const std::string where = options.host + " port " + port;
  if (looked_up != 0)
    return Error{ErrorCode::unavailable, where + ": " + ::gai_strerror(looked_up)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  int error = 0;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    sockets::Descriptor socket(::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, 0));
    if (!socket) {
      error = errno;
      continue;
    }
    set_options(socket.get(), options);
    if (::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0)
      return Client(std::move(socket), options.encoding);
    error = errno;
  }
  return explain(where, error);
}

void Client::send(std::string_view request_id, std::int64_t correlation_id,
                  std::string_view payload) {
  append_task(unsent_, encoding_, {request_id, correlation_id, payload});
}

void Client::send_ping() {
  append_command(unsent_, encoding_, RequestType::ping);
}
void Client::send_stats() {
  append_command(unsent_, encoding_, RequestType::stats);
}
void Client::send_resume(std::int64_t correlation_id) {
  append_command(unsent_, encoding_, RequestType::resume, correlation_id);
}

Status Client::flush() {
  std::string_view rest = unsent_;
  while (!rest.empty()) {
    const ssize_t count = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return explain("send", errno);
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  unsent_.clear();
  return {};
}

Status Client::end_sending() {
  if (Status flushed = flush(); !flushed) return flushed;
  if (::shutdown(socket_.get(), SHUT_WR) != 0) return explain("shutdown", errno);
  return {};
}

Result<ClientReply> Client::receive() {
  if (Status flushed = flush(); !flushed) {
    if (flushed.error().code == ErrorCode::deadline_exceeded) return flushed.error();
    unsent_.clear();  // It will not go any more; replies may have come before the end, though.
  }
  ClientReply reply;
  for (;;) {
    std::string_view bytes = std::string_view(bytes_).substr(decoded_);
    const Decoded decoded = decode_reply(encoding_, bytes, reply);
    decoded_ = bytes_.size() - bytes.size();
    if (decoded == Decoded::reply) return reply;
    if (decoded == Decoded::nonsense)
      return Error{ErrorCode::data_loss, "the server sent what is no reply"};
    if (Status read = read_more(); !read) return read.error();
  }
}

std::optional<ClientReply> Client::received() {
  ClientReply reply;
  std::string_view bytes = std::string_view(bytes_).substr(decoded_);
  if (decode_reply(encoding_, bytes, reply) != Decoded::reply) return std::nullopt;
  decoded_ = bytes_.size() - bytes.size();
  return reply;
}

Status Client::read_more() {
  bytes_.erase(0, std::exchange(decoded_, 0));
  const std::size_t before = bytes_.size();
  bytes_.resize(before + kReadBytes);
  ssize_t count = -1;
  do {
    count = ::recv(socket_.get(), bytes_.data() + before, kReadBytes, 0);
  } while (count < 0 && errno == EINTR);
  const int error = errno;
  bytes_.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
  if (count < 0) return explain("recv", error);
  if (count == 0) return Error{ErrorCode::unavailable, "the server has closed the connection"};
  return {};
}

}  // namespace ordo::order_tcp
