// Thread: a named thread that is joined, never forgotten. The one place where threads are made.
//
//   Thread worker("ordo-pool-3", [&](std::stop_token stop) { while (!stop.stop_requested()) ...; });
//
// The name is what `top -H`, `gdb` and `perf` show; it is cut to the 15 characters they keep.
//
// Threads: join() and request_stop() from any thread but its own.
// Cost:    a thread.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace ordo {

class Thread {
 public:
  // Starts `body` at once. What it throws ends the program.
  Thread(const std::string& name, std::function<void(std::stop_token)> body);

  // Asks the body to end, and waits for it.
  ~Thread() = default;

  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&&) noexcept = default;

  void request_stop() { thread_.request_stop(); }

  // Waits for the body to end, without asking it to. Again: returns at once.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::jthread thread_;
};

}  // namespace ordo
