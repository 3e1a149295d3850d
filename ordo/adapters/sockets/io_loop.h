// IoLoop: one I/O thread, and the set of sockets it watches.
//
//   IoLoop loop("ordo-io-0", owner);               // owner: on_ready, on_bell, end_round
//   if (Status started = loop.start(); !started) return started;
//   loop.watch(socket, number, EPOLLIN);           // on its thread
//   loop.ring();                                   // any thread: owner.on_bell(), soon
//
// Asio runs the thread: what is posted to it, its timers, and the wait for its sockets. Which of
// them are ready is asked of a set of its own (epoll, level-triggered), which Asio waits for as one
// descriptor: Asio's own reads cost one more system call each, an attempt that finds nothing or a
// renewed registration (docs/adr/0014-one-readiness-set-per-io-thread.md).
//
// A round: on_ready() for each ready socket, then end_round() once, which is when to write. After a
// fifth of a millisecond of rounds Asio gets its turn, for new connections and timers; at once,
// when the owner gives way.
//
// Threads: owns one. ring(), call(), is_this_thread() and context() any thread; watch() and
//          rewatch() its own; start() and end() by the one that made it.
// Bounds:  64 sockets of one look at the set.
// Errors:  start() says what the system refused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/epoll.h>

#include "ordo/adapters/sockets/descriptor.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"
#include "ordo/runtime/threads.h"

namespace ordo::sockets {

class IoLoop {
 public:
  // Called on the loop's thread.
  class Owner {
   public:
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual ~Owner() = default;

    virtual void on_ready(std::uint64_t number, std::uint32_t events) = 0;
    virtual void on_bell() = 0;
    // What is left at `limit` may wait for the next round: ring() for it.
    virtual void end_round(TimePoint limit) = 0;
    // The round had work that everybody else goes before.
    virtual bool gives_way() const { return false; }
  };

  // How long rounds go on before Asio gets its turn.
  static constexpr auto kRoundsTimeMax = std::chrono::microseconds(200);

  // REQUIRES: `owner` outlives this.
  IoLoop(std::string name, Owner& owner);
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;
  ~IoLoop();

  // Makes the readiness set, then the thread.
  Status start();
  bool is_running() const { return thread_.joinable(); }
  bool is_this_thread() const;

  // Runs `function` on the thread and waits for it. REQUIRES: is_running(), on another thread.
  void call(const std::function<void()>& function);
  void ring() noexcept;
  // Runs `last` on the thread, then ends and joins it. Idempotent.
  void end(const std::function<void()>& last);

  // False: the system has no memory for it.
  [[nodiscard]] bool watch(int socket, std::uint64_t number, std::uint32_t events);
  void rewatch(int socket, std::uint64_t number, std::uint32_t events);

  boost::asio::io_context& context() { return context_; }

 private:
  void run();
  void wait_for_ready();
  void run_rounds();

  static constexpr std::size_t kEventsMax = 64;

  const std::string name_;
  Owner& owner_;
  std::array<epoll_event, kEventsMax> events_{};
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::posix::stream_descriptor ready_set_;
  Descriptor bell_;
  Thread thread_;
};

}  // namespace ordo::sockets
