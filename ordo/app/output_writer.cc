#include "ordo/app/output_writer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <sys/stat.h>

namespace ordo::app {

OutputWriter::OutputWriter(int fd, const StopSignal& stop) : fd_(fd), stop_(stop) {
  struct stat info {};
  is_file_ = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

// False when the run is stopped and the reader does not take what there is.
bool OutputWriter::wait_until_writable() {
  while (true) {
    std::array<pollfd, 2> fds{{{fd_, POLLOUT, 0}, {stop_.fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) return true;
    if (fds[1].revents != 0) return false;
  }
}

WriteEnd OutputWriter::write(std::string_view text) {
  while (!text.empty()) {
    if (!is_file_ && !wait_until_writable()) return WriteEnd::stopped;
    const std::size_t size = is_file_ ? text.size() : std::min<std::size_t>(text.size(), PIPE_BUF);
    const ssize_t put = ::write(fd_, text.data(), size);
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (put < 0) {
      error_ = errno;
      return errno == EPIPE ? WriteEnd::closed : WriteEnd::failed;
    }
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return WriteEnd::written;
}

}  // namespace ordo::app
