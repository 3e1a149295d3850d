#include "ordo/adapters/http2/front.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "ordo/core/check.h"

namespace ordo::http2 {
namespace {

constexpr int kSettleTurnsMax = 8;      // Of one round: what handlers do in between goes out, too.
constexpr std::uint64_t kNoiseMax = 8;  // Of one read; above it the next are small.
constexpr int kSeldomMax = 8;           // Who was idle more often, having asked, asks often.
constexpr int kWritesMax = 4;           // To one connection, before the others get their turn.
constexpr std::size_t kPiecesMax = 64;
constexpr int kDeadlinesMax = 64;  // Of one step of the timer.
// What a round does for those that are put off: the work of one, and of others until then.
constexpr auto kPutOffTime = std::chrono::microseconds(20);
constexpr std::uint32_t kInput = EPOLLIN | EPOLLRDHUP;
constexpr std::uint32_t kEnds = EPOLLRDHUP | EPOLLERR | EPOLLHUP;
// So many that are put off may be reported as ready again and again. A look at the readiness set
// brings some of those that are ready: more of these would hide the others.
constexpr std::size_t kCrowdMax = 16;
// Of what a socket is given, so much may wait to be sent: at first, and once the client has taken
// some. The system would take megabytes for one that does not read, and each costs time, to be
// taken and to be given up.
constexpr int kUnsentBytesMin = 16 * 1024;
constexpr int kUnsentBytesMax = 128 * 1024;
constexpr int kCutOffMax = 1;  // At once.
constexpr auto kLingerTime = std::chrono::seconds(1);
constexpr std::size_t kLingerBytesMax = std::size_t{4} * 1024 * 1024;
// Deadlines are not more exact than this, and so many of them are one wake-up.
constexpr auto kTimerStep = std::chrono::milliseconds(1);

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

std::string address_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET6) {
    const auto& of_six = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &of_six.sin6_addr, text.data(), text.size());
    std::string address_text = "[";
    address_text.append(text.data()).append("]:");
    return address_text.append(std::to_string(ntohs(of_six.sin6_port)));
  }
  const auto& of_four = reinterpret_cast<const sockaddr_in&>(address);
  ::inet_ntop(AF_INET, &of_four.sin_addr, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(ntohs(of_four.sin_port));
}

}  // namespace

struct Front::Peer {
  Peer(std::uint64_t given, sockets::Descriptor connected, Front& front)
      : number(given),
        socket(std::move(connected)),
        connection(
            SessionContext{.limits = front.parts_.limits,
                           .routes = front.parts_.routes,
                           .budget = front.parts_.budget,
                           .counters = front.counters_.of_sessions,
                           .mailbox = front.mailbox_,
                           .peer = std::make_shared<const std::string>(address_of(socket.get())),
                           .output = front.parts_.output,
                           .touch = [this, &front] { front.touch(*this); }},
            front.store_, front.now_) {}

  // Whether the others need not go before it.
  bool is_trusted() const {
    return !is_noisy && !is_lingering && !is_shed && connection.has_served();
  }

  const std::uint64_t number;
  sockets::Descriptor socket;
  std::uint32_t interest = kInput;  // What the readiness set reports of it.
  std::uint32_t put_off_events = 0;
  bool is_put_off = false;
  bool is_due = false;    // Put off: its deadline has come.
  bool is_heard = false;  // Something of it has been read.
  bool is_noisy = false;
  bool is_disarmed = false;  // Put off: the readiness set does not report it meanwhile.
  int unsent_bytes_max = 0;  // 0: as the system likes.
  bool is_touched = false;
  bool is_blocked = false;  // The last write did not take all.
  bool is_input_ended = false;
  bool is_shed = false;
  bool is_lingering = false;  // Said its last word; reads on until the client has ended.
  TimePoint linger_until = TimePoint::max();
  TimePoint scheduled = TimePoint::max();  // When it is looked at, at the latest.
  std::size_t discarded_bytes = 0;
  std::size_t read_bytes = Front::kReadBytesMin;  // With one read.
  IdleList::Place idle_place{};
  TimePoint idle_since{};  // When it was put there.
  int idle_count = 0;      // How often it became idle again, having asked for something.
  Connection connection;   // Last: it goes first, and touches when it does.
};

Front::Front(std::size_t index, const ServerParts& parts)
    : parts_(parts),
      read_buffer_(new char[kReadBytesMax]),
      now_(system_clock().now()),
      loop_("ordo-http-" + std::to_string(index), *this),
      mailbox_(std::make_shared<Mailbox>([this] { loop_.ring(); })),
      timer_(loop_.context()) {}

