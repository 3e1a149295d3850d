// Front: one I/O thread of the server and its connections.
//
// A round: one read of each ready connection, its requests go to the port; a flush of the port at
// the end, and in between when they are many; one write to each connection that has something to
// send. Replies that come inside a flush are appended directly, behind what is in the outbox: a
// partition may change hands, and its replies keep their order. Those of other threads go to the
// outbox, with one wake-up for many.
//
// Threads: take() and announce() any thread; those that say so, the thread of the front; the
//          others by the server's owner.
// Bounds:  one block of kReadBytesMax for reading; the outbox holds replies to admitted requests,
//          which the gateway bounds.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "ordo/adapters/order_tcp/connection.h"
#include "ordo/adapters/order_tcp/output_buffer.h"
#include "ordo/adapters/sockets/descriptor.h"
#include "ordo/adapters/sockets/io_loop.h"
#include "ordo/adapters/sockets/peer_table.h"
#include "ordo/core/clock.h"
#include "ordo/core/counter.h"
#include "ordo/core/result.h"
#include "ordo/gateway/ports.h"

namespace ordo::order_tcp {

struct FrontCounters {
  ConnectionCounters of_connections;
  Counter connections;
  Counter bytes_received;
  Counter bytes_sent;
  Counter replies;
  Counter replies_dropped;
  Counter disconnected_unread;
};

class Front final : private sockets::IoLoop::Owner {
 public:
  // connections_now: of all fronts; adopt() finds itself counted already.
  Front(std::uint32_t index, const ConnectionLimits& limits,
        std::atomic<std::size_t>& connections_now);
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;
  ~Front() override;

  // Makes the readiness set, then the thread.
  Status start(gateway::TaskPort& port);

  // Runs `function` on the thread of the front and waits for it.
  void call(const std::function<void()>& function) { loop_.call(function); }

  // Takes a connected socket over; on the thread of the front.
  void adopt(sockets::Descriptor socket);

  // A reply to one of its connections, and the end of a batch of them.
  void take(gateway::Reply&& reply) noexcept;
  void announce() noexcept;

  // Returns when nothing is read any more.
  void stop_reading();
  // Begins to send what is left and to close; does not wait. REQUIRES: stop_reading().
  void begin_finish();
  // Waits until all connections are closed, or until `deadline`.
  void wait_until_empty(TimePoint deadline);
  // Closes what is left and joins the thread. take() drops from then on.
  void end();

  boost::asio::io_context& context() { return loop_.context(); }
  const FrontCounters& counters() const { return counters_; }
  std::uint64_t dropped_late() const { return dropped_late_.load(std::memory_order_relaxed); }

 private:
  struct Peer;

  void on_ready(std::uint64_t number, std::uint32_t events) override;
  void on_bell() override { take_outbox(); }
  void end_round(TimePoint limit) override { finish_round(limit); }
  void read(Peer& peer);
  void discard(Peer& peer);
  void take_outbox();
  void deliver(const gateway::Reply& reply);
  void flush_port();
  void flush_if_many();
  void finish_round(TimePoint limit);
  void settle(Peer& peer);
  bool send(Peer& peer);
  void set_interest(Peer& peer);
  void touch(Peer& peer);
  void linger(Peer& peer);
  void sweep_lingering();
  void watch_unread();
  void sweep_unread();
  void look_again_soon();
  void settle_all();
  void close(Peer& peer);
  void check_empty();

  static constexpr std::size_t kReadBytesMax = std::size_t{64} * 1024;

  const std::uint32_t index_;
  const ConnectionLimits& limits_;
  std::atomic<std::size_t>& connections_now_;
  gateway::TaskPort* port_ = nullptr;

  // The thread's own.
  BlockStore store_;
  FrontCounters counters_;
  sockets::PeerTable<Peer> peers_;
  std::uint64_t requests_flushed_ = 0;  // How many there were when the port was flushed last.
  std::vector<std::uint64_t> touched_;  // To be settled at the end of the round.
  std::vector<std::uint64_t> settling_;
  std::vector<std::uint64_t> lingering_;
  std::vector<gateway::Reply> taken_;
  std::unique_ptr<char[]> read_buffer_;
  bool is_reading_stopped_ = false;
  bool is_finishing_ = false;
  bool is_looking_again_ = false;
  bool is_watching_unread_ = false;

  // What others bring.
  std::mutex outbox_mutex_;
  std::vector<gateway::Reply> outbox_;  // Guarded by outbox_mutex_.
  bool is_ended_ = false;               // Guarded by outbox_mutex_.
  std::atomic<bool> has_outbox_{false};
  std::atomic<bool> is_announced_{false};
  std::atomic<std::uint64_t> dropped_late_{0};

  std::mutex empty_mutex_;
  std::condition_variable became_empty_;
  bool is_empty_ = false;  // Guarded by empty_mutex_; true only while finishing.

  sockets::IoLoop loop_;
  boost::asio::steady_timer linger_timer_;
  boost::asio::steady_timer look_again_timer_;
  boost::asio::steady_timer unread_timer_;
};

}  // namespace ordo::order_tcp
