// Front: one I/O thread of the server and its connections.
//
// A round: one read of each ready connection, which calls the handlers; what other threads have
// posted; then one write to each connection that has something to send (sockets::IoLoop).
//
// Some connections are put off until all others had their turn: new ones, until a request has come,
// those that make noise (FrameMeter), and those that end. A round does the work of one of them
// (PutOffList), or of a few if that is little.
//
// Threads: those that say so, the thread of the front; the others by the server's owner.
// Bounds:  one block of kReadBytesMax for reading; a deadline for each connection. A new one,
//          and one that makes noise, is read in small pieces, so that the others do not wait for
//          what its bytes cost. 64 deadlines of a millisecond.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "ordo/adapters/http2/connection.h"
#include "ordo/adapters/http2/idle_list.h"
#include "ordo/adapters/http2/limits.h"
#include "ordo/adapters/http2/output_queue.h"
#include "ordo/adapters/http2/put_off_list.h"
#include "ordo/adapters/http2/routes.h"
#include "ordo/adapters/http2/session.h"
#include "ordo/adapters/sockets/descriptor.h"
#include "ordo/adapters/sockets/io_loop.h"
#include "ordo/adapters/sockets/peer_table.h"
#include "ordo/core/clock.h"
#include "ordo/core/counter.h"
#include "ordo/core/result.h"

namespace ordo::http2 {

struct FrontCounters {
  SessionCounters of_sessions;
  Counter connections;
  Counter bytes_received;
  Counter bytes_sent;
  Counter shed;     // Idle connections closed to make room.
  Counter cut_off;  // Connections closed because the server had too much queued, and they most.
};

// What all fronts of a server share.
struct ServerParts {
  const Limits& limits;
  const RouteSwitch& routes;
  InputBudget& budget;
  std::atomic<std::size_t>& connections_now;
  std::shared_ptr<OutputBudget> output;
  std::size_t idle_bytes_max;            // Of each front.
  const std::function<void()>& relieve;  // The output budget is full: cut_off() the slowest of all.
};

class Front final : private sockets::IoLoop::Owner {
 public:
  Front(std::size_t index, const ServerParts& parts);
  ~Front() override;

  Status start() { return loop_.start(); }
  // Runs `function` on the thread of the front and waits for it.
  void call(const std::function<void()>& function) { loop_.call(function); }
  // Takes a connected socket over, which is counted already; on the thread of the front.
  void adopt(sockets::Descriptor socket);

  // Closes the first of its idle connections, if it has any (IdleList). On the thread of the front.
  void shed_idle();
  // The connections for which something is queued. On the thread of the front.
  struct Waiting {
    TimePoint sent_at;  // When it last took anything.
    std::size_t bytes = 0;
  };
  std::vector<Waiting> waiting();
  // Resets one of those that have taken nothing after `limit`; true: there are more of them. On
  // the thread of the front.
  bool cut_off(TimePoint limit);

  // Lets all connections finish what runs; does not wait. Idempotent.
  void begin_drain();
  // Waits until all connections are closed, or until `deadline`.
  void wait_until_empty(TimePoint deadline);
  // Closes what is left and joins the thread. Idempotent.
  void end();

  boost::asio::io_context& context() { return loop_.context(); }
  const FrontCounters& counters() const { return counters_; }

 private:
  struct Peer;

  void on_ready(std::uint64_t number, std::uint32_t events) override;
  void on_bell() override;
  void end_round(TimePoint limit) override;
  bool gives_way() const override { return has_done_put_off_; }
  bool has_put_off() const { return !put_off_.empty() || is_crowded(); }
  bool is_crowded() const { return idle_.bytes() > parts_.idle_bytes_max; }
  void settle_touched(TimePoint limit);
  void put_off(Peer& peer);
  void disarm(Peer& peer);
  void do_put_off(TimePoint limit);
  void resume(Peer& peer);
  void act(Peer& peer, std::uint32_t events);
  void read(Peer& peer);
  void discard(Peer& peer);
  void settle(Peer& peer);
  void note_idle(Peer& peer);
  void shed(Peer& peer);
  static bool is_behind(const Peer& peer);
  bool send(Peer& peer);
  void bound_unsent(Peer& peer, int bytes_max);
  void set_interest(Peer& peer);
  void touch(Peer& peer);
  void linger(Peer& peer);
  void abort(Peer& peer);
  void close(Peer& peer);
  void schedule(Peer& peer);
  void arm_timer();
  void on_timer();
  void check_empty();

  static constexpr std::size_t kReadBytesMin = 1024;
  static constexpr std::size_t kReadBytesMax = std::size_t{64} * 1024;

  const ServerParts parts_;
  FrontCounters counters_;
  BufferStore store_;
  sockets::PeerTable<Peer> peers_;
  IdleList idle_;
  std::vector<std::uint64_t> touched_;  // To be settled at the end of the round.
  std::vector<std::uint64_t> settling_;
  PutOffList put_off_;
  bool has_done_put_off_ = false;  // In the last round.
  bool is_shed_next_ = false;
  std::set<std::pair<TimePoint, std::uint64_t>> deadlines_;  // One for each peer that has one.
  std::unique_ptr<char[]> read_buffer_;
  TimePoint now_;
  TimePoint armed_for_ = TimePoint::max();
  bool is_draining_ = false;
  bool is_ended_ = false;

  std::mutex empty_mutex_;
  std::condition_variable became_empty_;
  bool is_empty_ = false;  // Guarded by empty_mutex_; true only while draining.

  sockets::IoLoop loop_;
  std::shared_ptr<Mailbox> mailbox_;
  boost::asio::steady_timer timer_;
};

}  // namespace ordo::http2