// NOLINTNEXTLINE(bugprone-exception-escape): without memory to end a thread, the process ends.
Front::~Front() {
  end();
}

void Front::adopt(sockets::Descriptor socket) {
  mailbox_->make_this_threads_own();
  now_ = system_clock().now();
  counters_.connections.add();
  Peer& peer = peers_.add([&](std::uint64_t number) {
    return std::make_unique<Peer>(number, std::move(socket), *this);
  });
  if (is_ended_ || !loop_.watch(peer.socket.get(), peer.number, peer.interest)) {
    close(peer);
    return;
  }
  if (is_draining_) peer.connection.drain(now_);
  settle(peer);
  if (is_crowded()) loop_.ring();
  arm_timer();
}

void Front::shed_idle() {
  const auto number = idle_.first();
  if (!number) return;
  now_ = system_clock().now();
  shed(*peers_.find(*number));
  settle_touched(now_);
  if (!touched_.empty()) loop_.ring();
}

// It may have asked for something since it was last settled: then it is not idle any more.
void Front::shed(Peer& peer) {
  idle_.remove(peer.idle_place);
  if (!peer.connection.is_idle()) return;
  counters_.shed.add();
  peer.is_shed = true;
  peer.connection.end_idle(now_);
  touch(peer);
}

// Whoever keeps up has nothing queued between two rounds, has just taken some of it, or was not
// given it yet.
bool Front::is_behind(const Peer& peer) {
  const bool is_given = !peer.is_touched || peer.is_blocked;
  return is_given && !peer.is_lingering && peer.connection.queued_bytes() > 0;
}

std::vector<Front::Waiting> Front::waiting() {
  std::vector<Waiting> all;
  peers_.for_each([&](const Peer& peer) {
    if (!is_behind(peer)) return;
    all.push_back({peer.connection.sent_at(), peer.connection.queued_bytes()});
  });
  return all;
}

bool Front::cut_off(TimePoint limit) {
  now_ = system_clock().now();
  int count = 0;
  peers_.for_each([&](Peer& peer) {
    if (!is_behind(peer) || peer.connection.sent_at() > limit) return;
    if (++count > kCutOffMax) return;
    counters_.cut_off.add();
    abort(peer);
  });
  if (!touched_.empty()) loop_.ring();
  return count > kCutOffMax;
}

void Front::begin_drain() {
  if (!loop_.is_running()) return;
  call([this] {
    now_ = system_clock().now();
    is_draining_ = true;
    peers_.for_each([this](Peer& peer) {
      peer.connection.drain(now_);
      touch(peer);
    });
    end_round(now_ + sockets::IoLoop::kRoundsTimeMax);
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
    is_ended_ = true;
    timer_.cancel();
    peers_.for_each([this](Peer& peer) { close(peer); });
    mailbox_->close();
  });
}

void Front::on_ready(std::uint64_t number, std::uint32_t events) {
  Peer* const peer = peers_.find(number);
  if (peer == nullptr) return;
  if (peer->is_trusted() && (events & kEnds) == 0) return act(*peer, events);
  peer->put_off_events |= events;
  put_off(*peer);
  if (put_off_.size() > kCrowdMax) disarm(*peer);
}

void Front::put_off(Peer& peer) {
  if (std::exchange(peer.is_put_off, true)) return;
  put_off_.add(peer.number, peer.is_heard ? PutOffList::Kind::other : PutOffList::Kind::unheard);
}

// Until it has its turn the readiness set reports nothing of it, or at most once, that it has gone.
void Front::disarm(Peer& peer) {
  if (std::exchange(peer.is_disarmed, true)) return;
  peer.interest = EPOLLET;
  loop_.rewatch(peer.socket.get(), peer.number, peer.interest);
}

// One that asks may take the place of many that did not: these are closed one by one, too.
void Front::do_put_off(TimePoint limit) {
  has_done_put_off_ = has_put_off();
  if (!has_done_put_off_) return;
  const TimePoint enough = system_clock().now() + kPutOffTime;
  do {
    is_shed_next_ = !is_shed_next_;
    const bool is_far_above = idle_.bytes() > parts_.idle_bytes_max + parts_.idle_bytes_max / 8;
    if (is_crowded() && (is_shed_next_ || is_far_above || put_off_.empty())) {
      shed(*peers_.find(*idle_.first()));
    } else if (Peer* const peer = peers_.find(put_off_.take())) {
      resume(*peer);
    }
    settle_touched(limit);
  } while (has_put_off() && system_clock().now() < enough);
}

