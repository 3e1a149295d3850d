#include "bench/gateway/server_process.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::string_view kPortMark = "@port@";
constexpr std::string_view kReadyWords = "listening 127.0.0.1:";
constexpr std::uint64_t kReadyNs = 10'000'000'000;
constexpr std::uint64_t kEndNs = 2'000'000'000;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A port that nobody listened on a moment ago; 0 when the system gives none.
std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  const bool bound = ::bind(fd, plain, size) == 0 && ::getsockname(fd, plain, &size) == 0;
  ::close(fd);
  return bound ? ntohs(address.sin_port) : std::uint16_t{0};
}

bool can_connect(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool connected =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

void pause_ms(int milliseconds) {
  ::poll(nullptr, 0, milliseconds);
}

bool has_ended(pid_t process) {
  return ::waitpid(process, nullptr, WNOHANG) != 0;
}

[[noreturn]] void become(const std::vector<std::string>& command, int output) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

ServerProcess::ServerProcess(std::vector<std::string> command) {
  std::uint16_t given = 0;
  for (std::string& argument : command) {
    if (argument != kPortMark) continue;
    given = free_port();
    argument = std::to_string(given);
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    failure_ = "cannot make a pipe";
    return;
  }
  output_ = ends[0];
  pid_ = ::fork();
  if (pid_ == 0) become(command, ends[1]);
  ::close(ends[1]);
  if (pid_ < 0) {
    failure_ = "cannot start a process";
    return;
  }
  if (given != 0) {
    await_connect(given);
  } else {
    await_line();
  }
  if (port_ == 0) failure_ = command[0] + " did not become ready: " + said_;
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) end();
  if (output_ >= 0) ::close(output_);  // Now: what it says at its end has to have a reader.
}

void ServerProcess::end() const {
  ::kill(pid_, SIGTERM);
  for (const std::uint64_t last = now_ns() + kEndNs; now_ns() < last; pause_ms(2)) {
    if (has_ended(pid_)) return;
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ServerProcess::await_connect(std::uint16_t port) {
  for (const std::uint64_t end = now_ns() + kReadyNs; now_ns() < end; pause_ms(2)) {
    if (can_connect(port)) {
      port_ = port;
      return;
    }
    if (has_ended(pid_)) {
      pid_ = -1;
      return;
    }
  }
}

void ServerProcess::await_line() {
  char buffer[512];
  for (const std::uint64_t end = now_ns() + kReadyNs; now_ns() < end;) {
    pollfd waiting{output_, POLLIN, 0};
    if (::poll(&waiting, 1, 100) <= 0) continue;
    const ssize_t size = ::read(output_, buffer, sizeof buffer);
    if (size <= 0) return;
    said_.append(buffer, static_cast<std::size_t>(size));
    const std::size_t place = said_.find(kReadyWords);
    if (place == std::string::npos || said_.find('\n', place) == std::string::npos) continue;
    const char* digits = said_.data() + place + kReadyWords.size();
    std::from_chars(digits, said_.data() + said_.size(), port_);
    return;
  }
}

}  // namespace ordo::bench
