// RawSocket: a blocking TCP client that says exactly what a test wants it to say.
//
//   RawSocket socket(port);
//   socket.send("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n");
//   EXPECT_EQ(socket.read_until("hello"), ...);
//
// Every wait ends after kPatience, as if the other side had closed.
//
// Threads: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "tests/support/waiting.h"

namespace ordo::testing_support {

class RawSocket {
 public:
  // receive_bytes: what the system may hold for a slow reader; 0: as it likes. source: the address
  // of this side, any of 127.0.0.0/8. Of one address the system finds free ports quickly for the
  // first 14,000 connections, and then takes most of a millisecond for each.
  explicit RawSocket(std::uint16_t port, int receive_bytes = 0,
                     std::uint32_t source = INADDR_LOOPBACK)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0)
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (source != INADDR_LOOPBACK) {
      const int on = 1;
      ::setsockopt(socket_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
      address.sin_addr.s_addr = htonl(source);
      ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    }
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  RawSocket(RawSocket&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        is_connected_(other.is_connected_) {}
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket() {
    if (socket_ >= 0) ::close(socket_);
  }

  bool is_connected() const { return is_connected_; }

  // False: the other side takes no more.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  // What one read brings; empty: the other side has closed.
  std::string read() {
    std::array<char, 65'536> buffer;
    const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
    return count > 0 ? std::string(buffer.data(), static_cast<std::size_t>(count)) : std::string();
  }
  // All, until `words` have come or the other side has closed.
  std::string read_until(std::string_view words) {
    std::string all;
    while (all.find(words) == std::string::npos) {
      const std::string more = read();
      if (more.empty()) break;
      all.append(more);
    }
    return all;
  }
  // Whether the other side has closed, or there is something to read; reads nothing.
  bool has_ended() const {
    pollfd look{socket_, POLLIN, 0};
    return ::poll(&look, 1, 0) > 0;
  }
  // Whether the connection has been reset; reads nothing.
  bool is_reset() const {
    pollfd look{socket_, 0, 0};
    return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLERR | POLLHUP)) != 0;
  }
  // Whether the other side closes. What comes before is dropped.
  bool is_closed() {
    const TimePoint limit = system_clock().now() + kPatience;
    while (system_clock().now() < limit) {
      std::array<char, 65'536> buffer;
      const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return true;
    }
    return false;
  }

 private:
  int socket_;
  bool is_connected_ = false;
};

// A client as it should be: one request, one response.
inline bool is_served(std::uint16_t port) {
  RawSocket socket(port);
  return socket.send("GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n") &&
         socket.read_until("hello\n").ends_with("hello\n");
}

}  // namespace ordo::testing_support
