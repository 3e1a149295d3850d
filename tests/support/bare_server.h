// BareServer: a child that does with its sockets what the HTTP front does, and nothing else:
// accepts, reads, says a few bytes, closes the first of many. It knows no protocol. How long its
// clients wait during an attack is what the attack takes of the system: on the loopback the
// attacker's half of TCP, its timers too, runs on the server's processor.
//
//   BareServer bare(0);                          // on the first processor
//   is_served(bare.port());
//
// Threads: one owner.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "ordo/core/check.h"
#include "tests/support/echo_program.h"

namespace ordo::testing_support {

class BareServer {
 public:
  explicit BareServer(int processor) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    ORDO_CHECK(::bind(listener, name, size) == 0 && ::listen(listener, SOMAXCONN) == 0);
    ORDO_CHECK(::getsockname(listener, name, &size) == 0);
    port_ = ntohs(address.sin_port);
    child_ = ::fork();
    ORDO_CHECK(child_ >= 0);
    if (child_ == 0) {
      run_on(processor);
      serve(listener);
    }
    ::close(listener);
  }
  BareServer(const BareServer&) = delete;
  BareServer& operator=(const BareServer&) = delete;
  ~BareServer() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  std::uint16_t port() const { return port_; }

 private:
  // What the front counts for an idle connection, and what it keeps: see IdleList.
  static constexpr std::size_t kSilentBytes = 1'024;
  static constexpr std::size_t kGreetedBytes = 2'048;
  static constexpr std::size_t kAskedBytes = 27'000;
  static constexpr std::size_t kBytesMax = std::size_t{48} << 20;
  static constexpr std::size_t kOpenMax = 9'844;
  static constexpr std::size_t kFewShare = 8;
  static constexpr int kEventsMax = 64;

  struct Sockets {
    int set = -1;
    std::size_t open = 0;
    std::size_t bytes = 0;                // Of all.
    std::vector<std::size_t> bytes_of{};  // By descriptor.
    std::deque<int> fresh{};              // Oldest first; some have asked since, or are closed.
    std::deque<int> asked{};              // Likewise.
  };

  static void watch(int set, int socket) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.fd = socket;
    ::epoll_ctl(set, EPOLL_CTL_ADD, socket, &event);
  }
  static void say(int socket, std::size_t size) {
    static constexpr std::string_view kWords =
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 0000000000006\r\n\r\n"
        "hello\n                                 ";
    ::send(socket, kWords.data(), size == 0 ? kWords.find("      ") : size, MSG_NOSIGNAL);
  }

  [[noreturn]] static void serve(int listener) {
    Sockets sockets{.set = ::epoll_create1(EPOLL_CLOEXEC)};
    watch(sockets.set, listener);
    std::vector<char> buffer(std::size_t{64} * 1024);
    std::array<epoll_event, kEventsMax> events{};
    for (;;) {
      const int count = ::epoll_wait(sockets.set, events.data(), kEventsMax, -1);
      for (int i = 0; i < count; ++i) {
        const int socket = events[static_cast<std::size_t>(i)].data.fd;
        if (socket == listener) {
          welcome(sockets, listener);
        } else {
          answer(sockets, socket, buffer);
        }
      }
    }
  }

  static void count(Sockets& sockets, int socket, std::size_t bytes) {
    std::size_t& before = sockets.bytes_of[static_cast<std::size_t>(socket)];
    sockets.bytes += bytes - before;
    before = bytes;
  }

  static void close(Sockets& sockets, int socket) {
    count(sockets, socket, 0);
    --sockets.open;
    ::close(socket);
  }

  static void welcome(Sockets& sockets, int listener) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    watch(sockets.set, socket);
    const auto index = static_cast<std::size_t>(socket);
    if (index >= sockets.bytes_of.size()) sockets.bytes_of.resize(2 * index + 1);
    count(sockets, socket, kSilentBytes);
    sockets.fresh.push_back(socket);
    ++sockets.open;
    make_room(sockets);
  }

  static void make_room(Sockets& sockets) {
    while (sockets.bytes > kBytesMax || sockets.open > kOpenMax) {
      const bool is_fresh = kFewShare * sockets.fresh.size() > sockets.open;
      std::deque<int>& list = is_fresh ? sockets.fresh : sockets.asked;
      if (list.empty()) return;
      const int oldest = list.front();
      list.pop_front();
      const std::size_t bytes = sockets.bytes_of[static_cast<std::size_t>(oldest)];
      if (bytes == 0 || (is_fresh && bytes > kGreetedBytes)) continue;
      if (bytes > kSilentBytes) say(oldest, 17);
      close(sockets, oldest);
    }
  }

  // Those that keep their connection do not close it first.
  static void answer(Sockets& sockets, int socket, std::vector<char>& buffer) {
    if (sockets.bytes_of[static_cast<std::size_t>(socket)] == 0) return;
    const ssize_t count_read = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (count_read <= 0) return close(sockets, socket);
    const std::string_view text(buffer.data(), static_cast<std::size_t>(count_read));
    if (text.starts_with("GET")) {
      count(sockets, socket, kGreetedBytes + 1);  // An honest client: not among the fresh.
      return say(socket, 0);
    }
    const bool has_asked = text.find("/hello") != std::string_view::npos;
    say(socket, has_asked ? 98 : 39);
    count(sockets, socket, has_asked ? kAskedBytes : kGreetedBytes);
    if (has_asked) sockets.asked.push_back(socket);
    make_room(sockets);
  }

  pid_t child_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace ordo::testing_support
