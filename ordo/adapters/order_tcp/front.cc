#include "ordo/adapters/order_tcp/front.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "ordo/core/check.h"

namespace ordo::order_tcp {
namespace {

constexpr int kSettleTurnsMax = 8;  // Of one round: held input goes on in between.
// Connections of one round do not use up a budget that a flush would give back.
constexpr std::uint64_t kUnflushedMax = 256;
constexpr auto kLookAgainTime = std::chrono::milliseconds(2);
constexpr auto kLingerTime = std::chrono::seconds(1);
constexpr std::size_t kLingerBytesMax = std::size_t{4} * 1024 * 1024;

// Whether the client's side has all that was sent. To close with input unread resets the
// connection, and what is on its way would be lost.
bool is_delivered(int socket) {
  int unacknowledged = 0;
  return ::ioctl(socket, SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

struct Front::Peer {
  Peer(sockets::Descriptor connected, gateway::ReplyAddress address, Front& front)
      : socket(std::move(connected)),
        connection(address, front.limits_, front.store_, front.counters_.of_connections) {}

  std::uint64_t number() const { return connection.address().connection; }

  sockets::Descriptor socket;
  Connection connection;
  std::uint32_t interest = 0;  // What the readiness set reports of it.
  bool is_touched = false;
  bool is_lingering = false;  // Said its last word; reads on until the client has ended.
  bool is_blocked = false;    // The last send did not take all.
  TimePoint unread_since;     // Output waits, and no byte of it was taken since then.
  std::size_t discarded_bytes = 0;
};

Front::Front(std::uint32_t index, const ConnectionLimits& limits,
             std::atomic<std::size_t>& connections_now)
    : index_(index),
      limits_(limits),
      connections_now_(connections_now),
      read_buffer_(new char[kReadBytesMax]),
      loop_("ordo-io-" + std::to_string(index), *this),
      linger_timer_(loop_.context()),
      look_again_timer_(loop_.context()),
      unread_timer_(loop_.context()) {}

// NOLINTNEXTLINE(bugprone-exception-escape): without memory to end a thread, the process ends.
Front::~Front() {
  end();
}

Status Front::start(gateway::TaskPort& port) {
  port_ = &port;
  return loop_.start();
}

void Front::adopt(sockets::Descriptor socket) {
  counters_.connections.add();
  Peer& peer = peers_.add([&](std::uint64_t number) {
    return std::make_unique<Peer>(
        std::move(socket), gateway::ReplyAddress{.front = index_, .connection = number}, *this);
  });
  if (is_reading_stopped_) peer.connection.stop_input();
  if (!loop_.watch(peer.socket.get(), peer.number(), 0)) {
    close(peer);
    return;
  }
  settle(peer);
}

void Front::take(gateway::Reply&& reply) noexcept {
  if (loop_.is_this_thread()) {
    // The id's earlier replies may be there: another thread may have run its partition just before.
    if (has_outbox_.load(std::memory_order_acquire)) take_outbox();
    deliver(reply);
    return;
  }
  const std::lock_guard lock(outbox_mutex_);
  if (is_ended_) {
    dropped_late_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  outbox_.push_back(std::move(reply));
  has_outbox_.store(true);
}

void Front::announce() noexcept {
  if (has_outbox_.load() && !is_announced_.exchange(true)) loop_.ring();
}

void Front::stop_reading() {
  if (!loop_.is_running()) return;
  loop_.call([this] {
    is_reading_stopped_ = true;
    peers_.for_each([](Peer& peer) { peer.connection.stop_input(); });
    settle_all();
  });
}

void Front::begin_finish() {
  if (!loop_.is_running()) return;
  loop_.call([this] {
    is_finishing_ = true;
    take_outbox();
    settle_all();
    check_empty();
  });
}

void Front::wait_until_empty(TimePoint deadline) {
  if (!loop_.is_running()) return;
  std::unique_lock lock(empty_mutex_);
  while (!is_empty_ && !system_clock().wait_until(lock, became_empty_, deadline)) {
  }
}

void Front::end() {
  loop_.end([this] {
    {
      const std::lock_guard lock(outbox_mutex_);
      is_ended_ = true;
      counters_.replies_dropped.add(outbox_.size());
      outbox_.clear();
    }
    is_finishing_ = true;
    peers_.for_each([this](Peer& peer) { close(peer); });
  });
}

void Front::on_ready(std::uint64_t number, std::uint32_t events) {
  Peer* const peer = peers_.find(number);
  if (peer == nullptr) return;
  if ((events & EPOLLOUT) != 0) {
    peer->is_blocked = false;
    touch(*peer);
  }
  if ((peer->interest & EPOLLIN) != 0 && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) {
    peer->is_lingering ? discard(*peer) : read(*peer);
  } else if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    close(*peer);
  }
}

void Front::read(Peer& peer) {
  if (!peer.connection.wants_input()) return;
  const ssize_t count = ::recv(peer.socket.get(), read_buffer_.get(), kReadBytesMax, 0);
  if (count < 0) {
    if (!would_block(errno)) close(peer);
    return;
  }
  if (count == 0) {
    peer.connection.end_input(*port_);
  } else {
    const auto size = static_cast<std::size_t>(count);
    counters_.bytes_received.add(size);
    peer.connection.receive(*port_, {read_buffer_.get(), size});
  }
  touch(peer);
  flush_if_many();
}

void Front::discard(Peer& peer) {
  const ssize_t count = ::recv(peer.socket.get(), read_buffer_.get(), kReadBytesMax, 0);
  if (count < 0 && would_block(errno)) return;
  if (count > 0) {
    const auto size = static_cast<std::size_t>(count);
    counters_.bytes_received.add(size);
    peer.discarded_bytes += size;
  }
  if (count <= 0 || peer.discarded_bytes > kLingerBytesMax) close(peer);
}

void Front::take_outbox() {
  is_announced_.store(false);
  {
    const std::lock_guard lock(outbox_mutex_);
    has_outbox_.store(false);
    std::swap(outbox_, taken_);
  }
  for (const gateway::Reply& reply : taken_)
    deliver(reply);
  taken_.clear();
}

void Front::deliver(const gateway::Reply& reply) {
  Peer* const peer = peers_.find(reply.to.connection);
  if (peer == nullptr) {
    counters_.replies_dropped.add();
    return;
  }
  counters_.replies.add();
  peer->connection.answer(reply);
  touch(*peer);
}

void Front::flush_port() {
  requests_flushed_ = counters_.of_connections.requests.value();
  port_->flush();
}

void Front::flush_if_many() {
  const std::uint64_t requests = counters_.of_connections.requests.value();
  if (requests - requests_flushed_ >= kUnflushedMax) flush_port();
}

// Lets the port run what was submitted, and settles all that were touched. Connections whose held
// input can go on are touched again, and get their turn at once, some times and until `limit`.
void Front::finish_round(TimePoint limit) {
  for (int turn = 0; turn < kSettleTurnsMax && !touched_.empty(); ++turn) {
    if (turn > 0 && system_clock().now() >= limit) break;
    flush_port();
    std::swap(touched_, settling_);
    for (const std::uint64_t number : settling_) {
      if (Peer* const peer = peers_.find(number)) {
        peer->is_touched = false;
        settle(*peer);
      }
    }
    settling_.clear();
  }
  if (!touched_.empty()) loop_.ring();
}

void Front::settle(Peer& peer) {
  Connection& connection = peer.connection;
  if (!peer.is_blocked && !send(peer)) return;
  if (connection.is_overflowed()) {
    counters_.disconnected_unread.add();
    close(peer);
    return;
  }
  if (connection.continue_input(*port_)) {
    touch(peer);
    flush_if_many();
  }
  const bool is_over = connection.is_finished() || (is_finishing_ && connection.output().empty());
  if (!is_over || peer.is_lingering) {
    set_interest(peer);
  } else if (connection.is_broken() && !is_reading_stopped_) {
    linger(peer);
  } else if (is_reading_stopped_ && !is_delivered(peer.socket.get())) {
    set_interest(peer);
    look_again_soon();
  } else {
    close(peer);
  }
}

// False: the connection is gone.
bool Front::send(Peer& peer) {
  OutputBuffer& output = peer.connection.output();
  if (output.empty()) return true;
  const std::string_view unsent = output.unsent();
  const ssize_t count = ::send(peer.socket.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL);
  if (count < 0 && !would_block(errno)) {
    close(peer);
    return false;
  }
  if (count > 0) {
    counters_.bytes_sent.add(static_cast<std::size_t>(count));
    output.sent(static_cast<std::size_t>(count));
  }
  peer.is_blocked = !output.empty();
  if (peer.is_blocked) {
    peer.unread_since = system_clock().now();
    watch_unread();
  }
  return true;
}

void Front::set_interest(Peer& peer) {
  std::uint32_t interest = 0;
  if (peer.is_lingering || peer.connection.wants_input()) interest |= EPOLLIN;
  if (peer.is_blocked) interest |= EPOLLOUT;
  if (interest == peer.interest) return;
  loop_.rewatch(peer.socket.get(), peer.number(), interest);
  peer.interest = interest;
}

void Front::touch(Peer& peer) {
  if (peer.is_touched) return;
  peer.is_touched = true;
  touched_.push_back(peer.number());
}

// To close at once, with input unread, would make the system reset the connection, and the client
// might never see the answer that says why.
void Front::linger(Peer& peer) {
  ::shutdown(peer.socket.get(), SHUT_WR);
  peer.is_lingering = true;
  set_interest(peer);
  const bool is_first = lingering_.empty();
  lingering_.push_back(peer.number());
  if (is_first) sweep_lingering();
}

// Twice a linger time, at most: what lingers now is closed at the next sweep.
void Front::sweep_lingering() {
  linger_timer_.expires_after(kLingerTime);
  linger_timer_.async_wait([this, now = lingering_](const boost::system::error_code& error) {
    if (error) return;
    for (const std::uint64_t number : now) {
      if (Peer* const peer = peers_.find(number)) close(*peer);
    }
    std::erase_if(lingering_,
                  [this](std::uint64_t number) { return peers_.find(number) == nullptr; });
    if (!lingering_.empty()) sweep_lingering();
  });
}

// Looks now and then at clients that do not read, while there are such.
void Front::watch_unread() {
  if (std::exchange(is_watching_unread_, true)) return;
  unread_timer_.expires_after(limits_.unread_time_max / 4);
  unread_timer_.async_wait([this](const boost::system::error_code& error) {
    is_watching_unread_ = false;
    if (!error) sweep_unread();
  });
}

void Front::sweep_unread() {
  const TimePoint limit = system_clock().now() - limits_.unread_time_max;
  peers_.for_each([&](Peer& peer) {
    if (!peer.is_blocked) return;
    if (peer.unread_since <= limit) {
      counters_.disconnected_unread.add();
      close(peer);
    } else {
      watch_unread();
    }
  });
}

// Settles all again after a moment: nothing tells when the last byte has been delivered.
void Front::look_again_soon() {
  if (std::exchange(is_looking_again_, true)) return;
  look_again_timer_.expires_after(kLookAgainTime);
  look_again_timer_.async_wait([this](const boost::system::error_code& error) {
    is_looking_again_ = false;
    if (error) return;
    settle_all();
  });
}

void Front::settle_all() {
  peers_.for_each([this](Peer& peer) { touch(peer); });
  finish_round(system_clock().now() + sockets::IoLoop::kRoundsTimeMax);
}

void Front::close(Peer& peer) {
  if (is_reading_stopped_) {
    // Read what has come, lest the system reset the connection before its answers are read.
    ::shutdown(peer.socket.get(), SHUT_WR);
    for (int reads = 0; reads < 16; ++reads) {
      if (::recv(peer.socket.get(), read_buffer_.get(), kReadBytesMax, 0) <= 0) break;
    }
  }
  peers_.remove(peer.number());
  connections_now_.fetch_sub(1, std::memory_order_relaxed);
  check_empty();
}

void Front::check_empty() {
  if (!is_finishing_ || peers_.size() > 0) return;
  const std::lock_guard lock(empty_mutex_);
  is_empty_ = true;
  became_empty_.notify_all();
}

}  // namespace ordo::order_tcp
