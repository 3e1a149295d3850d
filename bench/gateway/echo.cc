#include <cerrno>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "bench/gateway/server_process.h"

namespace ordo::bench {
namespace {

class EchoServer {
 public:
  // False when there is no port to listen on.
  bool listen() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, plain, size) != 0 || ::listen(listener_, 512) != 0) return false;
    if (::getsockname(listener_, plain, &size) != 0) return false;
    poll_ = ::epoll_create1(EPOLL_CLOEXEC);
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN);
    std::printf("listening 127.0.0.1:%d\n", int{ntohs(address.sin_port)});
    std::fflush(stdout);
    return true;
  }

  [[noreturn]] void serve() {
    epoll_event events[128];
    while (true) {
      const int count = ::epoll_wait(poll_, events, 128, -1);
      for (int i = 0; i < count; ++i) {
        if (events[i].data.fd == listener_) {
          accept();
        } else {
          echo(events[i].data.fd, (events[i].events & EPOLLOUT) != 0);
        }
      }
    }
  }

 private:
  void watch(int how, int fd, std::uint32_t what) {
    epoll_event event{};
    event.events = what;
    event.data.fd = fd;
    ::epoll_ctl(poll_, how, fd, &event);
  }

  void accept() {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int one = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    watch(EPOLL_CTL_ADD, fd, EPOLLIN);
  }

  // Reads once and sends that back. What the socket does not take waits, and nothing is read then.
  void echo(int fd, bool writable) {
    if (writable) {
      const std::string rest = std::move(unsent_[fd]);
      unsent_.erase(fd);
      if (!send(fd, rest.data(), rest.size())) return;
      if (!unsent_.contains(fd)) watch(EPOLL_CTL_MOD, fd, EPOLLIN);
      return;
    }
    const ssize_t size = ::recv(fd, buffer_.data(), buffer_.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) {
      ::close(fd);
      return;
    }
    if (send(fd, buffer_.data(), static_cast<std::size_t>(size)) && unsent_.contains(fd))
      watch(EPOLL_CTL_MOD, fd, EPOLLOUT);
  }

  // False when the connection is gone.
  bool send(int fd, const char* bytes, std::size_t size) {
    const ssize_t sent = ::send(fd, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      ::close(fd);
      return false;
    }
    const auto done = sent < 0 ? std::size_t{0} : static_cast<std::size_t>(sent);
    if (done < size) unsent_[fd].assign(bytes + done, size - done);
    return true;
  }

  int listener_ = -1;
  int poll_ = -1;
  std::vector<char> buffer_ = std::vector<char>(64 * 1024);
  std::unordered_map<int, std::string> unsent_{};
};

}  // namespace

int serve_echo() {
  EchoServer server;
  if (!server.listen()) return 1;
  server.serve();
}

}  // namespace ordo::bench
