#include "bench/gateway/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::size_t kInputBytes = 128 * 1024;
constexpr std::uint64_t kLife = kIdsPerConnection * kOrderSteps;  // In requests of a connection.
static_assert(Connection::kOutstandingMax < kLife);
constexpr std::uint64_t kAnswered = 0;  // In the place of a due time.

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

Connection::Connection(std::string_view dialect, std::size_t number, std::uint16_t port)
    : dialect_(make_dialect(dialect, number)),
      fd_(connect_to(port)),
      in_(kInputBytes) {
  for (std::size_t i = 0; i < kIdsPerConnection; ++i) {
    next_answer_[0][i] = i;
    next_answer_[1][i] = kLife + i;
  }
}

Connection::~Connection() {
  if (fd_ >= 0) ::close(fd_);
}

void Connection::ask(std::size_t count, std::uint64_t due_ns) {
  for (std::size_t i = 0; i < count; ++i) {
    dialect_->ask(asked_, out_);
    due_ns_[asked_ % kOutstandingMax] = due_ns;
    ++asked_;
  }
}

void Connection::send() {
  while (has_unsent()) {
    const ssize_t size = ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (size < 0) {
      broken_ = broken_ || (errno != EAGAIN && errno != EINTR);
      return;
    }
    sent_ += static_cast<std::size_t>(size);
  }
  out_.clear();
  sent_ = 0;
}

void Connection::receive(std::vector<double>& latencies) {
  const ssize_t size = ::recv(fd_, in_.data() + in_size_, in_.size() - in_size_, 0);
  if (size <= 0) {
    broken_ = broken_ || size == 0 || (errno != EAGAIN && errno != EINTR);
    return;
  }
  in_size_ += static_cast<std::size_t>(size);
  const std::uint64_t now = now_ns();
  std::string_view bytes(in_.data(), in_size_);
  while (outstanding() > 0 && !bytes.empty()) {
    const Answer answer = dialect_->read(bytes);
    if (answer.size == 0) break;
    judge(answer, bytes);
    std::uint64_t& due = due_ns_[answer.sequence % kOutstandingMax];
    latencies.push_back(static_cast<double>(now - due));
    due = kAnswered;
    ++answered_;
    bytes.remove_prefix(answer.size);
  }
  if (outstanding() == 0 && !bytes.empty()) {
    errors_.bad += 1;
    errors_.first = "an answer to nothing: " + std::string(bytes.substr(0, 100));
    bytes = {};
  }
  in_size_ = bytes.size();
  std::memmove(in_.data(), bytes.data(), in_size_);
  broken_ = broken_ || in_size_ == in_.size();
}

void Connection::judge(const Answer& answer, std::string_view bytes) {
  const std::uint64_t life = answer.sequence / kLife;
  std::uint64_t& next = next_answer_[life % 2][answer.sequence % kIdsPerConnection];
  const bool awaited =
      answer.sequence < asked_ && due_ns_[answer.sequence % kOutstandingMax] != kAnswered;
  const bool in_order = awaited && (answer.sequence == next || !dialect_->ids_come_again());
  if (answer.sequence >= next && answer.sequence < asked_) {
    next = answer.sequence + kIdsPerConnection;
    if (next / kLife != life) next += kLife;  // To the life after the next.
  }
  if (in_order && answer.good) [[likely]]
    return;
  if (errors_.first.empty()) {
    errors_.first = std::string(in_order ? "a bad answer: " : "an answer out of order: ") +
                    std::string(bytes.substr(0, std::min<std::size_t>(answer.size, 100)));
  }
  errors_.disordered += in_order ? 0 : 1;
  errors_.bad += answer.good ? 0 : 1;
}

}  // namespace ordo::bench
