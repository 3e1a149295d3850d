// Limits: every bound of a connection. What happens at each is in docs/limits.md.
//
//   Limits limits;
//   limits.streams_max = 100;
//   if (Status good = check(limits); !good) return good;
//
// InputBudget: what all connections together hold of messages that are not complete yet, and of the
// heads of HTTP/2's calls and requests that are under way.
//
// OutputBudget: what all connections together hold of answers that are not sent yet. It refuses
// nothing: who sees that it is full sends no more, and the slowest connections are cut off.
//
// Threads: Limits are a plain value; the budgets any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "ordo/core/result.h"

namespace ordo::http2 {

struct Limits {
  // Of one request.
  std::size_t header_bytes_max = std::size_t{16} * 1024;  // As HTTP/2 counts a header list.
  std::size_t continuations_max = 8;                      // CONTINUATION frames of one block.
  std::size_t message_bytes_max = std::size_t{20} * 1024 * 1024 + 4096;  // gRPC, inflated; bodies.

  // Of one connection.
  std::uint32_t streams_max = 1'000;                               // At the same time.
  std::uint32_t stream_window_bytes = std::uint32_t{256} * 1024;   // Sent before we took any.
  std::uint32_t connection_window_bytes = std::uint32_t{4} << 20;  // Likewise, of all streams.
  std::size_t stream_output_bytes_max = std::size_t{1} << 20;      // Queued; one message beyond it.
  std::size_t output_bytes_max = std::size_t{64} << 20;            // Queued for all streams.
  std::size_t output_pause_bytes = std::size_t{256} * 1024;        // For the socket; no input then.
  std::size_t input_bytes_max = std::size_t{64} << 20;  // Incomplete messages; heads of streams.

  // Of floods: what may come at once, and how much of it comes back each second.
  std::uint32_t resets_burst = 1'000;  // Streams reset by either side because of the client.
  std::uint32_t resets_per_second = 100;
  std::uint32_t controls_burst = 10'000;  // PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty DATA.
  std::uint32_t controls_per_second = 1'000;

  // Of time.
  std::chrono::milliseconds handshake_timeout{10'000};  // For the first request head, or SETTINGS.
  std::chrono::milliseconds request_timeout{60'000};  // For a head, or a body that is not a stream.
  std::chrono::milliseconds idle_timeout{600'000};    // Without a stream and without a byte.
  std::chrono::milliseconds write_timeout{60'000};    // Output of which no byte is taken.
  std::chrono::milliseconds keepalive_interval{60'000};  // Silent with streams: we send a PING.
  std::chrono::milliseconds keepalive_timeout{20'000};   // For its answer, or anything else.
};

// Which field is out of its range.
Status check(const Limits& limits);

class InputBudget {
 public:
  explicit InputBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  [[nodiscard]] bool take(std::size_t bytes) {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= bytes_max_) return true;
    give(bytes);
    return false;
  }
  // Not refused; what it takes above the bound the others do not get.
  void add(std::size_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void give(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const std::size_t bytes_max_;
  std::atomic<std::size_t> used_{0};
};

class OutputBudget {
 public:
  explicit OutputBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void add(std::size_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void remove(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  bool is_full() const { return used() >= bytes_max_; }
  // How much has to go, once it is full, until all may send again.
  std::size_t excess() const {
    const std::size_t goal = bytes_max_ - bytes_max_ / 8;
    const std::size_t now = used();
    return now > goal ? now - goal : 0;
  }

 private:
  const std::size_t bytes_max_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace ordo::http2
