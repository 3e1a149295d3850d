#include "ordo/adapters/grpc_client/connect.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <string>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace ordo::grpc_client {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

// 0, or errno.
int wait_connected(int socket, TimePoint deadline, const Clock& clock) {
  pollfd waited{socket, POLLOUT, 0};
  for (;;) {
    const int ready = ::poll(&waited, 1, milliseconds_until(deadline, clock.now()));
    if (ready > 0) break;
    if (ready == 0) return ETIMEDOUT;
    if (errno != EINTR) return errno;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

// A socket that is connected to `to`; else `error` says why not.
sockets::Descriptor try_one(const addrinfo& to, TimePoint deadline, const Clock& clock,
                            int& error) {
  sockets::Descriptor socket(
      ::socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, to.ai_protocol));
  error = socket ? 0 : errno;
  if (!socket) return socket;
  if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0) {
    error = errno == EINPROGRESS || errno == EINTR ? wait_connected(socket.get(), deadline, clock)
                                                   : errno;
  }
  if (error != 0) return {};
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  return socket;
}

}  // namespace

int milliseconds_until(TimePoint deadline, TimePoint now) {
  if (deadline == TimePoint::max()) return -1;
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  constexpr std::int64_t kLongest = 3'600'000;
  return static_cast<int>(std::clamp<std::int64_t>(rest, 0, kLongest));
}

Result<sockets::Descriptor> connect_to(const Address& address, std::chrono::nanoseconds timeout,
                                       const Clock& clock) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int found =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &list);
  const std::unique_ptr<addrinfo, FreeAddresses> owner(list);
  if (found != 0) {
    return Error{ErrorCode::unavailable,
                 "no such host '" + address.host + "': " + ::gai_strerror(found)};
  }
  const TimePoint deadline = clock.now() + timeout;
  int error = ECONNREFUSED;
  for (const addrinfo* to = list; to != nullptr; to = to->ai_next) {
    sockets::Descriptor socket = try_one(*to, deadline, clock, error);
    if (socket) return socket;
  }
  if (error == ECONNREFUSED)
    return Error{ErrorCode::unavailable, "nobody listens at " + address.text()};
  return Error{ErrorCode::unavailable,
               "cannot reach " + address.text() + ": " + ::strerrordesc_np(error)};
}

}  // namespace ordo::grpc_client
