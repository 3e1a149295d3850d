// HonestClient: asks again and again, on a connection it keeps and now and then on a new one, and
// notes how long each answer took.
//
//   HonestClient honest(port);
//   for (int i = 0; i < 1'000; ++i) honest.ask();
//   EXPECT_EQ(honest.failed(), 0);
//   EXPECT_LE(honest.percentile(0.99), 2 * before);
//
// Threads: one owner.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ordo/core/clock.h"
#include "tests/support/raw_socket.h"

namespace ordo::testing_support {

class HonestClient {
 public:
  explicit HonestClient(std::uint16_t port) : port_(port), kept_(port) {}

  void ask() {
    const TimePoint begin = system_clock().now();
    const bool is_answered = ++count_ % kNewConnections == 0 ? is_served(port_) : ask(kept_);
    times_.push_back(
        std::chrono::duration_cast<std::chrono::microseconds>(system_clock().now() - begin));
    if (!is_answered) ++failed_;
  }

  int failed() const { return failed_; }
  std::size_t count() const { return times_.size(); }
  std::chrono::microseconds percentile(double part) const {
    if (times_.empty()) return {};
    std::vector<std::chrono::microseconds> sorted = times_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
  }
  // The next times stand alone.
  void forget_times() { times_.clear(); }

 private:
  static constexpr int kNewConnections = 16;  // One request of so many.

  static bool ask(RawSocket& socket) {
    return socket.send("GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n") &&
           socket.read_until("hello\n").ends_with("hello\n");
  }

  const std::uint16_t port_;
  RawSocket kept_;
  std::vector<std::chrono::microseconds> times_;
  int count_ = 0;
  int failed_ = 0;
};

}  // namespace ordo::testing_support
