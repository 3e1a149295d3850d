// ServerProcess: a server under test, in a process of its own on a free port of the loopback.
//
//   ServerProcess server({"/usr/bin/redis-server", "--port", "@port@"});   // it gets a free port
//   ServerProcess ours({"bin/ordo", "gateway", "--listen", "127.0.0.1:0"});  // it tells its port
//   if (server.port() == 0) fail(server.failure());
//
// A command with @port@ in it is given a port and is ready when that can be connected to; any other
// says `listening 127.0.0.1:PORT` on its standard output when it is ready. It may write 64 KiB.
//
// Threads: one owner.
// Bounds:  10 s to be ready. It is ended by the destructor (SIGTERM, after 2 s SIGKILL), or by the
// system when the process that started it dies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace ordo::bench {

class ServerProcess {
 public:
  explicit ServerProcess(std::vector<std::string> command);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  std::uint16_t port() const { return port_; }  // 0 when it did not become ready.
  pid_t pid() const { return pid_; }
  const std::string& failure() const { return failure_; }

 private:
  void await_connect(std::uint16_t port);
  void await_line();
  void end() const;

  pid_t pid_ = -1;
  int output_ = -1;
  std::uint16_t port_ = 0;
  std::string said_{};  // What it wrote until it was ready.
  std::string failure_{};
};

// The bare epoll echo server: one thread, sends back whatever it reads. Prints `listening ...`,
// and serves until it is killed. The floor of what a server can cost.
int serve_echo();

}  // namespace ordo::bench
