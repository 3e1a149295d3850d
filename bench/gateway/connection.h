// Connection: one client's socket, what it asked and has not been told yet.
//
//   Connection connection("ordo_binary", 7, port);
//   connection.ask(16, now);               // sixteen requests that were due at `now`
//   connection.send();                     // as much as the socket takes
//   connection.receive(now, latencies);    // when it is readable
//
// Threads: one owner.
// Bounds:  kOutstandingMax requests; the caller keeps to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gateway/dialect.h"

namespace ordo::bench {

class Connection {
 public:
  static constexpr std::size_t kOutstandingMax = 1024;

  struct Errors {
    std::uint64_t disordered = 0;
    std::uint64_t bad = 0;
    std::string first{};  // What the first wrong answer was.
  };

  // Connects to 127.0.0.1; fd() is negative when that failed.
  Connection(std::string_view dialect, std::size_t number, std::uint16_t port);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  int fd() const { return fd_; }
  std::size_t outstanding() const { return static_cast<std::size_t>(asked_ - answered_); }
  bool has_unsent() const { return sent_ < out_.size(); }
  bool broken() const { return broken_; }
  const Errors& errors() const { return errors_; }

  void ask(std::size_t count, std::uint64_t due_ns);
  void send();
  // Reads what has come; appends the latency of each answer in ns.
  void receive(std::vector<double>& latencies);

 private:
  void judge(const Answer& answer, std::string_view bytes);

  const std::unique_ptr<Dialect> dialect_;
  int fd_ = -1;
  bool broken_ = false;
  std::uint64_t asked_ = 0;
  std::uint64_t answered_ = 0;
  std::array<std::uint64_t, kOutstandingMax> due_ns_{};  // By sequence.
  // The sequence due next, by the parity of the order's life and by its place: the first answers of
  // an order may come before the last ones of the order whose place it takes.
  std::array<std::array<std::uint64_t, kIdsPerConnection>, 2> next_answer_{};
  std::string out_{};
  std::size_t sent_ = 0;
  std::vector<char> in_;
  std::size_t in_size_ = 0;
  Errors errors_{};
};

}  // namespace ordo::bench