void Front::resume(Peer& peer) {
  peer.is_put_off = false;
  if (std::exchange(peer.is_disarmed, false)) set_interest(peer);
  if (std::exchange(peer.is_due, false)) {
    if (peer.is_lingering && now_ >= peer.linger_until) return close(peer);
    if (peer.is_lingering) {
      schedule(peer);
    } else {
      peer.connection.on_time(now_);
      touch(peer);
    }
  }
  act(peer, std::exchange(peer.put_off_events, 0));
}

void Front::act(Peer& peer, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    peer.is_blocked = false;
    if (peer.unsent_bytes_max == kUnsentBytesMin) bound_unsent(peer, kUnsentBytesMax);
    touch(peer);
  }
  if ((peer.interest & EPOLLIN) != 0 && (events & (kInput | kEnds)) != 0) {
    peer.is_lingering ? discard(peer) : read(peer);
  } else if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    close(peer);
  }
}

void Front::on_bell() {
  now_ = system_clock().now();
  mailbox_->take_all();
}

void Front::read(Peer& peer) {
  if (!peer.connection.wants_input()) return;
  const ssize_t count = ::recv(peer.socket.get(), read_buffer_.get(), peer.read_bytes, 0);
  if (count < 0) {
    if (!would_block(errno)) close(peer);
    return;
  }
  now_ = system_clock().now();
  peer.is_heard = true;
  if (count == 0) {
    peer.is_input_ended = true;
    peer.connection.end_input(now_);
  } else {
    const auto size = static_cast<std::size_t>(count);
    counters_.bytes_received.add(size);
    const std::uint64_t noise = peer.connection.noise();
    peer.connection.receive({read_buffer_.get(), size}, now_);
    peer.is_noisy = peer.connection.noise() - noise > kNoiseMax;
    if (peer.is_noisy) {
      peer.read_bytes = kReadBytesMin;
    } else if (size == peer.read_bytes) {
      peer.read_bytes = std::min(2 * size, kReadBytesMax);
    }
  }
  touch(peer);
}

void Front::discard(Peer& peer) {
  // To truncate is to drop: nothing is copied.
  const ssize_t count = ::recv(peer.socket.get(), read_buffer_.get(), kReadBytesMax, MSG_TRUNC);
  if (count < 0 && would_block(errno)) return;
  if (count > 0) {
    const auto size = static_cast<std::size_t>(count);
    counters_.bytes_received.add(size);
    peer.discarded_bytes += size;
  }
  if (count <= 0 || peer.discarded_bytes > kLingerBytesMax) close(peer);
}

void Front::end_round(TimePoint limit) {
  settle_touched(limit);
  do_put_off(limit);
  if (!touched_.empty() || has_put_off()) loop_.ring();
  if (parts_.output->is_full()) parts_.relieve();
  arm_timer();
}

// Settles all that were touched. Handlers may touch others meanwhile, which get their turn at once,
// some times and until `limit`.
void Front::settle_touched(TimePoint limit) {
  for (int turn = 0; turn < kSettleTurnsMax && !touched_.empty(); ++turn) {
    if (turn > 0 && system_clock().now() >= limit) break;
    std::swap(touched_, settling_);
    for (const std::uint64_t number : settling_) {
      if (Peer* const peer = peers_.find(number)) {
        peer->is_touched = false;
        settle(*peer);
      }
    }
    settling_.clear();
  }
}

void Front::settle(Peer& peer) {
  if (peer.is_lingering) return;
  for (int writes = 0; writes < kWritesMax && !peer.is_blocked; ++writes) {
    peer.connection.fill(now_);
    if (peer.connection.output().empty()) break;
    if (!send(peer)) return;
    if (writes + 1 == kWritesMax) touch(peer);
  }
  if (!peer.connection.is_finished()) {
    set_interest(peer);
    schedule(peer);
    note_idle(peer);
  } else if (peer.is_blocked) {
    abort(peer);
  } else if (peer.is_input_ended || peer.is_shed) {
    close(peer);
  } else {
    linger(peer);
  }
}

