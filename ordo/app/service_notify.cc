#include "ordo/app/service_notify.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include <sys/socket.h>
#include <sys/un.h>

#include "ordo/app/unique_fd.h"

namespace ordo::app {

bool notify_service(std::string_view state) {
  const char* const variable = std::getenv("NOTIFY_SOCKET");
  const std::string_view name = variable == nullptr ? "" : variable;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const bool is_known = name.starts_with('/') || name.starts_with('@');
  if (!is_known || name.size() >= sizeof(to.sun_path)) return false;
  std::copy(name.begin(), name.end(), to.sun_path);
  if (name.front() == '@') to.sun_path[0] = '\0';  // A name outside of the file system.
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return false;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const ssize_t sent = ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&to), size);
  return sent == static_cast<ssize_t>(state.size());
}

}  // namespace ordo::app
