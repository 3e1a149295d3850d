#include "ordo/adapters/sockets/listener.h"

#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace ordo::sockets {
namespace {

using boost::asio::ip::tcp;

// In a row, before the connections are looked at again: one costs as much as a few requests.
constexpr int kAcceptsMax = 2;

}  // namespace

Listener::Listener(boost::asio::io_context& context, std::function<void(Descriptor)> welcome)
    : welcome_(std::move(welcome)),
      acceptor_(context),
      pause_(context) {}

Status Listener::listen(const std::string& address, std::uint16_t port) {
  boost::system::error_code error;
  const auto parsed = boost::asio::ip::make_address(address, error);
  if (error) {
    return Error{ErrorCode::invalid_argument,
                 "'" + address + "' is not a numeric IPv4 or IPv6 address"};
  }
  const tcp::endpoint endpoint(parsed, port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) acceptor_.non_blocking(true, error);
  if (error) {
    return Error{ErrorCode::unavailable, "cannot listen on " + address + " port " +
                                             std::to_string(port) + ": " + error.message()};
  }
  port_.store(acceptor_.local_endpoint().port());
  return {};
}

void Listener::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

void Listener::wait() {
  acceptor_.async_wait(tcp::acceptor::wait_read, [this](const boost::system::error_code& error) {
    if (!error && acceptor_.is_open()) accept_ready();
  });
}

void Listener::accept_ready() {
  for (int accepts = 0; accepts < kAcceptsMax; ++accepts) {
    Descriptor socket(
        ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      welcome_(std::move(socket));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    const bool is_exhausted =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (is_exhausted) {
      accepts_failed_.add();
      accept_later();
      return;
    }
  }
  wait();
}

void Listener::accept_later() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](const boost::system::error_code& error) {
    if (!error && acceptor_.is_open()) accept_ready();
  });
}

void set_options(const Descriptor& socket, std::size_t send_buffer_bytes) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (send_buffer_bytes == 0) return;
  const int size = static_cast<int>(send_buffer_bytes);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

void turn_away(const Descriptor& socket, std::string_view words) {
  char ignored[4096];
  const ssize_t said = ::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL);
  if (said <= 0 || ::shutdown(socket.get(), SHUT_WR) != 0) return;
  for (int reads = 0; reads < 16; ++reads) {
    if (::recv(socket.get(), ignored, sizeof(ignored), 0) <= 0) return;
  }
}

}  // namespace ordo::sockets
