// EchoProgram: the program http2_echo as a child, ended by its id.
//
//   EchoProgram echo({.threads = 2, .descriptors = 64});
//   is_served(echo.port());
//   EXPECT_LE(echo.resident_bytes() - before, 64 << 20);
//   EXPECT_EQ(echo.end(), "...");                     // SIGTERM; what it said at the end
//
// Threads: one owner.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <string>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include "ordo/core/check.h"

namespace ordo::testing_support {

// The calling thread, and what it starts, run on this processor alone.
inline void run_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(processor), &set);
  ::sched_setaffinity(0, sizeof(set), &set);
}

class EchoProgram {
 public:
  struct Options {
    int threads = 1;
    int timeout_seconds = 60;  // Of handshakes, and of output that nobody takes.
    rlim_t descriptors = 0;    // 0: as many as this process may have.
    int processor = -1;        // The only one it runs on; -1: any.
  };

  explicit EchoProgram(Options options) {
    std::array<int, 2> ends{};
    ORDO_CHECK(::pipe(ends.data()) == 0);
    const std::string threads = std::to_string(options.threads);
    const std::string timeout = std::to_string(options.timeout_seconds);
    child_ = ::fork();
    ORDO_CHECK(child_ >= 0);
    if (child_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      if (options.descriptors > 0) {
        const rlimit limit{options.descriptors, options.descriptors};
        ::setrlimit(RLIMIT_NOFILE, &limit);
      }
      if (options.processor >= 0) run_on(options.processor);
      ::execl(ORDO_HTTP2_ECHO, ORDO_HTTP2_ECHO, threads.c_str(), timeout.c_str(),
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
    unsigned port = 0;
    ORDO_CHECK(std::fscanf(output_, "%u", &port) == 1);
    port_ = static_cast<std::uint16_t>(port);
  }
  EchoProgram(const EchoProgram&) = delete;
  EchoProgram& operator=(const EchoProgram&) = delete;
  ~EchoProgram() { end(); }

  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  std::size_t resident_bytes() const {
    std::ifstream file("/proc/" + std::to_string(child_) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6)) * 1024;
    }
    return 0;
  }

  std::ptrdiff_t descriptor_count() const {
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(child_) + "/fd");
    return std::distance(std::filesystem::begin(all), std::filesystem::end(all));
  }

  // Its last words; empty when it did not end well.
  std::string end() {
    if (child_ < 0) return {};
    ::kill(child_, SIGTERM);
    std::string words;
    std::array<char, 512> line{};
    while (std::fgets(line.data(), static_cast<int>(line.size()), output_) != nullptr)
      words.append(line.data());
    std::fclose(output_);
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? words : std::string();
  }

 private:
  pid_t child_ = -1;
  std::FILE* output_ = nullptr;
  std::uint16_t port_ = 0;
};

}  // namespace ordo::testing_support
