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
    const bool is_new = ++count_ % kNewConnections == 0;
    const bool is_answered = is_new ? is_served(port_) : ask(kept_);
    const auto time =
        std::chrono::duration_cast<std::chrono::microseconds>(system_clock().now() - begin);
    times_.push_back(time);
    if (!is_new) kept_times_.push_back(time);
    if (!is_answered) ++failed_;
  }

  int failed() const { return failed_; }
  std::size_t count() const { return times_.size(); }
  std::chrono::microseconds percentile(double part) const { return percentile_of(times_, part); }
  // Of the requests on the connection it keeps.
  std::chrono::microseconds kept_percentile(double part) const {
    return percentile_of(kept_times_, part);
  }
  // The next times stand alone.
  void forget_times() {
    times_.clear();
    kept_times_.clear();
  }

 private:
  using Times = std::vector<std::chrono::microseconds>;

  static constexpr int kNewConnections = 16;  // One request of so many.

  static std::chrono::microseconds percentile_of(Times times, double part) {
    if (times.empty()) return {};
    std::sort(times.begin(), times.end());
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  }

  static bool ask(RawSocket& socket) {
    return socket.send("GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n") &&
           socket.read_until("hello\n").ends_with("hello\n");
  }

  const std::uint16_t port_;
  RawSocket kept_;
  Times times_;
  Times kept_times_;
  int count_ = 0;
  int failed_ = 0;
};

}  // namespace ordo::testing_support
