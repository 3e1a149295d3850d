// UniqueFd: a file descriptor that is closed exactly once, by its one owner.
//
//   UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
//   if (!null) return errno;
//   read(null.get(), ...);
//
// Threads: one owner.
#pragma once

#include <unistd.h>
#include <utility>

namespace ordo::app {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { reset(); }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }

  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace ordo::app