void Front::note_idle(Peer& peer) {
  const Connection& connection = peer.connection;
  if (peer.is_shed || !connection.is_idle()) {
    idle_.remove(peer.idle_place);
    return;
  }
  if (peer.idle_place.is_listed && peer.idle_since == connection.heard_at()) return;
  peer.idle_since = connection.heard_at();
  if (connection.has_served() && peer.idle_count <= kSeldomMax) ++peer.idle_count;
  const IdleList::Rank rank = peer.idle_count > kSeldomMax ? IdleList::Rank::often
                              : peer.idle_count > 0        ? IdleList::Rank::seldom
                                                           : IdleList::Rank::fresh;
  idle_.place(peer.idle_place, peer.number, rank, connection.idle_bytes());
}

// False: the connection is gone.
bool Front::send(Peer& peer) {
  std::array<iovec, kPiecesMax> pieces{};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = peer.connection.output().gather(pieces);
  if (peer.unsent_bytes_max == 0 && peer.connection.output().size() > kUnsentBytesMin)
    bound_unsent(peer, kUnsentBytesMin);
  const ssize_t count = ::sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL);
  if (count < 0 && !would_block(errno)) {
    close(peer);
    return false;
  }
  const std::size_t offered = [&] {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < message.msg_iovlen; ++i)
      sum += pieces[i].iov_len;
    return sum;
  }();
  const auto size = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  counters_.bytes_sent.add(size);
  peer.connection.sent(size, now_);
  peer.is_blocked = size < offered;
  return true;
}

void Front::bound_unsent(Peer& peer, int bytes_max) {
  peer.unsent_bytes_max = bytes_max;
  ::setsockopt(peer.socket.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes_max, sizeof(bytes_max));
}

void Front::set_interest(Peer& peer) {
  if (peer.is_disarmed) return;
  std::uint32_t interest = 0;
  const bool wants_input = peer.connection.wants_input() && !peer.is_input_ended;
  if (peer.is_lingering || wants_input) interest |= kInput;
  if (peer.is_blocked) interest |= EPOLLOUT;
  if (interest == peer.interest) return;
  loop_.rewatch(peer.socket.get(), peer.number, interest);
  peer.interest = interest;
}

void Front::touch(Peer& peer) {
  if (peer.is_touched) return;
  peer.is_touched = true;
  touched_.push_back(peer.number);
}

// To close at once, with input unread, would make the system reset the connection, and the client
// might never see the answer that says why.
void Front::linger(Peer& peer) {
  idle_.remove(peer.idle_place);
  ::shutdown(peer.socket.get(), SHUT_WR);
  peer.is_lingering = true;
  peer.linger_until = now_ + kLingerTime;
  set_interest(peer);
  schedule(peer);
}

// The client does not take what the system holds for it, and would keep the system from giving that
// up for minutes.
void Front::abort(Peer& peer) {
  const struct linger none = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(peer.socket.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  close(peer);
}

void Front::close(Peer& peer) {
  idle_.remove(peer.idle_place);
  deadlines_.erase({peer.scheduled, peer.number});
  peers_.remove(peer.number);
  parts_.connections_now.fetch_sub(1, std::memory_order_relaxed);
  check_empty();
}

void Front::schedule(Peer& peer) {
  const TimePoint next = peer.is_lingering ? peer.linger_until : peer.connection.next_deadline();
  if (next >= peer.scheduled) return;  // When that one comes, it is asked again.
  if (peer.scheduled != TimePoint::max()) deadlines_.erase({peer.scheduled, peer.number});
  peer.scheduled = next;
  deadlines_.emplace(next, peer.number);
}

void Front::arm_timer() {
  if (deadlines_.empty() || deadlines_.begin()->first >= armed_for_ || is_ended_) return;
  armed_for_ = deadlines_.begin()->first;
  timer_.expires_at(std::max(armed_for_, now_ + kTimerStep));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) on_timer();
  });
}

void Front::on_timer() {
  armed_for_ = TimePoint::max();
  now_ = system_clock().now();
  for (int i = 0; i < kDeadlinesMax; ++i) {
    if (deadlines_.empty() || deadlines_.begin()->first > now_) break;
    const std::uint64_t number = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    Peer* const peer = peers_.find(number);
    ORDO_CHECK(peer != nullptr);
    peer->scheduled = TimePoint::max();
    peer->is_due = true;
    put_off(*peer);
  }
  if (!put_off_.empty()) loop_.ring();
  arm_timer();
}

void Front::check_empty() {
  if (!is_draining_ || peers_.size() > 0) return;
  const std::lock_guard lock(empty_mutex_);
  is_empty_ = true;
  became_empty_.notify_all();
}

}  // namespace ordo::http2
