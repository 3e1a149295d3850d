#include "bench/support/child.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::uint64_t kBusyStepNs = 20'000'000;  // machine_busy_ns() may be off by this much.

[[noreturn]] void become(const std::vector<std::string>& command, int output) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // No run outlives its driver.
  dup2(output, STDOUT_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

// Reads until the child closes its end. Returns false when `deadline_ns` came first.
bool read_all(int input, std::uint64_t deadline_ns, std::string& text) {
  char buffer[4096];
  for (;;) {
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) return false;
    pollfd waiting{input, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) continue;
    const ssize_t size = read(input, buffer, sizeof buffer);
    if (size <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(size));
  }
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) {
    return std::string("ended by signal ") + strsignal(WTERMSIG(status));
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? std::string() : "ended with status " + std::to_string(code);
}

std::uint64_t cpu_ns(const rusage& usage) {
  const auto seconds = static_cast<std::uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
  const auto micros = static_cast<std::uint64_t>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  return seconds * 1'000'000'000 + micros * 1'000;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& command, std::chrono::milliseconds timeout) {
  ChildResult result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.failure = std::string("cannot make a pipe: ") + std::strerror(errno);
    return result;
  }
  const std::uint64_t begin = now_ns();
  const std::uint64_t busy_before = machine_busy_ns();
  const std::uint64_t own_before = process_cpu_ns();
  const pid_t child = fork();
  if (child == 0) become(command, ends[1]);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    result.failure = std::string("cannot start a process: ") + std::strerror(errno);
    return result;
  }
  const auto limit = std::chrono::duration_cast<std::chrono::nanoseconds>(timeout).count();
  const bool ended = read_all(ends[0], begin + static_cast<std::uint64_t>(limit), result.output);
  if (!ended) kill(child, SIGKILL);
  close(ends[0]);
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  result.failure = ended ? describe(status)
                         : "not finished after " + std::to_string(timeout.count()) + " ms, killed";

  const std::uint64_t busy = machine_busy_ns() - busy_before;
  const std::uint64_t ours = cpu_ns(usage) + (process_cpu_ns() - own_before) + kBusyStepNs;
  const double available = static_cast<double>((now_ns() - begin) * machine_processors());
  if (busy > ours) result.foreign_share = static_cast<double>(busy - ours) / available;
  return result;
}

}  // namespace ordo::bench
